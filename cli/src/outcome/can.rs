//! The reports on CAN messages that a controller with message buffers sends, over the whole run,
//! beside what is promised. The driver of the controller measures them.

use super::coverage::{Coverage, EMPTY, Watched};
use super::{Outcome, RaisedAlarm, entry};
use crate::duration::human;
use crate::names::Names;
use crate::plan::Plan;
use crate::table::{Columns, cell, time};
use diapason_abi::Nanos;
use diapason_pipe::measured::{CanReport, ControllerCounts};
use diapason_plan::can::CanOutcome;
use diapason_system::{CanSender, System};

/// The reports of a driver on one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CanRow {
    /// The place of the driver in the description.
    pub process: u64,
    /// The last report, with the longest times of all.
    pub last: CanReport,
    coverage: Coverage,
}

/// Takes in what the process in place `process` measured.
pub(super) fn note(rows: &mut Vec<CanRow>, process: u64, at: Nanos, report: &CanReport) {
    let is = |row: &CanRow| (row.process, row.last.number) == (process, report.number);
    let first = || CanRow { process, last: *report, coverage: Coverage::default() };
    let row = entry(rows, is, first);
    let (jitter, response) = (row.last.jitter, row.last.response);
    row.last = *report;
    row.last.jitter = row.last.jitter.max(jitter);
    row.last.response = row.last.response.max(response);
    row.coverage.note(at);
}

/// The promise of `plan` about a message of this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CanMessagePromise {
    pub name: String,
    pub bus: String,
    /// The number of the message among all of the description.
    pub number: u16,
    /// The name of the process that sends it, and the place of the driver in the description.
    pub sender: String,
    pub driver: u64,
    /// This host is the master of the common time of the bus.
    pub leads: bool,
    /// The longest until it is through, if that is promised.
    pub bound_ns: Option<u64>,
    /// The longest until it is in the queue of the controller.
    pub jitter_ns: u64,
}

impl CanMessagePromise {
    /// Returns the promise of every message of a process that a controller sends.
    #[must_use]
    pub fn of(system: &System, plan: &Plan) -> Vec<CanMessagePromise> {
        let buses = system.cans.iter().zip(&plan.cans);
        let of_bus = buses.flat_map(|(network, plan)| {
            let messages = network.messages.iter().zip(&plan.messages);
            messages.filter_map(|(message, promise)| {
                let CanSender::Process(sender) = &message.sender else { return None };
                let bound = match promise.outcome {
                    CanOutcome::Response(response) => Some(response.0),
                    // A message that is begun by its start-by time is through by its deadline.
                    CanOutcome::StartBy(_) => message.deadline_ns,
                    _ => None,
                };
                let bound = bound.filter(|_| plan.refused.is_none());
                Some(CanMessagePromise {
                    name: message.name.clone(),
                    bus: network.name.clone(),
                    number: message.number,
                    sender: sender.clone(),
                    driver: network.controller?.driver.into(),
                    leads: network.time.is_some_and(|time| network.leads(time.message)),
                    bound_ns: bound,
                    jitter_ns: message.jitter_ns,
                })
            })
        });
        of_bus.collect()
    }

    fn row<'o>(&self, outcome: &'o Outcome) -> Option<&'o CanRow> {
        let is = |row: &&CanRow| (row.process, row.last.number) == (self.driver, self.number);
        outcome.cans.iter().find(is)
    }

    /// Returns whether a message of it was through.
    pub(super) fn is_measured(&self, outcome: &Outcome) -> bool {
        self.row(outcome).is_some_and(|row| row.last.sent > 0)
    }

    /// Returns the promises that a run contradicts.
    pub(super) fn alarms(&self, outcome: &Outcome, names: &Names) -> Vec<RaisedAlarm> {
        let (of, row) = (&*self.name, self.row(outcome));
        let watched = Watched {
            alarm: "can-unmeasured",
            of,
            process: self.driver,
            coverage: row.map(|row| row.coverage),
            found_ns: 0,
        };
        let silent = watched.alarm(outcome, names);
        let assumed = row.map(|row| self.assumed(&row.last)).into_iter().flatten().flatten();
        let Some(bound) = self.bound_ns else { return silent.into_iter().chain(assumed).collect() };
        let empty = self.empty(outcome);
        let promised = row.map(|row| self.promised(&row.last, bound)).into_iter().flatten();
        silent.into_iter().chain(empty).chain(assumed).chain(promised.flatten()).collect()
    }

    /// Returns what is not as the bounds of all messages assume, those of other nodes included. A
    /// message that is due at no time can break them, too.
    fn assumed(&self, last: &CanReport) -> [Option<RaisedAlarm>; 6] {
        let (of, ControllerCounts { dry, untimed, .. }) = (&*self.name, last.controller);
        let outside = format!(
            "{} messages of {of} came before their `period` was over, or were longer than `bytes`",
            last.outside
        );
        let jitter = format!(
            "a message of {of} was in the queue of its controller after {}; its `jitter` is {}",
            human(last.jitter.0),
            human(self.jitter_ns)
        );
        let late = format!(
            "the controller of {of} got its next message too late {dry} times while one waited"
        );
        let bus = &self.bus;
        let [away, wrong] = of_controller(of, bus, &last.controller);
        let lost = if self.leads {
            format!(
                "{untimed} frames of the time of `{bus}` said no instant, after as many as a node \
                 may lose in a row"
            )
        } else {
            format!(
                "{untimed} high-speed messages were lost while the driver of {of} did not know the \
                 time of `{bus}` any more"
            )
        };
        [
            // Before the others: whatever else is broken may follow from it.
            away,
            wrong,
            RaisedAlarm::above("can-contract", of, [last.outside, 0], outside),
            RaisedAlarm::above("can-jitter", of, [last.jitter.0, self.jitter_ns], jitter),
            RaisedAlarm::above("can-dry", of, [dry.into(), 0], late),
            RaisedAlarm::above("can-time", of, [untimed.into(), 0], lost),
        ]
    }

    fn promised(&self, last: &CanReport, bound: u64) -> [Option<RaisedAlarm>; 2] {
        let of = &*self.name;
        let replaced = format!(
            "{} messages of {of} were replaced by newer ones before they were through",
            last.replaced
        );
        [
            RaisedAlarm::above("can-replaced", of, [last.replaced, 0], replaced),
            RaisedAlarm::late("can-late", of, [last.response.0, bound], |time| {
                format!("was through after {time}")
            }),
        ]
    }

    /// Nothing came: that no message was late says nothing.
    fn empty(&self, outcome: &Outcome) -> Option<RaisedAlarm> {
        let time = outcome.end?.time_ns;
        let of = &self.name;
        let text = format!("no message of {of} was through in {}", human(time));
        let is_empty = time >= EMPTY.0 && !self.is_measured(outcome);
        is_empty.then(|| RaisedAlarm::missing("can-empty", of, text))
    }

    /// Returns the columns of messages: measurements beside promises.
    pub(crate) fn columns<'a>(
        outcome: &'a Outcome,
        names: &'a Names,
    ) -> Columns<'a, CanMessagePromise> {
        let count = move |value: fn(&CanReport) -> u64| {
            move |it: &CanMessagePromise| it.row(outcome).map(|row| value(&row.last))
        };
        let jitter = move |it: &CanMessagePromise| {
            let longest = it.row(outcome)?.last.jitter.0;
            Some(cell(format!("{} of {}", human(longest), human(it.jitter_ns)), longest))
        };
        let response = move |it: &CanMessagePromise| {
            it.row(outcome).filter(|row| row.last.sent > 0).map(|row| time(row.last.response.0))
        };
        Columns::<CanMessagePromise>::default()
            .left(("message", "message"), |it| it.name.clone())
            .left(("bus", "bus"), |it| it.bus.clone())
            .left(("sender", "process"), |it| it.sender.clone())
            .json("driver", |it| names.process(it.driver))
            .right(("taken", "taken"), count(|it| it.taken))
            .right(("through", "sent"), count(|it| it.sent))
            .right(("late", "late"), count(|it| it.late))
            .json("replaced", count(|it| it.replaced))
            .json("outside", count(|it| it.outside))
            .json("dry", count(|it| it.controller.dry.into()))
            .json("untimed", count(|it| it.controller.untimed.into()))
            .json("errors", count(|it| it.controller.errors.into()))
            .json("off", count(|it| it.controller.off.into()))
            .right(("until queued", "jitter_ns"), jitter)
            .json("jitter_bound_ns", |it| it.jitter_ns)
            .right(("longest", "response_ns"), response)
            .right(("bound", "bound_ns"), |it| it.bound_ns.map(time))
    }
}

/// Returns what the counts of a controller contradict, of a message that it sends or hears: it was
/// away from its bus, or saw more errors there than the plan counts.
pub(super) fn of_controller(
    of: &str,
    bus: &str,
    counts: &ControllerCounts,
) -> [Option<RaisedAlarm>; 2] {
    let ControllerCounts { errors, off, .. } = counts;
    let away = format!("the controller of {of} was off `{bus}` {off} times");
    let wrong = format!(
        "the driver of {of} saw at least {errors} errors on `{bus}` beyond what the plan counts"
    );
    [
        RaisedAlarm::above("can-off", of, [(*off).into(), 0], away),
        RaisedAlarm::above("can-errors", of, [(*errors).into(), 0], wrong),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn promise() -> CanMessagePromise {
        CanMessagePromise {
            name: "speed".into(),
            bus: "drive".into(),
            number: 3,
            sender: "control".into(),
            driver: 1,
            leads: false,
            bound_ns: Some(900),
            jitter_ns: 50,
        }
    }

    fn rung(change: impl FnOnce(&mut CanReport)) -> Vec<&'static str> {
        rung_of(&promise(), change)
    }

    fn rung_of(
        promise: &CanMessagePromise,
        change: impl FnOnce(&mut CanReport),
    ) -> Vec<&'static str> {
        let mut outcome = sample::outcome();
        let end = outcome.end.as_ref().unwrap().time_ns;
        let mut report = CanReport {
            number: 3,
            taken: 9,
            sent: 9,
            jitter: Nanos(50),
            response: Nanos(900),
            ..CanReport::default()
        };
        change(&mut report);
        let seconds = (1..=end / 1_000_000_000).map(Nanos::from_secs);
        seconds.for_each(|at| note(&mut outcome.cans, 1, at, &report));
        let alarms = promise.alarms(&outcome, &sample::names());
        alarms.iter().map(|alarm| alarm.name).collect()
    }

    #[test]
    fn what_a_run_contradicts_is_an_alarm() {
        assert_eq!(rung(|_| ()), [""; 0]);
        assert_eq!(rung(|it| it.response.0 += 1), ["can-late"]);
        assert_eq!(rung(|it| it.jitter.0 += 1), ["can-jitter"]);
        assert_eq!(rung(|it| it.outside = 1), ["can-contract"]);
        assert_eq!(rung(|it| it.controller.dry = 1), ["can-dry"]);
        assert_eq!(rung(|it| it.controller.untimed = 1), ["can-time"]);
        assert_eq!(rung(|it| it.controller.errors = 1), ["can-errors"]);
        assert_eq!(rung(|it| it.controller.off = 1), ["can-off"]);
        assert_eq!(rung(|it| it.replaced = 1), ["can-replaced"]);
        assert_eq!(rung(|it| it.sent = 0), ["can-empty"]);
        assert_eq!(rung(|it| it.number = 4), ["can-unmeasured", "can-empty"]);
    }

    #[test]
    fn a_message_that_is_due_at_no_time_can_break_the_bounds_of_others() {
        let idle = CanMessagePromise { bound_ns: None, ..promise() };
        let rung = |change: fn(&mut CanReport)| rung_of(&idle, change);
        assert_eq!(rung(|it| (it.sent, it.replaced) = (0, 9)), [""; 0]);
        assert_eq!(rung(|it| it.response.0 = u64::MAX), [""; 0]);
        assert_eq!(rung(|it| it.outside = 1), ["can-contract"]);
        assert_eq!(rung(|it| it.jitter.0 += 1), ["can-jitter"]);
        assert_eq!(rung(|it| it.controller.errors = 1), ["can-errors"]);
        assert_eq!(rung(|it| it.number = 4), ["can-unmeasured"]);
    }

    #[test]
    fn a_report_of_another_process_is_none() {
        let mut outcome = sample::outcome();
        let report = CanReport { number: 3, sent: 1, ..CanReport::default() };
        note(&mut outcome.cans, 0, Nanos(1), &report);
        assert!(!promise().is_measured(&outcome));
        note(&mut outcome.cans, 1, Nanos(1), &report);
        assert!(promise().is_measured(&outcome));
    }
}

//! The reports on CAN messages of other nodes that a controller with message buffers hears, over
//! the whole run, beside what is promised. The driver of the controller measures them, and so does
//! the program that reads them.

use super::can::of_controller;
use super::coverage::{Coverage, EMPTY, Watched};
use super::{Outcome, RaisedAlarm, entry};
use crate::duration::human;
use crate::names::Names;
use crate::plan::Plan;
use crate::table::{Columns, cell};
use diapason_abi::Nanos;
use diapason_pipe::measured::HeardReport;
use diapason_system::System;

/// The reports of a driver or a reader on one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeardRow {
    /// The place of the process in the description.
    pub process: u64,
    /// The last report, with the longest time of all.
    pub last: HeardReport,
    coverage: Coverage,
}

/// Takes in what the process in place `process` measured.
pub(super) fn note(rows: &mut Vec<HeardRow>, process: u64, at: Nanos, report: &HeardReport) {
    let is = |row: &HeardRow| (row.process, row.last.number) == (process, report.number);
    let first = || HeardRow { process, last: *report, coverage: Coverage::default() };
    let row = entry(rows, is, first);
    let longest = row.last.longest.max(report.longest);
    row.last = HeardReport { longest, ..*report };
    row.coverage.note(at);
}

/// The promise of `plan` about a message that a process of this host reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeardPromise {
    pub name: String,
    pub bus: String,
    /// The number of the message among all of the description.
    pub number: u16,
    /// The places of the driver and of the reader in the description.
    pub driver: u64,
    pub reader: u64,
    /// The longest from the end of its frame until the driver has put it into the memory of its
    /// reader, and until that is done with it, if they are promised.
    pub told_ns: Option<u64>,
    pub done_ns: Option<u64>,
}

impl HeardPromise {
    /// Returns the promise of every message that a controller hears for a process.
    #[must_use]
    pub fn of(system: &System, plan: &Plan) -> Vec<HeardPromise> {
        let buses = system.cans.iter().zip(&plan.cans);
        let of_bus = buses.flat_map(|(network, plan)| {
            network.heard().into_iter().filter_map(move |place| {
                let message = &network.messages[place];
                let reader = message.reader.as_ref()?;
                let reader = system.processes.iter().position(|it| it.name == *reader)?;
                let found = plan.heard.iter().find(|(heard, _)| *heard == place);
                let found = found.and_then(|(_, heard)| heard.as_ref().ok());
                let found = found.filter(|_| plan.refused.is_none());
                Some(HeardPromise {
                    name: message.name.clone(),
                    bus: network.name.clone(),
                    number: message.number,
                    driver: network.controller?.driver.into(),
                    reader: reader as u64,
                    told_ns: found.map(|heard| heard.told.0),
                    done_ns: found.map(|heard| heard.done.0),
                })
            })
        });
        of_bus.collect()
    }

    fn row<'o>(&self, outcome: &'o Outcome, process: u64) -> Option<&'o HeardRow> {
        let is = |row: &&HeardRow| (row.process, row.last.number) == (process, self.number);
        outcome.heard.iter().find(is)
    }

    /// Returns whether its reader took one.
    pub(super) fn is_measured(&self, outcome: &Outcome) -> bool {
        self.row(outcome, self.reader).is_some_and(|row| row.last.heard > 0)
    }

    /// Returns the promises that a run contradicts.
    pub(super) fn alarms(&self, outcome: &Outcome, names: &Names) -> Vec<RaisedAlarm> {
        let silent = |process| {
            let row = self.row(outcome, process);
            let watched = Watched {
                alarm: "can-unmeasured",
                of: &self.name,
                process,
                coverage: row.map(|row| row.coverage),
                found_ns: 0,
            };
            watched.alarm(outcome, names)
        };
        let silent = [self.driver, self.reader].into_iter().filter_map(silent);
        let driver = self.row(outcome, self.driver).map(|row| self.of_driver(&row.last));
        let reader = self.row(outcome, self.reader).and_then(|row| {
            RaisedAlarm::late("can-read", &self.name, [row.last.longest.0, self.done_ns?], |time| {
                format!("was taken by its reader {time} after its frame")
            })
        });
        let rest = self.empty(outcome).into_iter().chain(reader);
        silent.chain(driver.into_iter().flatten().flatten()).chain(rest).collect()
    }

    /// Returns what the reports of the driver contradict.
    fn of_driver(&self, last: &HeardReport) -> [Option<RaisedAlarm>; 6] {
        let of = &*self.name;
        let [away, wrong] = of_controller(of, &self.bus, &last.controller);
        let missed = format!(
            "at least {} messages of {of} were lost because another took their buffer",
            last.missed
        );
        let full =
            format!("{} messages of {of} found no room in the memory of its reader", last.full);
        let outside = format!(
            "{} messages of {of} came before their `period` was over, or were longer than `bytes`",
            last.outside
        );
        let late = self.told_ns.and_then(|bound| {
            RaisedAlarm::late("can-heard", of, [last.longest.0, bound], |time| {
                format!("was in the memory of its reader {time} after its frame")
            })
        });
        [
            // Before the others: whatever else is broken may follow from it.
            away,
            wrong,
            RaisedAlarm::above("can-contract", of, [last.outside, 0], outside),
            RaisedAlarm::above("can-missed", of, [last.missed, 0], missed),
            RaisedAlarm::above("can-full", of, [last.full, 0], full),
            late,
        ]
    }

    /// Nothing came: that no message was late says nothing.
    fn empty(&self, outcome: &Outcome) -> Option<RaisedAlarm> {
        let time = outcome.end?.time_ns;
        let of = &self.name;
        let text = format!("its reader took no message of {of} in {}", human(time));
        let is_empty = time >= EMPTY.0 && !self.is_measured(outcome);
        is_empty.then(|| RaisedAlarm::missing("can-empty", of, text))
    }

    /// Returns the columns of messages: measurements beside promises.
    pub(crate) fn columns<'a>(outcome: &'a Outcome, names: &'a Names) -> Columns<'a, HeardPromise> {
        let by_driver = move |value: fn(&HeardReport) -> u64| {
            move |it: &HeardPromise| it.row(outcome, it.driver).map(|row| value(&row.last))
        };
        let longest = move |it: &HeardPromise, process: u64, bound: Option<u64>| {
            let longest = it.row(outcome, process).filter(|row| row.last.heard > 0)?.last.longest.0;
            let text = match bound {
                Some(bound) => format!("{} of {}", human(longest), human(bound)),
                None => human(longest),
            };
            Some(cell(text, longest))
        };
        Columns::<HeardPromise>::default()
            .left(("message", "message"), |it| it.name.clone())
            .left(("bus", "bus"), |it| it.bus.clone())
            .left(("reader", "reader"), |it| names.process(it.reader))
            .json("driver", |it| names.process(it.driver))
            .right(("heard", "heard"), by_driver(|it| it.heard))
            .right(("read", "read"), |it| it.row(outcome, it.reader).map(|row| row.last.heard))
            .right(("missed", "missed"), by_driver(|it| it.missed))
            .right(("full", "full"), by_driver(|it| it.full))
            .json("outside", by_driver(|it| it.outside))
            .json("errors", by_driver(|it| it.controller.errors.into()))
            .json("off", by_driver(|it| it.controller.off.into()))
            .right(("until told", "told_ns"), move |it| longest(it, it.driver, it.told_ns))
            .json("told_bound_ns", |it| it.told_ns)
            .right(("until taken", "taken_ns"), move |it| longest(it, it.reader, it.done_ns))
            .json("done_bound_ns", |it| it.done_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use diapason_pipe::measured::ControllerCounts;

    fn promise() -> HeardPromise {
        HeardPromise {
            name: "pedal".into(),
            bus: "drive".into(),
            number: 3,
            driver: 1,
            reader: 0,
            told_ns: Some(900),
            done_ns: Some(1_500),
        }
    }

    fn rung(change: impl Fn(&mut HeardReport, bool)) -> Vec<&'static str> {
        let mut outcome = sample::outcome();
        let end = outcome.end.as_ref().unwrap().time_ns;
        for (process, longest) in [(1, 900), (0, 1_500)] {
            let longest = Nanos(longest);
            let mut report = HeardReport { number: 3, heard: 9, longest, ..HeardReport::default() };
            change(&mut report, process == 1);
            let seconds = (1..=end / 1_000_000_000).map(Nanos::from_secs);
            seconds.for_each(|at| note(&mut outcome.heard, process, at, &report));
        }
        let alarms = promise().alarms(&outcome, &sample::names());
        alarms.iter().map(|alarm| alarm.name).collect()
    }

    #[test]
    fn what_a_run_contradicts_is_an_alarm() {
        let by_driver = |change: fn(&mut HeardReport)| {
            rung(move |report, drives| {
                if drives {
                    change(report)
                }
            })
        };
        let by_reader = |change: fn(&mut HeardReport)| {
            rung(move |report, drives| {
                if !drives {
                    change(report)
                }
            })
        };
        assert_eq!(rung(|_, _| ()), [""; 0]);
        assert_eq!(by_driver(|it| it.longest.0 += 1), ["can-heard"]);
        assert_eq!(by_reader(|it| it.longest.0 += 1), ["can-read"]);
        assert_eq!(by_driver(|it| it.missed = 1), ["can-missed"]);
        assert_eq!(by_driver(|it| it.full = 1), ["can-full"]);
        assert_eq!(by_driver(|it| it.outside = 1), ["can-contract"]);
        let counts = |errors, off| ControllerCounts { errors, off, ..ControllerCounts::default() };
        assert_eq!(rung(|it, _| it.controller = counts(1, 0)), ["can-errors"]);
        assert_eq!(rung(|it, _| it.controller = counts(0, 1)), ["can-off"]);
        assert_eq!(by_reader(|it| it.heard = 0), ["can-empty"]);
        assert_eq!(by_reader(|it| it.number = 4), ["can-unmeasured", "can-empty"]);
        assert_eq!(by_driver(|it| it.number = 4), ["can-unmeasured"]);
    }
}

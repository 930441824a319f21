//! The reports on UDP sockets and their adapters, over the whole run, beside what is promised.
//!
//! Two processes report on a socket: its server counts the frames that came for it, and its program
//! measures how long they waited. A report counts only if the right process made it.

use super::coverage::{Coverage, EMPTY, Watched, found};
use super::{Outcome, RaisedAlarm, entry};
use crate::duration::human;
use crate::names::Names;
use crate::plan::Plan;
use crate::table::{Columns, TableCell, cell, time};
use diapason_abi::Nanos;
use diapason_contract::ethernet::{GATES_SETTING, GateTerms};
use diapason_ether::Discard;
use diapason_pipe::bill::What;
use diapason_pipe::measured::{DiscardReport, FrameEnd, FrameReport, REASONS};
use diapason_system::{EthernetAdapter, System, UdpPort};
use serde_json::{Value, json};

/// The reports of one process on an adapter, or on one end of a socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameRow {
    /// The place of the process in the description.
    pub process: u64,
    pub last: FrameReport,
    /// The longest from the server to the program, and the number of that datagram.
    pub longest: (u64, u64),
    /// Frames that were discarded, by reason.
    pub discarded: [u64; REASONS],
    /// The slowest link that it had since there was one, and whether it lost it.
    link: Option<(u32, bool)>,
    coverage: Coverage,
}

fn row(rows: &mut Vec<FrameRow>, process: u64, end: FrameEnd, number: u8) -> &mut FrameRow {
    let is =
        |row: &FrameRow| (row.process, row.last.end, row.last.number) == (process, end, number);
    entry(rows, is, || FrameRow {
        process,
        last: FrameReport::new(end, number),
        longest: (0, 0),
        discarded: [0; REASONS],
        link: None,
        coverage: Coverage::default(),
    })
}

/// Takes in what the process in place `process` counted.
pub(super) fn note(rows: &mut Vec<FrameRow>, process: u64, at: Nanos, report: &FrameReport) {
    let row = row(rows, process, report.end, report.number);
    row.last = *report;
    row.longest = row.longest.max((report.longest.0, report.slowest));
    row.link = match (row.link, report.link) {
        (None, 0) => None,
        (None, speed) => Some((speed, false)),
        (Some((slowest, _)), 0) => Some((slowest, true)),
        (Some((slowest, lost)), speed) => Some((slowest.min(speed), lost)),
    };
    row.coverage.note(at);
}

/// Takes in what it discarded.
pub(super) fn note_discards(rows: &mut Vec<FrameRow>, process: u64, report: &DiscardReport) {
    let row = row(rows, process, report.end, report.number);
    let counts = row.discarded.iter_mut().skip(report.first());
    counts.zip(report.counts).for_each(|(to, count)| *to = count.into());
}

impl FrameRow {
    /// Returns how many frames were discarded for this reason.
    #[must_use]
    pub fn of(&self, reason: Discard) -> u64 {
        self.discarded.get(reason as usize).copied().unwrap_or(0)
    }
}

/// Returns the report of this process on an end.
fn find(outcome: &Outcome, process: u64, end: FrameEnd, number: u8) -> Option<&FrameRow> {
    let is =
        |row: &&FrameRow| (row.process, row.last.end, row.last.number) == (process, end, number);
    outcome.frames.iter().find(is)
}

/// Returns each reason for which frames were discarded, with its count.
fn reasons(discarded: &[u64]) -> Vec<(&'static str, u64)> {
    let named = Discard::ALL.into_iter().zip(discarded);
    named.filter(|(_, count)| **count > 0).map(|(reason, count)| (reason.name(), *count)).collect()
}

fn reasons_cell(discarded: &[u64]) -> TableCell {
    let found = reasons(discarded);
    let words: Vec<String> = found.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let text = if words.is_empty() { "0".to_owned() } else { words.join(", ") };
    let object = |(reason, frames)| json!({ "reason": reason, "frames": frames });
    cell(text, found.into_iter().map(object).collect::<Value>())
}

/// The bound of the plan for the datagrams of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketBound {
    /// The longest from the wire until the program is done with a datagram.
    pub whole_ns: u64,
    /// The part of it behind the interrupt, which a run sees.
    pub seen_ns: u64,
    /// Most frames that wait.
    pub slots: u64,
}

/// The promise of `plan` about a socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketPromise {
    pub name: String,
    /// The number of the socket on its host.
    pub number: u8,
    /// The places of its program and of its server in the description.
    pub process: u64,
    pub server: u64,
    /// The bound, if one is promised.
    pub bound: Option<SocketBound>,
    /// A run of so long without a datagram is an alarm.
    pub patience_ns: u64,
}

impl SocketPromise {
    /// Returns the promise of every socket.
    #[must_use]
    pub fn of(system: &System, plan: &Plan) -> Vec<SocketPromise> {
        let promise = system.sockets.iter().zip(&plan.sockets).map(|(socket, socketed)| {
            let UdpPort { name, number, process, adapter, .. } = socket;
            let bound = socketed.bill().map(|bill| SocketBound {
                whole_ns: bill.total.0,
                seen_ns: [What::BottomHalf, What::Driver, What::User]
                    .iter()
                    .map(|what| bill.value(*what).0)
                    .sum(),
                slots: bill.slots,
            });
            let server = system.adapters[*adapter].driver.into();
            let (name, process) = (name.clone(), (*process).into());
            let patience_ns = EMPTY.0;
            SocketPromise { name, number: *number, process, server, bound, patience_ns }
        });
        promise.collect()
    }

    fn server<'o>(&self, outcome: &'o Outcome) -> Option<&'o FrameRow> {
        find(outcome, self.server, FrameEnd::Server, self.number)
    }

    fn program<'o>(&self, outcome: &'o Outcome) -> Option<&'o FrameRow> {
        find(outcome, self.process, FrameEnd::Program, self.number)
    }

    /// Returns whether a datagram came through it.
    pub(super) fn is_measured(&self, outcome: &Outcome) -> bool {
        self.program(outcome).is_some_and(|row| row.last.passed > 0)
    }

    /// Returns all frames that were discarded, by reason.
    fn discarded(&self, outcome: &Outcome) -> [u64; REASONS] {
        let mut sum = [0; REASONS];
        for row in [self.server(outcome), self.program(outcome)].into_iter().flatten() {
            sum.iter_mut().zip(row.discarded).for_each(|(sum, count)| *sum += count);
        }
        sum
    }

    /// Returns the promises that a run contradicts.
    pub(super) fn alarms(
        &self,
        outcome: &Outcome,
        names: &Names,
        slack_ns: u64,
    ) -> Vec<RaisedAlarm> {
        let step = self.out_of_step(outcome);
        let Some(bound) = self.bound else { return step.into_iter().collect() };
        let (of, program) = (&*self.name, self.program(outcome));
        let watched = Watched {
            alarm: "socket-unmeasured",
            of,
            process: self.process,
            coverage: program.map(|row| row.coverage),
            found_ns: found(self.patience_ns),
        };
        let silent = watched.alarm(outcome, names);
        let empty = self.empty(outcome);
        let counted = self.server(outcome).map(|row| self.counted(row, &bound));
        let waited = program.map(|row| {
            let late = [row.longest.0, bound.seen_ns.saturating_add(slack_ns)];
            let room = row.of(Discard::Room);
            let text = format!("{room} datagrams of {of} did not fit the memory of its program");
            [
                RaisedAlarm::late("socket-late", of, late, |time| {
                    format!("took {time} from its server to its program")
                }),
                RaisedAlarm::above("socket-loss", of, [room, 0], text),
            ]
        });
        let seen = counted.into_iter().flatten().chain(waited.into_iter().flatten()).flatten();
        silent.into_iter().chain(step).chain(empty).chain(seen).collect()
    }

    /// Returns the alarm about datagrams that its program did not send in step with gates.
    fn out_of_step(&self, outcome: &Outcome) -> Option<RaisedAlarm> {
        let (of, out) = (&*self.name, self.server(outcome)?.last.foreign);
        let text = format!("{out} datagrams of {of} were not in step with gates, and not sent");
        RaisedAlarm::above("socket-step", of, [out, 0], text)
    }

    /// Returns the alarms from what its server counted.
    fn counted(&self, row: &FrameRow, bound: &SocketBound) -> [Option<RaisedAlarm>; 3] {
        let (of, last) = (&*self.name, row.last);
        let lost = row.of(Discard::Quota) + row.of(Discard::Broken);
        let outside = format!("{} datagrams for {of} were outside of its contract", last.outside);
        let (peak, slots) = (last.peak.into(), bound.slots);
        let full = format!("{peak} frames waited for {of}; at most {slots} were expected");
        let loss = format!("{lost} frames for {of} found no room in its inbox");
        [
            // Before the others: whatever else is broken may follow from it.
            RaisedAlarm::above("socket-contract", of, [last.outside, 0], outside),
            RaisedAlarm::above("socket-buffer", of, [peak, slots], full),
            RaisedAlarm::above("socket-loss", of, [lost, 0], loss),
        ]
    }

    /// Nothing came: that no datagram was late says nothing.
    fn empty(&self, outcome: &Outcome) -> Option<RaisedAlarm> {
        let time = outcome.end?.time_ns;
        let of = &self.name;
        let text = format!("no datagram of {of} came in {}: nothing is known of it", human(time));
        let is_empty = time >= self.patience_ns && !self.is_measured(outcome);
        is_empty.then(|| RaisedAlarm::missing("socket-empty", of, text))
    }

    /// Returns the columns of sockets: measurements beside promises.
    pub(crate) fn columns<'a>(
        outcome: &'a Outcome,
        names: &'a Names,
    ) -> Columns<'a, SocketPromise> {
        let server = move |value: fn(&FrameReport) -> u64| {
            move |it: &SocketPromise| it.server(outcome).map(|row| value(&row.last))
        };
        let program = move |value: fn(&FrameRow) -> u64| {
            move |it: &SocketPromise| it.program(outcome).map(value)
        };
        let waited = move |it: &SocketPromise| {
            let row = it.program(outcome)?;
            let bound = it.bound.map_or(String::new(), |it| format!(" of {}", human(it.seen_ns)));
            Some(cell(human(row.longest.0) + &bound, row.longest.0))
        };
        let peak = move |it: &SocketPromise| {
            let peak = it.server(outcome)?.last.peak;
            let slots = it.bound.map_or(String::new(), |it| format!(" of {}", it.slots));
            Some(cell(format!("{peak}{slots}"), peak))
        };
        let unseen = |it: &SocketPromise| it.bound.map(|it| time(it.whole_ns - it.seen_ns));
        Columns::<SocketPromise>::default()
            .left(("socket", "socket"), |it| it.name.clone())
            .left(("program", "process"), |it| names.process(it.process))
            .json("server", |it| names.process(it.server))
            .right(("frames", "frames"), server(|it| it.offered))
            .right(("datagrams", "datagrams"), program(|row| row.last.passed))
            .left(("discarded", "discarded"), move |it| reasons_cell(&it.discarded(outcome)))
            .json("outside", server(|it| it.outside))
            .right(("at once", "peak"), peak)
            .json("slots", |it| it.bound.map(|it| it.slots))
            .right(("server to program", "longest_ns"), waited)
            .json("slowest", program(|row| row.longest.1))
            .json("seen_bound_ns", |it| it.bound.map(|it| it.seen_ns))
            .right("not seen", unseen)
            .right(("bound", "bound_ns"), |it| it.bound.map(|it| time(it.whole_ns)))
    }
}

/// The promise of `plan` about an adapter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdapterPromise {
    /// The name of its device.
    pub name: String,
    /// The number of the adapter on its host.
    pub number: u8,
    /// The place of its server in the description, and of the process that sends.
    pub server: u64,
    pub sender: Option<u64>,
    /// Whether the bill of a socket relies on it.
    pub relied: bool,
    /// The speed of its link, in Mbit/s.
    pub speed: u64,
    /// The `guard` of its gates in ns, if it has some.
    pub guard_ns: Option<u64>,
}

impl AdapterPromise {
    /// Returns the promise of every adapter.
    #[must_use]
    pub fn of(system: &System, plan: &Plan) -> Vec<AdapterPromise> {
        let promise = |(place, adapter): (usize, &EthernetAdapter)| {
            let mut sockets = system.sockets.iter().zip(&plan.sockets);
            AdapterPromise {
                name: adapter.name().to_owned(),
                number: adapter.number,
                server: adapter.driver.into(),
                sender: adapter.sender().map(u64::from),
                speed: adapter.speed,
                guard_ns: GateTerms::of(
                    system.processes[usize::from(adapter.driver)].setting(GATES_SETTING),
                )
                .map(|terms| terms.guard_ns),
                relied: sockets.any(|(it, of)| it.adapter == place && of.bill().is_some()),
            }
        };
        system.adapters.iter().enumerate().map(promise).collect()
    }

    fn row<'o>(&self, outcome: &'o Outcome) -> Option<&'o FrameRow> {
        find(outcome, self.server, FrameEnd::Adapter, self.number)
    }

    /// Returns the assumptions about it that a run contradicts, if a bill relies on them.
    pub(super) fn alarms(&self, outcome: &Outcome, names: &Names) -> Vec<RaisedAlarm> {
        let guarded = self.guarded(outcome);
        if !self.relied {
            return guarded.into_iter().collect();
        }
        let (of, row) = (&*self.name, self.row(outcome));
        let watched = Watched {
            alarm: "adapter-unmeasured",
            of,
            process: self.server,
            coverage: row.map(|row| row.coverage),
            found_ns: 0,
        };
        let counted = row.map(|row| {
            let (outside, lost) = (row.last.outside, row.of(Discard::NoBuffer));
            let more = format!("{outside} frames came to {of} beyond its `rate` and `burst`");
            let loss = format!("{of} lost {lost} frames, because it had no buffer for them");
            [
                RaisedAlarm::above("adapter-contract", of, [outside, 0], more),
                RaisedAlarm::above("adapter-loss", of, [lost, 0], loss),
            ]
        });
        let silent = watched.alarm(outcome, names);
        let link = row.and_then(|row| self.link(row));
        let counted = counted.into_iter().flatten().flatten();
        silent.into_iter().chain(link).chain(guarded).chain(counted).collect()
    }

    /// Returns the alarm about its gates: its server gave it a frame later than they count with.
    fn guarded(&self, outcome: &Outcome) -> Option<RaisedAlarm> {
        let (guard, longest) = (self.guard_ns?, self.row(outcome)?.longest.0);
        let of = &*self.name;
        let (took, most) = (human(longest), human(guard));
        let text = format!("{of} got a frame {took} after its server chose it; `guard` is {most}");
        RaisedAlarm::above("adapter-gates", of, [longest, guard], text)
    }

    /// Returns the alarm about its link, on whose speed every bill of its sockets relies.
    fn link(&self, row: &FrameRow) -> Option<RaisedAlarm> {
        let (slowest, is_lost) = row.link?;
        let (of, observed) = (&self.name, if is_lost { 0 } else { u64::from(slowest) });
        let text = match is_lost {
            true => format!("{of} lost its link: a cable was pulled, or what is at its end is off"),
            false => {
                format!("the link of {of} has {slowest} Mbit/s; its `speed` is {}", self.speed)
            }
        };
        let (of, assumed) = (of.clone(), self.speed);
        (observed < assumed).then_some(RaisedAlarm {
            name: "adapter-link",
            of,
            observed,
            assumed,
            text,
        })
    }

    /// Returns the columns of adapters.
    pub(crate) fn columns<'a>(
        outcome: &'a Outcome,
        names: &'a Names,
    ) -> Columns<'a, AdapterPromise> {
        let count = move |value: fn(&FrameReport) -> u64| {
            move |it: &AdapterPromise| it.row(outcome).map(|row| value(&row.last))
        };
        let sends = move |value: fn(&FrameReport) -> u64| {
            move |it: &AdapterPromise| {
                let row = find(outcome, it.sender?, FrameEnd::Adapter, it.number);
                row.map(|row| value(&row.last))
            }
        };
        Columns::<AdapterPromise>::default()
            .left(("adapter", "adapter"), |it| it.name.clone())
            .left(("server", "server"), |it| names.process(it.server))
            .right(("frames", "frames"), count(|it| it.offered))
            .right(("to sockets", "passed"), count(|it| it.passed))
            .left(("discarded", "discarded"), move |it| {
                it.row(outcome).map(|row| reasons_cell(&row.discarded))
            })
            .right(("beyond its rate", "outside"), count(|it| it.outside))
            .json("link_mbit", count(|it| it.link.into()))
            .right(("sent", "sent"), sends(|it| it.sent))
            .right(("refused to send", "foreign"), sends(|it| it.foreign))
    }
}

#[cfg(test)]
mod tests;

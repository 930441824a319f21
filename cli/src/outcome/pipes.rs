//! The reports of the readers of pipes, over the whole run.

use super::coverage::{Coverage, Watched, found, patience};
use super::{Outcome, RaisedAlarm, Truth, entry};
use crate::duration::human;
use crate::names::Names;
use crate::plan::Plan;
use crate::table::{Columns, TableCell, cell, time};
use diapason_abi::Nanos;
use diapason_abi::pipe::USUAL_DRIFT;
use diapason_pipe::bill::{Bill, What};
use diapason_pipe::clock::{self, Floor};
use diapason_pipe::measured::{NO_DISTANCE, PipeDelays, PipeReport, SIZES};
use diapason_system::{PipeDirection, PipeSpec, System};
use serde_json::Value;

/// The measurements of one pipe.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PipeRow {
    /// The place of its reader in the description.
    pub reader: u64,
    /// The channel it comes from, or goes to.
    pub channel: u8,
    pub to_device: bool,
    pub messages: u64,
    /// Messages lost on whatever part of the way.
    pub lost: u64,
    /// Messages outside of the contract.
    pub outside: u64,
    /// Most that ever waited in the buffer.
    pub peak: u64,
    /// The longest from the writer of a pipe to a device until the server took it.
    pub taking_max_ns: u64,
    /// The longest from the server to the reader.
    pub reading_max_ns: u64,
    /// The longest from the device to the server, beyond the fastest.
    pub moving_max_ns: u64,
    /// The longest sum of the two.
    pub whole_max_ns: u64,
    /// Messages between two reports, the fewest and the most, once it ran.
    pub between: Option<(u64, u64)>,
    /// How many messages took how long, by size.
    pub delays: Vec<u32>,
    /// Messages between one report and the next.
    pub rates: Vec<u64>,
    /// By how much the times may be too short, because clocks drift.
    pub inexact_max_ns: u64,
    /// Reports with messages so far.
    reports: u64,
    pub(super) coverage: Coverage,
    /// How far the two clocks were apart, report by report.
    floors: Vec<Floor>,
}

/// The subject of a report: a process, a channel, and whether messages go to the device.
type Place = (u64, u8, bool);

impl PipeRow {
    fn note(&mut self, at: Nanos, report: &PipeReport) {
        self.coverage.note(at);
        if report.distance != NO_DISTANCE {
            self.floors.push(Floor { at, distance: report.distance });
        }
        let messages = report.messages.saturating_sub(self.messages);
        // In the first interval with messages the channel was opened.
        if self.reports > 0 {
            let (fewest, most) = self.between.unwrap_or((messages, messages));
            self.between = Some((fewest.min(messages), most.max(messages)));
        }
        self.rates.push(messages);
        self.reports += u64::from(report.messages > 0);
        self.messages = report.messages;
        (self.lost, self.outside) = (report.lost.into(), report.outside.into());
        self.peak = self.peak.max(report.peak.into());
        self.inexact_max_ns = self.inexact_max_ns.max(report.inexact.into());
        self.taking_max_ns = self.taking_max_ns.max(report.taking.0);
        self.reading_max_ns = self.reading_max_ns.max(report.reading.0);
        self.moving_max_ns = self.moving_max_ns.max(report.moving.0);
        self.whole_max_ns = self.whole_max_ns.max(report.whole.0);
    }
}

/// Takes in what the process in place `reader` measured.
pub(super) fn note(rows: &mut Vec<PipeRow>, reader: u64, at: Nanos, report: &PipeReport) {
    row(rows, (reader, report.channel, report.to_device)).note(at, report);
}

/// Takes in how the delays of a pipe are spread.
pub(super) fn note_delays(rows: &mut Vec<PipeRow>, reader: u64, delays: &PipeDelays) {
    let place = (reader, delays.channel, delays.to_device);
    let sizes = row(rows, place).delays.iter_mut().skip(delays.first());
    sizes.zip(delays.counts).for_each(|(size, count)| *size = count);
}

fn row(rows: &mut Vec<PipeRow>, place: Place) -> &mut PipeRow {
    let is = |row: &PipeRow| (row.reader, row.channel, row.to_device) == place;
    let ((reader, channel, to_device), delays) = (place, vec![0; SIZES]);
    entry(rows, is, || PipeRow { reader, channel, to_device, delays, ..PipeRow::default() })
}

/// The promise of `plan` about a pipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipePromise {
    pub name: String,
    pub way: PipeDirection,
    /// The place of its reader or writer in the description.
    pub reader: u64,
    /// The channel of the device.
    pub channel: u8,
    /// The longest a message takes.
    pub bound_ns: u64,
    /// The longest until the server has taken it, from the device or from its writer.
    pub taken_ns: u64,
    /// The longest until it is through on the device's own bus, of a pipe to a device.
    pub through_ns: Option<u64>,
    /// The shortest; nothing of a pipe to a device, whose times are of one clock.
    pub least_ns: u64,
    /// Most messages in its buffer; of a pipe to a device, under way.
    pub slots: u64,
    /// By how many millionths the device's clock and the host's run apart at most.
    pub drift: u32,
    /// Messages a second that its contract allows.
    pub rate: u64,
    /// The pipe's place among what an observer sees of pipes: those of this core's devices, then
    /// those that are read from other cores.
    pub place: usize,
    /// Its device is of another core.
    pub is_far: bool,
    /// A run of so long without a message is an alarm.
    pub patience_ns: u64,
    /// The pipe's messages bear times of their device: without any, only the way from the server is
    /// measured, and no arrival is held against the contract.
    pub is_stamped: bool,
}

impl PipePromise {
    /// Returns the promise of every pipe with a bill and an end on this core.
    #[must_use]
    pub fn of(system: &System, plan: &Plan) -> Vec<PipePromise> {
        let patience_ns = patience(system);
        let promise =
            |pipe: &PipeSpec, bill: &Bill, (reader, drift, place): (u16, u32, usize)| PipePromise {
                name: pipe.name.clone(),
                way: pipe.way,
                reader: reader.into(),
                channel: pipe.number,
                bound_ns: bill.total.0,
                taken_ns: taken(bill, pipe.way),
                through_ns: through(pipe, bill),
                least_ns: bill.least.0,
                slots: bill.slots,
                drift,
                rate: pipe.rate,
                place,
                is_far: !pipe.ends_at(reader),
                patience_ns,
                is_stamped: pipe.shape.bytes == 0 || pipe.shape.stamp.is_some(),
            };
        let pipes = system.pipes.iter().zip(&plan.pipes).enumerate();
        let own = pipes.filter_map(|(place, (pipe, piped))| {
            let drift = system.usb.get(pipe.usb).map_or(USUAL_DRIFT, |plug| plug.drift);
            let bill = piped.bill.as_ref().ok()?;
            Some(promise(pipe, bill, (pipe.process()?, drift, place)))
        });
        let far = plan.far.iter().enumerate().filter_map(|(place, far)| {
            let (bill, place) = (far.piped.bill.as_ref().ok()?, system.pipes.len() + place);
            Some(promise(&far.pipe, bill, (far.reader, far.drift, place)))
        });
        own.chain(far).collect()
    }

    /// Returns the longest until the server had taken it.
    #[must_use]
    pub fn taken(&self, row: &PipeRow) -> u64 {
        match self.way {
            PipeDirection::FromDevice => row.moving_max_ns,
            PipeDirection::ToDevice => row.taking_max_ns,
        }
    }

    /// Returns the report of its reader, if there is one.
    #[must_use]
    pub fn row<'o>(&self, outcome: &'o Outcome) -> Option<&'o PipeRow> {
        let place = (self.reader, self.channel, self.way == PipeDirection::ToDevice);
        let is = |row: &&PipeRow| (row.reader, row.channel, row.to_device) == place;
        outcome.pipes.iter().find(is)
    }

    /// Returns the promises that a run contradicts. `slack_ns` more than the bound is borne where
    /// the devices are not of the machine's own time.
    pub(super) fn alarms(
        &self,
        outcome: &Outcome,
        names: &Names,
        slack_ns: u64,
    ) -> Vec<RaisedAlarm> {
        let row = self.row(outcome);
        let (of, process) = (&self.name, self.reader);
        let coverage = row.map(|row| row.coverage);
        let found_ns = found(self.patience_ns);
        let measured = Watched { alarm: "pipe-unmeasured", of, process, coverage, found_ns };
        // An observer that knows the truth needs no reports.
        let is_seen = self.truth(outcome).is_some_and(|truth| truth.messages > 0);
        let silent = measured.alarm(outcome, names).filter(|_| !is_seen || row.is_some());
        let empty = self.empty(row, outcome);
        let seen = row.map(|row| self.measured(row, slack_ns)).unwrap_or_default();
        let untold = [self.untold_loss(row, outcome), self.untold(outcome, slack_ns)];
        silent.into_iter().chain(empty).chain(seen).chain(untold.into_iter().flatten()).collect()
    }

    /// Returns the simulator's view of it, if the simulator looked.
    pub(super) fn truth<'o>(&self, outcome: &'o Outcome) -> Option<&'o Truth> {
        outcome.truth.get(self.place)?.as_ref()
    }

    /// Nothing at all came: that none was late says nothing.
    fn empty(&self, row: Option<&PipeRow>, outcome: &Outcome) -> Option<RaisedAlarm> {
        let (row, time) = row.zip(outcome.end)?;
        let (name, rate) = (&self.name, self.rate);
        let text = format!(
            "no message of {name} in {}: its contract has up to {rate} a second, so nothing is \
             known of it",
            human(time.time_ns)
        );
        let is_empty = row.messages == 0 && time.time_ns >= self.patience_ns;
        is_empty.then(|| RaisedAlarm::missing("pipe-empty", name, text))
    }

    /// Returns the part of a promise beyond the fastest way there is.
    fn beyond(&self, most: u64, slack_ns: u64) -> u64 {
        most.saturating_sub(self.least_ns).saturating_add(slack_ns)
    }

    /// Returns by how many millionths the device's clock ran slower, if that is more than it may.
    fn drifted(&self, row: &PipeRow, slack_ns: u64) -> Option<i64> {
        let variation = match self.way {
            PipeDirection::FromDevice => self.taken_ns,
            PipeDirection::ToDevice => self.bound_ns,
        };
        clock::beyond(&row.floors, self.drift, Nanos(self.beyond(variation, slack_ns)))
    }

    /// Returns the alarms from the measurements of its reader or writer.
    fn measured(&self, row: &PipeRow, slack_ns: u64) -> Vec<RaisedAlarm> {
        let name = &self.name;
        let (taken, latest) = (self.taken(row), self.beyond(self.taken_ns, slack_ns));
        let longest = self.beyond(self.bound_ns, slack_ns);
        let drift = self.drifted(row, slack_ns);
        // A time between two clocks that run apart is no delay; a time of one clock is.
        let (taken, whole) = match (drift, self.way) {
            (None, _) => (taken, row.whole_max_ns),
            (Some(_), PipeDirection::FromDevice) => (0, row.reading_max_ns),
            (Some(_), PipeDirection::ToDevice) => (taken, row.whole_max_ns),
        };
        let (peak, slots) = (row.peak, self.slots);
        let full = match self.way {
            PipeDirection::FromDevice => format!(
                "{peak} messages waited in the buffer of {name}; at most {slots} were expected"
            ),
            PipeDirection::ToDevice => {
                format!("{peak} messages of {name} were under way; at most {slots} were expected")
            }
        };
        let lost = format!("{} messages of {name} were lost", row.lost);
        let outside = format!("{} messages of {name} were outside of its contract", row.outside);
        let alarms = [
            drift.and_then(|rate| self.adrift(rate)),
            // Before the others: whatever else is broken may follow from it.
            RaisedAlarm::above("pipe-contract", name, [row.outside, 0], outside),
            RaisedAlarm::late("pipe-taken", name, [taken, latest], taken_after),
            RaisedAlarm::late("pipe-late", name, [whole, longest], |after| {
                ended_after(self.way, after)
            }),
            RaisedAlarm::above("pipe-buffer", name, [peak, slots], full),
            RaisedAlarm::above("pipe-loss", name, [row.lost, 0], lost),
        ];
        alarms.into_iter().flatten().collect()
    }

    fn adrift(&self, rate: i64) -> Option<RaisedAlarm> {
        let (name, most) = (&self.name, self.drift);
        let way = if rate > 0 { "slower" } else { "faster" };
        let rate = rate.unsigned_abs();
        let text = format!(
            "the clock of the device that {name} is measured by runs {rate} millionths {way} than \
             the host's; at most {most} (`drift`) are described, so how long its messages took is \
             not known"
        );
        RaisedAlarm::above("clock-drift", name, [rate, most.into()], text)
    }

    /// Returns the longest that a message took, or has waited by the end, in the simulator's view.
    pub(super) fn observed(&self, outcome: &Outcome) -> Option<u64> {
        let truth = self.truth(outcome)?;
        // A message that comes after the end of its reader waits for ever.
        let is_read = outcome.last_of(self.reader) == outcome.end.map(|end| end.time_ns);
        Some(truth.longest_ns.max(if is_read { truth.waiting_ns } else { 0 }))
    }

    /// Returns the alarm of messages that were lost in the simulator's view, if its reader or
    /// writer has reported none. No report has the losses after the last one.
    fn untold_loss(&self, row: Option<&PipeRow>, outcome: &Outcome) -> Option<RaisedAlarm> {
        let lost = self.truth(outcome)?.lost;
        let text = format!("{lost} messages of {} were lost, as the simulator saw it", self.name);
        let alarm = RaisedAlarm::above("pipe-loss", &self.name, [lost, 0], text);
        alarm.filter(|_| row.is_none_or(|row| row.lost == 0))
    }

    /// Returns the alarm from the simulator's view, with or without measurements.
    fn untold(&self, outcome: &Outcome, slack_ns: u64) -> Option<RaisedAlarm> {
        let (name, most) = (&self.name, self.bound_ns.saturating_add(slack_ns));
        let (truth, observed) = (self.truth(outcome)?, self.observed(outcome)?);
        let what = if observed > truth.longest_ns { "waited for" } else { "took" };
        RaisedAlarm::late("pipe-late", name, [observed, most], |time| {
            format!("{what} {time}, as the simulator saw it")
        })
    }
}

/// Returns when a message to a device is through at the latest, as its writer measures that. The
/// server dates the end of a packet to an endpoint when it hears of it.
fn through(pipe: &PipeSpec, bill: &Bill) -> Option<u64> {
    bill.item(What::Back)?;
    Some(if pipe.source().is_some() { bill.total.0 } else { bill.before(What::Back).0 })
}

/// Returns when the server has taken a message at the latest.
fn taken(bill: &Bill, way: PipeDirection) -> u64 {
    match way {
        PipeDirection::FromDevice => (bill.before(What::User) - bill.value(What::Look)).0,
        PipeDirection::ToDevice => (bill.value(What::Written) + bill.value(What::Taken)).0,
    }
}

/// Words a time until the server had taken a message.
pub(super) fn taken_after(time: &str) -> String {
    format!("was taken by the server after {time}")
}

/// Words a time until a message was at its end.
pub(super) fn ended_after(way: PipeDirection, time: &str) -> String {
    match way {
        PipeDirection::FromDevice => format!("took {time} longer than the fastest"),
        PipeDirection::ToDevice => format!("was known to be through after {time}"),
    }
}

impl PipePromise {
    /// Returns the columns of pipes that go this way: measurements beside promises.
    pub(crate) fn columns<'a>(
        way: PipeDirection,
        outcome: &'a Outcome,
        names: &'a Names,
    ) -> Columns<'a, PipePromise> {
        let (pipe, process, [taken, moving, reading]) = match way {
            PipeDirection::FromDevice => {
                ("pipe", "reader", [Some("to server"), None, Some("to reader")])
            }
            PipeDirection::ToDevice => {
                ("pipe to", "writer", ["taken by server", "to its bus", "and back"].map(Some))
            }
        };
        let seen = move |value: fn(&PipePromise, &PipeRow) -> TableCell| {
            move |it: &PipePromise| it.row(outcome).map(|row| value(it, row))
        };
        // The server's share of the bound of a pipe to a device ends before the way back.
        let reading_of = |it: &PipePromise, row: &PipeRow| {
            let bound = it.through_ns.map(|through| it.bound_ns - through);
            beside(row.reading_max_ns, bound)
        };
        Columns::<PipePromise>::default()
            .left((pipe, "pipe"), |it| it.name.clone())
            .left((process, "reader"), |it| names.process(it.reader))
            .json("to_device", |it| it.way == PipeDirection::ToDevice)
            .json("channel", |it| it.channel)
            .json("bound_ns", |it| it.bound_ns)
            .json("least_ns", |it| it.least_ns)
            .json("slots", |it| it.slots)
            .right(("messages", "messages"), seen(|_, row| row.messages.into()))
            .right(("lost", "lost"), seen(|_, row| row.lost.into()))
            .right(("a second", "between_reports"), seen(|_, row| row.between.map(between).into()))
            .right(
                ("at once", "peak"),
                seen(|it, row| cell(format!("{} of {}", row.peak, it.slots), row.peak)),
            )
            .json("taken_bound_ns", |it| it.taken_ns)
            .right(
                (taken, "taken_max_ns"),
                seen(|it, row| beside(it.taken(row), Some(it.taken_ns))),
            )
            .right(
                (moving, "moving_max_ns"),
                seen(|it, row| beside(row.moving_max_ns, it.through_ns)),
            )
            .right((reading, "reading_max_ns"), seen(reading_of))
            .right(("longest", "longest_ns"), seen(|_, row| time(row.whole_max_ns)))
            .json("inexact_ns", |it| it.row(outcome).map(|row| row.inexact_max_ns))
            .json("drift_ppm", |it| it.drift)
            .json("truth_ns", |it| it.truth(outcome).map(|it| it.longest_ns.max(it.waiting_ns)))
            .right("bound", |it| time(it.bound_ns))
    }

    /// Returns a table of those that go this way; empty without any.
    pub(super) fn table(
        way: PipeDirection,
        all: &[PipePromise],
        outcome: &Outcome,
        names: &Names,
    ) -> String {
        let rows = all.iter().filter(|promise| promise.way == way);
        PipePromise::columns(way, outcome, names).table(rows).render()
    }
}

/// Returns the pipes for programs.
pub(super) fn objects(all: &[PipePromise], outcome: &Outcome, names: &Names) -> Value {
    let columns = |way| PipePromise::columns(way, outcome, names);
    all.iter().map(|promise| columns(promise.way).object(promise)).collect()
}

fn between((least, most): (u64, u64)) -> TableCell {
    cell(format!("{least} to {most}"), vec![least, most])
}

/// Returns a time beside its bound, if it has one.
fn beside(seen: u64, bound: Option<u64>) -> TableCell {
    let bound = bound.map_or(String::new(), |bound| format!(" of {}", human(bound)));
    cell(human(seen) + &bound, seen)
}

#[cfg(test)]
mod tests;

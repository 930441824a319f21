//! The reports of programs about pipes that they opened while the system ran.

use super::coverage::{Coverage, Watched};
use super::pipes::{ended_after, taken_after};
use super::{Outcome, RaisedAlarm, entry};
use crate::names::Names;
use crate::table::{Columns, time};
use diapason_abi::Nanos;
use diapason_pipe::measured::{TunedReport, WrittenReport};
use diapason_system::PipeDirection;

/// One place for such a pipe. Counts are those of the last report.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OpenedRow {
    /// The place of its program in the description.
    pub process: u64,
    pub place: u8,
    pub to_device: bool,
    pub channel: u8,
    /// Messages that were read, or are known to be through.
    pub messages: u64,
    pub lost: u64,
    /// Times its channel was away.
    pub outages: u64,
    pub overruns: u32,
    /// Messages outside of its contract.
    pub outside: u32,
    /// Most messages that waited, of so many slots.
    pub peak: (u32, u32),
    /// Until the server had taken a message, of a pipe to a device.
    pub taken: OpenedTime,
    /// Until a message was read, or known to be through.
    pub whole: OpenedTime,
    coverage: Coverage,
}

/// A time whose bound changes while the system runs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpenedTime {
    /// The longest of the whole run.
    pub longest: Nanos,
    /// The last bound; zero promises nothing.
    pub bound: Nanos,
    /// The longest time and the bound of its time, where that was exceeded most.
    late: Option<(Nanos, Nanos)>,
}

impl OpenedTime {
    fn note(&mut self, longest: Nanos, bound: Nanos) {
        let most = self.late.map_or(Nanos::ZERO, |(longest, bound)| longest - bound);
        if bound > Nanos::ZERO && longest - bound > most {
            self.late = Some((longest, bound));
        }
        (self.longest, self.bound) = (self.longest.max(longest), bound);
    }

    /// Returns the time and the bound with `slack_ns` more, if even that was exceeded.
    fn beyond(&self, slack_ns: u64) -> Option<[u64; 2]> {
        let (Nanos(longest), Nanos(bound)) = self.late?;
        let bound = bound.saturating_add(slack_ns);
        (longest > bound).then_some([longest, bound])
    }
}

fn row(
    rows: &mut Vec<OpenedRow>,
    (process, place, to_device): (u64, u8, bool),
    at: Nanos,
) -> &mut OpenedRow {
    let is =
        |row: &OpenedRow| (row.process, row.place, row.to_device) == (process, place, to_device);
    let coverage = Coverage::since(at);
    let new = || OpenedRow { process, place, to_device, coverage, ..OpenedRow::default() };
    let row = entry(rows, is, new);
    row.coverage.note(at);
    row
}

/// Takes in what the process in place `process` measured of a pipe that it reads.
pub(super) fn note_read(rows: &mut Vec<OpenedRow>, process: u64, at: Nanos, report: &TunedReport) {
    let row = row(rows, (process, report.place, false), at);
    (row.channel, row.messages, row.lost) = (report.channel, report.messages, report.lost);
    (row.outages, row.overruns) = (report.outages.into(), report.overruns);
    (row.outside, row.peak) = (report.outside, (report.peak, report.slots));
    row.whole.note(report.longest, report.bound);
}

/// Takes in what the process in place `process` measured of a pipe that it writes.
pub(super) fn note_written(
    rows: &mut Vec<OpenedRow>,
    process: u64,
    at: Nanos,
    report: &WrittenReport,
) {
    let row = row(rows, (process, report.place, true), at);
    (row.channel, row.messages, row.lost) = (report.channel, report.through, report.lost);
    row.outages = report.outages;
    row.taken.note(report.taken.0, report.taken.1);
    row.whole.note(report.whole.0, report.whole.1);
}

impl OpenedRow {
    fn name(&self) -> String {
        format!("tpipe{}", self.place)
    }

    /// Returns the promises that it contradicts: contract, channel, buffer, bounds.
    pub(super) fn alarms(
        &self,
        outcome: &Outcome,
        names: &Names,
        slack_ns: u64,
    ) -> Vec<RaisedAlarm> {
        let OpenedRow { channel, outside, outages, lost, .. } = *self;
        let name = &self.name();
        let way = if self.to_device { PipeDirection::ToDevice } else { PipeDirection::FromDevice };
        let (outage, loss) = match way {
            PipeDirection::FromDevice => (
                format!(
                    "channel {channel}, from which {name} comes, was away {outages} times: \
                     messages sent meanwhile are missing"
                ),
                format!("{lost} messages of {name} found its buffer full"),
            ),
            PipeDirection::ToDevice => (
                format!(
                    "channel {channel}, to which {name} goes, was away {outages} times: messages \
                     under way are lost"
                ),
                format!("{lost} messages of {name} will not be sent"),
            ),
        };
        let contract = format!(
            "{outside} messages of {name} were outside of its contract: more came from channel \
             {channel} than its program declared"
        );
        let ended = |after: &str| ended_after(way, after);
        let (coverage, process) = (Some(self.coverage), self.process);
        let measured =
            Watched { alarm: "pipe-unmeasured", of: name, process, coverage, found_ns: 0 };
        let alarms = [
            measured.alarm(outcome, names),
            RaisedAlarm::above("pipe-contract", name, [outside.into(), 0], contract),
            RaisedAlarm::above("pipe-outage", name, [outages, 0], outage),
            RaisedAlarm::above("pipe-loss", name, [lost, 0], loss),
            self.taken
                .beyond(slack_ns)
                .and_then(|it| RaisedAlarm::late("pipe-taken", name, it, taken_after)),
            self.whole
                .beyond(slack_ns)
                .and_then(|it| RaisedAlarm::late("pipe-late", name, it, ended)),
        ];
        alarms.into_iter().flatten().collect()
    }

    fn columns(way: PipeDirection, names: &Names) -> Columns<'_, OpenedRow> {
        let title = match way {
            PipeDirection::FromDevice => "opened pipe",
            PipeDirection::ToDevice => "opened pipe to",
        };
        let all = Columns::<OpenedRow>::default()
            .left(title, OpenedRow::name)
            .left("program", |row| names.process(row.process))
            .right("channel", |row| row.channel)
            .right("messages", |row| row.messages)
            .right("lost", |row| row.lost);
        let all = match way {
            PipeDirection::FromDevice => all
                .right("overruns", |row| row.overruns)
                .right("outside", |row| row.outside)
                .right("outages", |row| row.outages)
                .right("at once", |row| format!("{} of {}", row.peak.0, row.peak.1)),
            PipeDirection::ToDevice => all
                .right("outages", |row| row.outages)
                .right("taken by server", |row| time(row.taken.longest.0))
                .right("last bound", |row| time(row.taken.bound.0)),
        };
        all.right("longest", |row| time(row.whole.longest.0))
            .right("last bound", |row| time(row.whole.bound.0))
    }

    /// Returns a table of those that go this way; empty without any.
    pub(super) fn table(way: PipeDirection, outcome: &Outcome, names: &Names) -> String {
        OpenedRow::columns(way, names).table(outcome.opened(way)).render()
    }
}

impl Outcome {
    /// Returns the pipes that programs opened and that go this way.
    pub(super) fn opened(&self, way: PipeDirection) -> impl Iterator<Item = &OpenedRow> {
        self.opened.iter().filter(move |row| row.to_device == (way == PipeDirection::ToDevice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alarms(row: &OpenedRow, slack_ns: u64) -> Vec<&'static str> {
        let alarms = row.alarms(&Outcome::default(), &Names::default(), slack_ns);
        alarms.iter().map(|alarm| alarm.name).collect()
    }

    #[test]
    fn reports_of_a_reader_add_up_and_contradict_by_name() {
        let said = |messages: u64, longest: u64, outside: u32| {
            let (longest, bound) = (Nanos(longest), Nanos(100));
            TunedReport { place: 2, messages, longest, bound, outside, ..TunedReport::default() }
        };
        let mut rows = Vec::new();
        for (messages, longest) in [(0, 0), (40, 90), (90, 30)] {
            note_read(&mut rows, 1, Nanos(1), &said(messages, longest, 0));
        }
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].messages, rows[0].whole.longest), (90, Nanos(90)));
        assert_eq!(alarms(&rows[0], 0), [""; 0]);
        note_read(&mut rows, 1, Nanos(1), &said(99, 120, 7));
        assert_eq!(alarms(&rows[0], 0), ["pipe-contract", "pipe-late"]);
        assert_eq!(alarms(&rows[0], 20), ["pipe-contract"]);
    }

    #[test]
    fn reports_of_a_writer_add_up_and_contradict_by_name() {
        let said = |taken, whole, lost| {
            let (taken, whole) = ((Nanos(taken), Nanos(50)), (Nanos(whole), Nanos(100)));
            WrittenReport { place: 2, channel: 3, through: 9, lost, taken, whole, outages: 0 }
        };
        let mut rows = Vec::new();
        for (taken, whole) in [(0, 0), (40, 90), (50, 30)] {
            note_written(&mut rows, 1, Nanos(1), &said(taken, whole, 0));
        }
        let [row] = &rows[..] else { panic!("one row") };
        assert_eq!((row.taken.longest, row.whole.longest), (Nanos(50), Nanos(90)));
        assert_eq!(alarms(row, 0), [""; 0]);
        note_written(&mut rows, 1, Nanos(1), &said(60, 120, 1));
        assert_eq!(alarms(&rows[0], 0), ["pipe-loss", "pipe-taken", "pipe-late"]);
        assert_eq!(alarms(&rows[0], 10), ["pipe-loss", "pipe-late"]);
        // The same place may be opened the other way, too.
        note_read(&mut rows, 1, Nanos(1), &TunedReport { place: 2, ..TunedReport::default() });
        assert_eq!(rows.len(), 2);
    }
}

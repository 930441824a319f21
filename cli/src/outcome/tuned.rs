//! The reports of programs about pipes that they opened while the system ran.

use super::coverage::{Coverage, Watched};
use super::late::Late;
use super::{Alarm, Outcome};
use crate::duration::human;
use crate::names::Names;
use crate::table::{Align, Table};
use diapason_abi::Nanos;
use diapason_pipe::measured::TunedReport;

/// One place for such a pipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunedRow {
    /// The place of its program in the description.
    pub process: u64,
    /// The last report; the longest delay is that of the whole run.
    pub last: TunedReport,
    /// By how much its bound was exceeded.
    pub late: Late,
    coverage: Coverage,
}

/// Takes in what the process in place `process` measured.
pub(super) fn note(rows: &mut Vec<TunedRow>, process: u64, at: Nanos, report: &TunedReport) {
    let known =
        rows.iter().position(|row| (row.process, row.last.place) == (process, report.place));
    let index = known.unwrap_or_else(|| {
        let (late, coverage) = (Late::default(), Coverage::since(at));
        rows.push(TunedRow { process, last: *report, late, coverage });
        rows.len() - 1
    });
    let row = &mut rows[index];
    row.coverage.note(at);
    row.late.note(report.longest, report.bound);
    row.last = TunedReport { longest: row.last.longest.max(report.longest), ..*report };
}

impl TunedRow {
    /// Returns the promises that it contradicts: contract, channel, buffer, bound.
    pub(super) fn alarms(&self, outcome: &Outcome, names: &Names, slack_ns: u64) -> Vec<Alarm> {
        let TunedReport { place, channel, outside, outages, lost, .. } = self.last;
        let name = format!("tpipe{place}");
        let alarm = |kind, observed, assumed, text| Alarm {
            name: kind,
            of: name.clone(),
            observed,
            assumed,
            text,
        };
        let (of, process, coverage) = (name.as_str(), self.process, Some(self.coverage));
        let measured = Watched { alarm: "pipe-unmeasured", of, process, coverage };
        let mut all: Vec<Alarm> = measured.alarm(outcome, names).into_iter().collect();
        if outside > 0 {
            let text = format!(
                "{outside} messages of {name} were outside of its contract: more came from channel \
                 {channel} than its program said"
            );
            all.push(alarm("pipe-contract", outside.into(), 0, text));
        }
        if outages > 0 {
            let text = format!(
                "channel {channel}, from which {name} comes, was away {outages} times: what was \
                 sent meanwhile is missing"
            );
            all.push(alarm("pipe-outage", outages.into(), 0, text));
        }
        if lost > 0 {
            let text = format!("{lost} messages of {name} found its buffer full");
            all.push(alarm("pipe-loss", lost, 0, text));
        }
        if let Some((longest, bound)) = self.late.beyond(slack_ns) {
            let text = format!(
                "a message of {name} took {} longer than the fastest; at most {} was promised",
                human(longest),
                human(bound)
            );
            all.push(alarm("pipe-late", longest, bound, text));
        }
        all
    }
}

/// Returns a table of every such pipe; empty without any.
#[must_use]
pub fn render(outcome: &Outcome, names: &Names) -> String {
    if outcome.tuned.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        ("opened pipe", Align::Left),
        ("program", Align::Left),
        ("channel", Align::Right),
        ("messages", Align::Right),
        ("lost", Align::Right),
        ("overruns", Align::Right),
        ("outside", Align::Right),
        ("outages", Align::Right),
        ("at once", Align::Right),
        ("longest", Align::Right),
        ("last bound", Align::Right),
    ]);
    for TunedRow { process, last, .. } in &outcome.tuned {
        let counts = [last.messages, last.lost];
        let more = [last.overruns, last.outside, last.outages];
        let mut cells =
            vec![format!("tpipe{}", last.place), names.process(*process), last.channel.to_string()];
        cells.extend(counts.map(|count| count.to_string()));
        cells.extend(more.map(|count| count.to_string()));
        cells.push(format!("{} of {}", last.peak, last.slots));
        cells.extend([human(last.longest.0), human(last.bound.0)]);
        table.row(cells);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(messages: u64, longest: u64, outside: u32) -> TunedReport {
        let (longest, bound) = (Nanos(longest), Nanos(100));
        TunedReport { place: 2, messages, longest, bound, outside, ..TunedReport::default() }
    }

    #[test]
    fn reports_add_up_and_contradict_by_name() {
        let mut rows = Vec::new();
        for (messages, longest) in [(0, 0), (40, 90), (90, 30)] {
            note(&mut rows, 1, Nanos(1), &said(messages, longest, 0));
        }
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].last.messages, rows[0].last.longest), (90, Nanos(90)));
        assert!(rows[0].alarms(&Outcome::default(), &Names::default(), 0).is_empty());
        note(&mut rows, 1, Nanos(1), &said(99, 120, 7));
        let names = |slack| {
            let alarms = rows[0].alarms(&Outcome::default(), &Names::default(), slack);
            alarms.iter().map(|a| a.name).collect::<Vec<_>>()
        };
        assert_eq!(names(0), ["pipe-contract", "pipe-late"]);
        assert_eq!(names(20), ["pipe-contract"]);
    }
}

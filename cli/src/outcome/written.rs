//! The reports of programs about pipes to devices that they opened while the system ran.

use super::coverage::{Coverage, Watched};
use super::late::Late;
use super::{Alarm, Outcome};
use crate::duration::human;
use crate::names::Names;
use crate::table::{Align, Table};
use diapason_abi::Nanos;
use diapason_pipe::measured::WrittenReport;

/// One place for such a pipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenRow {
    /// The place of its program in the description.
    pub process: u64,
    /// The last report; the longest times are those of the whole run.
    pub last: WrittenReport,
    /// By how much the bounds were exceeded until the server had taken a message, and until it was
    /// known to be through.
    pub late: [Late; 2],
    coverage: Coverage,
}

/// Takes in what the process in place `process` measured.
pub(super) fn note(rows: &mut Vec<WrittenRow>, process: u64, at: Nanos, report: &WrittenReport) {
    let known =
        rows.iter().position(|row| (row.process, row.last.place) == (process, report.place));
    let index = known.unwrap_or_else(|| {
        let (late, coverage) = ([Late::default(); 2], Coverage::since(at));
        rows.push(WrittenRow { process, last: *report, late, coverage });
        rows.len() - 1
    });
    let row = &mut rows[index];
    row.coverage.note(at);
    for (late, (longest, bound)) in row.late.iter_mut().zip([report.taken, report.whole]) {
        late.note(longest, bound);
    }
    let longest = |was: (Nanos, Nanos), is: (Nanos, Nanos)| (was.0.max(is.0), is.1);
    let (taken, whole) = (row.last.taken, row.last.whole);
    let (taken, whole) = (longest(taken, report.taken), longest(whole, report.whole));
    row.last = WrittenReport { taken, whole, ..*report };
}

impl WrittenRow {
    /// Returns the promises that it contradicts: channel, room, bounds.
    pub(super) fn alarms(&self, outcome: &Outcome, names: &Names, slack_ns: u64) -> Vec<Alarm> {
        let WrittenReport { place, channel, lost, outages, .. } = self.last;
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
        if outages > 0 {
            let text = format!(
                "channel {channel}, to which {name} goes, was away {outages} times: what was \
                 under way is lost"
            );
            all.push(alarm("pipe-outage", outages, 0, text));
        }
        if lost > 0 {
            let text = format!("{lost} messages of {name} will not be sent");
            all.push(alarm("pipe-loss", lost, 0, text));
        }
        let kinds = [("pipe-taken", "taken by the server"), ("pipe-late", "known to be through")];
        for ((kind, what), late) in kinds.into_iter().zip(self.late) {
            let Some((longest, bound)) = late.beyond(slack_ns) else { continue };
            let (took, most) = (human(longest), human(bound));
            let text =
                format!("a message of {name} was {what} after {took}; at most {most} was promised");
            all.push(alarm(kind, longest, bound, text));
        }
        all
    }
}

/// Returns a table of every such pipe; empty without any.
#[must_use]
pub fn render(outcome: &Outcome, names: &Names) -> String {
    if outcome.written.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        ("opened pipe to", Align::Left),
        ("program", Align::Left),
        ("channel", Align::Right),
        ("messages", Align::Right),
        ("lost", Align::Right),
        ("outages", Align::Right),
        ("taken by server", Align::Right),
        ("last bound", Align::Right),
        ("longest", Align::Right),
        ("last bound", Align::Right),
    ]);
    for WrittenRow { process, last, .. } in &outcome.written {
        let head = [format!("tpipe{}", last.place), names.process(*process)];
        let counts = [last.channel.into(), last.through, last.lost, last.outages];
        let times = [last.taken.0, last.taken.1, last.whole.0, last.whole.1];
        let cells = head.into_iter().chain(counts.map(|count: u64| count.to_string()));
        table.row(cells.chain(times.map(|time| human(time.0))).collect());
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_add_up_and_contradict_by_name() {
        let said = |taken, whole, lost| {
            let (taken, whole) = ((Nanos(taken), Nanos(50)), (Nanos(whole), Nanos(100)));
            WrittenReport { place: 2, channel: 3, through: 9, lost, taken, whole, outages: 0 }
        };
        let mut rows = Vec::new();
        for (taken, whole) in [(0, 0), (40, 90), (50, 30)] {
            note(&mut rows, 1, Nanos(1), &said(taken, whole, 0));
        }
        let [row] = &rows[..] else { panic!("one row") };
        assert_eq!((row.last.taken.0, row.last.whole.0), (Nanos(50), Nanos(90)));
        assert!(row.alarms(&Outcome::default(), &Names::default(), 0).is_empty());
        note(&mut rows, 1, Nanos(1), &said(60, 120, 1));
        let names = |slack| {
            let alarms = rows[0].alarms(&Outcome::default(), &Names::default(), slack);
            alarms.iter().map(|a| a.name).collect::<Vec<_>>()
        };
        assert_eq!(names(0), ["pipe-loss", "pipe-taken", "pipe-late"]);
        assert_eq!(names(10), ["pipe-loss", "pipe-late"]);
    }
}

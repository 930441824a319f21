//! The output of a run while it runs: every line as a sentence, and for pipes one row a second.

use crate::console::Line;
use crate::duration::human;
use crate::names::Names;
use crate::outcome::PipePromise;
use crate::output::{say, tell};
use crate::words;
use diapason_abi::record::Record;
use diapason_pipe::measured::{Measurement, PipeReport, Reported};
use diapason_system::PipeDirection;

/// Prints lines as they arrive: on standard output, unless that is reserved for JSON.
pub(crate) fn live(json: bool, names: Names, promises: Vec<PipePromise>) -> impl FnMut(&Line) {
    live_from(String::new(), json, names, promises)
}

/// Prints lines as they arrive, as [`live`] does, each with `whose` in front.
pub(crate) fn live_from(
    whose: String,
    json: bool,
    names: Names,
    promises: Vec<PipePromise>,
) -> impl FnMut(&Line) {
    let mut pipes = Pipes::new(promises);
    move |line| {
        if matches!(line, Line::Record(record, _) if is_final(*record)) {
            return;
        }
        let text = match pipes.note(line) {
            Heard::Sentence => words::sentence(line, &names),
            Heard::Row(row) => row,
            Heard::Part => return,
        };
        let text = if whose.is_empty() { text } else { before_each(&whose, &text) };
        if json { tell(&text) } else { say(&text) }
    }
}

fn before_each(whose: &str, text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{whose}{line}")).collect();
    lines.join("\n")
}

/// Records that the final table shows better.
fn is_final(record: Record) -> bool {
    matches!(
        record,
        Record::Thread
            | Record::Vcpu
            | Record::VcpuTerms
            | Record::Irq
            | Record::Process
            | Record::End
            | Record::LongestPath
            | Record::Job
            | Record::KernelTime
            | Record::CallPath
            | Record::LinesLost
    )
}

/// The meaning of a line to the table of pipes.
#[derive(PartialEq, Eq, Debug)]
enum Heard {
    Sentence,
    /// Part of a row.
    Part,
    /// The last part of one.
    Row(String),
}

/// A pipe in the row that is being collected.
struct Column {
    promise: PipePromise,
    /// Messages at the last report, and since then.
    messages: u64,
    new: Option<u64>,
    lost: u64,
    whole_ns: u64,
}

/// The table of pipes. A row is complete when every pipe has said something since the last, or one
/// of them speaks again.
struct Pipes {
    columns: Vec<Column>,
    rows: u64,
}

impl Pipes {
    fn new(promises: Vec<PipePromise>) -> Pipes {
        let column = |promise| Column { promise, messages: 0, new: None, lost: 0, whole_ns: 0 };
        Pipes { columns: promises.into_iter().map(column).collect(), rows: 0 }
    }

    fn note(&mut self, line: &Line) -> Heard {
        let Some((process, said)) = line.measured() else { return Heard::Sentence };
        let Some(Reported { said: Measurement::Pipe(report), .. }) = said else {
            return Heard::Part;
        };
        let from = (process, report.channel, report.to_device);
        let is = |column: &Column| {
            let PipePromise { reader, channel, way, .. } = column.promise;
            (reader, channel, way == PipeDirection::ToDevice) == from
        };
        let Some(place) = self.columns.iter().position(is) else { return Heard::Part };
        let again = self.columns[place].new.is_some();
        let row = again.then(|| self.row());
        self.columns[place].note(&report);
        if self.columns.iter().all(|column| column.new.is_some()) {
            return Heard::Row(self.row());
        }
        row.map_or(Heard::Part, Heard::Row)
    }

    /// Returns the row, with a header above the first; what comes belongs to the next.
    fn row(&mut self) -> String {
        let names = self.columns.iter().map(|column| column.promise.name.as_str());
        let header: String = names.map(|name| format!("{name:>10}")).collect();
        let header = format!("{:>16} {header}      lost     longest\n", "messages");
        let cells = self.columns.iter().map(|column| match column.new {
            Some(new) => format!("{new:>10}"),
            None => format!("{:>10}", "-"),
        });
        let cells: String = cells.collect();
        let lost: u64 = self.columns.iter().map(|column| column.lost).sum();
        let nearest = self.columns.iter().max_by_key(|column| column.whole_ns);
        let longest = nearest.map_or(String::new(), |column| {
            let (longest, bound) = (human(column.whole_ns), human(column.promise.bound_ns));
            format!("{longest:>12} of {bound}")
        });
        let above = if self.rows == 0 { header } else { String::new() };
        self.rows += 1;
        for column in &mut self.columns {
            (column.new, column.whole_ns) = (None, 0);
        }
        format!("{above}{:>16} {cells}{lost:>10}{longest}", format!("{} s", self.rows))
    }
}

impl Column {
    fn note(&mut self, report: &PipeReport) {
        self.new = Some(report.messages.saturating_sub(self.messages));
        self.messages = report.messages;
        self.lost = report.lost.into();
        self.whole_ns = report.whole.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_abi::Nanos;

    fn promise(name: &str, channel: u8) -> PipePromise {
        let (name, reader, bound_ns) = (name.to_owned(), u64::from(channel) + 1, 5_000_000);
        PipePromise {
            name,
            way: PipeDirection::FromDevice,
            reader,
            channel,
            bound_ns,
            taken_ns: 0,
            through_ns: None,
            least_ns: 0,
            slots: 9,
            drift: 100,
            rate: 1,
            place: 0,
            is_far: false,
            patience_ns: 0,
            is_stamped: true,
        }
    }

    fn said(channel: u8, messages: u64) -> Line {
        let whole = Nanos(1_000_000 + messages);
        let report = PipeReport { channel, messages, lost: 1, whole, ..PipeReport::default() };
        let words = Reported { at: whole, said: Measurement::Pipe(report) }.words();
        Line::Record(Record::Measured, [&[u64::from(channel) + 1], &words[..]].concat())
    }

    #[test]
    fn a_row_is_printed_when_all_have_spoken() {
        let mut pipes = Pipes::new(vec![promise("engine", 0), promise("brakes", 1)]);
        assert_eq!(pipes.note(&said(1, 300)), Heard::Part);
        let Heard::Row(row) = pipes.note(&said(0, 40)) else { panic!("all have spoken") };
        let lines: Vec<Vec<&str>> =
            row.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["messages", "engine", "brakes", "lost", "longest"]);
        let cells = ["1", "s", "40", "300", "2", "1.000", "ms", "of", "5.000", "ms"];
        assert_eq!(lines[1], cells);
        assert_eq!(pipes.note(&said(1, 610)), Heard::Part);
        // One that fell silent does not hold the others up.
        let Heard::Row(row) = pipes.note(&said(1, 910)) else { panic!("it speaks again") };
        assert!(row.split_whitespace().take(4).eq(["2", "s", "-", "310"]), "{row}");
    }

    #[test]
    fn what_is_no_report_of_a_pipe_is_a_sentence() {
        let mut pipes = Pipes::new(vec![promise("engine", 0)]);
        let hello = Line::Log { process: 1, text: "hello".into() };
        // Nor is text that says the same: anybody can write that.
        let text = "pipe can0: 4 read, 0 lost, 1 at once, 1 + 1, 2 ns".into();
        for line in [hello, Line::Log { process: 1, text }, Line::Raw(String::new())] {
            assert_eq!(pipes.note(&line), Heard::Sentence);
        }
        // A report on what is no pipe of the description is not a row of the table.
        assert_eq!(pipes.note(&said(3, 1)), Heard::Part);
    }
}

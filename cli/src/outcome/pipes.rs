//! What the readers of pipes said about them, over the whole run.

use super::{Alarm, Outcome};
use crate::duration::human;
use crate::names::Names;
use crate::plan::Plan;
use crate::table::{Align, Table};
use diapason_abi::pipe::{PipeDelays, PipeOutside, PipeReport, PipeTaken, SIZES};
use diapason_pipe::bill::{Bill, What};
use diapason_system::{System, Way};

/// One pipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipeRow {
    /// The place of its reader in the description.
    pub reader: u64,
    /// The channel it comes from.
    pub channel: u8,
    /// Messages read.
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
    /// Reports with messages so far.
    reports: u64,
}

impl PipeRow {
    fn new(reader: u64, channel: u8) -> PipeRow {
        PipeRow {
            reader,
            channel,
            messages: 0,
            lost: 0,
            outside: 0,
            peak: 0,
            taking_max_ns: 0,
            reading_max_ns: 0,
            moving_max_ns: 0,
            whole_max_ns: 0,
            between: None,
            delays: vec![0; SIZES],
            rates: Vec::new(),
            reports: 0,
        }
    }

    fn note(&mut self, report: &PipeReport) {
        let messages = report.messages.saturating_sub(self.messages);
        // In the first interval with messages the channel was opened.
        if self.reports > 0 {
            let (fewest, most) = self.between.unwrap_or((messages, messages));
            self.between = Some((fewest.min(messages), most.max(messages)));
        }
        self.rates.push(messages);
        self.reports += u64::from(report.messages > 0);
        self.messages = report.messages;
        self.lost = report.lost;
        self.peak = self.peak.max(report.peak);
        self.reading_max_ns = self.reading_max_ns.max(report.reading.0);
        self.moving_max_ns = self.moving_max_ns.max(report.moving.0);
        self.whole_max_ns = self.whole_max_ns.max(report.whole.0);
    }
}

/// Takes in what the process in place `reader` said; lines that are no report are ignored.
pub(super) fn note(rows: &mut Vec<PipeRow>, reader: u64, text: &str) {
    if let Some(report) = PipeReport::parse(text) {
        row(rows, reader, report.channel).note(&report);
    } else if let Some(PipeDelays { channel, first, counts }) = PipeDelays::parse(text) {
        let sizes = row(rows, reader, channel).delays.iter_mut().skip(first);
        sizes.zip(counts).for_each(|(size, count)| *size = count);
    } else if let Some(PipeOutside { channel, messages }) = PipeOutside::parse(text) {
        row(rows, reader, channel).outside = messages;
    } else if let Some(PipeTaken { channel, taking }) = PipeTaken::parse(text) {
        let longest = &mut row(rows, reader, channel).taking_max_ns;
        *longest = taking.0.max(*longest);
    }
}

fn row(rows: &mut Vec<PipeRow>, reader: u64, channel: u8) -> &mut PipeRow {
    let known = rows.iter().position(|row| (row.reader, row.channel) == (reader, channel));
    let index = known.unwrap_or_else(|| {
        rows.push(PipeRow::new(reader, channel));
        rows.len() - 1
    });
    &mut rows[index]
}

/// What `plan` promises of a pipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipePromise {
    /// The pipe's name.
    pub name: String,
    /// Which way it goes.
    pub way: Way,
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
}

impl PipePromise {
    /// Of every pipe with a bill.
    #[must_use]
    pub fn of(system: &System, plan: &Plan) -> Vec<PipePromise> {
        let pipes = system.pipes.iter().zip(&plan.pipes);
        let promise = pipes.filter_map(|(pipe, piped)| {
            let bill = piped.bill.as_ref().ok()?;
            Some(PipePromise {
                name: pipe.name.clone(),
                way: pipe.way,
                reader: pipe.process.into(),
                channel: pipe.channel,
                bound_ns: bill.total.0,
                taken_ns: taken(bill, pipe.way),
                through_ns: bill.item(What::Back).map(|_| bill.before(What::Back).0),
                least_ns: bill.least.0,
                slots: bill.slots,
            })
        });
        promise.collect()
    }

    /// What each part of it took at most, and may.
    #[must_use]
    pub fn parts(&self, row: &PipeRow) -> Vec<String> {
        let of = |seen, most| format!("{} of {}", human(seen), human(most));
        let taken = of(self.taken(row), self.taken_ns);
        match self.through_ns {
            None => vec![taken, human(row.reading_max_ns)],
            Some(through) => {
                let back = of(row.reading_max_ns, self.bound_ns - through);
                vec![taken, of(row.moving_max_ns, through), back]
            }
        }
    }

    /// The longest until the server had taken it.
    #[must_use]
    pub fn taken(&self, row: &PipeRow) -> u64 {
        match self.way {
            Way::FromDevice => row.moving_max_ns,
            Way::ToDevice => row.taking_max_ns,
        }
    }

    /// What its reader said, if it said anything.
    #[must_use]
    pub fn row<'o>(&self, outcome: &'o Outcome) -> Option<&'o PipeRow> {
        let is = |row: &&PipeRow| (row.reader, row.channel) == (self.reader, self.channel);
        outcome.pipes.iter().find(is)
    }

    /// What a run contradicts. `slack_ns` more than the bound is borne where the devices are not
    /// of the machine's own time.
    pub(super) fn alarms(&self, outcome: &Outcome, slack_ns: u64) -> Vec<Alarm> {
        let Some(row) = self.row(outcome) else { return Vec::new() };
        let name = &self.name;
        // What was measured leaves out the fastest way there is.
        let beyond = |most: u64| most.saturating_sub(self.least_ns).saturating_add(slack_ns);
        let longest = beyond(self.bound_ns);
        let alarm = |kind, observed, assumed, text| {
            (observed > assumed).then(|| Alarm {
                name: kind,
                of: name.clone(),
                observed,
                assumed,
                text,
            })
        };
        let (took, promised) = (human(row.whole_max_ns), human(longest));
        let (peak, slots) = (row.peak, self.slots);
        let (late, full) = match self.way {
            Way::FromDevice => (
                format!(
                    "a message of {name} took {took} longer than the fastest; at most {promised} \
                     was promised"
                ),
                format!(
                    "{peak} messages waited in the buffer of {name}; at most {slots} were expected"
                ),
            ),
            Way::ToDevice => (
                format!(
                    "a message of {name} was known to be through after {took}; at most {promised} \
                     was promised"
                ),
                format!("{peak} messages of {name} were under way; at most {slots} were expected"),
            ),
        };
        let (taken, latest) = (self.taken(row), beyond(self.taken_ns));
        let kept = format!(
            "a message of {name} was taken by the server after {}; at most {} was promised",
            human(taken),
            human(latest)
        );
        let lost = format!("{} messages of {name} were lost", row.lost);
        let outside = format!("{} messages of {name} were outside of its contract", row.outside);
        [
            // First: whatever else is broken may follow from it.
            alarm("pipe-contract", row.outside, 0, outside),
            alarm("pipe-taken", taken, latest, kept),
            alarm("pipe-late", row.whole_max_ns, longest, late),
            alarm("pipe-buffer", row.peak, self.slots, full),
            alarm("pipe-loss", row.lost, 0, lost),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// What was seen of every pipe beside what was promised; nothing without pipes.
#[must_use]
pub fn render(promises: &[PipePromise], outcome: &Outcome, names: &Names) -> String {
    let of = |way| promises.iter().filter(move |promise| promise.way == way);
    let mut text = String::new();
    for (way, ends) in
        [(Way::FromDevice, ["pipe", "reader"]), (Way::ToDevice, ["pipe to", "writer"])]
    {
        let ends = ends.map(|name| (name, Align::Left));
        let counts = ["messages", "lost", "a second", "at once"];
        let all = [&counts, parts(way), &["longest", "bound"]].concat();
        let columns: Vec<_> = all.into_iter().map(|name| (name, Align::Right)).collect();
        let mut table = Table::new(&[&ends[..], &columns].concat());
        of(way).for_each(|promise| table.row(row_of(promise, outcome, names)));
        if of(way).next().is_some() {
            text += if text.is_empty() { "" } else { "\n" };
            text += &table.render();
        }
    }
    text
}

/// The columns of [`PipePromise::parts`].
#[must_use]
pub const fn parts(way: Way) -> &'static [&'static str] {
    match way {
        Way::FromDevice => &["to server", "to reader"],
        Way::ToDevice => &["taken by server", "to its bus", "and back"],
    }
}

/// When the server has taken a message at the latest.
fn taken(bill: &Bill, way: Way) -> u64 {
    match way {
        Way::FromDevice => bill.before(What::User).0,
        Way::ToDevice => bill.value(What::Taken).0,
    }
}

fn row_of(promise: &PipePromise, outcome: &Outcome, names: &Names) -> Vec<String> {
    let head = vec![promise.name.clone(), names.process(promise.reader)];
    let cells = match promise.row(outcome) {
        Some(row) => {
            let counts = vec![
                row.messages.to_string(),
                row.lost.to_string(),
                row.between.map_or("-".into(), |(least, most)| format!("{least} to {most}")),
                format!("{} of {}", row.peak, promise.slots),
            ];
            [counts, promise.parts(row), vec![human(row.whole_max_ns)]].concat()
        }
        None => vec!["-".into(); 5 + parts(promise.way).len()],
    };
    [head, cells, vec![human(promise.bound_ns)]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_abi::Nanos;

    fn said(messages: u64, whole: u64) -> String {
        let channel = 3;
        let (peak, whole) = (messages % 5, Nanos(whole));
        PipeReport { channel, messages, peak, whole, ..PipeReport::default() }.to_string()
    }

    #[test]
    fn reports_add_up_to_a_row() {
        let mut rows = Vec::new();
        for (messages, whole) in [(0, 0), (40, 7), (140, 9), (239, 8)] {
            note(&mut rows, 2, &said(messages, whole));
        }
        note(&mut rows, 2, "CAN interface 1 with 5 channels");
        note(&mut rows, 1, &said(1, 1));
        assert_eq!(rows.len(), 2);
        let row = &rows[0];
        assert_eq!((row.reader, row.channel, row.messages, row.lost), (2, 3, 239, 0));
        assert_eq!((row.peak, row.whole_max_ns, row.between), (4, 9, Some((99, 100))));
    }

    #[test]
    fn each_assumption_of_a_pipe_has_its_alarm() {
        let promise = PipePromise {
            name: "engine".into(),
            way: Way::FromDevice,
            reader: 3,
            channel: 0,
            bound_ns: 10,
            taken_ns: u64::MAX,
            through_ns: None,
            least_ns: 2,
            slots: 4,
        };
        let rings = |name: &str, most: u64, set: fn(&mut PipeRow, u64)| {
            let found = [most, most + 1].map(|seen| {
                let mut row = PipeRow::new(3, 0);
                set(&mut row, seen);
                let outcome = Outcome { pipes: vec![row], ..Outcome::default() };
                let found = promise.alarms(&outcome, 5);
                let told = found.iter().map(|a| (a.name.to_owned(), a.observed, a.assumed));
                told.collect::<Vec<_>>()
            });
            assert_eq!(found, [vec![], vec![(name.to_owned(), most + 1, most)]]);
        };
        rings("pipe-contract", 0, |row, count| row.outside = count);
        // The bound but for the fastest, and what is borne.
        rings("pipe-late", 13, |row, longest| row.whole_max_ns = longest);
        rings("pipe-buffer", 4, |row, peak| row.peak = peak);
        rings("pipe-loss", 0, |row, lost| row.lost = lost);
    }

    #[test]
    fn a_pipe_to_a_device_has_its_own_words() {
        let name = "brakes".to_owned();
        let (reader, channel, least_ns) = (2, 3, 0);
        let (bound_ns, slots, taken_ns, through_ns) = (8, 4, 5, Some(7));
        let way = Way::ToDevice;
        let promise = PipePromise {
            name,
            way,
            reader,
            channel,
            bound_ns,
            taken_ns,
            through_ns,
            least_ns,
            slots,
        };
        let mut outcome = Outcome::default();
        note(&mut outcome.pipes, 2, &said(4, 8));
        assert_eq!(promise.alarms(&outcome, 0), []);
        note(&mut outcome.pipes, 2, &said(9, 9));
        let [late] = &promise.alarms(&outcome, 0)[..] else { panic!("one alarm") };
        assert_eq!((late.name, late.observed, late.assumed), ("pipe-late", 9, 8));
        assert!(late.text.contains("was known to be through after 9 ns"), "{}", late.text);
        for (taking, alarms) in [(5, 1), (6, 2), (1, 2)] {
            let line = PipeTaken { channel, taking: Nanos(taking) }.to_string();
            note(&mut outcome.pipes, 2, &line);
            assert_eq!(promise.alarms(&outcome, 0).len(), alarms, "{taking}");
        }
        assert_eq!(promise.alarms(&outcome, 0)[0].name, "pipe-taken");
    }

    #[test]
    fn a_pipe_from_a_device_says_which_half_was_late() {
        let promise = PipePromise {
            name: "engine".to_owned(),
            way: Way::FromDevice,
            reader: 2,
            channel: 3,
            bound_ns: 9,
            taken_ns: 6,
            through_ns: None,
            least_ns: 1,
            slots: 9,
        };
        for (moving, whole, alarms) in
            [(5, 8, vec![]), (6, 8, vec!["pipe-taken"]), (5, 9, vec!["pipe-late"])]
        {
            let (moving, whole) = (Nanos(moving), Nanos(whole));
            let report = PipeReport { channel: 3, moving, whole, ..PipeReport::default() };
            let mut outcome = Outcome::default();
            note(&mut outcome.pipes, 2, &report.to_string());
            let rang: Vec<_> = promise.alarms(&outcome, 0).iter().map(|it| it.name).collect();
            assert_eq!(rang, alarms);
        }
    }
}

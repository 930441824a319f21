//! Whether the server of an adapter keeps its gates, as the wire sees it.

use diapason_abi::Nanos;
use diapason_devices::faulty::OwnClock;
use diapason_ether::{VLAN, VlanTag};
use diapason_tsn::{CLASSES, GateList};

/// The frames that an adapter with gates sent, as its wire saw them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatedBooks {
    /// The number of the adapter.
    pub card: usize,
    gates: GateList,
    /// The clock of the world as the gates see it; `None` if they go by the sender's clock.
    time: Option<OwnClock>,
    /// A frame may be outside by this: the time of the sender may be wrong by so much.
    error: Nanos,
    /// Frames of each class, without those of a common time, which pass no gates.
    pub sent: [u64; CLASSES],
    /// Frames that were on the wire outside of a window of their class by more than the error.
    pub outside: [u64; CLASSES],
    /// The longest by which one was outside, whether that is beyond the error or not.
    pub longest: [Nanos; CLASSES],
    spans: Vec<StepSpan>,
    /// Frames of a class with spans that ended in none of them.
    pub late: [u64; CLASSES],
}

/// A part of each period in which frames of a class end if they are in step with the gates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepSpan {
    pub class: usize,
    pub period: Nanos,
    /// The time from the beginning of a period.
    pub from: Nanos,
    pub length: Nanos,
}

impl StepSpan {
    /// Returns whether a time is in it, if both may be off by an error.
    fn has(&self, at: Nanos, error: Nanos) -> bool {
        let into = (at.0 + error.0 + self.period.0 - self.from.0) % self.period.0;
        into <= self.length.0 + 2 * error.0
    }
}

impl GatedBooks {
    /// Returns the books of the adapter with this number, which has sent nothing. `time` is for
    /// gates that go by the clock of another host: the clock of the world as that host sees it, and
    /// how far the sender may be off.
    #[must_use]
    pub fn new(card: usize, gates: GateList, time: Option<(OwnClock, Nanos)>) -> GatedBooks {
        let [sent, outside, late] = [[0; CLASSES]; 3];
        let (longest, spans) = ([Nanos::ZERO; CLASSES], Vec::new());
        let error = time.as_ref().map_or(Nanos::ZERO, |(_, error)| *error);
        let time = time.map(|(world, _)| world);
        GatedBooks { card, gates, time, error, sent, outside, longest, spans, late }
    }

    /// Watches whether frames of the classes of these spans end in one of them.
    #[must_use]
    pub fn in_step(self, spans: Vec<StepSpan>) -> GatedBooks {
        GatedBooks { spans, ..self }
    }

    /// Takes in a frame that is on the wire from the first to the second time: first by the clock
    /// of the sender, and then by that of the world.
    pub(crate) fn sends(&mut self, own: [Nanos; 2], world: [Nanos; 2], frame: &[u8]) {
        if is_of_time(frame) {
            return;
        }
        let times = self.time.as_ref().map(|time| world.map(|at| time.host(at)));
        let [begin, end] = times.unwrap_or(own);
        let (class, length) = (class(frame), (end - begin).0);
        self.sent[class] += 1;
        let mut spans = self.spans.iter().filter(|it| it.class == class).peekable();
        let is_late = spans.peek().is_some() && !spans.any(|it| it.has(end, self.error));
        self.late[class] += u64::from(is_late);
        if self.gates.next_start(class, begin.0, length) == Some(begin.0) {
            return;
        }
        let away = Nanos(self.gates.outside(class, begin.0, length));
        self.outside[class] += u64::from(away > self.error);
        self.longest[class] = self.longest[class].max(away);
    }
}

/// Returns whether a frame is of a common time.
fn is_of_time(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&diapason_gptp::ETHERTYPE.to_be_bytes())
}

/// Returns the traffic class of a frame: the priority of its tag, or 0 without one.
pub(crate) fn class(frame: &[u8]) -> usize {
    let [high, low] = VLAN.to_be_bytes();
    match frame.get(12..16) {
        Some(&[a, b, c, d]) if [a, b] == [high, low] => {
            VlanTag::from_bits(u16::from_be_bytes([c, d])).priority.into()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_tsn::GateEntry;

    #[test]
    fn frames_outside_of_their_windows_are_counted_by_how_much() {
        let entry = |mask, interval_ns| GateEntry { mask, interval_ns };
        let gates = GateList::new(0, None, &[entry(0x40, 2_000), entry(0xbf, 8_000)]).unwrap();
        let mut books = GatedBooks::new(0, gates, None);
        let mut tagged = vec![0; 60];
        let tag = VlanTag { priority: 6, drop_eligible: false, network: 0 };
        tagged[12..14].copy_from_slice(&VLAN.to_be_bytes());
        tagged[14..16].copy_from_slice(&tag.bits().to_be_bytes());
        // A frame may end at 2 us and not later, and begin at 10 us and not earlier.
        for end in [576_u64, 2_000, 2_001, 12_000, 20_575, 20_576, 26_000] {
            let times = [end - 576, end].map(Nanos);
            books.sends(times, times, &tagged);
        }
        let times = [Nanos(30_424), Nanos(31_000)];
        books.sends(times, times, &[0; 60]);
        let mut of_time = [0; 60];
        of_time[12..14].copy_from_slice(&diapason_gptp::ETHERTYPE.to_be_bytes());
        books.sends(times, times, &of_time);
        assert_eq!((books.sent[6], books.outside[6]), (7, 3));
        assert_eq!((books.sent[0], books.outside[0]), (1, 1));
        assert_eq!((books.longest[6], books.longest[0]), (Nanos(4_000), Nanos(1_000)));
    }

    #[test]
    fn frames_that_end_outside_of_the_spans_of_their_class_are_late() {
        let span = |class, from, length| {
            let [period, from, length] = [20_000, from, length].map(Nanos);
            StepSpan { class, period, from, length }
        };
        let late = |time, end: u64| {
            let books = GatedBooks::new(0, GateList::open(10_000), time);
            let spans = vec![span(0, 19_000, 2_000), span(0, 9_000, 0), span(6, 0, 20_000)];
            let mut books = books.in_step(spans);
            let times = [end - 576, end].map(Nanos);
            books.sends(times, times, &[0; 60]);
            books.late[0]
        };
        let ends = [18_999, 19_000, 21_000, 21_001, 28_999, 29_000, 29_001, 41_000, 41_001];
        assert_eq!(ends.map(|end| late(None, end)), [1, 0, 0, 1, 1, 0, 1, 0, 1]);
        let time = || Some((OwnClock::default(), Nanos(50)));
        let ends = [18_949, 18_950, 21_050, 21_051];
        assert_eq!(ends.map(|end| late(time(), end)), [1, 0, 0, 1]);
    }

    #[test]
    fn gates_that_go_by_another_host_are_judged_by_its_clock_and_the_error() {
        let entry = |mask, interval_ns| GateEntry { mask, interval_ns };
        let gates = GateList::new(0, None, &[entry(1, 1_000_000), entry(2, 1_000_000)]).unwrap();
        let books = || GatedBooks::new(0, gates.clone(), Some((OwnClock::world(100), Nanos(50))));
        // The other host's clock gained 100 us in a second.
        let outside = |end: u64| {
            let (mut books, world) = (books(), [end - 576, end].map(Nanos));
            books.sends([Nanos::ZERO, Nanos(576)], world, &[0; 60]);
            books.outside[0]
        };
        let ends = [1_000_500_000_u64, 1_000_899_900, 1_000_899_940, 1_000_899_960, 1_000_950_000];
        assert_eq!(ends.map(outside), [0, 0, 0, 1, 1]);
    }
}

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
}

impl GatedBooks {
    /// Returns the books of the adapter with this number, which has sent nothing. `time` is for
    /// gates that go by the clock of another host: the clock of the world as that host sees it, and
    /// how far the sender may be off.
    pub(crate) fn new(card: usize, gates: GateList, time: Option<(OwnClock, Nanos)>) -> GatedBooks {
        let (sent, outside, longest) = ([0; CLASSES], [0; CLASSES], [Nanos::ZERO; CLASSES]);
        let error = time.as_ref().map_or(Nanos::ZERO, |(_, error)| *error);
        let time = time.map(|(world, _)| world);
        GatedBooks { card, gates, time, error, sent, outside, longest }
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

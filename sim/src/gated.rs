//! Whether the server of an adapter keeps its gates, as the wire sees it.

use diapason_abi::Nanos;
use diapason_ether::{VLAN, VlanTag};
use diapason_tsn::{CLASSES, GateList};

/// The frames that an adapter with gates sent, as its wire saw them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatedBooks {
    /// The number of the adapter.
    pub card: usize,
    gates: GateList,
    /// Frames of each class.
    pub sent: [u64; CLASSES],
    /// Frames that were on the wire outside of a window of their class.
    pub outside: [u64; CLASSES],
    /// The longest by which one was.
    pub longest: [Nanos; CLASSES],
}

impl GatedBooks {
    /// Returns the books of the adapter with this number, which has sent nothing.
    pub(crate) fn new(card: usize, gates: GateList) -> GatedBooks {
        let (sent, outside, longest) = ([0; CLASSES], [0; CLASSES], [Nanos::ZERO; CLASSES]);
        GatedBooks { card, gates, sent, outside, longest }
    }

    /// Takes in a frame that is on the wire from the first to the second time of its sender.
    pub(crate) fn sends(&mut self, [begin, end]: [Nanos; 2], frame: &[u8]) {
        let (class, length) = (class(frame), (end - begin).0);
        self.sent[class] += 1;
        if self.gates.next_start(class, begin.0, length) == Some(begin.0) {
            return;
        }
        self.outside[class] += 1;
        let away = Nanos(self.gates.outside(class, begin.0, length));
        self.longest[class] = self.longest[class].max(away);
    }
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
        let mut books = GatedBooks::new(0, gates);
        let mut tagged = vec![0; 60];
        let tag = VlanTag { priority: 6, drop_eligible: false, network: 0 };
        tagged[12..14].copy_from_slice(&VLAN.to_be_bytes());
        tagged[14..16].copy_from_slice(&tag.bits().to_be_bytes());
        // A frame may end at 2 us and not later, and begin at 10 us and not earlier.
        for end in [576_u64, 2_000, 2_001, 12_000, 20_575, 20_576, 26_000] {
            books.sends([end - 576, end].map(Nanos), &tagged);
        }
        books.sends([Nanos(30_424), Nanos(31_000)], &[0; 60]);
        assert_eq!((books.sent[6], books.outside[6]), (7, 3));
        assert_eq!((books.sent[0], books.outside[0]), (1, 1));
        assert_eq!((books.longest[6], books.longest[0]), (Nanos(4_000), Nanos(1_000)));
    }
}

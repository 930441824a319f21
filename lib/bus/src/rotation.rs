//! The round robin as one sequence of indivisible items, the worst one for a given endpoint.
//!
//! **Lemma (monotone).** Let the state be (slot, time in it), in lexicographic order. An item
//! starts at once if it ends inside the slot, else in the next slot that has room for it. So the
//! state after an item is a monotone function of the state before it, and of its length. By
//! induction: making an item shorter, leaving one out, or starting earlier makes no later item end
//! later. The worst for endpoint `j` is therefore that its turn was just missed and that everybody
//! else always sends full bursts: `k` passes that begin after `j` and end with it.
//!
//! A repeated packet is one more item, or sends its endpoint through one more pass. Either is what
//! is left of `k + 1` passes if items are left out; so each repetition counts as one pass.

use crate::endpoint::{Async, BusInstance, Guarantee, Unit};
use crate::time::Picos;
use alloc::vec::Vec;

/// The items before and of one transfer. Positions count items.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// `ends[i]`: time of the first `i` items of a pass.
    ends: Vec<u64>,
    /// Items of the whole sequence; the last one ends the transfer.
    items: u64,
    /// By so much the last item is shorter than its place in the pass.
    cut: u64,
}

impl Rotation {
    /// Returns the sequence for a transfer of `guarantee.bytes` of endpoint `index`; bursts are
    /// whole items if `whole`.
    ///
    /// # Panics
    /// If there is no endpoint `index`.
    #[must_use]
    pub fn new(
        bus: &BusInstance,
        asyncs: &[Async],
        index: usize,
        bytes: u32,
        whole: bool,
    ) -> Rotation {
        let (before, after) = asyncs.split_at(index + 1);
        let mut ends = Vec::from([0]);
        let mut end = 0u64;
        for endpoint in after.iter().chain(before) {
            let (count, item) = match whole {
                true => (1, endpoint.visit(bus).0),
                false => (endpoint.burst + 1, endpoint.packet_time(bus).0),
            };
            for _ in 0..count {
                end += item;
                ends.push(end);
            }
        }
        let own = &asyncs[index];
        let visits = own.visits(bytes).max(1);
        let packets = bytes.div_ceil(own.packet).max(1);
        let missing = u64::from(visits * (own.burst + 1) - packets);
        let items = (u64::from(visits) + u64::from(bus.retries)) * (ends.len() as u64 - 1);
        match whole {
            true => Rotation { ends, items, cut: missing * own.packet_time(bus).0 },
            false => Rotation { ends, items: items - missing, cut: 0 },
        }
    }

    /// Returns a sequence of `items` items, of which `pass` has the lengths; it repeats.
    ///
    /// # Panics
    /// If there is no item, or a pass takes no time.
    #[must_use]
    pub fn from_items(pass: &[Picos], items: u64) -> Rotation {
        let mut ends = Vec::from([0u64]);
        ends.extend(pass.iter().scan(0u64, |end, item| {
            *end += item.0;
            Some(*end)
        }));
        assert!(items > 0 && ends.last() > Some(&0), "a transfer of nothing");
        Rotation { ends, items, cut: 0 }
    }

    /// Returns the sequences to consider for a guarantee: one, or both if the unit is not known.
    #[must_use]
    pub fn all(
        bus: &BusInstance,
        asyncs: &[Async],
        index: usize,
        guarantee: Guarantee,
    ) -> Vec<Rotation> {
        let one = |whole| Rotation::new(bus, asyncs, index, guarantee.bytes, whole);
        match bus.unit {
            Unit::Packet => Vec::from([one(false)]),
            Unit::Burst => Vec::from([one(true)]),
            // Bursts of one packet are the same in both.
            Unit::Unknown if asyncs.iter().all(|a| a.burst == 0) => Vec::from([one(false)]),
            Unit::Unknown => Vec::from([one(false), one(true)]),
        }
    }

    /// Items of the sequence.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Time of one pass over all endpoints.
    #[must_use]
    pub fn pass(&self) -> u64 {
        self.ends[self.ends.len() - 1]
    }

    /// Returns the longest item.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.ends.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// Time of the first `i` items.
    #[must_use]
    pub fn until(&self, i: u64) -> u64 {
        let per_pass = self.per_pass();
        let time = i / per_pass * self.pass() + self.ends[(i % per_pass) as usize];
        if i == self.items { time - self.cut } else { time }
    }

    /// Items of one pass.
    #[must_use]
    pub fn per_pass(&self) -> u64 {
        self.ends.len() as u64 - 1
    }

    /// Returns how many items fit into `room` without a gap from place `at` of a pass on, if the
    /// sequence never ended.
    #[must_use]
    pub fn advance(&self, at: u64, room: u64) -> u64 {
        let target = self.ends[at as usize] + room;
        let (passes, rest) = (target / self.pass(), target % self.pass());
        let in_pass = self.ends.partition_point(|end| *end <= rest) as u64 - 1;
        passes * self.per_pass() + in_pass - at
    }

    /// The position after `count` full items from `from` on have used some of `room`: the last item
    /// may be short and still fit.
    #[must_use]
    pub fn after(&self, from: u64, count: u64, room: u64) -> u64 {
        let at = from + count;
        let last_fits =
            || at + 1 == self.items && self.until(self.items) - self.until(from) <= room;
        if at >= self.items || (self.cut > 0 && last_fits()) { self.items } else { at }
    }

    /// Returns the position reached from `from` in `room` without a gap.
    #[must_use]
    pub fn reach(&self, from: u64, room: u64) -> u64 {
        self.after(from, self.advance(from % self.per_pass(), room), room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::EndpointId;
    use crate::packet::{Direction, Transfer};

    fn bulk(id: u32, burst: u32) -> Async {
        Async {
            id: EndpointId(id),
            transfer: Transfer::Bulk,
            direction: Direction::In,
            packet: 1024,
            burst,
            guarantee: None,
        }
    }

    #[test]
    fn own_packets_come_last_and_a_short_burst_is_short() {
        let asyncs = [bulk(1, 0), bulk(2, 3)];
        let w = 1_778_400;
        let packets = Rotation::new(&BusInstance::uncoded(), &asyncs, 1, 6 * 1024, false);
        assert_eq!((packets.items(), packets.pass(), packets.longest()), (8, 5 * w, w));
        assert_eq!((packets.until(5), packets.until(8)), (5 * w, 8 * w));
        let bursts = Rotation::new(&BusInstance::uncoded(), &asyncs, 1, 6 * 1024, true);
        assert_eq!((bursts.items(), bursts.longest()), (4, 4 * w));
        assert_eq!((bursts.until(3), bursts.until(4)), (6 * w, 8 * w));
        assert_eq!(
            (bursts.reach(2, w), bursts.reach(2, 3 * w), bursts.reach(2, 3 * w - 1)),
            (3, 4, 3)
        );
        assert_eq!((packets.reach(0, 5 * w - 1), packets.reach(2, 3 * w)), (4, 5));
        assert_eq!(packets.reach(0, u64::MAX / 2), 8);
    }
}

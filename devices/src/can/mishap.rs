//! The mishaps on a CAN bus, and their times.

use super::Segment;
use diapason_abi::Nanos;
use diapason_can::bus::{NodeId, WireFault};
use diapason_can::{CanFrame, StandardId};
use std::collections::VecDeque;

/// Something that goes wrong on a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusMishap {
    /// Destroys this many frames, attempts to send one again included.
    Errors(u32),
    /// One more node sends the most urgent frame without pause for so long.
    Babble(Nanos),
    /// The controllers of the devices that share the bus go bus-off.
    BusOff,
}

/// The deed, and the node that does it.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Destroy(u32),
    Babble(NodeId, bool),
    Expel,
}

/// The mishaps to come, in order of time.
#[derive(Debug, Default)]
pub(super) struct Plan(VecDeque<(Nanos, Deed)>);

/// The bit of a frame that is damaged: in the data field, or where it would be.
const DAMAGED: u32 = 22;

impl Plan {
    /// Adds a mishap at `at`; `babbler` is the node that babbles.
    pub fn add(&mut self, at: Nanos, mishap: BusMishap, babbler: Option<NodeId>) {
        match (mishap, babbler) {
            (BusMishap::Errors(count), _) => self.put(at, Deed::Destroy(count)),
            (BusMishap::Babble(length), Some(node)) => {
                self.put(at, Deed::Babble(node, true));
                self.put(at + length, Deed::Babble(node, false));
            }
            (BusMishap::Babble(_), None) => {}
            (BusMishap::BusOff, _) => self.put(at, Deed::Expel),
        }
    }

    fn put(&mut self, at: Nanos, deed: Deed) {
        let place = self.0.partition_point(|(time, _)| *time <= at);
        self.0.insert(place, (at, deed));
    }

    /// Returns when the next one comes.
    pub fn next(&self) -> Nanos {
        self.0.front().map_or(Nanos::FOREVER, |(time, _)| *time)
    }
}

impl Segment {
    /// Carries out the mishaps that are due.
    pub(super) fn happen(&mut self, now: Nanos) {
        while let Some((_, deed)) = self.plan.0.pop_front_if(|(time, _)| *time <= now) {
            match deed {
                Deed::Destroy(count) => {
                    let fault = WireFault::Flip { bit: DAMAGED, seen_by: u64::MAX };
                    (0..count).for_each(|_| self.bus.arm(now, fault));
                }
                Deed::Babble(node, on) => {
                    let frame = CanFrame::data(StandardId::ZERO, &[]).ok().filter(|_| on);
                    self.bus.babble(now, node, frame);
                }
                Deed::Expel => {
                    let plugged = self.plugs.iter().enumerate().filter(|(_, plug)| plug.is_some());
                    for (node, _) in plugged {
                        self.bus.expel(now, NodeId(node));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CanBus, CanPlug};
    use super::*;
    use diapason_can::BitRate;
    use diapason_can::bus::{EventKind, Health};

    /// A bus with a unit that acknowledges and a plug that is on.
    fn bus() -> (CanBus, CanPlug) {
        let bus = CanBus::new(BitRate::new(500_000).unwrap());
        bus.add_unit(Vec::new());
        let mut plug = bus.plug(8);
        plug.switch_on(Nanos::ZERO, false);
        (bus, plug)
    }

    fn events(plug: &CanPlug, until: Nanos) -> Vec<(Nanos, EventKind)> {
        plug.advance(until);
        std::iter::from_fn(|| plug.poll(until)).map(|event| (event.time, event.kind)).collect()
    }

    #[test]
    fn so_many_frames_are_destroyed_and_then_the_next_gets_through() {
        let (bus, plug) = bus();
        bus.suffer(Nanos::from_millis(1), BusMishap::Errors(3));
        plug.advance(Nanos::from_millis(2));
        let frame = CanFrame::data(StandardId::MAX, &[1, 2]).unwrap();
        plug.send(Nanos::from_millis(2), frame, false).unwrap();
        let all = events(&plug, Nanos::from_millis(10));
        let errors = all.iter().filter(|(_, kind)| matches!(kind, EventKind::Error { .. }));
        assert_eq!(errors.count(), 3);
        assert!(matches!(all.last().unwrap().1, EventKind::Sent { .. }));
    }

    #[test]
    fn a_babbler_fills_the_bus_while_it_lasts() {
        let (bus, plug) = bus();
        bus.suffer(Nanos::from_millis(5), BusMishap::Babble(Nanos::from_millis(10)));
        let all = events(&plug, Nanos::from_millis(40));
        let heard = all.iter().filter(|(_, kind)| matches!(kind, EventKind::Received { .. }));
        // An empty frame has 47 bits, some stuff bits and an intermission: about 0.1 ms.
        assert!((80..=100).contains(&heard.count()));
        let (first, last) = (all[0].0, all.last().unwrap().0);
        assert!(first > Nanos::from_millis(5) && last < Nanos::from_millis(16));
    }

    #[test]
    fn bus_off_silences_the_plug_until_it_recovers_and_says_both() {
        let (bus, plug) = bus();
        bus.suffer(Nanos::from_millis(5), BusMishap::BusOff);
        let all = events(&plug, Nanos::from_millis(6));
        let off =
            |kind: &EventKind| matches!(kind, EventKind::Health { health: Health::BusOff, .. });
        assert!(all.iter().any(|(time, kind)| *time == Nanos::from_millis(5) && off(kind)));
        let frame = CanFrame::data(StandardId::MAX, &[]).unwrap();
        plug.send(Nanos::from_millis(6), frame, false).unwrap();
        let all = events(&plug, Nanos::from_millis(20));
        let [(active, EventKind::Health { health: Health::ErrorActive, .. }), (sent, last)] =
            all[..]
        else {
            panic!("{all:?}")
        };
        // 128 times 11 recessive bits of an idle bus.
        let recovery = Nanos(128 * 11 * 1_000_000_000 / u64::from(plug.rate().hertz()));
        let bit = Nanos(1_000_000_000 / u64::from(plug.rate().hertz()));
        assert!((recovery..=recovery + bit).contains(&(active - Nanos::from_millis(5))));
        assert!(matches!(last, EventKind::Sent { .. }) && sent > active);
    }
}

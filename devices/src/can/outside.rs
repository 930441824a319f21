//! Somebody outside the simulation on a CAN bus: a node that the shell speaks for.
//!
//! The bus and the shell meet at fixed times of the bus. At each meeting the shell hears which
//! frames are through, and hands in frames to send. So an input of the outside world has a time of
//! the bus, whatever the host does.

use super::Sent;
use diapason_abi::Nanos;
use diapason_can::bus::{NodeId, NodeSetup, Ticket};
use diapason_can::{Bus, CanFrame};
use std::collections::VecDeque;

/// Frames that wait at the node.
const QUEUE: usize = 64;

/// A frame that is through on the bus, as somebody outside hears it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overheard {
    pub sent: Sent,
    /// The number that [`Outside::meet`] gave this frame, if it came from outside.
    pub by: Option<u64>,
}

/// Somebody outside the simulation.
pub trait Outside {
    /// Hears which frames ended since the last meeting, and returns at most `room` frames to send.
    /// The number beside a frame comes back when the frame is through. It must not use the bus.
    fn meet(&mut self, now: Nanos, heard: &[Overheard], room: usize) -> Vec<(u64, CanFrame)>;
}

/// The node of somebody outside.
pub(super) struct Gate {
    node: NodeId,
    period: Nanos,
    next: Nanos,
    /// Frames that wait, with their numbers.
    waiting: VecDeque<(Ticket, u64)>,
    heard: Vec<Overheard>,
    outside: Box<dyn Outside>,
}

impl Gate {
    /// Returns a gate on `bus` that meets `outside` each `period`.
    pub fn new(bus: &mut Bus, node: NodeId, period: Nanos, outside: Box<dyn Outside>) -> Gate {
        let (period, now) = (Nanos(period.0.max(1)), bus.now());
        let (waiting, heard) = (VecDeque::new(), Vec::new());
        Gate { node, period, next: now + period, waiting, heard, outside }
    }

    /// Returns the setup of the node: it sends in the order of requests.
    pub fn setup() -> NodeSetup {
        NodeSetup { queue: QUEUE, in_order: true, fd: true, ..NodeSetup::default() }
    }

    /// Returns when the next meeting is.
    pub const fn next(&self) -> Nanos {
        self.next
    }

    /// Keeps a frame for the next meeting.
    pub fn hear(&mut self, sent: Sent, ticket: Option<Ticket>) {
        let place = self.waiting.iter().position(|(waiting, _)| Some(*waiting) == ticket);
        let by = place.filter(|_| sent.node == self.node).and_then(|at| self.waiting.remove(at));
        self.heard.push(Overheard { sent, by: by.map(|(_, number)| number) });
    }

    /// Holds the meeting of `now`.
    pub fn meet(&mut self, now: Nanos, bus: &mut Bus) {
        self.next += self.period;
        let room = QUEUE.saturating_sub(bus.waiting(self.node));
        let heard = std::mem::take(&mut self.heard);
        for (number, frame) in self.outside.meet(now, &heard, room).into_iter().take(room) {
            if let Ok(ticket) = bus.send(now, self.node, frame) {
                self.waiting.push_back((ticket, number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CanBus, PeriodicMessage};
    use super::*;
    use diapason_can::bus::EventKind;
    use diapason_can::{BitRate, StandardId};
    use std::cell::RefCell;
    use std::rc::Rc;

    type Heard = Rc<RefCell<Vec<(Nanos, Overheard)>>>;

    /// Sends three frames at once at the meeting of 3 ms, and writes down what it hears.
    struct Tester(Heard);

    impl Outside for Tester {
        fn meet(&mut self, now: Nanos, heard: &[Overheard], room: usize) -> Vec<(u64, CanFrame)> {
            self.0.borrow_mut().extend(heard.iter().map(|heard| (now, *heard)));
            let frame = CanFrame::data(StandardId::MAX, &[7]).unwrap();
            let count = if now == Nanos::from_millis(3) { 3.min(room) } else { 0 };
            (0..count as u64).map(|number| (number, frame)).collect()
        }
    }

    #[test]
    fn frames_from_outside_are_those_of_another_node_at_the_time_of_a_meeting() {
        let bus = CanBus::new(BitRate::new(500_000).unwrap());
        let (length, offset) = (1, Nanos::from_millis(1));
        let (id, period) = (StandardId::ZERO.into(), Nanos::from_millis(2));
        bus.add_unit(vec![PeriodicMessage { id, length, period, offset }]);
        bus.add_unit(Vec::new());
        let heard = Heard::default();
        bus.connect(Nanos::from_millis(1), Box::new(Tester(heard.clone())));
        let mut plug = bus.plug(8);
        plug.switch_on(Nanos::ZERO, false);
        assert!(plug.next_change() <= Nanos::from_millis(1), "nothing is waited for in vain");
        plug.advance(Nanos::from_millis(6));
        let events = std::iter::from_fn(|| plug.poll(Nanos::from_millis(6)));
        let received = events.filter(|e| matches!(e.kind, EventKind::Received { .. }));
        let times: Vec<Nanos> = received.map(|event| event.time).collect();
        // 1 ms and 5 ms are periodic; at 3 ms four frames are there at once.
        assert_eq!(times.len(), 6, "{times:?}");
        let heard = heard.borrow();
        assert!(heard.iter().all(|(now, heard)| heard.sent.time <= *now));
        let by: Vec<Option<u64>> = heard.iter().map(|(_, heard)| heard.by).collect();
        assert_eq!(by, [None, None, Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn no_more_is_taken_than_there_is_room_for() {
        struct Flood(Rc<RefCell<Vec<usize>>>);
        impl Outside for Flood {
            fn meet(&mut self, _: Nanos, _: &[Overheard], room: usize) -> Vec<(u64, CanFrame)> {
                self.0.borrow_mut().push(room);
                vec![(0, CanFrame::data(StandardId::ZERO, &[0; 8]).unwrap()); room + 9]
            }
        }
        let (bus, rooms) = (CanBus::quiet(BitRate::new(500_000).unwrap()), Rc::default());
        bus.connect(Nanos::from_millis(1), Box::new(Flood(Rc::clone(&rooms))));
        bus.advance(Nanos::from_millis(10));
        let rooms = rooms.borrow();
        assert_eq!((rooms.len(), rooms[0]), (10, QUEUE));
        assert!(rooms[1..].iter().all(|room| *room < 8), "a millisecond is about 4 frames");
    }
}

//! Messages that wait in memory, in the order of their urgency.
//!
//! A message is one number: its identifier as the arbitration on the wire compares it, and its
//! stream. So an insertion moves and compares words.

use super::outbox::STREAMS;
use crate::frame::{extended, standard};
use embedded_can::{Id, StandardId};

/// Bits of an identifier behind the eleven that both formats have: the format and 18 more.
const REST_BITS: u32 = 19;
const EXTENDED: u32 = 1 << 18;

/// A message that waits. A smaller one is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting(u64);

impl Waiting {
    /// Returns a message of `stream` that goes under `id`.
    pub fn new(stream: u8, id: Id) -> Waiting {
        let urgency = match id {
            Id::Standard(id) => u32::from(id.as_raw()) << REST_BITS,
            Id::Extended(id) => {
                let (base, rest) = (id.as_raw() >> 18, id.as_raw() & (EXTENDED - 1));
                base << REST_BITS | EXTENDED | rest
            }
        };
        Waiting(u64::from(urgency) << 8 | u64::from(stream))
    }

    /// Returns the stream that it belongs to.
    pub fn stream(self) -> u8 {
        self.0 as u8
    }

    /// Returns the identifier under which it goes.
    pub fn id(self) -> Id {
        let urgency = (self.0 >> 8) as u32;
        let base = urgency >> REST_BITS;
        let id = match urgency & EXTENDED {
            0 => standard(base),
            _ => extended(base << 18 | urgency & (EXTENDED - 1)),
        };
        // It was made of an identifier.
        id.unwrap_or(Id::Standard(StandardId::MAX))
    }
}

/// Streams, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Streams(u64);

const _: () = assert!(STREAMS <= 64);

impl Streams {
    /// Returns whether `stream` is one of them.
    pub fn has(self, stream: u8) -> bool {
        self.0 >> (stream % 64) & 1 != 0
    }

    /// Adds `stream`, or takes it out.
    pub fn set(&mut self, stream: u8, is_in: bool) {
        let bit = 1 << (stream % 64);
        self.0 = if is_in { self.0 | bit } else { self.0 & !bit };
    }
}

/// Messages in memory, at most one of each stream.
#[derive(Debug)]
pub(super) struct Queue {
    /// The most urgent last, so that it is taken without a move.
    all: [Waiting; STREAMS],
    count: usize,
    has: Streams,
}

impl Queue {
    /// Returns a queue without messages.
    pub const fn new() -> Queue {
        Queue { all: [Waiting(0); STREAMS], count: 0, has: Streams(0) }
    }

    /// Returns how many messages wait.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a message of a stream that has none here.
    pub fn insert(&mut self, waiting: Waiting) {
        let mut at = self.count.min(STREAMS - 1);
        while let Some(before) = at.checked_sub(1)
            && self.all[before] < waiting
        {
            self.all[at] = self.all[before];
            at = before;
        }
        self.all[at] = waiting;
        self.count = (self.count + 1).min(STREAMS);
        self.has.set(waiting.stream(), true);
    }

    /// Takes out the message of this stream, if there is one.
    pub fn take(&mut self, stream: u8) -> Option<Waiting> {
        if !self.has.has(stream) {
            return None;
        }
        let at = self.all[..self.count].iter().rposition(|it| it.stream() == stream)?;
        let taken = self.all[at];
        self.all.copy_within(at + 1..self.count, at);
        self.count -= 1;
        self.has.set(stream, false);
        Some(taken)
    }

    /// Returns the most urgent message of a stream that is none of `but`.
    pub fn head(&self, but: Streams) -> Option<Waiting> {
        self.all[..self.count].iter().rev().find(|it| !but.has(it.stream())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;
    use diapason_random::Random;

    fn any(random: &mut Random) -> Id {
        match random.below(2) {
            0 => frame::standard(random.below(1 << 11) as u32).unwrap(),
            _ => frame::extended(random.below(1 << 29) as u32).unwrap(),
        }
    }

    #[test]
    fn a_message_keeps_its_identifier_and_its_place_on_the_wire() {
        let mut random = Random::new(7);
        let mut last = Waiting::new(0, any(&mut random));
        for stream in (0..STREAMS as u8).cycle().take(5_000) {
            let id = any(&mut random);
            let next = Waiting::new(stream, id);
            assert_eq!((next.stream(), next.id()), (stream, id));
            let ordered = (id, stream).cmp(&(last.id(), last.stream()));
            assert_eq!(next.cmp(&last), ordered, "{id:?} and {:?}", last.id());
            last = next;
        }
    }

    #[test]
    fn a_queue_gives_the_most_urgent_that_is_not_left_out() {
        let mut random = Random::new(8);
        for _ in 0..200 {
            let (mut queue, mut model) = (Queue::new(), alloc::vec::Vec::new());
            for _ in 0..100 {
                let stream = random.below(STREAMS as u64) as u8;
                let there = model.iter().position(|it: &Waiting| it.stream() == stream);
                let removed = there.map(|place| model.remove(place));
                assert_eq!(queue.take(stream), removed);
                if random.one_in(2) {
                    let waiting = Waiting::new(stream, any(&mut random));
                    queue.insert(waiting);
                    model.push(waiting);
                }
                let mut but = Streams::default();
                (0..3).for_each(|_| but.set(random.below(STREAMS as u64) as u8, true));
                let wanted = model.iter().filter(|it| !but.has(it.stream())).min();
                assert_eq!((queue.head(but), queue.len()), (wanted.copied(), model.len()));
            }
        }
    }
}

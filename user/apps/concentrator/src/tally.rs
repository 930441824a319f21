//! The count of a channel's messages: every sender numbers its messages, so missing ones show.

use core::fmt;
use diapason_abi::pipe::{SIZES, size_of_delay};
use diapason_canlib::{Arrival, LOST_BEFORE, OUTSIDE};
use diapason_rt::Nanos;

/// Most identifiers that are told apart; the article's buses have four each.
const SENDERS: usize = 16;

/// One identifier and the number its next message must have.
#[derive(Clone, Copy, Default)]
struct Sender {
    id: u32,
    next: u64,
}

/// The faults in received messages.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    /// Numbers that were passed over.
    pub missing: u64,
    /// Numbers that came again, or late.
    pub disordered: u64,
    /// Times the interface said that it had lost something.
    pub overruns: u64,
    /// Frames of identifiers that there was no room for, or without a number.
    pub unknown: u64,
}

/// The longest delays of a message.
#[derive(Clone, Copy, Default)]
pub struct Delays {
    /// From the server to here.
    pub reading: Nanos,
    /// From the bus to the server, beyond the fastest there ever was: the clock of the interface
    /// began at a time nobody here knows.
    pub moving: Nanos,
    /// The two together.
    pub whole: Nanos,
}

/// The messages so far.
pub struct Tally {
    senders: [Sender; SENDERS],
    known: usize,
    /// Frames in all.
    pub frames: u64,
    /// Those outside of their contract.
    pub outside: u64,
    /// The faults in them.
    pub faults: Faults,
    delays: Delays,
    /// How many messages took how long, by size.
    spread: [u32; SIZES],
    /// The smallest difference of the two clocks, since the channel was opened so many times.
    fastest: Option<(u16, u64)>,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            senders: [Sender::default(); SENDERS],
            known: 0,
            frames: 0,
            outside: 0,
            faults: Faults::default(),
            delays: Delays::default(),
            spread: [0; SIZES],
            fastest: None,
        }
    }
}

impl Tally {
    /// A frame that was read at `now`. How long it took to the server, beyond the fastest.
    pub fn count(&mut self, arrival: &Arrival, now: Nanos) -> Nanos {
        self.frames += 1;
        self.outside += u64::from(arrival.flags & OUTSIDE != 0);
        self.faults.overruns += u64::from(arrival.flags & LOST_BEFORE != 0);
        let reading = now - Nanos(arrival.taken);
        // Of two clocks: only differences between such differences mean anything.
        let distance = arrival.taken.wrapping_sub(arrival.time);
        let before = self.fastest.filter(|(opened, _)| *opened == arrival.opened);
        let fastest = before.map_or(distance, |(_, fastest)| fastest.min(distance));
        self.fastest = Some((arrival.opened, fastest));
        let moving = Nanos(distance - fastest);
        let longest = &mut self.delays;
        longest.reading = longest.reading.max(reading);
        longest.moving = longest.moving.max(moving);
        longest.whole = longest.whole.max(moving + reading);
        let size = &mut self.spread[size_of_delay(moving + reading)];
        *size = size.saturating_add(1);
        self.check(arrival.id, u64::from_le_bytes(arrival.data), arrival.code);
        moving
    }

    fn check(&mut self, id: u32, number: u64, code: u8) {
        let known = &mut self.senders[..self.known];
        match known.iter_mut().find(|sender| sender.id == id) {
            Some(sender) if number >= sender.next => {
                self.faults.missing += number - sender.next;
                sender.next = number + 1;
            }
            Some(_) => self.faults.disordered += 1,
            // The channel was opened while it was talking: its first number may be any.
            None if self.known < SENDERS && code >= 8 => {
                self.senders[self.known] = Sender { id, next: number + 1 };
                self.known += 1;
            }
            None => self.faults.unknown += 1,
        }
    }

    /// Was everything as it should be, and anything at all?
    pub fn is_whole(&self) -> bool {
        let Faults { missing, disordered, overruns, unknown } = self.faults;
        self.frames > 0 && missing + disordered + overruns + unknown == 0
    }

    /// How many messages took how long, by size.
    pub fn spread(&self) -> &[u32; SIZES] {
        &self.spread
    }

    /// The longest delays since the last look.
    pub fn take_delays(&mut self) -> Delays {
        core::mem::take(&mut self.delays)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Faults { missing, disordered, overruns, unknown } = self;
        write!(f, "missing {missing}, disordered {disordered}, ")?;
        write!(f, "overruns {overruns}, unknown {unknown}")
    }
}

//! The count of a channel's messages: every sender numbers its messages, so missing ones show.

use core::fmt;
use diapason_canlib::{LOST_BEFORE, ReceivedFrame};

/// Most identifiers that are told apart.
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

/// The messages so far.
#[derive(Default)]
pub struct Tally {
    senders: [Sender; SENDERS],
    known: usize,
    pub frames: u64,
    /// The faults in them.
    pub faults: Faults,
}

impl Tally {
    /// A frame that was read. How many before it are missing.
    pub fn count(&mut self, arrival: &ReceivedFrame) -> u64 {
        self.frames += 1;
        self.faults.overruns += u64::from(arrival.flags & LOST_BEFORE != 0);
        let before = self.faults.missing;
        self.check(arrival.id, u64::from_le_bytes(arrival.data), arrival.code);
        self.faults.missing - before
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

    /// Returns whether there was anything, and all of it was as it should be.
    pub fn is_whole(&self) -> bool {
        let Faults { missing, disordered, overruns, unknown } = self.faults;
        self.frames > 0 && missing + disordered + overruns + unknown == 0
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Faults { missing, disordered, overruns, unknown } = self;
        write!(f, "missing {missing}, disordered {disordered}, ")?;
        write!(f, "overruns {overruns}, unknown {unknown}")
    }
}

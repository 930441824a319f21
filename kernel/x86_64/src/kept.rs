//! The copy of the console in memory, for a process that takes it to a medium: see
//! `diapason_abi::results`.

use crate::cpu;
use diapason_abi::results::{HEAD, LOST, RING, RunState, STATE, TAIL, TAKER, Taker, free};

/// A ring that the kernel fills. Without a segment it has no room, and takes nothing.
pub struct Kept {
    /// Where the segment begins.
    at: u64,
    /// Bytes of the ring.
    room: u32,
    head: u32,
    lost: u32,
    /// The line that leaves has room.
    fits: bool,
}

impl Kept {
    pub const NONE: Kept = Kept { at: 0, room: 0, head: 0, lost: 0, fits: false };

    /// The ring in a segment of so many bytes.
    #[inline(always)]
    pub fn at(at: u64, bytes: u64) -> Kept {
        Kept { at, room: bytes as u32 - RING as u32, ..Kept::NONE }
    }

    fn word(&self, offset: usize) -> u64 {
        self.at + offset as u64
    }

    /// Begins a line of so many bytes, or counts it if there is no room.
    pub fn begin(&mut self, bytes: usize) {
        self.fits =
            self.room > 0 && free(self.room, self.head, cpu::read(self.word(TAIL))) >= bytes as u32;
        if self.room > 0 && !self.fits {
            self.lost += 1;
            cpu::write(self.word(LOST), self.lost);
        }
    }

    /// Adds a byte of the line.
    #[inline(never)]
    pub fn put(&mut self, byte: u8) {
        if !self.fits {
            return;
        }
        let place = self.word(RING) + u64::from(self.head & !3);
        let shift = 8 * (self.head & 3);
        let others = cpu::read(place) & !(0xff << shift);
        cpu::write(place, others | u32::from(byte) << shift);
        self.head += 1;
        if self.head == self.room {
            self.head = 0;
        }
        cpu::write(self.word(HEAD), self.head);
    }

    /// Says how far the run is. Returns whether a process still takes lines.
    pub fn says(&self, state: RunState) -> bool {
        if self.room == 0 {
            return false;
        }
        cpu::write(self.word(STATE), state as u32);
        cpu::read(self.word(TAKER)) == Taker::Busy as u32
    }
}

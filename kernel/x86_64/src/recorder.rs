//! The flight recorder: every entry into the core, kept in memory until the end of the run.

use crate::cpu;
use crate::seat::seat;
use diapason_abi::recorder::{ENTRY_BYTES, ENTRY_WORDS, Entry, access_words};

/// Where an emulator takes bytes to a file: those of the first core, and those of the second. The
/// ports of more cores lie behind the latter.
const PORT: u16 = 0xe9;
const OTHERS: u16 = 0xe1;

/// Room for entries, filled from the front.
pub struct Recorder {
    entries: &'static mut [[u64; ENTRY_WORDS]],
    used: usize,
    lost: u64,
}

impl Recorder {
    /// A recorder with this room; none if it is empty.
    pub fn new(entries: &'static mut [[u64; ENTRY_WORDS]]) -> Recorder {
        Recorder { entries, used: 0, lost: 0 }
    }

    #[inline(never)]
    fn push(&mut self, words: [u64; ENTRY_WORDS]) {
        match self.entries.get_mut(self.used) {
            Some(slot) => {
                *slot = words;
                self.used += 1;
            }
            None => self.lost += 1,
        }
    }

    /// Keeps one kernel entry.
    pub fn entry(&mut self, entry: &Entry) {
        self.push(entry.to_words());
    }

    /// Keeps user bytes the core read; `None` stands for an access that failed.
    pub fn bytes(&mut self, bytes: Option<&[u8]>) {
        access_words(bytes, |words| self.push(words));
    }

    /// Hands everything to the emulator. Returns entries written and lost.
    pub fn dump(&self) -> (u64, u64) {
        let bytes = self.used * ENTRY_BYTES;
        let port = match u16::from(seat().core) {
            0 => PORT,
            other => OTHERS + other - 1,
        };
        // SAFETY: the used part of the slice, as bytes; the port takes any byte.
        unsafe {
            let start = self.entries.as_ptr().cast::<u8>();
            cpu::out_block(port, core::slice::from_raw_parts(start, bytes));
        }
        (self.used as u64, self.lost)
    }
}

//! What the kernel says: records in hexadecimal, on the first serial port.
//!
//! While the system runs, output waits in a ring and leaves when nobody else needs the processor,
//! so that talking never delays a deadline. At boot and at the end it is written out at once.

use crate::cpu;
use diapason_abi::record::Record;

/// Registers of the first serial port of every PC.
pub const PORT: u16 = 0x3f8;
/// Bytes written out per visit of the idle loop, between two chances for interrupts.
const CHUNK: usize = 16;
/// Words of the ring.
const RING: usize = 1 << 15;
/// Longest text of a line.
const LINE_BYTES: usize = 128;
/// Most words of an entry.
const ENTRY: usize = 1 + LINE_BYTES / 8;
/// Longest entry as text: a record of eleven words.
const TEXT_BYTES: usize = 192;

/// Entries waiting to leave, as they came: turning them into text takes far longer than keeping
/// them, and is nobody's deadline.
pub struct Console {
    /// The last entry before the end may go beyond it: none is in two pieces.
    ring: [u64; RING + ENTRY],
    /// Counters of words ever put in and taken out.
    head: usize,
    tail: usize,
    lost: u64,
    /// Where in the ring the next word to be taken out is.
    at: usize,
    /// The entry that is leaving, as text.
    text: [u8; TEXT_BYTES],
    length: usize,
    sent: usize,
}

/// The one console.
pub static mut CONSOLE: Console = Console {
    ring: [0; RING + ENTRY],
    head: 0,
    tail: 0,
    lost: 0,
    at: 0,
    text: [0; TEXT_BYTES],
    length: 0,
    sent: 0,
};

/// The console.
///
/// # Safety
/// One reference at a time: called from kernel entries, which never nest, and kept no longer than
/// a statement.
pub unsafe fn console() -> &'static mut Console {
    let console = &raw mut CONSOLE;
    // SAFETY: the caller keeps it unique.
    unsafe { &mut *console }
}

/// An entry's first word: a record's number and word count, or a line's process and byte count.
const LINE: u64 = 1 << 63;

impl Console {
    /// Room for an entry of this many words behind `first`. If there is none, it is lost and
    /// counted.
    fn entry(&mut self, first: u64, words: usize) -> &mut [u64] {
        if RING - (self.head - self.tail) <= words {
            self.lost += 1;
            return &mut [];
        }
        let at = self.head % RING;
        self.head += 1 + words;
        self.ring[at] = first;
        self.ring.get_mut(at + 1..at + 1 + words).unwrap_or_default()
    }

    /// Say a record.
    pub fn record(&mut self, record: Record, words: &[u64]) {
        let place = self.entry(record as u64 | (words.len() as u64) << 16, words.len());
        for (place, word) in place.iter_mut().zip(words) {
            *place = *word;
        }
    }

    /// Say a line of a process.
    pub fn line(&mut self, process: u16, text: &[u8]) {
        let text = &text[..text.len().min(LINE_BYTES)];
        let first = LINE | u64::from(process) | (text.len() as u64) << 16;
        let place = self.entry(first, text.len().div_ceil(8));
        for (place, chunk) in place.iter_mut().zip(text.chunks(8)) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            *place = u64::from_le_bytes(word);
        }
    }

    /// The next word of the entry that leaves.
    #[inline(never)]
    fn take(&mut self) -> u64 {
        let word = self.ring.get(self.at).copied().unwrap_or(0);
        (self.at, self.tail) = (self.at + 1, self.tail + 1);
        word
    }

    #[inline(never)]
    fn write(&mut self, byte: u8) {
        if let Some(place) = self.text.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn write_hex(&mut self, word: u64) {
        let digits = (64 - (word | 1).leading_zeros()).div_ceil(4);
        for digit in (0..digits).rev() {
            let value = (word >> (4 * digit)) as u8 & 15;
            self.write(if value < 10 { b'0' + value } else { b'a' + value - 10 });
        }
    }

    /// Make the next entry the text that is leaving; false if there is none.
    fn next_entry(&mut self) -> bool {
        if self.tail == self.head {
            return false;
        }
        self.at = self.tail % RING;
        let first = self.take();
        let count = (first >> 16 & 0xffff) as usize;
        (self.length, self.sent) = (0, 0);
        self.write(if first & LINE != 0 { b'=' } else { b'~' });
        self.write_hex(first & 0xffff);
        if first & LINE != 0 {
            self.write(b' ');
            let mut word = 0;
            for i in 0..count {
                word = if i % 8 == 0 { self.take() } else { word >> 8 };
                // Control characters would garble the console.
                self.write(if (word as u8) < b' ' { b'.' } else { word as u8 });
            }
        } else {
            for _ in 0..count {
                self.write(b' ');
                let word = self.take();
                self.write_hex(word);
            }
        }
        self.write(b'\n');
        true
    }

    /// Write a little of what waits; false if nothing is left.
    pub fn drain(&mut self) -> bool {
        for _ in 0..CHUNK {
            let Some(byte) = self.text[..].get(self.sent).filter(|_| self.sent < self.length)
            else {
                if self.next_entry() {
                    continue;
                }
                return false;
            };
            // SAFETY: the serial port's status and data registers.
            unsafe {
                if cpu::in8(PORT + 5) & 0x20 == 0 {
                    return true;
                }
                cpu::out8(PORT, *byte);
            }
            self.sent += 1;
        }
        true
    }

    /// Write out everything.
    pub fn flush(&mut self) {
        while self.drain() {}
    }

    /// Entries that found no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Say a record and write it out at once: for boot, the end, and panics.
#[inline(never)]
pub fn announce(record: Record, words: &[u64]) {
    // SAFETY: boot, end and panic run alone on the core, and the reference ends here.
    let console = unsafe { console() };
    console.record(record, words);
    console.flush();
}

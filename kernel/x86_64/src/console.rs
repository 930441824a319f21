//! What the kernel says: records in hexadecimal, on the first serial port.
//!
//! While the system runs, output waits in a ring and leaves when nobody else needs the processor,
//! so that talking never delays a deadline. At boot and at the end it is written out at once.

use crate::cpu;
use diapason_abi::record::Record;

const PORT: u16 = 0x3f8;
const RING: usize = 1 << 18;
/// Bytes written out per visit of the idle loop, between two chances for interrupts.
const CHUNK: usize = 16;

/// Text waiting to leave.
pub struct Console {
    ring: [u8; RING],
    /// Counters of bytes ever put in and taken out.
    head: usize,
    tail: usize,
    lost: u64,
}

/// The one console.
pub static mut CONSOLE: Console = Console { ring: [0; RING], head: 0, tail: 0, lost: 0 };

/// The console.
///
/// # Safety
/// One reference at a time: called from kernel entries, which never nest, and kept no longer than
/// a statement.
pub unsafe fn console() -> &'static mut Console {
    // SAFETY: the caller keeps it unique.
    unsafe { &mut *(&raw mut CONSOLE) }
}

impl Console {
    /// 115200 baud, 8 bits, first-in first-out buffer on, no interrupts.
    pub fn open(&mut self) {
        for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 7), (4, 3)] {
            // SAFETY: these are the serial port's registers on every PC.
            unsafe { cpu::out8(PORT + register, value) }
        }
    }

    fn room(&self) -> usize {
        RING - (self.head - self.tail)
    }

    fn put(&mut self, byte: u8) {
        self.ring[self.head % RING] = byte;
        self.head += 1;
    }

    fn put_hex(&mut self, word: u64) {
        let digits = (64 - (word | 1).leading_zeros()).div_ceil(4);
        for digit in (0..digits).rev() {
            let value = (word >> (4 * digit)) as u8 & 15;
            self.put(if value < 10 { b'0' + value } else { b'a' + value - 10 });
        }
    }

    /// Say a record.
    pub fn record(&mut self, record: Record, words: &[u64]) {
        let most = 4 + 17 * words.len();
        if self.room() < most {
            self.lost += most as u64;
            return;
        }
        self.put(b'~');
        self.put_hex(record as u64);
        for word in words {
            self.put(b' ');
            self.put_hex(*word);
        }
        self.put(b'\n');
    }

    /// Say a line of a process. Control characters would garble the console and become dots.
    pub fn line(&mut self, process: u16, text: &[u8]) {
        if self.room() < text.len() + 8 {
            self.lost += text.len() as u64;
            return;
        }
        self.put(b'=');
        self.put_hex(u64::from(process));
        self.put(b' ');
        for byte in text {
            self.put(if *byte < b' ' { b'.' } else { *byte });
        }
        self.put(b'\n');
    }

    /// Write a little of what waits; false if nothing is left.
    pub fn drain(&mut self) -> bool {
        for _ in 0..CHUNK {
            if self.tail == self.head {
                return false;
            }
            // SAFETY: the serial port's status and data registers.
            unsafe {
                if cpu::in8(PORT + 5) & 0x20 == 0 {
                    return true;
                }
                cpu::out8(PORT, self.ring[self.tail % RING]);
            }
            self.tail += 1;
        }
        true
    }

    /// Write out everything.
    pub fn flush(&mut self) {
        while self.drain() {}
    }

    /// Bytes that found no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Say a record and write it out at once: for boot, the end, and panics.
pub fn announce(record: Record, words: &[u64]) {
    // SAFETY: boot, end and panic run alone on the core, and the reference ends here.
    let console = unsafe { console() };
    console.record(record, words);
    console.flush();
}

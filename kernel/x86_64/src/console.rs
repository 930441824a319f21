//! The console of the kernel: records in hexadecimal, on the first serial port.
//!
//! While the system runs, output waits in a ring and leaves when nobody else needs the processor,
//! so that talking never delays a deadline. At boot and at the end it is written out at once.
//!
//! No process takes another's room: half of the ring is for the kernel's records alone, and the
//! processes share the other half evenly. The console counts the records that find no room, and,
//! for each process, its lines that find none.

use crate::kept::Kept;
use crate::seat::{Hall, Turn};
use crate::{cpu, screen, seat};
use diapason_abi::PROCESSES_MAX;
use diapason_abi::record::{Record, shown};
use diapason_abi::results::RunState;
use diapason_abi::served::Facility;
use diapason_core::SERVED;

/// This kernel can keep a copy of its console.
pub const KEEPS: bool = SERVED.has(Facility::Kept);
/// Registers of the first serial port of every PC.
pub const PORT: u16 = 0x3f8;
/// Bytes written out per visit of the idle loop, between two chances for interrupts.
const CHUNK: usize = 16;
/// Words of the ring.
const RING: usize = 1 << 15;
/// Words of it that lines of processes may take, all together.
const TEXT: usize = RING / 2;
/// Longest text of a line.
const LINE_BYTES: usize = 128;
/// Most words of an entry.
const ENTRY: usize = 1 + LINE_BYTES / 8;
/// Longest entry as text: a record of eleven words.
const TEXT_BYTES: usize = 192;
/// Looks at a port that takes no byte before a flush gives it up: some tenths of a second of a PC,
/// in which the slowest port takes thousands of bytes.
const PATIENCE: u32 = 1 << 18;

/// Entries waiting to leave, as they came: turning them into text takes far longer than keeping
/// them, and is nobody's deadline.
pub struct Console {
    /// Words of lines that each process may have waiting.
    share: usize,
    talkers: [Talker; PROCESSES_MAX],
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
    /// There is no port that takes anything: what leaves goes nowhere.
    pub mute: bool,
    /// The copy of every byte that leaves.
    kept: Kept,
    /// The run has ended, and a process still has lines to take.
    closed: bool,
}

/// A process, as the console knows it.
#[derive(Clone, Copy)]
struct Talker {
    /// Words of its lines that wait.
    waiting: usize,
    /// Lines that found no room.
    lost: u64,
}

/// The console of the kernel.
pub static mut CONSOLE: Console = Console {
    share: 0,
    talkers: [Talker { waiting: 0, lost: 0 }; PROCESSES_MAX],
    ring: [0; RING + ENTRY],
    head: 0,
    tail: 0,
    lost: 0,
    at: 0,
    text: [0; TEXT_BYTES],
    length: 0,
    sent: 0,
    mute: false,
    kept: Kept::NONE,
    closed: false,
};

/// Returns the console.
///
/// # Safety
/// One reference at a time: called from kernel entries, which never nest, and kept no longer than
/// a statement.
pub unsafe fn console() -> &'static mut Console {
    let console = &raw mut CONSOLE;
    // SAFETY: the caller keeps it unique.
    unsafe { &mut *console }
}

/// An entry's first word: a record's number or a line's process, and from bit 16 the words of the
/// one or the bytes of the other. Of an entry that takes of a process's share, the process is from
/// bit
/// [`OWNER`] on.
const LINE: u64 = 1 << 63;
const OWNED: u64 = 1 << 62;
const OWNER: u32 = 32;

impl Console {
    /// Opens it again for last words of the kernel.
    fn open(&mut self) {
        if self.closed {
            (self.closed, self.tail) = (false, self.head);
        }
    }

    /// Divides the room for lines among processes.
    pub fn share_among(&mut self, processes: usize) {
        self.share = TEXT / processes.max(1);
    }

    /// Returns whether there is room for an entry of this many words behind its first.
    fn has_room(&self, words: usize) -> bool {
        RING - (self.head - self.tail) > words
    }

    /// The place of an entry of this many words behind `first`. If there is no room, it is lost and
    /// counted.
    #[inline(always)]
    fn entry(&mut self, first: u64, words: usize) -> &mut [u64] {
        if !self.has_room(words) {
            self.lost += 1;
            return &mut [];
        }
        let at = self.head % RING;
        self.head += 1 + words;
        self.ring[at] = first;
        self.ring.get_mut(at + 1..at + 1 + words).unwrap_or_default()
    }

    /// Room in a process's share for an entry of this many words behind `first`. If there is none,
    /// it is lost and counted.
    #[inline(never)]
    fn owned(&mut self, process: u16, first: u64, words: usize) -> &mut [u64] {
        let room = self.has_room(words);
        let Some(talker) = self.talkers.get_mut(process as usize) else { return &mut [] };
        if !room || talker.waiting + words >= self.share {
            talker.lost += 1;
            return &mut [];
        }
        talker.waiting += 1 + words;
        self.entry(first | OWNED | u64::from(process) << OWNER, words)
    }

    /// Says a record. A measurement is what a process says, and takes of its share.
    #[inline(always)]
    pub fn record(&mut self, record: Record, words: &[u64]) {
        let first = record as u64 | (words.len() as u64) << 16;
        let place = match (record, words) {
            (Record::Measured, [process, ..]) => self.owned(*process as u16, first, words.len()),
            _ => self.entry(first, words.len()),
        };
        for (place, word) in place.iter_mut().zip(words) {
            *place = *word;
        }
    }

    /// Says a line of a process. If its share is used up, the line is lost and counted.
    pub fn line(&mut self, process: u16, text: &[u8]) {
        let text = &text[..text.len().min(LINE_BYTES)];
        let first = LINE | u64::from(process) | (text.len() as u64) << 16;
        let place = self.owned(process, first, text.len().div_ceil(8));
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

    /// Makes the next entry the text that is leaving; false if there is none.
    fn next_entry(&mut self) -> bool {
        if self.tail == self.head {
            return false;
        }
        self.at = self.tail % RING;
        let first = self.take();
        let count = (first >> 16 & 0xffff) as usize;
        if first & OWNED != 0
            && let Some(talker) = self.talkers.get_mut((first >> OWNER) as u16 as usize)
        {
            let words = if first & LINE != 0 { count.div_ceil(8) } else { count };
            talker.waiting -= 1 + words;
        }
        (self.length, self.sent) = (0, 0);
        self.write(if first & LINE != 0 { b'=' } else { b'~' });
        self.write_hex(first & 0xffff);
        if first & LINE != 0 {
            self.write(b' ');
            let mut word = 0;
            for i in 0..count {
                word = if i % 8 == 0 { self.take() } else { word >> 8 };
                self.write(shown(word as u8));
            }
        } else {
            for _ in 0..count {
                self.write(b' ');
                let word = self.take();
                self.write_hex(word);
            }
        }
        self.write(b'\n');
        if KEEPS {
            self.kept.begin(self.length);
        }
        true
    }

    /// Writes a little of what waits; false if nothing is left.
    pub fn drain(&mut self) -> bool {
        let Some(_turn) = Turn::at_port() else { return true };
        if KEEPS && self.closed {
            return false;
        }
        for _ in 0..CHUNK {
            let Some(byte) = self.text[..].get(self.sent).filter(|_| self.sent < self.length)
            else {
                if self.next_entry() {
                    continue;
                }
                return false;
            };
            if !self.mute {
                // SAFETY: the serial port's status and data registers.
                unsafe {
                    if cpu::in8(PORT + 5) & 0x20 == 0 {
                        return true;
                    }
                    if let Some(mark) = seat::mark() {
                        cpu::out8(PORT, mark);
                        continue;
                    }
                    cpu::out8(PORT, *byte);
                }
            }
            self.sent += 1;
            if KEEPS {
                self.kept.put(*byte);
            }
        }
        true
    }

    /// Writes out everything that waits. If the port takes nothing for too long, another core has
    /// stopped in its turn, or the port gets nothing more: a machine whose port is broken must boot
    /// and end all the same.
    #[inline(never)]
    fn flush(&mut self) {
        let (hall, mut sent, mut looks) = (seat::hall(), self.sent, 0);
        loop {
            if let Some(hall) = hall {
                hall.show_life();
            }
            if !self.drain() {
                return;
            }
            looks = if self.sent == sent { looks + 1 } else { 0 };
            sent = self.sent;
            if looks == PATIENCE {
                self.mute = !hall.is_some_and(Hall::end_turn_at_port);
                looks = 0;
            }
        }
    }

    /// Records that found no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Lines of a process that found no room.
    pub fn lines_lost(&self, process: usize) -> u64 {
        self.talkers.get(process).map_or(0, |talker| talker.lost)
    }
}

/// Writes out everything that waits: at the end.
#[inline(always)]
pub fn write_out() {
    alone(|console| console.flush());
}

/// Says a record and writes it out at once: for boot, the end, and panics. Waiting entries go out
/// first, so there is room for it.
#[inline(never)]
pub fn announce(record: Record, words: &[u64]) {
    alone(|console| {
        console.open();
        console.flush();
        console.record(record, words);
        console.flush();
    });
    if screen::is_open() {
        screen::note(record, words);
    }
}

/// Lets boot, an idle core, the end of a run or a panic have the console.
#[inline(always)]
fn alone<R>(by: impl FnOnce(&mut Console) -> R) -> R {
    // SAFETY: they run alone on the core, and the reference ends here.
    by(unsafe { console() })
}

/// Keeps a copy of every line from now on, and of those of boot. Their entries are still in the
/// ring, from its front.
#[inline(always)]
pub fn keep(kept: Kept) {
    alone(|console| {
        console.kept = kept;
        (console.tail, console.at) = (0, 0);
        while console.next_entry() {
            for byte in console.text.iter().take(console.length) {
                console.kept.put(*byte);
            }
        }
        console.sent = console.length;
    });
}

/// Says that the ring has the last line of the run. Closes the console if a process of this core
/// still has lines to take. Until it is done, everything that is said is lost. Returns whether that
/// is so.
#[inline(always)]
pub fn close() -> bool {
    KEEPS
        && alone(|console| {
            // The process that takes lines is on the first core.
            let takes = console.kept.says(RunState::Ended);
            console.closed = takes && seat::seat().core == 0;
            if console.closed {
                // A ring that is full takes nothing.
                console.head = console.tail + RING;
            }
            console.closed
        })
}

/// Returns whether it is closed.
#[inline(always)]
pub fn is_closed() -> bool {
    KEEPS && alone(|console| console.closed)
}

/// Returns whether it is closed, and the process has taken the last line.
#[inline(always)]
pub fn is_taken() -> bool {
    KEEPS && alone(|console| console.closed && !console.kept.says(RunState::Ended))
}

//! Works on memory as hard as a core can, while another core measures. Its argument is how many KiB
//! it streams over: more than all caches of the computer together.
//!
//! It reads lines, reads and writes lines, and wrests lines from other cores, in turns that the
//! clock decides. So all cores do the same at a time, which is the hardest for what they share.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::PAGE;
use diapason_machine::{LINE_BYTES, StressBoard, tell};
use diapason_pipe::measured::MachineReport;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, memory, time};

entry!(main);

/// The length of a turn: longer than one operation that is measured, and so short that the thousand
/// runs of an operation meet every kind of work.
const TURN: Nanos = Nanos::from_millis(10);
/// Bytes between two looks at the clock.
const PART: usize = 64 * 1024;
/// Rounds over the contested lines between two looks at the clock.
const ROUNDS: u64 = 128;

fn main(Arguments([kib, ..]): Arguments) {
    if let Err(errno) = stress(kib) {
        log!("the memory was not worked on: {errno:?}");
    }
}

fn stress(kib: u64) -> Result<(), Errno> {
    let board = StressBoard::attach()?;
    let own = memory::allocate((kib as usize * 1024).div_ceil(PAGE))?;
    let (mut read, mut updated, mut wrested) = (0, 0, 0);
    board.wait_for_begin();
    board.note_begin();
    while !board.is_over() {
        for part in own.chunks_mut(PART) {
            match time::now().0 / TURN.0 % 3 {
                0 => read += read_lines(part),
                1 => updated += update_lines(part),
                _ => wrested += (0..ROUNDS).map(|_| board.wrest()).sum::<u64>(),
            }
            if board.is_over() {
                break;
            }
        }
    }
    tell(MachineReport::Stress { read, updated, wrested });
    board.note_end();
    Ok(())
}

/// Reads a byte of each line. Returns how many lines there are.
fn read_lines(part: &[u8]) -> u64 {
    for byte in part.iter().step_by(LINE_BYTES) {
        core::hint::black_box(*byte);
    }
    lines(part)
}

/// Reads and writes a byte of each line. Returns how many lines there are.
fn update_lines(part: &mut [u8]) -> u64 {
    for byte in part.iter_mut().step_by(LINE_BYTES) {
        *core::hint::black_box(byte) ^= 1;
    }
    lines(part)
}

fn lines(part: &[u8]) -> u64 {
    part.len().div_ceil(LINE_BYTES) as u64
}

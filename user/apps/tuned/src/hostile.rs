//! A client of tuned pipes that wants harm: questions that are none, wishes beyond all numbers,
//! more questions than anybody answers, and no answer ever read.
//!
//! Arguments: its place, and a number that its questions follow from.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::MESSAGE_BYTES;
use diapason_rt::{Arguments, Nanos, entry, heap, log, time};
use diapason_tpipe::agreement::counter;

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// How often it says how much it asked.
const REPORT: Nanos = Nanos::from_secs(1);

fn main(Arguments([place, seed, ..]): Arguments) {
    let Ok(desk) = counter(place as usize) else { return log!("no such place") };
    let (mut state, mut asked, mut full) = (seed | 1, 0u64, 0u64);
    let mut report_at = time::now() + REPORT;
    loop {
        let (bytes, length) = question(&mut state);
        match desk.questions.send(&bytes[..length], 0, Nanos::ZERO) {
            Ok(()) => asked += 1,
            Err(_) => full += 1,
        }
        if time::now() >= report_at {
            log!("asked {asked}, found no room {full} times");
            report_at += REPORT;
        }
    }
}

/// Returns the next number of a sequence (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Something that looks like a question more often than not: a number, what is wanted, a channel,
/// and five words of a wish, each as extreme as can be or quite usual.
fn question(state: &mut u64) -> ([u8; MESSAGE_BYTES], usize) {
    const USUAL: [u64; 5] = [50_000_000, 2_560, 1_024, 200_000, 4];
    const WISH: usize = 48;
    let mut bytes = [0; MESSAGE_BYTES];
    let head = next(state);
    bytes[..4].copy_from_slice(&(head as u32).to_le_bytes());
    bytes[4] = (head >> 32) as u8 % 6;
    bytes[5] = (head >> 40) as u8 % 8;
    bytes[6] = (head >> 44) as u8 % 8;
    for (place, usual) in bytes[8..WISH].chunks_exact_mut(8).zip(USUAL) {
        let word = match next(state) % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => next(state),
            3 => usual / 1_000,
            4 => usual * 1_000,
            _ => usual,
        };
        place.copy_from_slice(&word.to_le_bytes());
    }
    let odd = head >> 48 & 7 == 0;
    let length = if odd { next(state) as usize % (MESSAGE_BYTES + 1) } else { WISH };
    (bytes, length)
}

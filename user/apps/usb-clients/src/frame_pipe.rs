//! Reads the `[[pipe]]` from a network device and checks that the numbered frames of the model
//! follow each other. Other frames are counted.
//!
//! The library measures and reports how the pipe does. Arguments: after how many seconds it ends
//! with a verdict (0: never), and the time in us that it takes for each frame besides the check.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod reading;

use diapason_rt::{Arguments, Errno, Nanos, entry, log};
use diapason_usblib::network::{CameFrame, FrameReader};

entry!(main);

/// Bytes of a numbered frame.
const BYTES: u32 = 256;
/// The words with the type of the frame, and where its number begins; the time follows. The bytes
/// behind both count up.
const TYPE_AT: u32 = 12;
const TYPE: u32 = 0xb588;
const NUMBER_AT: u32 = 16;
const COUNTS_AT: u32 = 32;

/// The frames so far.
#[derive(Default)]
struct Tally {
    numbered: u64,
    others: u64,
    wrong: u64,
    /// The session, and the number that comes next in it.
    next: Option<(u32, u64)>,
}

impl Tally {
    /// Counts a frame, and returns how many are missing before it.
    fn count(&mut self, pipe: &FrameReader, frame: &CameFrame) -> u64 {
        if pipe.word(frame, TYPE_AT) != TYPE {
            self.others += 1;
            return 0;
        }
        let [low, high] = [NUMBER_AT, NUMBER_AT + 4].map(|at| u64::from(pipe.word(frame, at)));
        let number = high << 32 | low;
        let first = (number as u8).wrapping_add(COUNTS_AT as u8);
        let counts = u32::from_le_bytes([0, 1, 2, 3].map(|more| first.wrapping_add(more)));
        if frame.bytes != BYTES || pipe.word(frame, COUNTS_AT) != counts {
            self.wrong += 1;
            return 0;
        }
        self.numbered += 1;
        let before = self.next.replace((frame.session, number + 1));
        match before.filter(|(session, _)| *session == frame.session) {
            Some((_, next)) if number >= next => number - next,
            Some(_) => {
                self.wrong += 1;
                0
            }
            None => 0,
        }
    }
}

fn main(Arguments([seconds, busy, ..]): Arguments) {
    if let Err(errno) = read(seconds, Nanos::from_micros(busy)) {
        log!("network: not read: {errno:?}");
    }
}

fn read(seconds: u64, busy: Nanos) -> Result<(), Errno> {
    let mut pipe = FrameReader::open()?;
    let (mut tally, mut missing) = (Tally::default(), 0);
    reading::read_for(&mut pipe, seconds, busy, |pipe, frame| {
        let before = tally.count(pipe, frame);
        missing += before;
        before
    })?;
    let Tally { numbered, others, wrong, .. } = tally;
    let is_whole = wrong + missing + pipe.lost() == 0 && numbered > 0;
    let verdict = if is_whole { "WHOLE" } else { "NOT WHOLE" };
    log!("FRAMES {verdict} {numbered} numbered, {others} others, {missing} missing");
    Ok(())
}

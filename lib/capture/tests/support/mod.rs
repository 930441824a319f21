//! Random entries of logs for the tests of this crate, from a seed.
#![allow(dead_code, reason = "each test file uses a part")]

use diapason_abi::Nanos;
use diapason_can::candump::LineContent;
use diapason_can::fd::LENGTHS;
use diapason_can::frame::{extended, standard};
use diapason_can::{AnyFrame, CanFrame, FdFrame};
use diapason_capture::log::LogEntry;

pub use diapason_random::Random;

/// Any frame of classic CAN.
pub fn frame(random: &mut Random) -> CanFrame {
    let raw = random.bits() as u32;
    let id = match random.one_in(2) {
        true => standard(raw & 0x7ff).unwrap(),
        false => extended(raw & 0x1fff_ffff).unwrap(),
    };
    if random.one_in(6) {
        return CanFrame::remote(id, random.below(16) as usize).unwrap();
    }
    let len = random.below(9) as usize;
    let frame = CanFrame::data(id, &random.bits().to_le_bytes()[..len]).unwrap();
    match len == 8 && random.one_in(4) {
        true => frame.with_code(8 + random.below(8) as u8).unwrap(),
        false => frame,
    }
}

/// Any frame of CAN FD.
pub fn fd_frame(random: &mut Random) -> FdFrame {
    let id = frame(random).id();
    let length = LENGTHS[random.below(16) as usize].0;
    let bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
    let frame = FdFrame::new(id, &bytes).unwrap();
    frame.with_fast(random.one_in(2)).with_passive(random.one_in(2))
}

/// Any entry after `last`, in whole microseconds.
pub fn entry(random: &mut Random, last: Nanos) -> LogEntry {
    let report = match random.below(10) {
        0 => LineContent::Error { class: 0x80, details: [0; 8] },
        1..=3 => LineContent::Frame(AnyFrame::Fd(fd_frame(random))),
        _ => LineContent::Frame(AnyFrame::Classic(frame(random))),
    };
    let time = last + Nanos(random.below(5_000) * 1_000);
    LogEntry { time, channel: 1 + random.below(9) as u16, report }
}

/// Returns a log of so many entries.
pub fn log(random: &mut Random, count: usize) -> Vec<LogEntry> {
    let mut last = Nanos::ZERO;
    let next = |_| {
        let entry = entry(random, last);
        last = entry.time;
        entry
    };
    (0..count).map(next).collect()
}

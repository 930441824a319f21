//! Random numbers and frames for the tests of this crate, from a seed.
#![allow(dead_code, reason = "each test file uses a part")]

use diapason_can::frame::{extended, standard};
use diapason_can::{Frame, Id};

/// splitmix64.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// One of `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Any identifier; often a small one, so that some are equal.
    pub fn id(&mut self) -> Id {
        let raw = if self.one_in(2) { self.below(4) } else { self.bits() };
        if self.one_in(2) {
            standard(raw as u32 & 0x7ff).unwrap()
        } else {
            extended(raw as u32 & 0x1fff_ffff).unwrap()
        }
    }

    /// Any frame; half of the data is made of runs, which stuffing is about.
    pub fn frame(&mut self) -> Frame {
        let id = self.id();
        if self.one_in(8) {
            return Frame::remote(id, self.below(16) as usize).unwrap();
        }
        let len = self.below(9) as usize;
        let mut bytes = [0u8; 8];
        let runs = self.one_in(2);
        for byte in &mut bytes {
            let choice = [0x00, 0xff, 0x0f, 0xf0, 0x07, 0x3c][self.below(6) as usize];
            *byte = if runs { choice } else { self.bits() as u8 };
        }
        let frame = Frame::data(id, &bytes[..len]).unwrap();
        if len == 8 && self.one_in(4) {
            frame.with_code(8 + self.below(8) as u8).unwrap()
        } else {
            frame
        }
    }
}

//! The computing part of both programs. It knows no Diapason, so `cargo test` tests it here.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// Bytes of a message behind its head.
pub const BYTES: usize = 8;

/// Returns the reading that the sender makes at this time, in ns: a saw tooth of one second.
#[must_use]
pub const fn reading(time: u64) -> [u32; BYTES / 4] {
    const SECOND: u64 = 1_000_000_000;
    [(time / SECOND) as u32, (time % SECOND / 1_000_000) as u32]
}

/// The readings that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    pub count: u64,
    /// Milliseconds in the last one.
    pub last: u32,
    /// Readings that make no sense.
    pub odd: u64,
}

impl Readings {
    /// Counts a reading, and whether its milliseconds can be.
    pub fn add(&mut self, [_, milliseconds]: [u32; BYTES / 4]) {
        self.count += 1;
        self.odd += u64::from(milliseconds >= 1_000);
        self.last = milliseconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_repeat_every_second() {
        assert_eq!(reading(2_003_000_000), [2, 3]);
        let mut readings = Readings::default();
        readings.add(reading(999_999_999));
        readings.add([0, 1_000]);
        assert_eq!(readings, Readings { count: 2, last: 1_000, odd: 1 });
    }
}

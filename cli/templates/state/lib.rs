//! The computing parts of the programs. They know no Diapason, so `cargo test` tests them here.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// A wheel that turns faster and faster, up to a limit.
#[derive(Debug, Default)]
pub struct Wheel {
    samples: u32,
}

impl Wheel {
    /// Samples in a second.
    const RATE: u32 = 200;
    /// The fastest, in turns a minute.
    const FASTEST: u32 = 3_000;

    /// Takes a sample. Returns the turns so far and the turns a minute.
    pub fn sample(&mut self) -> (u32, u32) {
        self.samples += 1;
        let per_minute = (self.samples * 5).min(Self::FASTEST);
        (self.samples * per_minute / 60 / Self::RATE, per_minute)
    }
}

/// Returns the throttle for a speed, in per cent.
#[must_use]
pub fn throttle(per_minute: u32) -> u32 {
    100_u32.saturating_sub(per_minute / 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_gets_faster_up_to_its_limit() {
        let mut wheel = Wheel::default();
        let speeds: Vec<u32> = (0..1_000).map(|_| wheel.sample().1).collect();
        assert_eq!((speeds[0], speeds[599], speeds[999]), (5, 3_000, 3_000));
    }

    #[test]
    fn a_fast_wheel_closes_the_throttle() {
        assert_eq!([0, 1_500, 3_000, 9_000].map(throttle), [100, 50, 0, 0]);
    }
}

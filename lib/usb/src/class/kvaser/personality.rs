//! The kinds of interfaces: clocks, ticks, and the limits of their CAN controllers.

use diapason_abi::Nanos;
use diapason_can::timing::{BitRate, BitTiming, TimingLimits, TimingRefusal};

/// The three kinds of devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Personality {
    /// Clock and time stamps of 80 MHz.
    Kcan,
    /// Clock of 80 MHz, time stamps of 24 MHz.
    Rt,
    /// Clock of 24 MHz, time stamps of 1 MHz.
    Flexc,
}

/// Bits of the flags a device gives.
pub(super) mod flag {
    pub const BAD_FIRMWARE: u32 = 1 << 4;
    pub const KCAN: u32 = 1 << 5;
    pub const EXTENDED: u32 = 1 << 9;
    pub const CAPABILITIES: u32 = 1 << 12;
    pub const RT: u32 = 1 << 13;
}

impl Personality {
    pub(super) const fn of(flags: u32) -> Personality {
        if flags & flag::KCAN != 0 {
            Personality::Kcan
        } else if flags & flag::RT != 0 {
            Personality::Rt
        } else {
            Personality::Flexc
        }
    }

    /// Returns the CAN controllers' clock in Hz.
    #[must_use]
    pub const fn clock(self) -> u32 {
        match self {
            Personality::Kcan | Personality::Rt => 80_000_000,
            Personality::Flexc => 24_000_000,
        }
    }

    /// Ticks of a time stamp in a microsecond.
    #[must_use]
    pub const fn ticks_per_microsecond(self) -> u32 {
        match self {
            Personality::Kcan => 80,
            Personality::Rt => 24,
            Personality::Flexc => 1,
        }
    }

    /// Returns the limits of the controllers' registers.
    #[must_use]
    pub const fn limits(self) -> TimingLimits {
        let (prescaler, before_sample, phase2, jump_max) = match self {
            Personality::Kcan => ((1, 8192), (1, 255), (1, 32), 16),
            Personality::Rt => ((1, 1024), (2, 96), (2, 32), 32),
            Personality::Flexc => ((1, 256), (4, 16), (2, 8), 4),
        };
        TimingLimits { prescaler, before_sample, phase2, jump_max }
    }

    /// Returns a time stamp, since the device began to count.
    #[must_use]
    pub fn time(self, ticks: u64) -> Nanos {
        let rate = u64::from(self.ticks_per_microsecond());
        if let Some(thousandths) = ticks.checked_mul(1000) {
            return Nanos(thousandths / rate);
        }
        let nanos = u128::from(ticks) * 1000 / u128::from(rate);
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the setting for exactly this bit rate with its sample nearest to `sample_point`
    /// tenths of a per cent.
    ///
    /// # Errors
    /// No setting gives the rate.
    pub fn parameters(
        self,
        rate: BitRate,
        sample_point: u32,
    ) -> Result<BusParameters, TimingRefusal> {
        let timing = BitTiming::find(self.clock(), rate, sample_point, &self.limits())?;
        Ok(BusParameters {
            bitrate: rate.hertz(),
            before_sample: (timing.propagation + timing.phase1) as u8,
            after_sample: timing.phase2 as u8,
            jump: timing.jump as u8,
        })
    }

    /// Returns whether the controllers can do this.
    #[must_use]
    pub fn allows(self, wanted: &BusParameters) -> bool {
        let limits = self.limits();
        let within = |value: u32, (low, high): (u32, u32)| (low..=high).contains(&value);
        let (before, after) = (u32::from(wanted.before_sample), u32::from(wanted.after_sample));
        let cycles = u64::from(wanted.bitrate) * u64::from(1 + before + after);
        let clock = u64::from(self.clock());
        cycles > 0
            && clock.is_multiple_of(cycles)
            && within((clock / cycles) as u32, limits.prescaler)
            && within(before, limits.before_sample)
            && within(after, limits.phase2)
            && within(wanted.jump.into(), (1, limits.jump_max.min(after)))
            && BitRate::new(wanted.bitrate).is_ok()
    }
}

/// Bus parameters as the device takes them: it computes the prescaler itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusParameters {
    pub bitrate: u32,
    /// Quanta of propagation segment and phase segment 1.
    pub before_sample: u8,
    /// Quanta of phase segment 2.
    pub after_sample: u8,
    /// Most quanta of one resynchronisation.
    pub jump: u8,
}

impl BusParameters {
    /// Encodes them for the wire, with one sample per bit.
    pub(super) fn encode(&self) -> [u8; 8] {
        let [b0, b1, b2, b3] = self.bitrate.to_le_bytes();
        [b0, b1, b2, b3, self.before_sample, self.after_sample, self.jump, 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_seen_on_the_wire_are_allowed() {
        let at = |before_sample, after_sample| BusParameters {
            bitrate: 500_000,
            before_sample,
            after_sample,
            jump: 1,
        };
        assert!(Personality::Kcan.allows(&at(139, 20)));
        assert!(Personality::Rt.allows(&at(69, 10)));
        assert!(Personality::Flexc.allows(&at(13, 2)));
        assert!(!Personality::Flexc.allows(&at(69, 10)));
        assert_eq!(at(139, 20).encode(), [0x20, 0xa1, 7, 0, 0x8b, 0x14, 1, 1]);
    }

    #[test]
    fn found_settings_are_allowed_and_exact() {
        for kind in [Personality::Kcan, Personality::Rt, Personality::Flexc] {
            for hertz in [50_000, 125_000, 250_000, 500_000, 1_000_000] {
                let found = kind.parameters(BitRate::new(hertz).unwrap(), 875).unwrap();
                assert!(kind.allows(&found), "{kind:?} {found:?}");
                assert_eq!(found.bitrate, hertz);
            }
        }
        assert_eq!(Personality::Kcan.time(80), Nanos(1000));
        assert_eq!(Personality::Rt.time(1), Nanos(41));
        assert_eq!(Personality::Flexc.time(u64::MAX), Nanos::FOREVER);
    }
}

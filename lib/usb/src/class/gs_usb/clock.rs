//! The device's clock: microseconds in 32 bits, continued beyond their 71 minutes.

use diapason_abi::Nanos;

/// A clock that is read at least every 35 minutes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeviceTime {
    /// The latest time of the device, without its wraps. `None` before there was any.
    latest: Option<u64>,
}

impl DeviceTime {
    /// Returns the time that the device means by these microseconds: the one that is nearest to the
    /// latest.
    pub(super) fn at(&mut self, micros: u32) -> Nanos {
        let latest = self.latest.unwrap_or(micros.into());
        let step = micros.wrapping_sub(latest as u32) as i32;
        let time = latest.saturating_add_signed(step.into());
        self.latest = Some(latest.max(time));
        Nanos(time.saturating_mul(1_000))
    }

    /// Returns the latest time that is known.
    pub(super) fn latest(&self) -> Nanos {
        Nanos(self.latest.unwrap_or(0).saturating_mul(1_000))
    }

    /// Forgets the time. The next one is taken as it is.
    pub(super) fn restart(&mut self) {
        self.latest = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_when_its_microseconds_wrap() {
        let mut clock = DeviceTime::default();
        assert_eq!(clock.at(u32::MAX - 5), Nanos(4_294_967_290_000));
        assert_eq!(clock.at(4), Nanos(4_294_967_300_000));
        assert_eq!(clock.at(u32::MAX), Nanos(4_294_967_295_000), "a little older");
        let (mut micros, mut last) = (4u32, Nanos(4_294_967_300_000));
        for _ in 0..20 {
            micros = micros.wrapping_add(1_200_000_000);
            let next = clock.at(micros);
            assert_eq!(next - last, Nanos::from_secs(1_200));
            last = next;
        }
        clock.restart();
        assert_eq!(clock.at(3), Nanos(3_000));
    }
}

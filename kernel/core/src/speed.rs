//! The speed of a processor's counter and timer, from windows in which both were compared with a
//! clock of known speed.
//!
//! A window is wrong if the processor was held up between the looks at the two clocks, or if the
//! known clock wrapped meanwhile. No single window shows that, so two neighbours have to agree.

/// Windows of which two neighbours must agree.
pub const WINDOWS_MAX: u32 = 8;

/// Ticks of the two clocks in a window of this length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comparison {
    pub nanos: u64,
    pub counter: u64,
    pub timer: u64,
}

impl Comparison {
    /// Returns the speeds of counter and timer in kHz: a finer unit is beyond the reading error.
    #[inline(always)]
    #[must_use]
    pub fn speeds(&self) -> [u64; 2] {
        // A millionth of a tick is small enough for the rounding, and hours of them fit.
        let nanos = self.nanos.max(1);
        let khz = |ticks: u64| ticks.saturating_mul(1_000_000).saturating_add(nanos / 2) / nanos;
        [khz(self.counter), khz(self.timer)]
    }

    /// Returns this window and the one that follows it as one, if both clocks had the same speeds
    /// in both, to one part in 2,048. A clock that stands still has no speed.
    #[inline(always)]
    #[must_use]
    pub fn confirmed(&self, next: &Comparison) -> Option<Comparison> {
        let [first, second] = [self.speeds(), next.speeds()];
        let same = |a: u64, b: u64| a > 0 && b > 0 && a.abs_diff(b) <= a.min(b) / 2_048;
        let joined = Comparison {
            nanos: self.nanos + next.nanos,
            counter: self.counter + next.counter,
            timer: self.timer + next.timer,
        };
        (same(first[0], second[0]) && same(first[1], second[1])).then_some(joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    /// A window of a counter of 2.6 GHz and a timer of 100 MHz.
    fn window(nanos: u64) -> Comparison {
        Comparison { nanos, counter: nanos * 26 / 10, timer: nanos / 10 }
    }

    #[test]
    fn windows_that_agree_are_one_longer_window() {
        let joined = window(25 * MILLI).confirmed(&window(26 * MILLI)).unwrap();
        assert_eq!(joined, window(51 * MILLI));
        assert_eq!(joined.speeds(), [2_600_000, 100_000]);
    }

    /// A host that held the processor up for 175 ms once made 20.98 GHz of 2.6 GHz: the known clock
    /// had wrapped three times.
    #[test]
    fn a_window_in_which_the_known_clock_wrapped_is_not_believed() {
        let (good, held_up) = (window(25 * MILLI), window(200 * MILLI));
        let wrapped = Comparison { nanos: 25 * MILLI, ..held_up };
        assert_eq!(wrapped.speeds()[0], 20_800_000);
        assert_eq!(good.confirmed(&wrapped), None);
        assert_eq!(wrapped.confirmed(&good), None);
    }

    #[test]
    fn a_delay_between_two_looks_is_seen_from_twelve_microseconds_on() {
        let good = window(25 * MILLI);
        let late = |nanos| Comparison { nanos: 25 * MILLI, ..window(25 * MILLI + nanos) };
        assert!(good.confirmed(&late(12_000)).is_some());
        assert_eq!(good.confirmed(&late(12_400)), None);
    }

    #[test]
    fn a_clock_that_stands_still_is_refused() {
        let dead = Comparison { timer: 0, ..window(25 * MILLI) };
        assert_eq!(dead.confirmed(&dead), None);
        let nothing = Comparison { nanos: 0, counter: 0, timer: 0 };
        assert_eq!(nothing.confirmed(&nothing), None);
        let huge = Comparison { nanos: 1, counter: u64::MAX / 2, timer: u64::MAX / 2 };
        assert_eq!(huge.speeds()[0], u64::MAX);
    }
}

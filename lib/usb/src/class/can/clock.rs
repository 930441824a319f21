//! Continues the time stamps of an interface beyond their width. A stamp has 32 or 48 bits, so it
//! wraps after 71 minutes or 40 days, and a host runs for longer than that.

/// A count of ticks, of which each stamp has the lowest `BITS` bits.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::class) struct WrappingClock<const BITS: u32> {
    /// The latest count, without its wraps. `None` before there was any.
    latest: Option<u64>,
}

impl<const BITS: u32> WrappingClock<BITS> {
    /// Returns the count that a stamp means: the one that is nearest to the latest. It is right if
    /// the count advanced by less than half of the stamp's range since then.
    pub fn at(&mut self, stamp: u64) -> u64 {
        let unused = u64::BITS - BITS;
        let latest = self.latest.unwrap_or(stamp);
        let step = (stamp.wrapping_sub(latest) << unused).cast_signed() >> unused;
        let count = latest.saturating_add_signed(step);
        self.latest = Some(latest.max(count));
        count
    }

    /// Takes a count that comes in full.
    pub fn reached(&mut self, count: u64) {
        self.latest = self.latest.max(Some(count));
    }

    /// Returns the latest count that is known.
    pub fn latest(&self) -> u64 {
        self.latest.unwrap_or(0)
    }

    /// Forgets the count. The next stamp is taken as it is.
    pub fn restart(&mut self) {
        self.latest = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes_on<const BITS: u32>() {
        let end = 1u64 << BITS;
        let mut clock = WrappingClock::<BITS>::default();
        assert_eq!(clock.at(end - 6), end - 6);
        assert_eq!(clock.at(4), end + 4);
        assert_eq!(clock.at(end - 1), end - 1, "a little older");
        assert_eq!(clock.latest(), end + 4);
        let (mut stamp, mut last) = (4, end + 4);
        for _ in 0..20 {
            stamp = (stamp + end / 3) % end;
            let next = clock.at(stamp);
            assert_eq!(next - last, end / 3);
            last = next;
        }
        clock.restart();
        assert_eq!((clock.latest(), clock.at(3)), (0, 3));
    }

    #[test]
    fn a_count_goes_on_when_its_stamps_wrap() {
        goes_on::<32>();
        goes_on::<48>();
    }

    #[test]
    fn a_stamp_continues_a_count_that_came_in_full() {
        let mut clock = WrappingClock::<48>::default();
        let full = (5 << 48) + 1_000;
        clock.reached(full);
        assert_eq!(clock.at(1_003), full + 3);
        assert_eq!(clock.at((1 << 48) - 1), (5 << 48) - 1, "before the wrap");
    }
}

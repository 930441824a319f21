//! The kernel's time on a core: one formula.
//!
//! The planner asks it with the clock rate of the description, and writes the prices into the
//! archive. The kernel asks it with those when it reads the archive. Both pass iterators over what
//! they have.

use diapason_abi::Nanos;
use diapason_vcpu::admission::Overheads;

/// The price of each kernel action that takes time from everybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prices {
    /// The longest path that nothing preempts (B), and so the most by which a budget is enforced
    /// late (ω).
    pub path: Nanos,
    /// One interrupt or alarm that switches to nobody (h).
    pub top_half: Nanos,
    pub switch: Nanos,
}

impl Prices {
    /// By how much a budget may be exceeded, which the next replenishment pays: its end is enforced
    /// one path late, and at the start it may already owe the alarm that woke it and the way back
    /// of whom it preempts.
    #[must_use]
    #[inline(always)]
    pub const fn overrun(&self) -> Nanos {
        Nanos(self.path.0.saturating_add(self.top_half.0).saturating_add(self.switch.0))
    }

    /// Returns a section and one interrupt more of each of so many devices: an interrupt that comes
    /// too soon is held against its device only after it came.
    #[must_use]
    #[inline(always)]
    pub const fn with_early(&self, section: Nanos, devices: u64) -> Nanos {
        Nanos(section.0.saturating_add(self.top_half.0.saturating_mul(devices)))
    }

    /// Returns the longest that an interrupt waits for the kernel if so many sources interrupt, its
    /// own among them: behind a path, and behind one interrupt of each other source and of the
    /// timer, each with a switch.
    #[must_use]
    #[inline(always)]
    pub const fn late(&self, sources: u64) -> Nanos {
        let each = self.top_half.0.saturating_add(self.switch.0);
        Nanos(self.path.0.saturating_add(each.saturating_mul(sources)))
    }

    /// Returns the demand of a Main VCPU with a list of `replenishments` in each period besides its
    /// budget: a switch to it and one back for each of them.
    #[must_use]
    #[inline(always)]
    pub const fn switches(&self, replenishments: u8) -> Nanos {
        Nanos(self.switch.0.saturating_mul(2 * replenishments as u64))
    }

    /// Returns all of it for the closed forms: with devices that interrupt at these distances, and
    /// with I/O VCPUs that are woken so often in such a time. Alarms are not among it: one rings
    /// only when its VCPU could run, and that VCPU pays.
    #[must_use]
    #[inline(always)]
    pub fn overheads(
        &self,
        devices: impl Iterator<Item = Nanos>,
        ios: impl Iterator<Item = (u8, Nanos)>,
    ) -> Overheads {
        let (section, overrun) = (self.path, self.overrun());
        let mut sum = Overheads { section, overrun, ..Overheads::NONE };
        for distance in devices {
            sum = sum.with_top_half(self.top_half, distance);
            sum.section = self.with_early(sum.section, 1);
        }
        for (wakes, interval) in ios {
            sum = sum.with_top_half(self.switches(wakes), interval);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_counts_once() {
        let prices = Prices { path: Nanos(1_000), top_half: Nanos(10), switch: Nanos(100) };
        let devices = [Nanos(50), Nanos(70)].into_iter();
        let found = prices.overheads(devices, [(3, Nanos(10_000))].into_iter());
        assert_eq!((found.section, found.overrun), (Nanos(1_020), Nanos(1_110)));
        assert_eq!(found.top_halves, Nanos(10 + 10 + 2 * 3 * 100));
        assert_eq!(prices.switches(8), Nanos(1_600));
        assert_eq!((prices.late(0), prices.late(2)), (Nanos(1_000), Nanos(1_220)));
    }
}

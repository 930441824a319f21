//! Time: the processor's counter as nanoseconds, and as the timer counts.

use crate::cpu;
use diapason_abi::Nanos;

/// The conversion between counter ticks and nanoseconds since boot.
#[derive(Clone, Copy)]
pub struct Clock {
    /// The counter at boot.
    pub base: u64,
    /// Nanoseconds per tick, 32.32 fixed point.
    pub multiplier: u64,
    /// Counter ticks per nanosecond, 32.32 fixed point.
    pub counter_multiplier: u64,
    /// Timer ticks per nanosecond, 32.32 fixed point.
    pub timer_multiplier: u64,
}

impl Clock {
    /// Returns a clock that goes 2^`n` times slower.
    pub fn slower(self, n: u32) -> Clock {
        Clock {
            multiplier: self.multiplier >> n,
            counter_multiplier: self.counter_multiplier << n,
            timer_multiplier: self.timer_multiplier << n,
            ..self
        }
    }

    /// Returns the nanoseconds since boot.
    #[inline(always)]
    pub fn now(&self) -> Nanos {
        self.at(cpu::counter())
    }

    /// Returns the time at which the counter has this value.
    #[inline(always)]
    fn at(&self, counter: u64) -> Nanos {
        let ticks = counter - self.base;
        Nanos(((u128::from(ticks) * u128::from(self.multiplier)) >> 32) as u64)
    }

    /// Returns the ticks of the timer for `span`: at least one, at most what it can count.
    #[inline(always)]
    pub fn timer_ticks(&self, span: Nanos) -> u32 {
        let ticks = (u128::from(span.0) * u128::from(self.timer_multiplier)) >> 32;
        u32::try_from(ticks).unwrap_or(u32::MAX).max(1)
    }

    /// The counter's value just after `time`. Counted from now: the error of the multiplier is
    /// that of the span, and nothing is divided.
    #[inline(always)]
    pub fn counter_at(&self, time: Nanos) -> u64 {
        let counter = cpu::counter();
        let span = time - self.at(counter);
        let ticks = (u128::from(span.0) * u128::from(self.counter_multiplier)) >> 32;
        counter.saturating_add(u64::try_from(ticks + 1).unwrap_or(u64::MAX))
    }
}

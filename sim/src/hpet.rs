//! The HPET as far as programs use it: the main counter and one comparator that rings once.

use crate::function::FunctionModel;
use diapason_abi::Nanos;
use diapason_xhc::Memory;

/// Where PCs have it.
pub const ADDRESS: u64 = 0xfed0_0000;
const TICK: u64 = 10;

const CAPABILITIES: u64 = 0x00;
const CONFIGURATION: u64 = 0x10;
const COUNTER: u64 = 0xf0;
/// Comparators, of which one at a time is used; each has its registers.
const COMPARATORS: std::ops::Range<u64> = 0x100..0x160;
const COMPARATOR_CONFIGURATION: u64 = 0x100;
const COMPARATOR: u64 = 0x108;
const ENABLE: u64 = 1;
const INTERRUPT: u64 = 1 << 2;

/// A counter of 10 ns with one comparator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hpet {
    on: bool,
    /// The counter when it was switched on or off last, and when that was.
    counted: u64,
    since: Nanos,
    configuration: u64,
    comparator: u64,
    /// The comparator has not rung yet.
    armed: bool,
    rung: bool,
}

impl Hpet {
    fn counter(&self, now: Nanos) -> u64 {
        let running = if self.on { (now - self.since).0 / TICK } else { 0 };
        self.counted + running
    }

    /// Returns when the counter reaches the comparator.
    fn due(&self) -> Nanos {
        let will_ring = self.on && self.armed && self.configuration & INTERRUPT != 0;
        match self.comparator.checked_sub(self.counted) {
            Some(ticks) if will_ring => self.since + Nanos(ticks.saturating_mul(TICK)),
            _ => Nanos::FOREVER,
        }
    }
}

/// The register at an offset; those of all comparators are those of the one that is used.
fn register(offset: u64) -> u64 {
    if COMPARATORS.contains(&offset) { COMPARATORS.start + offset % 0x20 } else { offset }
}

impl FunctionModel for Hpet {
    fn read(&mut self, now: Nanos, offset: u64, _bytes: u8) -> u64 {
        match register(offset) {
            // Femtoseconds of a tick, a 64-bit counter, three comparators.
            CAPABILITIES => (TICK * 1_000_000) << 32 | 1 << 13 | 2 << 8,
            CONFIGURATION => u64::from(self.on),
            COUNTER => self.counter(now),
            // Any line of the I/O APIC will do.
            COMPARATOR_CONFIGURATION => u64::from(u32::MAX >> 8) << 32 | self.configuration,
            COMPARATOR => self.comparator,
            _ => 0,
        }
    }

    fn write(&mut self, now: Nanos, offset: u64, _: u8, value: u64, _: &mut dyn Memory) {
        match register(offset) {
            CONFIGURATION => {
                (self.counted, self.since) = (self.counter(now), now);
                self.on = value & ENABLE != 0;
            }
            COMPARATOR_CONFIGURATION => self.configuration = value & 0xffff_ffff,
            COMPARATOR => {
                self.comparator = value;
                // A time in the past never comes.
                self.armed = value > self.counter(now);
            }
            _ => {}
        }
    }

    fn next_change(&self) -> Nanos {
        self.due()
    }

    fn advance(&mut self, now: Nanos, _: &mut dyn Memory) {
        if self.due() <= now {
            (self.armed, self.rung) = (false, true);
        }
    }

    fn power_cycle(&mut self, _: Nanos) {
        *self = Hpet::default();
    }

    fn take_interrupts(&mut self, _: Nanos) -> Vec<u16> {
        if std::mem::take(&mut self.rung) { vec![0] } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::Nothing;

    #[test]
    fn it_counts_and_rings_once() {
        let (mut hpet, mut memory) = (Hpet::default(), Nothing);
        hpet.write(Nanos(5), CONFIGURATION, 8, ENABLE, &mut memory);
        assert_eq!(hpet.read(Nanos(1_005), COUNTER, 8), 100);
        hpet.write(Nanos(1_005), COMPARATOR_CONFIGURATION, 8, INTERRUPT, &mut memory);
        hpet.write(Nanos(1_005), COMPARATOR, 8, 250, &mut memory);
        assert_eq!(hpet.next_change(), Nanos(2_505));
        hpet.advance(Nanos(2_504), &mut memory);
        assert_eq!(hpet.take_interrupts(Nanos(2_504)), []);
        hpet.advance(Nanos(2_505), &mut memory);
        assert_eq!(hpet.take_interrupts(Nanos(2_505)), [0]);
        assert_eq!(hpet.next_change(), Nanos::FOREVER);
    }
}

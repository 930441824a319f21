//! How fast the processor's counter and the timer run, measured against a clock of known speed.

use crate::apic::LocalApic;
use crate::clock::Clock;
use crate::cpu;

/// How long to compare two clocks: 50 ms make 10 ns of reading error 0.2 ppm.
const WINDOW_MICROS: u64 = 50_000;
const FEMTOS_PER_MICRO: u64 = 1_000_000_000;
const FEMTOS_PER_NANO: u64 = 1_000_000;
const PIT_HZ: u64 = 1_193_182;

/// A clock of known speed to compare with.
enum Reference {
    /// HPET: address of the main counter, its period in femtoseconds.
    Hpet(*const u32, u64),
    /// The PC's interval timer.
    Pit,
}

impl Reference {
    fn read(&self) -> u64 {
        match self {
            // SAFETY: the ACPI tables say the HPET is there; its counter may be read at any time.
            Reference::Hpet(counter, _) => u64::from(unsafe { counter.read_volatile() }),
            Reference::Pit => {
                // SAFETY: latches and reads channel 2, which `find` set counting.
                let value = unsafe {
                    cpu::out8(0x43, 0x80);
                    u64::from(cpu::in8(0x42)) | u64::from(cpu::in8(0x42)) << 8
                };
                0x1_0000 - value
            }
        }
    }

    /// Waits for the next tick; returns it.
    fn edge(&self) -> u64 {
        let before = self.read();
        loop {
            let now = self.read();
            if now != before {
                return now;
            }
        }
    }

    /// Femtoseconds between two readings.
    fn span(&self, from: u64, to: u64) -> u64 {
        match self {
            Reference::Hpet(_, period) => u64::from((to as u32).wrapping_sub(from as u32)) * period,
            Reference::Pit => to.wrapping_sub(from) * (FEMTOS_PER_MICRO * 1_000_000 / PIT_HZ),
        }
    }

    fn find(hpet: u64) -> Reference {
        if hpet != 0 {
            let registers = hpet as *mut u32;
            // SAFETY: the HPET's capability, configuration and counter registers; switching the
            // main counter on disturbs nobody at boot.
            unsafe {
                let period = registers.add(1).read_volatile();
                registers.add(4).write_volatile(registers.add(4).read_volatile() | 1);
                return Reference::Hpet(registers.add(0xf0 / 4), u64::from(period));
            }
        }
        // SAFETY: channel 2 counts down from 65536 with the speaker off; nobody else uses it.
        unsafe {
            cpu::out8(0x61, cpu::in8(0x61) & !2 | 1);
            cpu::out8(0x43, 0xb0);
            cpu::out8(0x42, 0);
            cpu::out8(0x42, 0);
        }
        Reference::Pit
    }
}

/// Compares the counter and the timer with the reference. Returns the clock, and both speeds in
/// kHz: finer than that is beyond the reading error.
pub fn calibrate(hpet: u64, timer: &mut LocalApic) -> (Clock, u64, u64) {
    let reference = Reference::find(hpet);
    let first = reference.edge();
    let counter = cpu::counter();
    timer.free_run();
    let timer_start = timer.current();
    // Half the PIT's range when only that is there; the loop checks the reference's own time.
    let window = if hpet == 0 { WINDOW_MICROS / 2 } else { WINDOW_MICROS };
    let mut last = reference.edge();
    while reference.span(first, last) < window * FEMTOS_PER_MICRO {
        wait_ticks(1 << 14);
        last = reference.edge();
    }
    let (counter_end, timer_end) = (cpu::counter(), timer.current());
    let nanos = reference.span(first, last) / FEMTOS_PER_NANO;
    // A millionth of a tick is small enough for the rounding, and hours of them fit.
    let khz = |ticks: u64| (ticks * 1_000_000 + nanos / 2) / nanos;
    let counter_khz = khz(counter_end - counter);
    let timer_khz = khz(u64::from(timer_start - timer_end));
    let clock = Clock {
        base: counter,
        multiplier: ratio(1_000_000, counter_khz),
        counter_multiplier: ratio(counter_khz, 1_000_000),
        timer_multiplier: ratio(timer_khz, 1_000_000),
    };
    (clock, counter_khz, timer_khz)
}

/// `a` / `b` in units of 1 / 2^32, of numbers below 2^32.
fn ratio(a: u64, b: u64) -> u64 {
    (a << 32) / b.max(1)
}

/// Lets the counter advance without asking the (slow) reference.
fn wait_ticks(ticks: u64) {
    let start = cpu::counter();
    while cpu::counter() - start < ticks {
        core::hint::spin_loop();
    }
}

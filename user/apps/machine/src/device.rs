//! The HPET: a device that says by its own clock how late its interrupt was served.

use diapason_bench::hpet::{
    CAPABILITIES, COMPARATOR, CONFIGURATION, COUNTER, GENERAL, INTERRUPT, LINE,
};
use diapason_pipe::measured::MachineReport;
use diapason_rt::event::Event;
use diapason_rt::memory::Registers;
use diapason_rt::{Errno, Nanos, time};

/// The HPET counts, and its interrupts are not those of older timers.
const COUNTS: u64 = 1;
/// Its counter has 64 bits.
const WIDE: u64 = 1 << 13;
/// The comparator has as many.
const COMPARES_WIDE: u64 = 1 << 5;
/// Longest tick that one may have, in fs. Where there is none, all bits are set.
const TICK_MAX: u64 = 100_000_000;

/// How often it waits for the device, and how long at most.
const ROUNDS: u32 = 1_000;
const PATIENCE: Nanos = Nanos::from_micros(100_000);

/// Waits for interrupts of the device, and reads its counter.
///
/// # Errors
/// If the PC has none, it cannot use the line, or an interrupt does not come.
pub fn measure() -> Result<MachineReport, Errno> {
    let hpet = Registers::map("hpet")?;
    let interrupt = Event::interrupt("hpet")?;
    let capabilities = hpet.read64(CAPABILITIES);
    let tick = capabilities >> 32;
    let comparator = hpet.read64(CONFIGURATION);
    let is_wide = capabilities & WIDE != 0 && comparator & COMPARES_WIDE != 0;
    let may_route = comparator >> 32 >> LINE & 1 != 0;
    if !(1..=TICK_MAX).contains(&tick) || !is_wide || !may_route {
        return Err(Errno::Absent);
    }
    hpet.write64(GENERAL, COUNTS);
    let time = |ticks: u64| Nanos(ticks.saturating_mul(tick).div_ceil(1_000_000));
    let (mut late, mut read) = (Nanos::ZERO, Nanos::ZERO);
    for round in 0..ROUNDS {
        let before = time::now();
        let now = hpet.read64(COUNTER);
        read = read.max(time::now() - before);
        let due = now + (200_000 + u64::from(round) * 997) * 1_000_000 / tick;
        hpet.write64(CONFIGURATION, LINE << 9 | INTERRUPT);
        hpet.write64(COMPARATOR, due);
        let came = interrupt.wait(time::now() + PATIENCE);
        let passed = hpet.read64(COUNTER).saturating_sub(due);
        hpet.write64(CONFIGURATION, 0);
        came?;
        late = late.max(time(passed));
    }
    Ok(MachineReport::Device { count: ROUNDS, late, read })
}

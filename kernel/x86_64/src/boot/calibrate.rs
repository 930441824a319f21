//! How fast the processor's counter and the timer run, measured against a clock of known speed.
//!
//! A PC may lack each of these clocks, or have it without a tick. Every wait here has an end.

use super::acpi::Acpi;
use crate::apic::LocalApic;
use crate::clock::Clock;
use crate::cpu;
use diapason_abi::archive::Refusal;
use diapason_core::speed::{Comparison, WINDOWS_MAX};

/// How long a window is: two of 25 ms make 10 ns of reading error 0.2 ppm. The shortest clock wraps
/// after 54 ms.
const WINDOW_NANOS: u64 = 25_000_000;
const FEMTOS_PER_NANO: u64 = 1_000_000;
const FEMTOS_PER_SECOND: u64 = 1_000_000_000_000_000;
const PIT_HZ: u64 = 1_193_182;
const PM_HZ: u64 = 3_579_545;
/// Longest tick that a high-precision timer may have.
const HPET_TICK_MAX: u64 = 100_000_000;
/// Looks at a clock until it must have ticked. A look takes 50 ns at least, a tick at most 900 ns.
const LOOKS_MAX: u32 = 1 << 16;
/// Ticks of the counter between two looks, and such pauses until a window must be over, on a
/// processor of 10 GHz.
const PAUSE: u64 = 1 << 14;
const PAUSES_MAX: u32 = 1 << 15;

/// Turns of a short loop between two looks at the counter, of a cycle or more each.
const TURNS: u64 = 1 << 10;

/// A clock of known speed to compare with.
enum Source {
    /// Address of the main counter of the HPET.
    Hpet(*const u32),
    /// Port of ACPI's timer.
    PowerManagement(u16),
    /// The PC's interval timer.
    Pit,
}

struct Reference {
    source: Source,
    /// The bits that it counts.
    bits: u64,
    /// Femtoseconds of a tick.
    tick: u64,
}

/// One look at all three clocks.
#[derive(Clone, Copy)]
struct Look {
    reference: u64,
    counter: u64,
    timer: u32,
}

impl Reference {
    fn read(&self) -> u64 {
        // SAFETY: the ACPI tables say that the HPET or the port is there, and reading has no
        // effect. The PIT's channel 2 is latched and read; `pit` set it counting.
        unsafe {
            match self.source {
                Source::Hpet(counter) => u64::from(counter.read_volatile()),
                Source::PowerManagement(port) => u64::from(cpu::in32(port)) & self.bits,
                Source::Pit => {
                    cpu::out8(0x43, 0x80);
                    let value = u64::from(cpu::in8(0x42)) | u64::from(cpu::in8(0x42)) << 8;
                    self.bits - value
                }
            }
        }
    }

    /// Waits for the next tick and looks at all clocks; `None` if it does not tick.
    #[inline(never)]
    fn edge(&self, timer: &LocalApic) -> Option<Look> {
        let before = self.read();
        for _ in 0..LOOKS_MAX {
            let reference = self.read();
            if reference != before {
                return Some(Look { reference, counter: cpu::counter(), timer: timer.current() });
            }
        }
        None
    }

    fn hpet(address: u64) -> Option<Reference> {
        if address == 0 || address >= 1 << 32 {
            return None;
        }
        let registers = address as *mut u32;
        // SAFETY: the HPET's capability, configuration and counter registers; switching the main
        // counter on disturbs nobody at boot.
        let tick = unsafe {
            registers.add(4).write_volatile(registers.add(4).read_volatile() | 1);
            u64::from(registers.add(1).read_volatile())
        };
        let source = Source::Hpet(registers.wrapping_add(0xf0 / 4));
        let sound = (1..=HPET_TICK_MAX).contains(&tick);
        sound.then_some(Reference { source, bits: u32::MAX.into(), tick })
    }

    fn power_management(port: u16) -> Option<Reference> {
        let source = Source::PowerManagement(port);
        (port != 0).then_some(Reference {
            source,
            bits: 0xff_ffff,
            tick: FEMTOS_PER_SECOND / PM_HZ,
        })
    }

    #[expect(clippy::unnecessary_wraps, reason = "as its sisters")]
    fn pit() -> Option<Reference> {
        // SAFETY: channel 2 counts down from 65536 with the speaker off; nobody else uses it.
        unsafe {
            cpu::out8(0x61, cpu::in8(0x61) & !2 | 1);
            cpu::out8(0x43, 0xb0);
            cpu::out8(0x42, 0);
            cpu::out8(0x42, 0);
        }
        let tick = FEMTOS_PER_SECOND / PIT_HZ;
        Some(Reference { source: Source::Pit, bits: 0xffff, tick })
    }

    /// The window from one look to the end of another that begins `WINDOW_NANOS` later.
    fn window(&self, timer: &LocalApic, first: &Look) -> Option<(Comparison, Look)> {
        for _ in 0..PAUSES_MAX {
            wait_ticks(PAUSE);
            let last = self.edge(timer)?;
            let ticks = last.reference.wrapping_sub(first.reference) & self.bits;
            let nanos = ticks * self.tick / FEMTOS_PER_NANO;
            if nanos >= WINDOW_NANOS {
                let counter = last.counter - first.counter;
                let timer = u64::from(first.timer.wrapping_sub(last.timer));
                return Some((Comparison { nanos, counter, timer }, last));
            }
        }
        None
    }
}

/// Compares the counter and the timer with the first clock that ticks. Returns the clock of the
/// kernel, and both speeds in kHz.
pub fn calibrate(acpi: &Acpi, timer: &mut LocalApic) -> Result<(Clock, u64, u64), Refusal> {
    timer.free_run();
    let ticks = |reference: Reference| reference.edge(timer).map(|look| (reference, look));
    let found = Reference::hpet(acpi.hpet).and_then(ticks);
    let found = found.or_else(|| Reference::power_management(acpi.pm_timer).and_then(ticks));
    let found = found.or_else(|| Reference::pit().and_then(ticks));
    let (reference, first) = found.ok_or(Refusal::NoReference)?;
    let (mut look, mut before) = (first, None::<Comparison>);
    for _ in 0..WINDOWS_MAX {
        let (window, next) = reference.window(timer, &look).ok_or(Refusal::NoReference)?;
        if let Some(sure) = before.and_then(|before| before.confirmed(&window)) {
            let [counter_khz, timer_khz] = sure.speeds();
            let clock = Clock {
                base: first.counter,
                multiplier: ratio(1_000_000, counter_khz),
                counter_multiplier: ratio(counter_khz, 1_000_000),
                timer_multiplier: ratio(timer_khz, 1_000_000),
            };
            return Ok((clock, counter_khz, timer_khz));
        }
        (look, before) = (next, Some(window));
    }
    Err(Refusal::Unsteady)
}

/// `a` / `b` in units of 1 / 2^32, of numbers below 2^32.
fn ratio(a: u64, b: u64) -> u64 {
    (a << 32) / b.max(1)
}

/// Lets the counter advance without asking the (slow) reference. It is asked seldom, too, because
/// an emulator counts its instructions anew for each answer.
fn wait_ticks(ticks: u64) {
    let start = cpu::counter();
    while cpu::counter() - start < ticks {
        for turn in 0..TURNS {
            core::hint::black_box(turn);
        }
    }
}

//! How fast the processor's counter and the timer run, measured against a clock of known speed.
//!
//! A PC may lack each of these clocks, or have it without a tick. Every wait here has an end.

use super::acpi::Acpi;
use crate::apic::LocalApic;
use crate::clock::Clock;
use crate::cpu;
use core::ops::ControlFlow::Break;
use diapason_abi::archive::Refusal;
use diapason_core::speed::{
    self, ClockLook, Comparison, FEMTOS_PER_SECOND, KnownClock, SPEED_LEAF, WINDOWS_MAX, Windows,
};

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
/// The speed that the processor names and the one that a clock shows are the same to one part in
/// this. An HPET may be wrong by one in 2,000.
const ACCOUNTS_AGREE: u64 = 512;

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
    /// The processor's counter itself, whose speed it names.
    Counter,
}

struct Reference {
    source: Source,
    clock: KnownClock,
}

impl Reference {
    fn read(&self) -> u64 {
        // SAFETY: the ACPI tables say that the HPET or the port is there, and reading has no
        // effect. The PIT's channel 2 is latched and read; `pit` set it counting.
        unsafe {
            match self.source {
                Source::Hpet(counter) => u64::from(counter.read_volatile()),
                Source::PowerManagement(port) => u64::from(cpu::in32(port)) & self.clock.bits,
                Source::Counter => cpu::counter(),
                Source::Pit => {
                    cpu::out8(0x43, 0x80);
                    let value = u64::from(cpu::in8(0x42)) | u64::from(cpu::in8(0x42)) << 8;
                    self.clock.bits - value
                }
            }
        }
    }

    /// Waits for the next tick and looks at all clocks; `None` if it does not tick.
    #[inline(never)]
    fn edge(&self, timer: &LocalApic) -> Option<ClockLook> {
        let before = self.read();
        for _ in 0..LOOKS_MAX {
            let known = self.read();
            if known != before {
                return Some(ClockLook { known, counter: cpu::counter(), timer: timer.current() });
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
        sound.then_some(Reference { source, clock: KnownClock { bits: u32::MAX.into(), tick } })
    }

    fn power_management(port: u16) -> Option<Reference> {
        let source = Source::PowerManagement(port);
        let clock = KnownClock { bits: 0xff_ffff, tick: FEMTOS_PER_SECOND / PM_HZ };
        (port != 0).then_some(Reference { source, clock })
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
        let clock = KnownClock { bits: 0xffff, tick: FEMTOS_PER_SECOND / PIT_HZ };
        Some(Reference { source: Source::Pit, clock })
    }

    fn told(khz: u64) -> Reference {
        Reference { source: Source::Counter, clock: speed::told_clock(khz) }
    }

    /// Compares the clocks until two neighbouring windows agree.
    fn windows(&self, timer: &LocalApic, first: ClockLook) -> Result<Comparison, Refusal> {
        let mut windows = Windows::new(self.clock, first);
        for _ in 0..PAUSES_MAX * WINDOWS_MAX {
            wait_ticks(PAUSE);
            let look = self.edge(timer).ok_or(Refusal::NoReference)?;
            if let Break(sure) = windows.look(look) {
                return sure.ok_or(Refusal::Unsteady);
            }
        }
        Err(Refusal::NoReference)
    }
}

/// Compares the counter and the timer with the first clock that ticks, and that with the speed that
/// the processor names. Returns the clock of the kernel, and both speeds in kHz.
pub fn calibrate(acpi: &Acpi, timer: &mut LocalApic) -> Result<(Clock, u64, u64), Refusal> {
    timer.free_run();
    let told = speed::told_khz(cpu::identify(0)[0], cpu::identify(SPEED_LEAF));
    let ticks = |reference: Reference| reference.edge(timer).map(|look| (reference, look));
    let found = Reference::hpet(acpi.hpet).and_then(ticks);
    let found = found.or_else(|| Reference::power_management(acpi.pm_timer).and_then(ticks));
    let found = found.or_else(|| Reference::pit().and_then(ticks));
    let found = found.or_else(|| told.map(Reference::told).and_then(ticks));
    let (reference, first) = found.ok_or(Refusal::NoReference)?;
    let [counter_khz, timer_khz] = reference.windows(timer, first)?.speeds();
    if told.is_some_and(|told| !speed::agree(told, counter_khz, ACCOUNTS_AGREE)) {
        return Err(Refusal::Disagree);
    }
    let clock = Clock {
        base: first.counter,
        multiplier: ratio(1_000_000, counter_khz),
        counter_multiplier: ratio(counter_khz, 1_000_000),
        timer_multiplier: ratio(timer_khz, 1_000_000),
    };
    Ok((clock, counter_khz, timer_khz))
}

/// `a` / `b` in units of 1 / 2^32, of numbers below 2^32.
fn ratio(a: u64, b: u64) -> u64 {
    (a << 32) / b.max(1)
}

/// Lets the counter advance by so much at least. It is asked seldom, because an emulator counts its
/// instructions anew for each answer.
pub fn wait_ticks(ticks: u64) {
    let start = cpu::counter();
    while cpu::counter() - start < ticks {
        for turn in 0..TURNS {
            core::hint::black_box(turn);
        }
    }
}

//! The seat of this core among the cores of the machine.
//!
//! Each core has a kernel of its own: all run the same code, and each has its own copy of every
//! static, at the same addresses (`boot/cores.rs`). So no path asks which core it is on, and no
//! kernel waits for another's decision. The hall is the one piece of memory that all see. It has
//! the doorbells that were rung, the segments in common, and whose turn it is at the serial port
//! and at the controller of lines.

use crate::apic::{interrupt_core, interrupt_self, send_command};
use crate::cpu;
use crate::iommu::Walls;
use crate::machine::Metal;
use crate::tables::BELLS;
use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use diapason_abi::archive::{BELLS_MAX, CORES_MAX, DeviceRecord, Location, TABLE_MAX};
use diapason_abi::results;
use diapason_abi::served::Facility;
use diapason_core::{Cause, SERVED};

/// This kernel can be one of several.
pub const CORES: bool = SERVED.has(Facility::Cores);

/// The memory that all cores see. All zeros is its state before any core is started.
pub struct Hall {
    /// Somebody sends to the serial port.
    port: AtomicBool,
    /// The core whose bytes the serial port sent last.
    speaker: AtomicU8,
    /// Somebody writes registers of the I/O APIC.
    lines: AtomicBool,
    /// All kernels are ready, and may decide.
    open: AtomicBool,
    /// The status with which the first core ended whose run went wrong; 0 before.
    broken: AtomicU8,
    /// The counter when a core last showed that it lives, with its last words.
    alive: AtomicU64,
    pub members: [Member; CORES_MAX],
    /// The segments that several cores use.
    pub commons: [Common; TABLE_MAX as usize],
    /// Where the memory of all cores ends.
    pub end: AtomicU64,
    /// The tables of IOMMUs, as boot fills them core by core.
    pub walls: UnsafeCell<Walls>,
}

/// A core, as the others see it.
pub struct Member {
    /// The number by which interrupts are addressed to it.
    pub apic: AtomicU32,
    pub state: AtomicU8,
    /// Its counter when it was alive.
    pub counter: AtomicU64,
    /// The doorbells that were rung and that it has not heard, one bit each.
    rung: AtomicU64,
    /// Those that it holds back. None is at first: a ring that nobody waits for is noted, no more.
    held: AtomicU64,
    /// The device of this core that each doorbell is.
    pub bells: [AtomicU16; BELLS_MAX as usize],
}

impl Member {
    /// Returns the doorbells that were rung and are let through.
    fn ringing(&self) -> u64 {
        self.rung.load(Ordering::Acquire) & !self.held.load(Ordering::Relaxed)
    }
}

/// If no core shows life for so long at the end of a run, those that did not end have stopped: 14 s
/// at 5 GHz. A core that speaks shows it all the time.
const SILENCE: u64 = 1 << 36;

/// If a core has its turn at the I/O APIC for so long, it has stopped: 0.2 s at 5 GHz. A computer
/// that emulates several cores may hold one up for a while.
const STALE: u64 = 1 << 30;

/// How far a core has come. It has not started before.
pub const ALIVE: u8 = 1;
pub const READY: u8 = 2;
const ENDED: u8 = 3;

/// A segment that several cores use: its key, and where its pages begin (0: nowhere yet).
pub struct Common {
    pub key: AtomicU64,
    pub pages: AtomicU64,
}

/// The number of a core among those of its host, and the memory that all of them see.
#[derive(Clone, Copy)]
pub struct Seat {
    pub core: u8,
    pub cores: u8,
    pub hall: Option<&'static Hall>,
}

/// The place of this core; of the only one, without a hall.
pub static mut SEAT: Seat = Seat { core: 0, cores: 1, hall: None };

/// Returns where this core is among the others.
#[inline(always)]
pub fn seat() -> Seat {
    // SAFETY: boot writes it before another core runs, and never again.
    unsafe { SEAT }
}

/// Returns the hall, if there are several cores.
#[inline(always)]
pub fn hall() -> Option<&'static Hall> {
    if CORES { seat().hall } else { None }
}

/// Somebody's turn at something that all cores use, until it is dropped.
pub struct Turn(Option<&'static AtomicBool>);

impl Turn {
    /// Takes a turn. `None`: another core has it, and is done soon.
    #[inline(always)]
    fn take(of: fn(&'static Hall) -> &'static AtomicBool) -> Option<Turn> {
        let Some(hall) = hall() else { return Some(Turn(None)) };
        let place = of(hall);
        if place.swap(true, Ordering::Acquire) {
            spin_loop();
            return None;
        }
        Some(Turn(Some(place)))
    }

    /// A turn at sending a few bytes by the serial port, unless another core has it.
    #[inline(always)]
    pub fn at_port() -> Option<Turn> {
        Turn::take(|hall| &hall.port)
    }

    /// A turn at the I/O APIC. Others have it for two writes of registers, so it comes soon.
    #[inline(always)]
    pub fn at_lines() -> Turn {
        Turn(hall().map(Hall::await_lines))
    }
}

impl Drop for Turn {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.store(false, Ordering::Release);
        }
    }
}

/// Returns the byte that goes before others of this core at the serial port, if another core spoke
/// last.
#[inline(always)]
pub fn mark() -> Option<u8> {
    let core = seat().core;
    let other = hall()?.speaker.swap(core, Ordering::Relaxed) != core;
    other.then_some(results::mark(core))
}

/// The kernel of this core is ready. Waits until all are.
pub fn await_opening() {
    let Some(hall) = hall() else { return };
    let Seat { core, cores, .. } = seat();
    hall.members[core as usize & 7].state.store(READY, Ordering::Release);
    if core == 0 {
        // Each was seen to be ready.
        hall.open.store(cores > 1, Ordering::Release);
    }
    while !hall.open.load(Ordering::Acquire) {
        spin_loop();
    }
}

impl Hall {
    /// Waits for a turn at the I/O APIC, and takes it. A core that has had it for [`STALE`] has
    /// stopped, and the end of the run names it. So its turn is over.
    #[inline(never)]
    fn await_lines(&self) -> &AtomicBool {
        let since = cpu::counter();
        while self.lines.swap(true, Ordering::Acquire) {
            spin_loop();
            if cpu::counter() - since > STALE {
                break;
            }
        }
        &self.lines
    }

    /// This core lives, and says its last words.
    #[inline(always)]
    pub fn show_life(&self) {
        self.alive.store(cpu::counter(), Ordering::Relaxed);
    }

    /// Waits until the run is over on another core. False: that core has stopped without a word.
    #[inline(always)]
    fn sees_end(&self, core: u8, is_timed: bool) -> bool {
        while self.members[core as usize & 7].state.load(Ordering::Acquire) != ENDED {
            let silent = cpu::counter() > self.alive.load(Ordering::Relaxed) + SILENCE;
            // Without a horizon this core is here because it has nothing to do. Others may have.
            if silent && is_timed {
                return false;
            }
        }
        true
    }

    /// Takes the turn at the serial port from a core that has it for too long, so it has stopped.
    /// False: no core has it.
    #[inline(always)]
    pub fn end_turn_at_port(&self) -> bool {
        self.port.swap(false, Ordering::Relaxed)
    }
}

/// The run is over on this core, and went well: its console is written out. The first core waits
/// for the others, and no other core comes back from here. `Some`: this core has stopped without a
/// word.
#[inline(always)]
pub fn gather(is_timed: bool) -> Option<u64> {
    let hall = hall()?;
    let Seat { core, cores, .. } = seat();
    hall.members[core as usize & 7].state.store(ENDED, Ordering::Release);
    if core > 0 {
        cpu::stop();
    }
    (1..cores).find(|other| !hall.sees_end(*other, is_timed)).map(u64::from)
}

/// The run went wrong on this core: it ends the others at once. If another core was first, this one
/// does not come back from here.
#[inline(always)]
pub fn end_others(status: u8) {
    let Some(hall) = hall() else { return };
    if hall.broken.swap(status, Ordering::AcqRel) != 0 {
        cpu::stop();
    }
    let own = usize::from(seat().core);
    for (_, member) in hall.members.iter().enumerate().filter(|(at, _)| *at != own) {
        if member.state.load(Ordering::Relaxed) >= ALIVE {
            send_command(member.apic.load(Ordering::Relaxed), NMI);
        }
    }
}

/// Returns the status with which another core ended the run, because of what went wrong there.
pub fn ended_by_another() -> Option<u8> {
    let status = hall()?.broken.load(Ordering::Acquire);
    (status != 0).then_some(status)
}

/// Raises a vector of another core that can take it. False: there is none, or it has ended.
pub fn passed_on(core: u8, vector: u32) -> bool {
    let Some(hall) = hall().filter(|_| core != seat().core) else { return false };
    let member = &hall.members[core as usize & 7];
    let runs = member.state.load(Ordering::Acquire) == READY;
    if runs {
        interrupt_core(member.apic.load(Ordering::Relaxed), vector);
    }
    runs
}

/// The command by which a core is interrupted that has interrupts off.
const NMI: u32 = 4 << 8 | 1 << 14;

impl Metal {
    /// Rings a doorbell of another core. One that was rung and not heard yet stands for both rings,
    /// so a core is interrupted once by rings that it does not answer.
    #[inline(never)]
    pub fn ring_core(&mut self, core: u16, number: u16) {
        let Some(member) = hall().and_then(|hall| hall.members.get(core as usize)) else { return };
        let bell = 1 << (number & 63);
        if member.rung.fetch_or(bell, Ordering::AcqRel) & bell == 0 {
            self.counts.mmio += 2;
            interrupt_core(member.apic.load(Ordering::Relaxed), BELLS as u32);
        }
    }

    /// Lets a doorbell through, or holds it back. A ring that came meanwhile comes now.
    #[inline(never)]
    pub fn let_ring(&mut self, device: &DeviceRecord, through: bool) {
        let (Location::Bell { number, .. }, Some(own)) = (device.location, own()) else { return };
        let bell = 1 << (number & 63);
        if !through {
            own.held.fetch_or(bell, Ordering::Relaxed);
            return;
        }
        own.held.fetch_and(!bell, Ordering::Relaxed);
        if own.ringing() & bell != 0 {
            self.counts.mmio += 1;
            interrupt_self(BELLS as u32);
        }
    }

    /// Returns what the interrupt for doorbells means: the first that was rung and is let through.
    #[inline(never)]
    pub fn hear(&mut self) -> Cause {
        let Some(own) = own() else { return Cause::Timer };
        let ringing = own.ringing();
        if ringing == 0 {
            return Cause::Timer;
        }
        let number = ringing.trailing_zeros();
        own.rung.fetch_and(!(1 << number), Ordering::AcqRel);
        if !ringing.is_power_of_two() {
            self.counts.mmio += 1;
            interrupt_self(BELLS as u32);
        }
        Cause::Irq(own.bells[number as usize & 63].load(Ordering::Relaxed))
    }
}

/// Returns this core, as the others see it.
#[inline(always)]
pub fn own() -> Option<&'static Member> {
    Some(&hall()?.members[seat().core as usize & 7])
}

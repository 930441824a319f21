//! An IOMMU stopped a device: which one, and what it asked for.
//!
//! A unit keeps records of what it stopped, and interrupts when it has some. Each entry into the
//! kernel takes one record, so that the path stays short: then the core interrupts itself, for
//! there may be more.
//!
//! With several cores a unit interrupts the first one. That takes records of sources that nobody
//! describes, and passes the interrupt on if the device is another core's, which takes the record
//! itself. So each record is one core's, and no core waits for another.

use crate::apic;
use crate::cpu::{read, write};
use crate::machine::Metal;
use crate::seat::{CORES, passed_on};
use crate::tables::{STRAY, STRAY_PLACE};
use diapason_abi::archive::NONE;
use diapason_abi::record::Confinement;
use diapason_abi::served::Facility;
use diapason_core::{Cause, SERVED};

/// Most units that the kernel switches on.
pub const UNITS_MAX: usize = 4;
/// Registers of a unit, by offset.
pub const ROOT: u64 = 0x20;
pub const FAULTS: u64 = 0x34;
pub const FAULT_CONTROL: u64 = 0x38;
const CAPABILITIES: u64 = 0x08;
/// Bytes of a record.
pub const RECORD: u64 = 16;
/// There is a record.
const PENDING: u32 = 1 << 1;
/// The interrupt is held back.
const MASKED: u32 = 1 << 31;

/// Reads a register of 64 bits.
#[inline(always)]
pub fn read_wide(register: u64) -> u64 {
    u64::from(read(register)) | u64::from(read(register + 4)) << 32
}

/// Returns where a unit with these capabilities has its records, and how many.
#[inline(always)]
pub fn records(capabilities: u64) -> (u64, u64) {
    (16 * (capabilities >> 24 & 0x3ff), (capabilities >> 40 & 0xff) + 1)
}

/// The record is read, and free for the next.
#[inline(always)]
pub fn settle(record: u64) {
    write(record + 12, 1 << 31);
}

/// An IOMMU in front of a described function.
#[derive(Clone, Copy)]
pub struct Unit {
    /// The address that firmware names.
    pub named: u64,
    /// The tables of addresses have four levels, and not three.
    pub four: bool,
    /// The unit checks which source raises an interrupt.
    pub remaps: bool,
}

/// The tables that the units read, as far as the cores have filled them: one core after another,
/// and the first one last. All zeros is their state before that.
pub struct Walls {
    /// How far devices are confined, as far as is known.
    pub state: Confinement,
    /// The top of the tables of addresses, and the table of interrupts; 0: there are none yet.
    pub root: u64,
    pub interrupts: u64,
    pub units: [Unit; UNITS_MAX],
    pub count: usize,
    /// Functions so far. Each has a table of addresses, which units know by its number.
    pub functions: u64,
}

const _: () = assert!(Confinement::Full as u8 == 0);

/// Position of the number of a core in the upper half of a context, among bits that units leave to
/// software.
pub const CORE_AT: u64 = 3;

/// Returns the core whose description has the function at a place, as its context under `root`
/// says; the first, if none has.
fn core_of(root: u64, place: u64) -> u8 {
    let contexts = read_wide(root + (place >> 8) * 16) & !0xfff;
    if contexts == 0 {
        return 0;
    }
    (read(contexts + (place & 0xff) * 16 + 8) >> CORE_AT & 7) as u8
}

impl Metal {
    /// Returns what the interrupt at a place among the vectors of devices means.
    #[inline(always)]
    pub fn interrupt(&mut self, index: usize) -> Cause {
        match self.vectors.get(index) {
            Some(device) => Cause::Irq(*device),
            None if CORES && index < STRAY_PLACE => self.hear(),
            None if SERVED.has(Facility::Devices) => self.stray(),
            None => Cause::Timer,
        }
    }

    /// Takes a record of an IOMMU. A source that is no described device could fill them for ever,
    /// so the unit falls silent after it, but goes on to stop everything.
    #[cold]
    #[inline(never)]
    fn stray(&mut self) -> Cause {
        self.counts.mmio += 10;
        for unit in self.units.into_iter().filter(|unit| *unit != 0) {
            let status = read(unit + FAULTS);
            if status & PENDING == 0 || read(unit + FAULT_CONTROL) & MASKED != 0 {
                continue;
            }
            let (at, _) = records(read_wide(unit + CAPABILITIES));
            let record = unit + at + RECORD * u64::from(status >> 8 & 0xff);
            let (address, fault) = (read_wide(record), read_wide(record + 8));
            let source = fault as u16;
            let is_it = |command: &mut *mut u16| {
                !command.is_null() && (*command as u64 >> 12) as u16 == source
            };
            let device = self.commands.iter_mut().position(is_it);
            if CORES
                && device.is_none()
                && passed_on(core_of(read_wide(unit + ROOT), source.into()), STRAY as u32)
            {
                continue;
            }
            settle(record);
            // Records for which there was no room are only missed.
            write(unit + FAULTS, 1);
            if device.is_none() {
                write(unit + FAULT_CONTROL, MASKED);
            }
            apic::interrupt_self(STRAY as u32);
            return Cause::Stray(device.map_or(NONE, |device| device as u16), address, fault);
        }
        Cause::Irq(NONE)
    }
}

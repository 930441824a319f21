//! An IOMMU stopped a device: which one, and what it asked for.
//!
//! A unit keeps records of what it stopped, and interrupts when it has some. Each entry into the
//! kernel takes one record, so that the path stays short: while there are more, the core interrupts
//! itself.

use crate::apic;
use crate::cpu::{read, write};
use crate::machine::Metal;
use crate::seat::hall;
use crate::tables::STRAY;
use diapason_abi::archive::NONE;
use diapason_abi::served::Facility;
use diapason_core::{Cause, SERVED};

/// Most units that the kernel switches on.
pub const UNITS_MAX: usize = 4;
/// Registers of a unit, by offset.
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

impl Metal {
    /// Returns what the interrupt at a place among the vectors of devices means.
    #[inline(always)]
    pub fn interrupt(&mut self, index: usize) -> Cause {
        match self.vectors.get(index) {
            Some(device) => Cause::Irq(*device),
            None if hall().is_some() => self.hear(),
            // The only vector behind those of devices.
            None if SERVED.has(Facility::Devices) => self.stray(),
            None => Cause::Timer,
        }
    }

    /// Takes a record of an IOMMU. A source that is no described device could fill them for ever,
    /// so the unit falls silent after it, but goes on to stop everything.
    #[cold]
    #[inline(never)]
    fn stray(&mut self) -> Cause {
        self.counts.mmio += 8;
        for unit in self.units.into_iter().filter(|unit| *unit != 0) {
            let status = read(unit + FAULTS);
            if status & PENDING == 0 {
                continue;
            }
            let (at, _) = records(read_wide(unit + CAPABILITIES));
            let record = unit + at + RECORD * u64::from(status >> 8 & 0xff);
            let (address, fault) = (read_wide(record), read_wide(record + 8));
            settle(record);
            // Records for which there was no room are only missed.
            write(unit + FAULTS, 1);
            let source = fault as u16;
            let is_it = |command: &mut *mut u16| {
                !command.is_null() && (*command as u64 >> 12) as u16 == source
            };
            let device = self.commands.iter_mut().position(is_it);
            if device.is_none() {
                write(unit + FAULT_CONTROL, MASKED);
            } else if read(unit + FAULTS) & PENDING != 0 {
                apic::interrupt_self(STRAY as u32);
            }
            return Cause::Stray(device.map_or(NONE, |device| device as u16), address, fault);
        }
        Cause::Irq(NONE)
    }
}

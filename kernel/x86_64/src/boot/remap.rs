//! The table of interrupts: which vectors each source may raise, and how its messages name them.
//!
//! An interrupt's place in the table is its place among the vectors of devices, behind those of the
//! cores before. An IOMMU that
//! checks interrupts lets a source use the entries that name it, and nothing else.

use super::acpi::Acpi;
use super::iommu::{described, put};
use super::pci;
use crate::apic::NO_MASK;
use crate::iommu::Unit;
use crate::machine::Metal;
use crate::seat::seat;
use crate::tables::{DEVICES_MAX, FIRST_DEVICE};
use diapason_abi::archive::{Archive, CORES_MAX, Location};

/// The source is compared as a whole.
const SOURCE_CHECKED: u64 = 1 << 18;
const PRESENT: u64 = 1;
const LEVEL: u64 = 1 << 4;

/// The interrupts of the described devices.
pub struct Remap<'a> {
    pub acpi: &'a Acpi,
    pub archive: &'a Archive<'a>,
    pub metal: &'a Metal,
}

/// Returns the place in the table of the interrupt of this core with a place among vectors.
fn entry_of(place: usize) -> u32 {
    const { assert!(CORES_MAX * DEVICES_MAX <= 256) };
    (usize::from(seat().core) * DEVICES_MAX + place) as u32
}

impl Remap<'_> {
    /// Returns the location of the device whose interrupt has a place, and whether that is level
    /// triggered; `None` if no device has it.
    #[inline(never)]
    fn at(&self, place: usize) -> Option<(Location, bool)> {
        let device = *self.metal.vectors.get(place)?;
        // NONE lies beyond all devices.
        let record = self.archive.devices().nth(device.into())?;
        Some((record.location, record.level))
    }

    /// Fills the table at `table`. False if it is not known where an interrupt comes from.
    pub fn fill(&self, table: u64, core: u32) -> bool {
        for place in 0..DEVICES_MAX {
            let Some((location, level)) = self.at(place) else { continue };
            let (source, trigger) = if let Location::Message { of, .. } = location {
                let Some(sender) = described(self.metal, of.into()) else { return false };
                (sender.place(self.acpi), 0)
            } else {
                let Some((_, from)) = self.lines() else { return false };
                (from, if level { LEVEL } else { 0 })
            };
            let entry = table + 16 * u64::from(entry_of(place));
            put(entry + 8, source | SOURCE_CHECKED);
            let vector = FIRST_DEVICE + place as u64;
            put(entry, PRESENT | trigger | vector << 16 | u64::from(core) << 40);
        }
        true
    }

    /// Returns the unit that interrupts of lines pass, and the place that they come from, if known.
    fn lines(&self) -> Option<(u64, u64)> {
        self.acpi.dmar().io_apic(self.acpi.madt.io_apic_id.into())
    }

    /// Has every source behind these units name its interrupts by their places in the table. Lines
    /// that no unit of ours sees stay as they are.
    pub fn redirect(&self, units: &[Unit]) {
        let ours = |(unit, _)| units.iter().any(|ours| ours.named == unit);
        let has_lines = self.lines().is_some_and(ours);
        for place in 0..DEVICES_MAX {
            let Some((location, _)) = self.at(place) else { continue };
            let (mask, entry) = (self.metal.masks[place], entry_of(place));
            match location {
                Location::Message { of, vector } if mask == &raw mut NO_MASK => {
                    if let Some(sender) = described(self.metal, of.into()) {
                        sender.name_bare(entry - u32::from(vector));
                    }
                }
                Location::Message { .. } => pci::name_message(mask, entry),
                _ if has_lines => {
                    self.metal.io_apic.name(self.metal.lines[place], entry);
                }
                _ => {}
            }
        }
    }
}

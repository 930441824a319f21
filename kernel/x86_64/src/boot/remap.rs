//! The table of interrupts: which vectors each source may raise, and how its messages name them.
//!
//! An interrupt's place in the table is its place among the vectors of devices. An IOMMU that
//! checks interrupts lets a source use the entries that name it, and nothing else.

use super::acpi::Acpi;
use super::iommu::{described, put};
use super::pci;
use crate::apic::NO_MASK;
use crate::machine::Metal;
use crate::tables::{DEVICES_MAX, FIRST_DEVICE};
use diapason_abi::archive::{Archive, Location};

/// The source is compared as a whole.
const SOURCE_CHECKED: u64 = 1 << 18;
const PRESENT: u64 = 1;
const LEVEL: u64 = 1 << 4;

/// The interrupts of the described devices.
pub struct Remap<'a> {
    pub acpi: &'a Acpi,
    pub archive: &'a Archive<'a>,
    pub metal: &'a Metal,
    /// The place that interrupts of lines come from. `Some(None)`: they pass none of the units that
    /// are switched on. `None`: that is not known.
    pub lines: Option<Option<u64>>,
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
            let (source, trigger) = match (location, self.lines) {
                (Location::Message { of, .. }, _) => {
                    let Some(sender) = described(self.metal, of.into()) else { return false };
                    (sender.place(self.acpi), 0)
                }
                (_, Some(Some(from))) => (from, if level { LEVEL } else { 0 }),
                (_, Some(None)) => continue,
                (_, None) => return false,
            };
            let entry = table + 16 * place as u64;
            put(entry + 8, source | SOURCE_CHECKED);
            let vector = FIRST_DEVICE + place as u64;
            put(entry, PRESENT | trigger | vector << 16 | u64::from(core) << 40);
        }
        true
    }

    /// Has every source name its interrupts by their places in the table.
    pub fn redirect(&self) {
        for place in 0..DEVICES_MAX {
            let Some((location, _)) = self.at(place) else { continue };
            let (mask, entry) = (self.metal.masks[place], place as u32);
            match location {
                Location::Message { of, vector } if mask == &raw mut NO_MASK => {
                    if let Some(sender) = described(self.metal, of.into()) {
                        sender.name_bare(entry - u32::from(vector));
                    }
                }
                Location::Message { .. } => pci::name_message(mask, entry),
                _ if self.lines.flatten().is_some() => {
                    self.metal.io_apic.name(self.metal.lines[place], entry);
                }
                _ => {}
            }
        }
    }
}

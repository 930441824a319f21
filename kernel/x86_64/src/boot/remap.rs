//! The table of interrupts: which vectors each source may raise, and how its messages name them.
//!
//! An interrupt's place in the table is its place among the vectors of devices. An IOMMU that
//! checks interrupts lets a source use the entries that name it, and nothing else.

use super::acpi::Acpi;
use super::iommu::{described, put};
use super::pci;
use crate::apic::NO_MASK;
use crate::machine::Metal;
use crate::tables::FIRST_DEVICE;
use diapason_abi::archive::{Archive, Location, NONE};

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
    /// Visits the interrupts, each with its place, its device's location and whether it is level
    /// triggered, until `visit` returns false. Returns whether it never did.
    fn all(&self, visit: &mut dyn FnMut(usize, Location, bool) -> bool) -> bool {
        let used = self.metal.vectors.iter().enumerate().filter(|(_, device)| **device != NONE);
        used.filter_map(|(place, device)| {
            let record = self.archive.devices().nth((*device).into())?;
            Some((place, record))
        })
        .all(|(place, record)| visit(place, record.location, record.level))
    }

    /// Fills the table at `table`. False if it is not known where an interrupt comes from.
    pub fn fill(&self, table: u64, core: u32) -> bool {
        self.all(&mut |place, location, level| {
            let (source, trigger) = match location {
                Location::Message { of, .. } => {
                    let Some(sender) = described(self.metal, of.into()) else { return false };
                    (sender.place(self.acpi), 0)
                }
                _ => match self.lines {
                    Some(Some(from)) => (from, if level { LEVEL } else { 0 }),
                    Some(None) => return true,
                    None => return false,
                },
            };
            let vector = FIRST_DEVICE + place as u64;
            let entry = table + 16 * place as u64;
            put(entry + 8, source | SOURCE_CHECKED);
            put(entry, PRESENT | trigger | vector << 16 | u64::from(core) << 40);
            true
        })
    }

    /// Has every source name its interrupts by their places in the table.
    pub fn redirect(&self) {
        self.all(&mut |place, location, _| {
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
            true
        });
    }
}

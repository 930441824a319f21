//! The described devices: what of their registers a process that maps them sees, and a vector for
//! each that interrupts.

use super::acpi::Acpi;
use super::memory::BootMemory;
use super::pci::{self, Opened};
use super::spaces;
use crate::apic::LocalApic;
use crate::console::announce;
use crate::machine::Metal;
use crate::tables::FIRST_DEVICE;
use diapason_abi::PAGE;
use diapason_abi::archive::{Absence, Archive, DeviceRecord, Location, NONE, PciFunction};
use diapason_abi::layout::SLOTS_MAX;
use diapason_abi::record::Record;

/// The devices that boot has set up so far.
struct Devices<'a> {
    metal: &'a mut Metal,
    acpi: &'a Acpi,
    /// This core, as interrupts are addressed to it.
    core: u32,
    /// Described messages of each device, and its table of them.
    messages: [u64; SLOTS_MAX as usize],
    tables: [u64; SLOTS_MAX as usize],
    vectors: usize,
    /// The devices that the machine lacks, one bit each.
    absent: u64,
}

/// Fills the tables of segments and devices; returns which devices the machine lacks, one bit each,
/// their messages apart. `None`: memory does not suffice.
pub fn set_up(
    archive: &Archive<'_>,
    memory: &mut BootMemory,
    metal: &mut Metal,
    acpi: &Acpi,
    timer: &LocalApic,
) -> Option<u64> {
    for table in metal.segment_tables.iter_mut() {
        *table = memory.page()?;
    }
    let none = [0; SLOTS_MAX as usize];
    let (core, messages, tables) = (timer.id(), none, none);
    let mut all = Devices { metal, acpi, core, messages, tables, vectors: 0, absent: 0 };
    for record in archive.devices() {
        if let Location::Message { of, vector } = record.location
            && let Some(messages) = all.messages.get_mut(of as usize)
        {
            *messages = (*messages).max(u64::from(vector) + 1);
        }
    }
    for (index, record) in archive.devices().enumerate() {
        all.set_up(index, &record, memory)?;
    }
    Some(all.absent)
}

impl Devices<'_> {
    #[inline(never)]
    fn set_up(
        &mut self,
        index: usize,
        record: &DeviceRecord,
        memory: &mut BootMemory,
    ) -> Option<()> {
        let opened = match record.location {
            Location::Address(registers) => Ok(Opened { registers, hidden: 0..0, table: 0 }),
            Location::Pci(function) => self.open(index, record.pages, &function),
            Location::Message { of, vector } => {
                self.message(index, record.irq, of, vector);
                return Some(());
            }
            // Its ring is a call: there is nothing to set up.
            Location::Bell { .. } => return Some(()),
        };
        match opened {
            Ok(opened) => {
                let table = memory.page()?;
                self.metal.device_tables[index] = table;
                for page in (0..record.pages).filter(|p| !opened.hidden.contains(&(*p).into())) {
                    let address = opened.registers + u64::from(page) * PAGE as u64;
                    spaces::set_device(table, page, address);
                }
                if record.irq != NONE {
                    self.next_vector(index, record.irq);
                }
            }
            Err(absence) => {
                self.absent |= 1 << index;
                announce(Record::Absent, &[index as u64, absence as u64]);
            }
        }
        Some(())
    }

    fn open(&mut self, index: usize, pages: u32, of: &PciFunction) -> Result<Opened, Absence> {
        let function = pci::find(self.acpi, of).ok_or(Absence::NotFound)?;
        let command = function.command();
        if self.metal.commands.iter_mut().any(|taken| *taken == command) {
            return Err(Absence::Taken);
        }
        let messages = self.messages.get(index).copied().unwrap_or(0);
        let opened = function.open(of.bar, pages, messages)?;
        self.metal.commands[index] = command;
        if let Some(table) = self.tables.get_mut(index) {
            *table = opened.table;
        }
        let [place, vendor, product] = function.identity(self.acpi);
        announce(Record::Device, &[index as u64, place, vendor, product, opened.registers]);
        Ok(opened)
    }

    /// Message `number` of device `of`, unless the machine lacks that.
    fn message(&mut self, index: usize, irq: u16, of: u16, number: u16) {
        let table = self.tables.get(of as usize).copied().unwrap_or(0);
        if table == 0 {
            return;
        }
        let vector = FIRST_DEVICE as u32 + self.vectors as u32;
        if let Some(mask) = self.metal.masks.get_mut(self.vectors) {
            *mask = pci::set_message(table, number, self.core, vector);
        }
        self.next_vector(index, irq);
    }

    /// The next vector is that of device `index`. There is one for each: the archive was checked.
    #[inline(never)]
    fn next_vector(&mut self, index: usize, irq: u16) {
        let metal = &mut *self.metal;
        let places = (metal.vectors.get_mut(self.vectors), metal.lines.get_mut(self.vectors));
        if let (Some(device), Some(line)) = places {
            (*device, *line) = (index as u16, irq);
            self.vectors += 1;
        }
    }
}

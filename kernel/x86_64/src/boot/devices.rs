//! The described devices: what of their registers a process that maps them sees, and a vector for
//! each that interrupts.

use super::acpi::Acpi;
use super::memory::BootMemory;
use super::pci::{self, Opened, Signalling};
use super::spaces;
use crate::apic::{LocalApic, NO_MASK};
use crate::console::{self, announce};
use crate::kept::Kept;
use crate::machine::Metal;
use crate::seat::{CORES, Common, Hall, Seat, hall, own, seat};
use crate::tables::{DEVICES_MAX, FIRST_DEVICE};
use crate::{cpu, paging};
use core::sync::atomic::Ordering;
use diapason_abi::PAGE;
use diapason_abi::archive::{
    Absence, Archive, DeviceRecord, Location, NONE, PciFunction, SegmentRecord,
};
use diapason_abi::layout::SLOTS_MAX;
use diapason_abi::pci::FunctionConfiguration;
use diapason_abi::record::Record;
use diapason_abi::results::{self, RunState};

/// The devices that boot has set up so far.
struct Devices<'a> {
    metal: &'a mut Metal,
    acpi: &'a Acpi,
    /// This core, as interrupts are addressed to it.
    core: u32,
    /// Described messages of each device.
    messages: [u64; SLOTS_MAX as usize],
    /// The place that each device's first message has among the vectors, if it sends by MSI.
    firsts: [usize; SLOTS_MAX as usize],
    senders: [Signalling; SLOTS_MAX as usize],
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
    share_all(archive, memory, metal)?;
    let mut all = Devices {
        metal,
        acpi,
        core: timer.id(),
        messages: [0; SLOTS_MAX as usize],
        firsts: [0; SLOTS_MAX as usize],
        senders: [Signalling::Silent; SLOTS_MAX as usize],
        vectors: 0,
        absent: 0,
    };
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

/// Sets up the tables of all segments. It is out of line for the sake of the stack.
#[inline(never)]
fn share_all(archive: &Archive<'_>, memory: &mut BootMemory, metal: &mut Metal) -> Option<()> {
    for (table, segment) in metal.segment_tables.iter_mut().zip(archive.segments()) {
        *table = memory.page()?;
        if segment.common && (CORES || console::KEEPS) {
            let first = match hall() {
                Some(hall) => share(hall, &segment, memory)?,
                None => memory.cut(bytes(&segment))?,
            };
            for page in 0..segment.pages {
                paging::set_shared(*table, page, first + u64::from(page) * PAGE as u64);
            }
            if console::KEEPS && segment.key == results::KEY {
                keep(archive, &segment, first);
            }
        }
    }
    Some(())
}

fn bytes(segment: &SegmentRecord) -> u64 {
    u64::from(segment.pages) * PAGE as u64
}

/// Returns where a segment that several cores use begins. The core that came first has cut its
/// memory.
fn share(hall: &Hall, segment: &SegmentRecord, memory: &mut BootMemory) -> Option<u64> {
    let is_it = |common: &&Common| {
        let free = common.pages.load(Ordering::Relaxed) == 0;
        free || common.key.load(Ordering::Relaxed) == segment.key
    };
    let common = hall.commons.iter().find(is_it)?;
    let mut pages = common.pages.load(Ordering::Relaxed);
    if pages == 0 {
        pages = memory.cut(bytes(segment))?;
        common.key.store(segment.key, Ordering::Relaxed);
        common.pages.store(pages, Ordering::Relaxed);
    }
    Some(pages)
}

/// Fills the part of this core in the segment of consoles from now on. The segment begins at
/// `first`.
fn keep(archive: &Archive<'_>, segment: &SegmentRecord, first: u64) {
    let Seat { core, cores, .. } = seat();
    let part = results::part(bytes(segment), cores.into());
    let at = first + u64::from(core) * part;
    cpu::write(at + results::IMAGE as u64, archive.checksum());
    cpu::write(at + results::CORES as u64, cores.into());
    let kept = Kept::at(at, part);
    kept.says(RunState::Running);
    console::keep(kept);
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
            Location::Address(registers) => {
                Ok(Opened { registers, hidden: 0..0, sender: Signalling::Silent })
            }
            Location::Pci(function) => self.open(index, record.pages, &function),
            Location::Message { of, vector } => {
                self.message(index, record.irq, of, vector);
                return Some(());
            }
            Location::Bell { number, .. } => {
                if let Some(bell) = own().and_then(|own| own.bells.get(number as usize)) {
                    bell.store(index as u16, Ordering::Relaxed);
                }
                return Some(());
            }
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
                    self.metal.io_apic.address(record.irq, self.core);
                    self.next_vector(index, record.irq);
                }
            }
            Err(absence) => self.lack(index, absence),
        }
        Some(())
    }

    /// The machine lacks device `index`, which is said.
    fn lack(&mut self, index: usize, absence: Absence) {
        self.absent |= 1 << index;
        announce(Record::Absent, &[index as u64, absence as u64]);
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
        if let Signalling::Bare { function, capability, log } = opened.sender {
            let first = self.consecutive(log).ok_or(Absence::Messages)?;
            let vector = FIRST_DEVICE as u32 + first as u32;
            function.begin_bare(capability, log, pci::message_address(self.core), vector);
            if let Some(place) = self.firsts.get_mut(index) {
                *place = first;
            }
        }
        if let Some(sender) = self.senders.get_mut(index) {
            *sender = opened.sender;
        }
        let [place, vendor, product] = function.identity(self.acpi);
        announce(Record::Device, &[index as u64, place, vendor, product, opened.registers]);
        Ok(opened)
    }

    /// Sets consecutive vectors aside, the first a multiple of their number, and returns its place.
    fn consecutive(&mut self, log: u32) -> Option<usize> {
        let (count, before) = (1 << log, FIRST_DEVICE as usize);
        let first = (before + self.vectors).next_multiple_of(count) - before;
        self.vectors = first + count;
        (self.vectors <= DEVICES_MAX).then_some(first)
    }

    /// Message `number` of device `of`, unless the machine lacks that.
    fn message(&mut self, index: usize, irq: u16, of: u16, number: u16) {
        let of = of as usize;
        match self.senders.get(of).copied().unwrap_or(Signalling::Silent) {
            Signalling::Silent => {}
            Signalling::Table(table) => {
                let vector = FIRST_DEVICE as u32 + self.vectors as u32;
                let mask = pci::set_message(table, number, self.core, vector);
                self.set_mask(self.vectors, mask);
                self.next_vector(index, irq);
            }
            Signalling::Bare { .. } => {
                let place = self.firsts.get(of).copied().unwrap_or(0) + number as usize;
                self.set_mask(place, &raw mut NO_MASK);
                self.set_vector(place, index, irq);
            }
        }
    }

    fn set_mask(&mut self, place: usize, mask: *mut u32) {
        if let Some(place) = self.metal.masks.get_mut(place) {
            *place = mask;
        }
    }

    fn set_vector(&mut self, place: usize, index: usize, irq: u16) {
        let metal = &mut *self.metal;
        let places = (metal.vectors.get_mut(place), metal.lines.get_mut(place));
        if let (Some(device), Some(line)) = places {
            (*device, *line) = (index as u16, irq);
        } else {
            self.lack(index, Absence::Messages);
        }
    }

    /// The next vector is that of device `index`. There is one for each, unless MSI left a gap.
    #[inline(never)]
    fn next_vector(&mut self, index: usize, irq: u16) {
        self.set_vector(self.vectors, index, irq);
        self.vectors += 1;
    }
}

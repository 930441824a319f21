//! Confined devices: each PCI function of the description reaches the segments that its drivers are
//! granted, and sends only its own interrupts.
//!
//! Segments for devices have fixed frames, so the tables are filled once, from the archive, and
//! never change: an access that passes them reaches memory that nobody else ever gets. Addresses
//! stay as they are. Only the units in front of described functions are switched on. Everything
//! else behind them has no right to access memory (`pci::quieten`), and no table either.

use super::acpi::Acpi;
use super::memory::BootMemory;
use super::pci::{self, Function};
use super::remap::Remap;
use super::{__boot_start, spaces};
use crate::console::announce;
use crate::cpu;
use crate::iommu::{self, FAULT_CONTROL, FAULTS, UNITS_MAX};
use crate::machine::Metal;
use crate::seat::hall;
use crate::tables::STRAY;
use diapason_abi::PAGE;
use diapason_abi::archive::{Archive, Location};
use diapason_abi::record::{Confinement, Record};

/// Registers of a unit, by offset.
const CAPABILITIES: u64 = 0x08;
const MORE_CAPABILITIES: u64 = 0x10;
const COMMAND: u64 = 0x18;
const STATUS: u64 = 0x1c;
const ROOT: u64 = 0x20;
const FAULT_DATA: u64 = 0x3c;
const FAULT_ADDRESS: u64 = 0x40;
const FAULT_ADDRESS_HIGH: u64 = 0x44;
const PROTECTED: u64 = 0x64;
const QUEUE_TAIL: u64 = 0x88;
const QUEUE: u64 = 0x90;
const INTERRUPTS: u64 = 0xb8;

/// Bits of command and status.
const TRANSLATE: u32 = 1 << 31;
const SET_ROOT: u32 = 1 << 30;
const QUEUED: u32 = 1 << 26;
const REMAP: u32 = 1 << 25;
const SET_INTERRUPTS: u32 = 1 << 24;
/// Messages that name no entry of the table of interrupts pass.
const OLD_MESSAGES: u32 = 1 << 23;
/// The bits of the status that are states, and not events.
const STATES: u32 = 0x96ff_ffff;

/// Most reads of a register, or of the queue's answer, before a unit counts as silent.
const PATIENCE: u32 = 1 << 20;
/// Bytes of a unit's registers, as far as the kernel uses them.
const REGISTERS: u64 = 2 * PAGE as u64;
/// Where a queue's page has the answer.
const ANSWER: u64 = PAGE as u64 / 2;

/// Bits of entries: read and write in a table of addresses, present elsewhere.
const READ_WRITE: u64 = 3;
const PRESENT: u64 = 1;

/// An IOMMU that is to be switched on: a described function is behind it.
#[derive(Clone, Copy, Default)]
struct Unit {
    /// The address that firmware names.
    named: u64,
    /// Where the kernel sees its registers.
    registers: u64,
    /// The tables of addresses have four levels, and not three.
    four: bool,
    /// The unit checks which source raises an interrupt.
    remaps: bool,
}

/// The root of the tables that all units share, and the units that were found so far.
struct Tables<'a> {
    memory: &'a mut BootMemory,
    root: u64,
    units: [Unit; UNITS_MAX],
    count: usize,
}

/// Confines the described functions, if there are any, and says how far. `None`: memory does not
/// suffice.
pub fn confine(
    acpi: &Acpi,
    archive: &Archive<'_>,
    memory: &mut BootMemory,
    metal: &mut Metal,
    core: u32,
) -> Option<()> {
    if metal.commands.iter_mut().all(|command| command.is_null()) {
        return Some(());
    }
    if hall().is_some() {
        announce(Record::Confined, &[Confinement::Cores as u64, 0]);
        return Some(());
    }
    let root = memory.page()?;
    let mut tables = Tables { memory, root, units: Default::default(), count: 0 };
    let state = match tables.fill(acpi, archive, metal)? {
        Ok(()) => tables.begin(acpi, archive, metal, core)?,
        Err(state) => state,
    };
    let confined = matches!(state, Confinement::Full | Confinement::Memory);
    let units = if confined { tables.count } else { 0 };
    announce(Record::Confined, &[state as u64, units as u64]);
    Some(())
}

impl Tables<'_> {
    /// Finds the unit of each described function, and fills the tables.
    #[inline(never)]
    fn fill(
        &mut self,
        acpi: &Acpi,
        archive: &Archive<'_>,
        metal: &mut Metal,
    ) -> Option<Result<(), Confinement>> {
        if acpi.dmar.is_empty() {
            return Some(Err(Confinement::NoIommu));
        }
        // A stray access is told by the lower bits of where its source is configured.
        if !acpi.pci.is_multiple_of(1 << 28) {
            return Some(Err(Confinement::Unfit));
        }
        for (index, record) in archive.devices().enumerate() {
            let Some(function) = described(metal, index) else { continue };
            let place = function.place(acpi);
            let unit = match self.unit_of(acpi, place) {
                Ok(unit) => unit,
                Err(state) => return Some(Err(state)),
            };
            let (top, levels) = (self.memory.page()?, if unit.four { 4 } else { 3 });
            let mut frame = metal.pool;
            for segment in archive.segments() {
                // Memory in common has no frames, and no device finds it.
                let owns = segment.dma && !segment.common;
                let end = frame + if owns { segment.pages.into() } else { 0 } * PAGE as u64;
                if owns && segment.allowed & record.allowed != 0 {
                    self.map(top, levels, frame, end)?;
                }
                frame = end;
            }
            self.map_reserved(acpi, place, (top, levels))?;
            self.set_context(place, top, u64::from(unit.four) + 1, index as u64 + 1)?;
        }
        // A process with the registers of a unit could let its device go anywhere.
        let given = archive.devices().any(|record| match record.location {
            Location::Address(at) => self.is_ours(at, at + u64::from(record.pages) * PAGE as u64),
            _ => false,
        });
        Some(if given { Err(Confinement::Unfit) } else { Ok(()) })
    }

    /// Returns whether memory from `start` to `end` has registers of a unit.
    fn is_ours(&self, start: u64, end: u64) -> bool {
        let units = self.units.iter().take(self.count);
        units.into_iter().any(|unit| start < unit.named + REGISTERS && end > unit.named)
    }

    /// Firmware may still have a device use its memory until the driver takes over.
    fn map_reserved(&mut self, acpi: &Acpi, place: u64, table: (u64, u64)) -> Option<()> {
        let (kernel, used) = (&raw const __boot_start as u64, self.memory.end());
        for (first, last) in acpi.dmar().reserved(place) {
            let ours = first < used && last >= kernel;
            if !ours && last < spaces::REACH {
                self.map(table.0, table.1, first & !(PAGE as u64 - 1), last + 1)?;
            }
        }
        Some(())
    }

    /// Returns the unit that the function at `place` is behind, which gets a place of its own.
    fn unit_of(&mut self, acpi: &Acpi, place: u64) -> Result<Unit, Confinement> {
        if pci::is_hidden(acpi, place >> 8) {
            return Err(Confinement::Uncovered);
        }
        let named = acpi.dmar().unit(place).ok_or(Confinement::Uncovered)?;
        if let Some(unit) = self.units.iter().take(self.count).find(|unit| unit.named == named) {
            return Ok(*unit);
        }
        let registers = spaces::registers(named, REGISTERS).ok_or(Confinement::Unfit)?;
        let unit = Unit::examine(named, registers).ok_or(Confinement::Unfit)?;
        *self.units.get_mut(self.count).ok_or(Confinement::Unfit)? = unit;
        self.count += 1;
        Ok(unit)
    }

    /// The function at `place` reaches what the table at `top` maps.
    fn set_context(&mut self, place: u64, top: u64, width: u64, domain: u64) -> Option<()> {
        let contexts = self.below(self.root + (place >> 8) * 16, PRESENT)?;
        put(contexts + (place & 0xff) * 16 + 8, domain << 8 | width);
        put(contexts + (place & 0xff) * 16, top | PRESENT);
        Some(())
    }

    /// Returns the table that the entry at `entry` leads to, which is made if there is none.
    #[inline(never)]
    fn below(&mut self, entry: u64, rights: u64) -> Option<u64> {
        if get(entry) == 0 {
            put(entry, self.memory.page()? | rights);
        }
        Some(get(entry) & !(PAGE as u64 - 1))
    }

    /// Maps the pages from `start` to `end` one to one.
    fn map(&mut self, top: u64, levels: u64, start: u64, end: u64) -> Option<()> {
        for page in (start..end).step_by(PAGE) {
            let mut table = top;
            for level in (1..levels).rev() {
                table = self.below(table + (page >> (12 + 9 * level) & 511) * 8, READ_WRITE)?;
            }
            put(table + (page >> 12 & 511) * 8, page | READ_WRITE);
        }
        Some(())
    }

    /// Switches the units on.
    #[inline(never)]
    fn begin(
        &mut self,
        acpi: &Acpi,
        archive: &Archive<'_>,
        metal: &mut Metal,
        core: u32,
    ) -> Option<Confinement> {
        let units = self.units;
        let units = units.get(..self.count)?;
        let (interrupts, queue) = (self.memory.page()?, self.memory.page()?);
        // Lines that no unit of ours sees stay as they are.
        let ours = |(unit, _): &(u64, u64)| units.iter().any(|ours| ours.named == *unit);
        let lines = acpi.dmar().io_apic(acpi.io_apic_id).map(|from| ours(&from).then_some(from.1));
        let remap = Remap { acpi, archive, metal, lines };
        let remaps = units.iter().all(|unit| unit.remaps) && remap.fill(interrupts, core);
        let table = if remaps { interrupts } else { 0 };
        // SAFETY: writes the tables from the caches to memory, where some units read them.
        unsafe { core::arch::asm!("wbinvd", options(nostack)) };
        if units.iter().any(|unit| unit.begin(self.root, table, queue).is_none()) {
            for unit in units {
                unit.command(TRANSLATE, false);
                unit.command(REMAP, false);
            }
            return Some(Confinement::Silent);
        }
        if remaps {
            remap.redirect();
        }
        for (unit, place) in units.iter().zip(&mut metal.units) {
            unit.report(core);
            *place = unit.registers;
        }
        Some(if remaps { Confinement::Full } else { Confinement::Memory })
    }
}

impl Unit {
    /// Returns what can be said of the unit; `None` if it lacks something.
    fn examine(named: u64, registers: u64) -> Option<Unit> {
        let (basic, more) = (get(registers + CAPABILITIES), get(registers + MORE_CAPABILITIES));
        // There must be more than 64 domains. Writes must not need to be flushed. Commands are
        // queued, and faults must lie where they can be seen.
        let fits = basic & 7 > 1 && basic >> 4 & 1 == 0 && more >> 1 & 1 == 1;
        let (three, four) = (basic >> 9 & 1 == 1, basic >> 10 & 1 == 1);
        let (at, count) = iommu::records(basic);
        let reaches = at + count * iommu::RECORD <= REGISTERS;
        let unit = Unit { named, registers, four: !three, remaps: more >> 3 & 1 == 1 };
        (fits && (three || four) && reaches).then_some(unit)
    }

    fn read(self, register: u64) -> u32 {
        cpu::read(self.registers + register)
    }

    fn write(self, register: u64, value: u32) {
        cpu::write(self.registers + register, value);
    }

    /// Waits until `done`; `None` if that takes too long.
    fn wait(done: impl Fn() -> bool) -> Option<()> {
        (0..PATIENCE).any(|_| done()).then_some(())
    }

    /// Switches something on or off, and waits until it is.
    #[inline(never)]
    fn command(self, bit: u32, on: bool) -> Option<()> {
        let others = self.read(STATUS) & STATES & !bit;
        self.write(COMMAND, others | if on { bit } else { 0 });
        Unit::wait(|| (self.read(STATUS) & bit != 0) == on)
    }

    /// Takes the unit over from firmware and switches it on, without a table of interrupts if that
    /// is 0.
    #[inline(never)]
    fn begin(self, root: u64, interrupts: u64, queue: u64) -> Option<()> {
        for bit in [TRANSLATE, REMAP, QUEUED, OLD_MESSAGES] {
            if self.read(STATUS) & bit != 0 {
                self.command(bit, false)?;
            }
        }
        put(self.registers + ROOT, root);
        self.command(SET_ROOT, true)?;
        put(self.registers + QUEUE_TAIL, 0);
        put(self.registers + QUEUE, queue);
        self.command(QUEUED, true)?;
        if interrupts != 0 {
            // 256 entries.
            put(self.registers + INTERRUPTS, interrupts | 7);
            self.command(SET_INTERRUPTS, true)?;
        }
        self.forget(queue, interrupts != 0)?;
        self.command(TRANSLATE, true)?;
        if interrupts != 0 {
            self.command(REMAP, true)?;
        }
        const FIRMWARE: u32 = 1 << 31;
        if get(self.registers + CAPABILITIES) >> 5 & 3 != 0 && self.read(PROTECTED) & FIRMWARE != 0
        {
            self.write(PROTECTED, 0);
            Unit::wait(|| self.read(PROTECTED) & 1 == 0)?;
        }
        Some(())
    }

    /// Drops all that the unit may have cached: functions, addresses, interrupts. Waits for that.
    fn forget(self, queue: u64, interrupts: bool) -> Option<()> {
        const ALL: u64 = 1 << 4;
        const DRAINED: u64 = 3 << 6;
        const ANSWERED: u64 = 1 << 5;
        let answer = queue + ANSWER;
        put(answer, 0);
        let last = [5 | ANSWERED | 1 << 32, answer];
        let third = if interrupts { [4, 0] } else { last };
        for (i, words) in [[1 | ALL, 0], [2 | ALL | DRAINED, 0], third, last].iter().enumerate() {
            put(queue + 16 * i as u64, words[0]);
            put(queue + 16 * i as u64 + 8, words[1]);
        }
        put(self.registers + QUEUE_TAIL, 4 * 16);
        Unit::wait(|| get(answer) == 1)
    }

    /// Has the unit interrupt the core when it stops something.
    fn report(self, core: u32) {
        self.write(FAULT_CONTROL, 1 << 31);
        let (at, count) = iommu::records(get(self.registers + CAPABILITIES));
        for record in 0..count {
            iommu::settle(self.registers + at + record * iommu::RECORD);
        }
        self.write(FAULTS, u32::MAX);
        self.write(FAULT_DATA, STRAY as u32);
        self.write(FAULT_ADDRESS, pci::message_address(core));
        self.write(FAULT_ADDRESS_HIGH, 0);
        self.write(FAULT_CONTROL, 0);
    }
}

/// The PCI function of device `index`, if it has one that the machine has.
pub fn described(metal: &Metal, index: usize) -> Option<Function> {
    let command = metal.commands[index];
    (!command.is_null()).then(|| Function::of(command))
}

/// Reads an entry of a table, or a register of 64 bits.
#[inline(never)]
pub fn get(address: u64) -> u64 {
    iommu::read_wide(address)
}

/// Writes an entry of a table, or a register of 64 bits. Nothing is switched on that would read the
/// half of it.
#[inline(never)]
pub fn put(address: u64, value: u64) {
    cpu::write(address + 4, (value >> 32) as u32);
    cpu::write(address, value as u32);
}

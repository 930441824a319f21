//! Confined devices: each PCI function of the description reaches the segments that its drivers are
//! granted, and sends only its own interrupts.
//!
//! With several cores all of this is one set of tables: a core that builds its kernel adds its
//! functions, and the first core, which builds the last one, switches the units on. Cores come one
//! after another and wait for the first one before they decide anything, so nothing here is locked.
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
use crate::iommu::{self, CORE_AT, FAULT_CONTROL, FAULTS, ROOT, Unit, Walls};
use crate::machine::Metal;
use crate::seat::{hall, seat};
use crate::tables::STRAY;
use crate::{cpu, paging};
use core::sync::atomic::Ordering;
use diapason_abi::PAGE;
use diapason_abi::archive::{Archive, DeviceRecord, Location};
use diapason_abi::record::{Confinement, Record};

/// Registers of a unit, by offset.
const CAPABILITIES: u64 = 0x08;
const MORE_CAPABILITIES: u64 = 0x10;
const COMMAND: u64 = 0x18;
const STATUS: u64 = 0x1c;
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

/// The tables of the host, and the memory of this core for what they lack.
struct Tables<'a> {
    memory: &'a mut BootMemory,
    walls: &'a mut Walls,
}

/// Adds the described functions of this core to the tables. The first core, which comes last,
/// switches the units on: nobody has decided anything yet, so no device may access memory. `None`:
/// memory does not suffice.
#[inline(never)]
pub fn confine(
    acpi: &Acpi,
    archive: &Archive<'_>,
    memory: &mut BootMemory,
    metal: &mut Metal,
    core: u32,
) -> Option<Option<&'static mut Walls>> {
    let walls = match hall() {
        Some(hall) => hall.walls.get(),
        None if has_functions(metal) => memory.page()? as *mut Walls,
        None => return Some(None),
    };
    // SAFETY: a page that is all zeros, or a part of the hall that one core after another uses.
    let walls = unsafe { &mut *walls };
    Tables { memory: &mut *memory, walls: &mut *walls }.fill(acpi, archive, metal, core)?;
    if walls.count == 0 || !walls.confines() {
        return Some(Some(walls));
    }
    // SAFETY: writes the tables from the caches to memory, where some units read them.
    unsafe { core::arch::asm!("wbinvd", options(nostack)) };
    if seat().core == 0 {
        begin(walls, memory.page()?, core);
    }
    Some(Some(walls))
}

/// Has the messages of this core name the table of interrupts, if there is one that is on, and says
/// how far its devices are confined.
#[inline(never)]
pub fn heed(walls: &Walls, acpi: &Acpi, archive: &Archive<'_>, metal: &mut Metal) {
    let units = if walls.confines() { walls.count } else { 0 };
    let units = walls.units.get(..units).unwrap_or_default();
    if walls.state == Confinement::Full && !units.is_empty() {
        Remap { acpi, archive, metal }.redirect(units);
    }
    for (unit, place) in units.iter().zip(&mut metal.units) {
        // One that this core cannot see is not in front of its devices.
        *place = spaces::registers(unit.named, REGISTERS).unwrap_or(0);
    }
    if has_functions(metal) {
        announce(Record::Confined, &[walls.state as u64, units.len() as u64]);
    }
}

/// Returns whether the description of this core has functions that the machine has.
fn has_functions(metal: &mut Metal) -> bool {
    metal.commands.iter_mut().any(|command| !command.is_null())
}

impl Walls {
    /// Returns whether devices are confined, as far as is known.
    fn confines(&self) -> bool {
        matches!(self.state, Confinement::Full | Confinement::Memory)
    }
}

impl Tables<'_> {
    /// Finds the unit of each described function, and fills the tables. Nothing is added once
    /// something is known that lets drivers be trusted.
    fn fill(
        &mut self,
        acpi: &Acpi,
        archive: &Archive<'_>,
        metal: &mut Metal,
        core: u32,
    ) -> Option<()> {
        if acpi.dmar.is_empty() {
            self.walls.state = Confinement::NoIommu;
        }
        // A stray access is told by the lower bits of where its source is configured. And a process
        // with the registers of a unit could let its device go anywhere.
        let gives = |record: DeviceRecord| match record.location {
            Location::Address(at) => {
                let end = at + u64::from(record.pages) * PAGE as u64;
                acpi.dmar().units().any(|unit| at < unit + REGISTERS && end > unit)
            }
            _ => false,
        };
        if self.walls.confines()
            && (!acpi.pci.is_multiple_of(1 << 28) || archive.devices().any(gives))
        {
            self.walls.state = Confinement::Unfit;
        }
        if self.walls.confines() && self.walls.root == 0 {
            (self.walls.root, self.walls.interrupts) = (self.memory.page()?, self.memory.page()?);
        }
        for (index, record) in archive.devices().enumerate() {
            if !self.walls.confines() {
                return Some(());
            }
            let Some(function) = described(metal, index) else { continue };
            let place = function.place(acpi);
            match self.unit_of(acpi, place) {
                Ok(unit) => self.admit(acpi, archive, metal, (record.allowed, place, unit))?,
                Err(state) => self.walls.state = state,
            }
        }
        let remap = Remap { acpi, archive, metal };
        if self.walls.confines() && !remap.fill(self.walls.interrupts, core) {
            self.walls.state = Confinement::Memory;
        }
        Some(())
    }

    /// The function at a place behind this unit reaches the segments of the processes that may use
    /// it.
    #[inline(never)]
    fn admit(
        &mut self,
        acpi: &Acpi,
        archive: &Archive<'_>,
        metal: &Metal,
        (allowed, place, unit): (u64, u64, Unit),
    ) -> Option<()> {
        let (top, levels) = (self.memory.page()?, if unit.four { 4 } else { 3 });
        let mut frame = metal.pool;
        for (index, segment) in archive.segments().enumerate().filter(|(_, it)| it.dma) {
            let bytes = u64::from(segment.pages) * PAGE as u64;
            // Memory in common is not among the frames.
            let common = segment.common.then(|| paging::shared(metal.segment_tables[index]));
            let start = common.unwrap_or(frame);
            if segment.allowed & allowed != 0 && start != 0 {
                self.map(top, levels, start, start + bytes)?;
            }
            frame += if segment.common { 0 } else { bytes };
        }
        self.map_reserved(acpi, place, (top, levels))?;
        let width = u64::from(unit.four) + 1;
        let upper = width | u64::from(seat().core) << CORE_AT;
        let contexts = self.below(self.walls.root + (place >> 8) * 16, PRESENT)?;
        self.walls.functions += 1;
        put(contexts + (place & 0xff) * 16 + 8, self.walls.functions << 8 | upper);
        put(contexts + (place & 0xff) * 16, top | PRESENT);
        Some(())
    }

    /// Firmware may still have a device use its memory until the driver takes over.
    fn map_reserved(&mut self, acpi: &Acpi, place: u64, table: (u64, u64)) -> Option<()> {
        let kernel = &raw const __boot_start as u64;
        let used = hall().map_or(self.memory.end(), |hall| hall.end.load(Ordering::Relaxed));
        for (first, last) in acpi.dmar().reserved(place) {
            let ours = first < used && last >= kernel;
            if !ours && last < spaces::REACH {
                self.map(table.0, table.1, first & !(PAGE as u64 - 1), last + 1)?;
            }
        }
        Some(())
    }

    /// Returns the unit that the function at `place` is behind, which gets a place of its own.
    #[inline(never)]
    fn unit_of(&mut self, acpi: &Acpi, place: u64) -> Result<Unit, Confinement> {
        if pci::is_hidden(acpi, place >> 8) {
            return Err(Confinement::Uncovered);
        }
        let named = acpi.dmar().unit(place).ok_or(Confinement::Uncovered)?;
        // This core reads its records, whoever found it.
        let registers = spaces::registers(named, REGISTERS).ok_or(Confinement::Unfit)?;
        let walls = &mut *self.walls;
        // The numbers of tables have 8 bits.
        if walls.functions >= 255 {
            return Err(Confinement::Unfit);
        }
        if let Some(unit) = walls.units.iter().take(walls.count).find(|unit| unit.named == named) {
            return Ok(*unit);
        }
        let unit = Registers(registers).examine(named).ok_or(Confinement::Unfit)?;
        *walls.units.get_mut(walls.count).ok_or(Confinement::Unfit)? = unit;
        walls.count += 1;
        Ok(unit)
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
}

/// Switches the units on, with `queue` for their commands. They interrupt this core.
fn begin(walls: &mut Walls, queue: u64, core: u32) {
    let units = walls.units.get(..walls.count).unwrap_or_default();
    if units.iter().any(|unit| !unit.remaps) {
        walls.state = Confinement::Memory;
    }
    let table = if walls.state == Confinement::Full { walls.interrupts } else { 0 };
    let seen = |unit: &Unit| spaces::registers(unit.named, REGISTERS).map(Registers);
    if units.iter().any(|unit| seen(unit).is_none()) {
        walls.state = Confinement::Unfit;
        return;
    }
    let all = || units.iter().filter_map(seen);
    if all().any(|unit| unit.begin(walls.root, table, queue).is_none()) {
        for unit in all() {
            unit.command(TRANSLATE, false);
            unit.command(REMAP, false);
        }
        walls.state = Confinement::Silent;
        return;
    }
    all().for_each(|unit| unit.report(core));
}

/// Where this core sees the registers of a unit.
#[derive(Clone, Copy)]
struct Registers(u64);

impl Registers {
    /// Returns what can be said of the unit; `None` if it lacks something.
    fn examine(self, named: u64) -> Option<Unit> {
        let Registers(registers) = self;
        let (basic, more) = (get(registers + CAPABILITIES), get(registers + MORE_CAPABILITIES));
        // There must be more than 64 domains. Writes must not need to be flushed. Commands are
        // queued, and faults must lie where they can be seen.
        let fits = basic & 7 > 1 && basic >> 4 & 1 == 0 && more >> 1 & 1 == 1;
        let (three, four) = (basic >> 9 & 1 == 1, basic >> 10 & 1 == 1);
        let (at, count) = iommu::records(basic);
        let reaches = at + count * iommu::RECORD <= REGISTERS;
        let unit = Unit { named, four: !three, remaps: more >> 3 & 1 == 1 };
        (fits && (three || four) && reaches).then_some(unit)
    }

    fn read(self, register: u64) -> u32 {
        cpu::read(self.0 + register)
    }

    fn write(self, register: u64, value: u32) {
        cpu::write(self.0 + register, value);
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
        Registers::wait(|| (self.read(STATUS) & bit != 0) == on)
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
        put(self.0 + ROOT, root);
        self.command(SET_ROOT, true)?;
        put(self.0 + QUEUE_TAIL, 0);
        put(self.0 + QUEUE, queue);
        self.command(QUEUED, true)?;
        if interrupts != 0 {
            // 256 entries.
            put(self.0 + INTERRUPTS, interrupts | 7);
            self.command(SET_INTERRUPTS, true)?;
        }
        self.forget(queue, interrupts != 0)?;
        self.command(TRANSLATE, true)?;
        if interrupts != 0 {
            self.command(REMAP, true)?;
        }
        const FIRMWARE: u32 = 1 << 31;
        if get(self.0 + CAPABILITIES) >> 5 & 3 != 0 && self.read(PROTECTED) & FIRMWARE != 0 {
            self.write(PROTECTED, 0);
            Registers::wait(|| self.read(PROTECTED) & 1 == 0)?;
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
        put(self.0 + QUEUE_TAIL, 4 * 16);
        Registers::wait(|| get(answer) == 1)
    }

    /// Has the unit interrupt the core when it stops something.
    fn report(self, core: u32) {
        self.write(FAULT_CONTROL, 1 << 31);
        let (at, count) = iommu::records(get(self.0 + CAPABILITIES));
        for record in 0..count {
            iommu::settle(self.0 + at + record * iommu::RECORD);
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

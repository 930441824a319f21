//! PCI: finding a described function among those that firmware has numbered, and opening it.
//!
//! The module [`diapason_abi::pci`] reads what a function's registers say: hosts can test it.

use super::acpi::Acpi;
use super::calibrate::wait_ticks;
use super::spaces::{self, REACH};
use crate::cpu;
use crate::paging::LARGE_PAGE;
use crate::pci::{self, PORTS};
use core::ops::Range;
use diapason_abi::PAGE;
use diapason_abi::archive::{Absence, NONE, PciFunction};
use diapason_abi::pci::{
    BUS_MASTER, CLASS, COMMAND, ENTRY, FunctionConfiguration, HEADER, IDENTITY, MASK, MEMORY, MSI,
    MessageKind, MessageTable,
};

const BUSES: usize = 0x18;
/// A function that is not there.
const NOBODY: u32 = u32::MAX;
/// Where a message is sent to, so that it interrupts.
const INTERRUPTS: u32 = 0xfee0_0000;
/// The class of bridges.
const BRIDGE: u32 = 0x06;

/// A function's configuration: the address of its first register, as [`crate::pci`] has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Function(u64);

/// Registers and messages of a function that can be used.
pub struct Opened {
    /// The address of the function's registers.
    pub registers: u64,
    /// Pages of them that no program sees, because its messages are there.
    pub hidden: Range<u64>,
    pub sender: Signalling,
}

/// The way in which a function sends the messages that are described.
#[derive(Clone, Copy)]
pub enum Signalling {
    Silent,
    /// The function's table is at this address: each message has a vector and a mask of its own.
    Table(u64),
    /// By MSI: consecutive vectors, as many as this power of two, and no masks. The capability is
    /// at this offset.
    Bare {
        function: Function,
        capability: usize,
        log: u32,
    },
}

/// Visits every function until `visit` says so; returns where it stopped. A PC may have several
/// roots, and the buses behind each are numbered from any number on, so all are looked at.
#[inline(never)]
fn walk(acpi: &Acpi, visit: &mut dyn FnMut(Function) -> bool) -> Option<Function> {
    let (first, end) = (u64::from(acpi.buses.0), u64::from(acpi.buses.1));
    let size = (end + 1) << 20;
    if acpi.pci != PORTS {
        if acpi.pci.checked_add(size)? > REACH {
            return None;
        }
        spaces::uncache(acpi.pci, size);
    }
    for device in first << 5..(end + 1) << 5 {
        let of_device = Function::at(acpi.pci, device << 3);
        for number in 0..of_device.functions() {
            let function = Function::at(acpi.pci, device << 3 | number);
            if function.read(IDENTITY) != NOBODY && visit(function) {
                return Some(function);
            }
        }
    }
    None
}

/// The function that `wanted` describes.
pub fn find(acpi: &Acpi, wanted: &PciFunction) -> Option<Function> {
    let mut before = wanted.instance;
    walk(acpi, &mut |function| {
        let (is_it, left) = (function.is(wanted), before.checked_sub(1));
        before = if is_it { left.unwrap_or(0) } else { before };
        is_it && left.is_none()
    })
}

/// Forbids every function but bridges to access memory: firmware may have left one receiving
/// frames, or polling a keyboard, into memory that is about to be used.
pub fn quieten(acpi: &Acpi) {
    walk(acpi, &mut |function| {
        if function.read(CLASS) >> 24 != BRIDGE {
            function.write(COMMAND, function.read(COMMAND) & 0xffff & !BUS_MASTER);
        }
        false
    });
}

/// Returns whether functions on `bus` ask for memory in the name of a bridge above them: such a
/// bridge leads from PCI Express to buses of an older kind.
pub fn is_hidden(acpi: &Acpi, bus: u64) -> bool {
    let hides = |function: Function| {
        let (first, last) = function.buses_behind();
        first > 0 && (first..=last).contains(&bus) && !function.passes_names_on()
    };
    walk(acpi, &mut |function| hides(function)).is_some()
}

/// Returns where a message is sent to that interrupts this core, without a table of interrupts.
pub fn message_address(core: u32) -> u32 {
    INTERRUPTS | core << 12
}

/// Returns where a message is sent to that names an entry of the table of interrupts.
fn named(entry: u32) -> u32 {
    const NAMED: u32 = 1 << 4;
    INTERRUPTS | entry << 5 | NAMED
}

/// Has the message whose mask is there name an entry of the table of interrupts.
pub fn name_message(mask: *mut u32, entry: u32) {
    let message = mask as u64 - MASK;
    put(message, named(entry));
    put(message + 8, 0);
}

impl FunctionConfiguration for Function {
    #[inline(never)]
    fn read(&self, register: usize) -> u32 {
        pci::read(self.0 + register as u64)
    }

    #[inline(never)]
    fn write(&self, register: usize, value: u32) {
        pci::write(self.0 + register as u64, value);
    }
}

impl Function {
    /// Returns the function at this place (bus, device and function) of the configuration memory.
    pub fn at(base: u64, place: u64) -> Function {
        Function(base + (place << 12))
    }

    /// Returns the function whose command register this is.
    pub fn of(command: *mut u16) -> Function {
        Function(command as u64 - COMMAND as u64)
    }

    /// Returns its bus, device and function.
    pub fn place(self, acpi: &Acpi) -> u64 {
        (self.0 - acpi.pci) >> 12
    }

    /// Returns the first and the last bus behind it; (0, 0) if it is no bridge.
    pub fn buses_behind(self) -> (u64, u64) {
        let is_bridge = self.read(HEADER) >> 16 & 0x7f == 1;
        let buses = if is_bridge { u64::from(self.read(BUSES)) } else { 0 };
        (buses >> 8 & 0xff, buses >> 16 & 0xff)
    }

    /// Returns whether it is a bridge of PCI Express: whoever asks through it is named.
    fn passes_names_on(self) -> bool {
        const EXPRESS: u32 = 0x10;
        let kind = self.capability(EXPRESS).map(|at| self.read(at) >> 20 & 0xf);
        // Root port, upstream and downstream port of a switch.
        matches!(kind, Some(4..=6))
    }

    /// Has its messages without a table name entries of the table of interrupts, from `first` on.
    pub fn name_bare(self, first: u32) {
        const COUNTED: u32 = 1 << 3;
        if let Some(capability) = self.capability(MSI) {
            self.address_bare(capability, named(first) | COUNTED, 0);
        }
    }

    /// Returns where its command register is.
    pub fn command(self) -> *mut u16 {
        (self.0 + COMMAND as u64) as *mut u16
    }

    /// Bus, device and function, vendor, and the vendor's number.
    pub fn identity(self, acpi: &Acpi) -> [u64; 3] {
        let word = u64::from(self.read(IDENTITY));
        [self.place(acpi), word & 0xffff, word >> 16]
    }

    /// Returns how many functions a device may have whose first one this is. Only that one says
    /// whether there are more.
    fn functions(self) -> u64 {
        const SEVERAL: u32 = 1 << 23;
        match self.read(IDENTITY) {
            NOBODY => 0,
            _ if self.read(HEADER) & SEVERAL != 0 => 8,
            _ => 1,
        }
    }

    fn is(self, wanted: &PciFunction) -> bool {
        let identity = self.read(IDENTITY);
        let same = |found: u32, wanted: u16| wanted == NONE || found as u16 == wanted;
        self.read(CLASS) >> 8 == wanted.class
            && same(identity, wanted.vendor)
            && same(identity >> 16, wanted.product)
    }

    /// Its registers and messages, if there are as many as described. The function decodes memory
    /// from now on, sends no interrupts, and does not access memory by itself.
    pub fn open(self, bar: u8, pages: u32, messages: u64) -> Result<Opened, Absence> {
        if !self.wake(&mut rest) {
            return Err(Absence::Asleep);
        }
        let found = self.describe(bar, u64::from(pages) * PAGE as u64, messages)?;
        let sender = match found.messages {
            MessageKind::None => Signalling::Silent,
            MessageKind::Table(table, behind) => {
                Signalling::Table(self.begin_messages(&table, behind)?)
            }
            MessageKind::Bare { capability, log } => {
                Signalling::Bare { function: self, capability, log }
            }
        };
        self.write(COMMAND, self.read(COMMAND) & 0xffff | MEMORY);
        Ok(Opened { registers: found.registers, hidden: found.hidden, sender })
    }

    /// Lets it send messages, each held back by its own entry; where the table is.
    fn begin_messages(self, found: &MessageTable, registers: u64) -> Result<u64, Absence> {
        let (mut table, length) = (registers + found.offset, found.entries * ENTRY);
        if table + length > REACH {
            table = spaces::alias(table, length).ok_or(Absence::Far)?;
        } else {
            spaces::uncache(table & !(LARGE_PAGE - 1), length + LARGE_PAGE);
        }
        self.write(COMMAND, self.read(COMMAND) & 0xffff | MEMORY);
        for entry in 0..found.entries {
            put(table + entry * ENTRY + MASK, 1);
        }
        self.begin_table(found);
        Ok(table)
    }
}

/// Waits 10 ms at least, on a processor of 10 GHz: so long does a function take to wake.
fn rest() {
    wait_ticks(100_000_000);
}

/// Message `number` of a table: address, data, and held back. Returns where it is masked.
pub fn set_message(table: u64, number: u16, core: u32, vector: u32) -> *mut u32 {
    let entry = table + u64::from(number) * ENTRY;
    for (word, value) in [(0, message_address(core)), (4, 0), (8, vector), (MASK, 1)] {
        put(entry + word, value);
    }
    (entry + MASK) as *mut u32
}

/// Writes a word of a table of messages. The function does nothing yet.
#[inline(never)]
fn put(address: u64, value: u32) {
    cpu::write(address, value);
}

//! The machine's USB controller (xHCI), as far as trials need it: commands that do nothing go
//! through a ring in memory that the controller reads by itself, and its answers come through
//! another.

use diapason_rt::memory::{DmaSegment, Registers};
use diapason_rt::{Errno, Nanos, time};

/// The controller's name in the descriptions.
pub const DEVICE: &str = "xhci";
pub const RINGS: &str = "rings";

const VERSION: usize = 0x00;
const DOORBELLS: usize = 0x14;
const RUNTIME: usize = 0x18;

const COMMAND: usize = 0x00;
const STATUS: usize = 0x04;
const COMMAND_RING: usize = 0x18;
const CONTEXTS: usize = 0x30;
const RUN: u32 = 1;
/// The bit of the command register that reports when the count of frames wraps, every 2.048 s.
pub const SAY_WRAPS: u32 = 1 << 10;
const RESET: u32 = 1 << 1;
/// The bit of the command register that allows interrupts.
pub const INTERRUPTS: u32 = 1 << 2;
const HALTED: u32 = 1;
const NOT_READY: u32 = 1 << 11;

/// Registers of interrupter 0; those of the next lie 32 bytes further.
const INTERRUPTER: usize = 0x20;
const MANAGEMENT: usize = 0x00;
const MODERATION: usize = 0x04;
const TABLE_SIZE: usize = 0x08;
const TABLE: usize = 0x10;
const DEQUEUE: usize = 0x18;
const ENABLE_AND_CLEAR: u32 = 3;
const BUSY: u64 = 1 << 3;

/// Where things are in the memory for devices. Of each interrupter, a table with one line and its
/// ring of events.
const COMMANDS: usize = 0x1000;
const EVENT_TABLES: usize = 0x2000;
/// Where the events of interrupter 0 are; those of the next lie a page further.
pub const EVENTS: usize = 0x3000;
/// Entries of each ring.
pub const ENTRIES: usize = 16;
/// Bytes of an entry.
pub const ENTRY: usize = 16;

/// Kinds of entries, in bits 10 to 15 of the last word; the lowest says whose turn it is.
const LINK: u32 = 6 << 10;
const TOGGLE: u32 = 1 << 1;
const NO_OP: u32 = 23 << 10;

/// The controller and where its parts are.
pub struct XhciParts {
    operational: Registers,
    runtime: Registers,
    doorbells: Registers,
    pub rings: DmaSegment,
    /// The cycle bit of the ring of commands, and the next place in it.
    turn: u32,
    next: usize,
}

fn part(all: Registers, offset: u32, bytes: usize) -> Result<Registers, Errno> {
    all.part(offset as usize, bytes).ok_or(Errno::Absent)
}

impl XhciParts {
    /// Resets, with both interrupters' rings of events and the ring of commands, and running.
    ///
    /// # Errors
    /// `Absent` if there is none, or its parts lie beyond its registers; `TimedOut` if it does not
    /// answer.
    pub fn start(flags: u32) -> Result<XhciParts, Errno> {
        let all = Registers::map(DEVICE)?;
        let mut controller = XhciParts {
            operational: part(all, all.read32(VERSION) & 0xff, 0x400)?,
            runtime: part(all, all.read32(RUNTIME) & !31, 0x60)?,
            doorbells: part(all, all.read32(DOORBELLS) & !3, 4)?,
            rings: DmaSegment::attach(RINGS)?,
            turn: 1,
            next: 0,
        };
        controller.reset()?;
        controller.set_up(flags);
        Ok(controller)
    }

    fn reset(&self) -> Result<(), Errno> {
        self.operational.write32(COMMAND, 0);
        self.until(|| self.operational.read32(STATUS) & HALTED != 0)?;
        self.operational.write32(COMMAND, RESET);
        self.until(|| self.operational.read32(COMMAND) & RESET == 0)?;
        self.until(|| self.operational.read32(STATUS) & NOT_READY == 0)
    }

    fn until(&self, done: impl Fn() -> bool) -> Result<(), Errno> {
        // Ten milliseconds: real controllers need one.
        for _ in 0..1_000 {
            if done() {
                return Ok(());
            }
            time::sleep(Nanos::from_micros(10));
        }
        Err(Errno::TimedOut)
    }

    fn set_up(&mut self, flags: u32) {
        let ring = self.rings.bus_address(COMMANDS);
        let link = COMMANDS + (ENTRIES - 1) * ENTRY;
        self.rings.write32(link, ring as u32);
        self.rings.write32(link + 12, LINK | TOGGLE);
        self.operational.write64(CONTEXTS, self.rings.bus_address(0));
        self.operational.write64(COMMAND_RING, ring | 1);
        for which in 0..2 {
            let (table, events) = (EVENT_TABLES + which * 0x40, EVENTS + which * 0x1000);
            self.rings.write32(table, self.rings.bus_address(events) as u32);
            self.rings.write32(table + 8, ENTRIES as u32);
            let at = INTERRUPTER + which * 0x20;
            self.runtime.write32(at + MODERATION, 0);
            self.runtime.write32(at + TABLE_SIZE, 1);
            self.runtime.write64(at + DEQUEUE, self.rings.bus_address(events));
            self.runtime.write64(at + TABLE, self.rings.bus_address(table));
            self.runtime.write32(at + MANAGEMENT, ENABLE_AND_CLEAR);
        }
        self.operational.write32(COMMAND, RUN | flags);
    }

    /// Puts a command that does nothing into the ring and says so; returns where it is.
    pub fn no_op(&mut self) -> u64 {
        let at = COMMANDS + self.next * ENTRY;
        self.rings.write32(at + 12, NO_OP | self.turn);
        self.doorbells.write32(0, 0);
        self.next += 1;
        if self.next == ENTRIES - 1 {
            let link = COMMANDS + self.next * ENTRY;
            self.rings.write32(link + 12, LINK | TOGGLE | self.turn);
            (self.next, self.turn) = (0, self.turn ^ 1);
        }
        self.rings.bus_address(at)
    }

    /// Events of an interrupter have been read up to this place.
    pub fn seen(&self, which: usize, up_to: usize) {
        let at = INTERRUPTER + which * 0x20;
        self.runtime.write32(at + MANAGEMENT, ENABLE_AND_CLEAR);
        self.runtime.write64(at + DEQUEUE, self.rings.bus_address(up_to) | BUSY);
    }
}

impl Drop for XhciParts {
    fn drop(&mut self) {
        // It forgets the rings, whose memory goes with this value.
        let _ = self.reset();
    }
}

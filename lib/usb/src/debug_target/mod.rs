//! This computer as a device of another: the xHCI debug capability, a super-speed bulk pair on a
//! root port, driven by software that polls. The controller itself need not run.
//!
//! Directions are the target's: what goes out here, the other computer reads.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | the capability: found, switched on, polled |
//! | `rings.rs` | blocks of both rings, and what became of them |
//! | `layout.rs` | what is where in the memory shared with the controller |
//!
//! Queued data stays queued when the other computer goes away, and transfers resume when it is
//! back.

mod layout;
mod rings;

pub use layout::{BYTES, TargetIdentity};
pub use rings::ROOM;

use crate::register::{capability, extended, port};
use crate::trb::{BYTES as BLOCK, Completion, Kind, Trb};
use crate::xhci::{Buffer, Dma, Mmio};
use layout::EVENTS;
use rings::Ring;

/// The direction of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkDirection {
    /// To the other computer.
    Out,
    In,
}

/// An event of the debug target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetEvent {
    /// The other computer has chosen the configuration: messages go both ways.
    Configured,
    /// The host is gone, or restarts.
    Left,
    /// A message moved, or was lost on the way.
    Done {
        way: LinkDirection,
        /// As it was queued.
        cookie: u64,
        /// Bytes that moved; `None` if it was lost.
        moved: Option<u32>,
    },
}

/// There is no debug capability, or its registers cannot be where it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absent;

/// Registers of the capability, from its first word.
mod register {
    pub const DOORBELL: u64 = 0x04;
    pub const TABLE_SIZE: u64 = 0x08;
    pub const TABLE: u64 = 0x10;
    pub const DEQUEUE: u64 = 0x18;
    pub const CONTROL: u64 = 0x20;
    pub const PORT: u64 = 0x28;
    pub const CONTEXT: u64 = 0x30;
    pub const IDENTITY: u64 = 0x38;
    pub const END: u64 = 0x40;
}

mod control {
    pub const RUNS: u32 = 1;
    pub const HALT_OUT: u32 = 1 << 2;
    pub const HALT_IN: u32 = 1 << 3;
    pub const RUN_CHANGE: u32 = 1 << 4;
    pub const BURST_SHIFT: u32 = 16;
    pub const ENABLE: u32 = 1 << 31;
}

/// Most extended capabilities that are looked at.
const WALK: usize = 50;
/// The value that every register of a removed controller reads as.
const GONE: u32 = u32::MAX;

/// The driver of a debug capability.
#[derive(Debug)]
pub struct DebugTarget<M, D> {
    mmio: M,
    dma: D,
    base: u64,
    identity: TargetIdentity,
    on: bool,
    runs: bool,
    /// The next event: its index, and the cycle bit that makes it ours.
    event: (u16, bool),
    rings: [Ring; 2],
}

impl<M: Mmio, D: Dma> DebugTarget<M, D> {
    /// Finds the capability; [`DebugTarget::poll`] does the rest. `dma` has [`BYTES`] at least.
    ///
    /// # Errors
    /// There is none, or no memory.
    pub fn new(mut mmio: M, dma: D, identity: TargetIdentity) -> Result<DebugTarget<M, D>, Absent> {
        let base = find(&mut mmio).filter(|_| dma.length() >= BYTES).ok_or(Absent)?;
        let (rings, event) =
            ([Ring::new(LinkDirection::Out), Ring::new(LinkDirection::In)], (0, true));
        let (on, runs) = (false, false);
        Ok(DebugTarget { mmio, dma, base, identity, on, runs, event, rings })
    }

    fn read(&mut self, register: u64) -> u32 {
        self.mmio.read32(self.base + register)
    }

    fn write(&mut self, register: u64, value: u32) {
        self.mmio.write32(self.base + register, value);
    }

    /// The low word first.
    fn write_64(&mut self, register: u64, value: u64) {
        self.write(register, value as u32);
        self.write(register + 4, (value >> 32) as u32);
    }

    /// Returns whether the other computer is there.
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        self.runs
    }

    /// Returns whether it was switched on when it was last looked at.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Queues a message, or memory for one; false if the ring is full or one block cannot describe
    /// the memory. The next poll tells the controller.
    pub fn submit(&mut self, way: LinkDirection, buffer: Buffer, cookie: u64) -> bool {
        self.rings[way as usize].push(&mut self.dma, buffer, cookie)
    }

    /// Does whatever is due. To be called again and again: nothing interrupts.
    pub fn poll(&mut self, tell: &mut dyn FnMut(TargetEvent)) {
        let control = self.read(register::CONTROL);
        if control == GONE {
            return;
        }
        if !self.on || control & control::ENABLE == 0 {
            return self.begin(control, tell);
        }
        let halts = if self.take_events(tell) { self.read(register::CONTROL) } else { control };
        if control & control::RUN_CHANGE != 0 {
            self.write(register::CONTROL, control::ENABLE | control::RUN_CHANGE);
            // The host left, and may have come back since the last look.
            self.note_run(false, tell);
        }
        self.note_run(control & control::RUNS != 0, tell);
        for (number, bit) in [control::HALT_OUT, control::HALT_IN].into_iter().enumerate() {
            let halted = halts & bit != 0;
            self.rings[number].bell |= halted;
            if self.runs && !halted && core::mem::take(&mut self.rings[number].bell) {
                self.write(register::DOORBELL, (number as u32) << 8);
            }
        }
    }

    fn note_run(&mut self, runs: bool, tell: &mut dyn FnMut(TargetEvent)) {
        if core::mem::replace(&mut self.runs, runs) == runs {
            return;
        }
        tell(if runs { TargetEvent::Configured } else { TargetEvent::Left });
        // Rings are not looked at before their doorbells ring again.
        for ring in &mut self.rings {
            ring.bell = !ring.is_empty();
        }
    }

    /// Switches it on, after it was seen to be off: queued transfers are queued again.
    fn begin(&mut self, control: u32, tell: &mut dyn FnMut(TargetEvent)) {
        self.note_run(false, tell);
        self.on = control & control::ENABLE == 0;
        if !self.on {
            // Somebody used it before.
            return self.write(register::CONTROL, 0);
        }
        let burst = control >> control::BURST_SHIFT & 0xff;
        layout::lay_out(&mut self.dma, &self.identity, burst);
        for ring in &mut self.rings {
            ring.lay_out(&mut self.dma);
        }
        self.event = (0, true);
        let base = self.dma.base();
        self.write(register::TABLE_SIZE, 1);
        self.write_64(register::TABLE, base + layout::TABLE);
        self.write_64(register::DEQUEUE, base + layout::EVENTS_AT);
        self.write_64(register::CONTEXT, base + layout::CONTEXT);
        let [first, second] = self.identity.words();
        self.write(register::IDENTITY, first);
        self.write(register::IDENTITY + 4, second);
        self.write(register::CONTROL, control::ENABLE);
    }

    /// Returns whether a ring halted. It may have been cleared since.
    fn take_events(&mut self, tell: &mut dyn FnMut(TargetEvent)) -> bool {
        let (before, mut halted) = (self.event, false);
        while let Some(event) = self.next_event() {
            match event.kind() {
                Some(Kind::TransferEvent) => halted |= self.ended(event, tell),
                Some(Kind::PortStatusChange) => self.note_port(),
                _ => {}
            }
        }
        if self.event != before {
            let at = layout::EVENTS_AT + u64::from(self.event.0) * BLOCK as u64;
            self.write_64(register::DEQUEUE, self.dma.base() + at);
        }
        halted
    }

    fn next_event(&mut self) -> Option<Trb> {
        let (index, cycle) = self.event;
        let at = layout::EVENTS_AT + u64::from(index) * BLOCK as u64;
        let event = self.dma.load_block(at, cycle)?;
        self.event = if index + 1 == EVENTS { (0, !cycle) } else { (index + 1, cycle) };
        Some(event)
    }

    /// Takes note of changes; the port stays as it is.
    fn note_port(&mut self) {
        let status = self.read(register::PORT);
        self.write(register::PORT, status & (port::CHANGES | port::ENABLED));
    }

    /// Tells the end of a block, and returns whether its ring halted instead. The ring is known by
    /// the address: how parts number it differs.
    fn ended(&mut self, event: Trb, tell: &mut dyn FnMut(TargetEvent)) -> bool {
        let offset = event.parameter.wrapping_sub(self.dma.base());
        let Some(ring) = self.rings.iter_mut().find(|ring| ring.has(offset)) else { return false };
        match event.completion() {
            Some(Completion::Success) => ring.end(offset, Some(0), tell),
            Some(Completion::ShortPacket) => ring.end(offset, Some(event.residual()), tell),
            Some(Completion::Transaction) => ring.end(offset, None, tell),
            _ => {
                // The block stays, and is looked at again when the other side clears the halt.
                ring.bell = true;
                return true;
            }
        }
        false
    }
}

/// Returns where the capability is.
fn find<M: Mmio>(mmio: &mut M) -> Option<u64> {
    let mut at = u64::from(mmio.read32(capability::CAPABILITIES_1) >> 16) * 4;
    for _ in 0..WALK {
        if at == 0 || at + register::END > mmio.length() {
            return None;
        }
        let head = mmio.read32(at);
        if head == GONE {
            return None;
        }
        if head as u8 == extended::DEBUG {
            return Some(at);
        }
        let next = u64::from(head >> 8 & 0xff) * 4;
        if next == 0 {
            return None;
        }
        at += next;
    }
    None
}

//! The driver's view of a machine: registers, and memory that both sides see.

use super::limits::Window;
use crate::register::{capability, interrupter, operational, runtime};
use crate::trb::{Trb, bit};

/// Access to the controller's registers.
///
/// A `write32` takes effect after every [`Dma::store`] and [`Dma::write`] that came before it.
pub trait Mmio {
    /// Bytes of the BAR; the driver stays below.
    fn length(&self) -> u64;
    /// Reads the word at `offset` of the controller's first BAR.
    fn read32(&mut self, offset: u64) -> u32;
    fn write32(&mut self, offset: u64, value: u32);
}

/// A window of memory that driver and controller share, contiguous for both.
///
/// **Ordering.** A [`Dma::load`] comes before everything that follows it (acquire), a
/// [`Dma::store`] after everything before it (release). So who reads the word with the cycle bit
/// first and the others after it never sees half a block, and a driver that stores it last never
/// shows one. Offsets are multiples of four for words. The driver stays below [`Dma::length`].
pub trait Dma {
    /// Returns the bus address of offset 0, a multiple of 4096.
    fn base(&self) -> u64;
    fn length(&self) -> u64;
    /// Reads a word, acquiring.
    fn load(&self, offset: u64) -> u32;
    /// Writes a word, releasing.
    fn store(&mut self, offset: u64, value: u32);
    /// Reads two words, the second one first: it acquires.
    fn load_64(&self, offset: u64) -> u64 {
        let high = self.load(offset + 4);
        u64::from(high) << 32 | u64::from(self.load(offset))
    }
    /// Writes two words, the second one last: it releases.
    fn store_64(&mut self, offset: u64, value: u64) {
        self.store(offset, value as u32);
        self.store(offset + 4, (value >> 32) as u32);
    }
    /// Writes a block, the word with the cycle bit last.
    fn store_block(&mut self, offset: u64, block: Trb) {
        self.store_64(offset, block.parameter);
        self.store_64(offset + 8, u64::from(block.control) << 32 | u64::from(block.status));
    }
    /// Returns the block at `offset` if its cycle bit says that it is the reader's.
    fn load_block(&self, offset: u64, cycle: bool) -> Option<Trb> {
        let last = self.load_64(offset + 8);
        let (status, control) = (last as u32, (last >> 32) as u32);
        if (control & bit::CYCLE != 0) != cycle {
            return None;
        }
        Some(Trb { parameter: self.load_64(offset), status, control })
    }
    /// Reads bytes in no particular order.
    fn read(&self, offset: u64, bytes: &mut [u8]);
    /// Writes bytes in no particular order.
    fn write(&mut self, offset: u64, bytes: &[u8]);
}

/// A piece of a client's memory, for the controller to read or write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Buffer {
    pub address: u64,
    pub length: u32,
}

/// The value that every register of a removed controller reads as.
pub(super) const GONE: u32 = u32::MAX;

/// Registers by region, and blocks in memory.
#[derive(Debug)]
pub(super) struct Hardware<M, D> {
    pub mmio: M,
    pub dma: D,
    pub regions: Regions,
}

/// The offset at which each kind of registers begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Regions {
    operational: u64,
    runtime: u64,
    doorbells: u64,
}

impl<M: Mmio, D: Dma> Hardware<M, D> {
    /// Returns the hardware before its regions are known.
    pub fn new(mmio: M, dma: D) -> Hardware<M, D> {
        Hardware { mmio, dma, regions: Regions::default() }
    }

    /// Learns where the regions are, and returns whether registers can be there.
    pub fn locate(&mut self) -> bool {
        let parameters = self.mmio.read32(capability::PARAMETERS_1);
        let (interrupters, ports) = (parameters >> 8 & 0x7ff, parameters >> 24);
        self.regions = Regions {
            operational: u64::from(self.mmio.read32(capability::LENGTH) & 0xff),
            doorbells: u64::from(self.mmio.read32(capability::DOORBELLS) & !3),
            runtime: u64::from(self.mmio.read32(capability::RUNTIME) & !0x1f),
        };
        let Regions { operational: first, doorbells, .. } = self.regions;
        let ends = [
            first + operational::PORTS + u64::from(ports) * operational::PORT_STRIDE,
            self.interrupter(interrupters as u16),
            doorbells + 4 * 256,
        ];
        let inside = ends.iter().all(|end| *end <= self.mmio.length());
        inside && first >= 0x20 && first.is_multiple_of(4)
    }

    /// Reads an operational register.
    pub fn operational(&mut self, register: u64) -> u32 {
        self.mmio.read32(self.regions.operational + register)
    }

    /// Writes an operational register.
    pub fn set_operational(&mut self, register: u64, value: u32) {
        self.mmio.write32(self.regions.operational + register, value);
    }

    /// Writes an operational register of 64 bits.
    pub fn set_operational_64(&mut self, register: u64, value: u64) {
        write64(&mut self.mmio, self.regions.operational + register, value);
    }

    /// Returns the first word of a port, counted from 1.
    pub fn port(&mut self, port: u8) -> u32 {
        self.operational(port_register(port))
    }

    /// Writes the status register of a port.
    pub fn set_port(&mut self, port: u8, value: u32) {
        self.set_operational(port_register(port), value);
    }

    /// Returns the index of the current microframe.
    pub fn microframe(&mut self) -> u32 {
        self.mmio.read32(self.regions.runtime + runtime::MICROFRAME) & 0x3fff
    }

    /// Writes a register of an interrupter.
    pub fn set_interrupter(&mut self, index: u16, register: u64, value: u32) {
        let at = self.interrupter(index) + register;
        self.mmio.write32(at, value);
    }

    /// Sets where an interrupter's consumer stands; `done` lets it interrupt again.
    pub fn set_event_dequeue(&mut self, index: u16, address: u64, done: bool) {
        let busy = if done { u64::from(interrupter::BUSY) } else { 0 };
        self.set_interrupter_64(index, interrupter::DEQUEUE, address | busy);
    }

    /// Writes a register of an interrupter of 64 bits.
    pub fn set_interrupter_64(&mut self, index: u16, register: u64, value: u64) {
        let at = self.interrupter(index) + register;
        write64(&mut self.mmio, at, value);
    }

    fn interrupter(&self, index: u16) -> u64 {
        self.regions.runtime
            + runtime::INTERRUPTERS
            + u64::from(index) * runtime::INTERRUPTER_STRIDE
    }

    /// Slot 0 is the command ring.
    pub fn ring_doorbell(&mut self, slot: u8, target: u8) {
        self.mmio.write32(self.regions.doorbells + 4 * u64::from(slot), u32::from(target));
    }

    /// Clears `bytes` of the shared memory.
    pub fn zero(&mut self, offset: u64, bytes: u64) {
        for word in (offset..offset + bytes).step_by(4) {
            self.dma.store(word, 0);
        }
    }

    /// Returns the address of this place for the controller.
    pub fn address(&self, offset: u64) -> u64 {
        self.dma.base() + offset
    }

    /// Returns all of the window.
    pub fn window(&self) -> Window {
        Window { base: self.dma.base(), length: self.dma.length() }
    }
}

fn port_register(port: u8) -> u64 {
    operational::PORTS + (u64::from(port).saturating_sub(1)) * operational::PORT_STRIDE
}

/// The low word first: controllers act on the high one.
fn write64<M: Mmio>(mmio: &mut M, offset: u64, value: u64) {
    mmio.write32(offset, value as u32);
    mmio.write32(offset + 4, (value >> 32) as u32);
}

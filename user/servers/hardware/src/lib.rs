//! The drivers' two traits on what the kernel grants: registers, and memory devices see, too.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::sync::Arc;
use diapason_rt::memory::{DmaSegment, Registers};
use diapason_usb::xhci;

/// Access to the controller's registers. Each lane of a driver has one, and writes other registers.
#[derive(Clone)]
pub struct Bar(pub Registers);

impl xhci::Mmio for Bar {
    fn length(&self) -> u64 {
        self.0.bytes() as u64
    }

    fn read32(&mut self, offset: u64) -> u32 {
        self.0.read32(offset as usize)
    }

    fn write32(&mut self, offset: u64, value: u32) {
        self.0.write32(offset as usize, value);
    }
}

/// Memory that is shared with it. On the processors served here, loads happen in program order, and
/// so do stores; the accesses of [`Dma`] keep the compiler from changing that. Each lane of a
/// driver has one, and uses its own places of the memory.
#[derive(Clone)]
pub struct Shared(Arc<DmaSegment>);

impl Shared {
    /// Takes memory that is attached. It stays so as long as a clone is there.
    #[must_use]
    pub fn new(memory: DmaSegment) -> Shared {
        Shared(Arc::new(memory))
    }
}

impl xhci::Dma for Shared {
    fn base(&self) -> u64 {
        self.0.bus_address(0)
    }

    fn length(&self) -> u64 {
        self.0.bytes() as u64
    }

    fn load(&self, offset: u64) -> u32 {
        self.0.read32(offset as usize)
    }

    fn store(&mut self, offset: u64, value: u32) {
        self.0.write32(offset as usize, value);
    }

    fn load_64(&self, offset: u64) -> u64 {
        self.0.read64(offset as usize)
    }

    fn store_64(&mut self, offset: u64, value: u64) {
        self.0.write64(offset as usize, value);
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        self.0.copy_out(offset as usize, bytes);
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.0.copy_in(offset as usize, bytes);
    }
}

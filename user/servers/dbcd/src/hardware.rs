//! The driver's two traits on what the kernel grants: registers, and memory devices see, too.

use diapason_rt::memory::{Dma, Registers};
use diapason_usb::xhci;

/// The controller's registers.
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
/// so do stores; the accesses of [`Dma`] keep the compiler from changing that.
pub struct Shared(pub Dma);

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

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        for (at, byte) in (offset as usize..).zip(bytes) {
            *byte = self.0.read8(at);
        }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (at, byte) in (offset as usize..).zip(bytes) {
            self.0.write8(at, *byte);
        }
    }
}

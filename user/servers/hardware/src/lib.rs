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

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        copy_out(&self.0, offset as usize, bytes);
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        copy_in(&self.0, offset as usize, bytes);
    }
}

/// Copies from memory for devices, word by word where there are whole ones.
pub fn copy_out(memory: &DmaSegment, offset: usize, bytes: &mut [u8]) {
    let whole = if offset.is_multiple_of(4) { bytes.len() & !3 } else { 0 };
    let (words, rest) = bytes.split_at_mut(whole);
    for (at, word) in (offset..).step_by(4).zip(words.as_chunks_mut().0) {
        *word = memory.read32(at).to_le_bytes();
    }
    for (at, byte) in (offset + whole..).zip(rest) {
        *byte = memory.read8(at);
    }
}

/// Copies bytes into the memory.
pub fn copy_in(memory: &DmaSegment, offset: usize, bytes: &[u8]) {
    for (at, byte) in (offset..).zip(bytes) {
        memory.write8(at, *byte);
    }
}

//! A card with a TouCAN behind its registers, and one message for all interrupts of it.
//!
//! The module has 16-bit registers and is big-endian. The card carries out an access of 32 bits as
//! two, the half with the lower address first, and one of 64 bits as two of 32.

use crate::function::{FunctionModel, Note};
use diapason_abi::Nanos;
use diapason_devices::toucan::TouCan;
use diapason_xhc::Memory;

/// The class of controllers for CAN.
pub const CLASS: u32 = 0x0c_0900;

/// A card with a TouCAN.
pub struct ToucanCard(TouCan);

impl ToucanCard {
    /// Returns a card with this module.
    #[must_use]
    pub const fn new(module: TouCan) -> ToucanCard {
        ToucanCard(module)
    }
}

impl FunctionModel for ToucanCard {
    fn read(&mut self, now: Nanos, offset: u64, bytes: u8) -> u64 {
        let at = offset as usize;
        let first = self.0.read_long(now, at);
        match bytes {
            8 => u64::from(first) | u64::from(self.0.read_long(now, at + 4)) << 32,
            _ => first.into(),
        }
    }

    fn write(&mut self, now: Nanos, offset: u64, bytes: u8, value: u64, _: &mut dyn Memory) {
        let at = offset as usize;
        self.0.write_long(now, at, value as u32);
        if bytes == 8 {
            self.0.write_long(now, at + 4, (value >> 32) as u32);
        }
    }

    fn next_change(&self) -> Nanos {
        self.0.next_change()
    }

    fn advance(&mut self, now: Nanos, _: &mut dyn Memory) {
        self.0.advance(now);
    }

    fn take_interrupts(&mut self, _: Nanos) -> Vec<u16> {
        if self.0.take_interrupt() { vec![0] } else { Vec::new() }
    }

    fn take_notes(&mut self) -> Vec<Note> {
        self.0.take_notes().into_iter().map(Note::Other).collect()
    }

    fn power_cycle(&mut self, now: Nanos) {
        self.0.reset(now);
    }
}

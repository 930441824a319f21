//! A card with a TouCAN behind its registers, and one message for all interrupts of it.
//!
//! The module has 16-bit registers and is big-endian. The card carries out an access of 32 bits as
//! two, the half with the lower address first, and one of 64 bits as two of 32.
//!
//! Faults of the card happen here: its interrupts get lost, come late or twice, and the module
//! loses its set-up. The bus has its own faults.

use crate::faults::{ControllerMishap, Plan};
use crate::function::{FunctionModel, Note};
use diapason_abi::Nanos;
use diapason_devices::toucan::TouCan;
use diapason_xhc::Memory;
use std::collections::VecDeque;

/// The class of controllers for CAN.
pub const CLASS: u32 = 0x0c_0900;

/// A card with a TouCAN.
pub struct ToucanCard {
    module: TouCan,
    mishaps: Plan<ControllerMishap>,
    /// Mishaps of the next interrupts.
    disturbed: VecDeque<ControllerMishap>,
    /// Times at which raised interrupts arrive.
    coming: Vec<Nanos>,
    notes: Vec<Note>,
}

impl ToucanCard {
    /// Returns a card with this module.
    #[must_use]
    pub fn new(module: TouCan) -> ToucanCard {
        let (disturbed, coming, notes) = (VecDeque::new(), Vec::new(), Vec::new());
        ToucanCard { module, mishaps: Plan::new(Vec::new()), disturbed, coming, notes }
    }

    /// This will go wrong; `words` are what is said then. Mishaps of USB change nothing.
    pub fn suffer(&mut self, at: Nanos, mishap: ControllerMishap, words: String) {
        self.mishaps.add((at, mishap, words));
    }

    fn happen(&mut self, now: Nanos) {
        while let Some((mishap, words)) = self.mishaps.take(now) {
            self.notes.push(Note::Fault(words));
            match mishap {
                ControllerMishap::LoseInterrupt
                | ControllerMishap::DelayInterrupt(_)
                | ControllerMishap::RepeatInterrupt(_) => self.disturbed.push_back(mishap),
                ControllerMishap::ControllerError => self.module.reset(now),
                _ => {}
            }
        }
    }

    fn gather(&mut self, now: Nanos) {
        if !self.module.take_interrupt() {
            return;
        }
        match self.disturbed.pop_front() {
            None => self.coming.push(now),
            Some(ControllerMishap::DelayInterrupt(by)) => self.coming.push(now + by),
            Some(ControllerMishap::RepeatInterrupt(after)) => {
                self.coming.extend([now, now + after]);
            }
            Some(_) => {}
        }
    }
}

impl FunctionModel for ToucanCard {
    fn read(&mut self, now: Nanos, offset: u64, bytes: u8) -> u64 {
        let at = offset as usize;
        let first = self.module.read_long(now, at);
        match bytes {
            8 => u64::from(first) | u64::from(self.module.read_long(now, at + 4)) << 32,
            _ => first.into(),
        }
    }

    fn write(&mut self, now: Nanos, offset: u64, bytes: u8, value: u64, _: &mut dyn Memory) {
        let at = offset as usize;
        self.module.write_long(now, at, value as u32);
        if bytes == 8 {
            self.module.write_long(now, at + 4, (value >> 32) as u32);
        }
        self.gather(now);
    }

    fn next_change(&self) -> Nanos {
        let coming = self.coming.iter().copied().min().unwrap_or(Nanos::FOREVER);
        coming.min(self.module.next_change()).min(self.mishaps.next())
    }

    fn advance(&mut self, now: Nanos, _: &mut dyn Memory) {
        self.module.advance(now);
        self.gather(now);
        self.happen(now);
    }

    fn take_interrupts(&mut self, now: Nanos) -> Vec<u16> {
        let before = self.coming.len();
        self.coming.retain(|at| *at > now);
        vec![0; before - self.coming.len()]
    }

    fn take_notes(&mut self) -> Vec<Note> {
        self.notes.extend(self.module.take_notes().into_iter().map(Note::Other));
        std::mem::take(&mut self.notes)
    }

    fn power_cycle(&mut self, now: Nanos) {
        self.module.reset(now);
        self.coming.clear();
    }
}

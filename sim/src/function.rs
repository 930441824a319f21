//! Devices of a host: registers that programs reach, interrupts, and access to memory.

use diapason_abi::Nanos;
use diapason_xhc::{Memory, Misuse};

/// An event of a device that an observer should know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// A fault that was asked for happened, in these words.
    Fault(String),
    Other(String),
}

/// A device of a host. Between calls nothing happens: the machine calls [`FunctionModel::advance`]
/// no later than [`FunctionModel::next_change`] says, which it asks for after each write and
/// advance.
pub trait FunctionModel {
    /// Reads a register of 4 or 8 bytes. That does not change what happens by itself.
    fn read(&mut self, now: Nanos, offset: u64, bytes: u8) -> u64;

    /// Writes a register of 4 or 8 bytes.
    fn write(&mut self, now: Nanos, offset: u64, bytes: u8, value: u64, memory: &mut dyn Memory);

    /// Returns when something changes by itself, or an interrupt waits to be taken.
    fn next_change(&self) -> Nanos;

    fn advance(&mut self, now: Nanos, memory: &mut dyn Memory);

    /// The interrupts that have risen by `now`, by the number of their message (0 for a line).
    fn take_interrupts(&mut self, now: Nanos) -> Vec<u16>;

    /// Returns how many messages the function sends at most, if it has no table of them in which
    /// each could be held back (MSI).
    fn most_messages(&self) -> Option<u64> {
        None
    }

    /// The part of it whose next change stays in the past, if there is one.
    fn stuck(&self) -> Option<String> {
        None
    }

    /// Memory that it used, or was given, wrongly since the last call, and where.
    fn take_misuses(&mut self) -> Vec<(Misuse, u64)> {
        Vec::new()
    }

    /// Returns the notes for an observer since the last call.
    fn take_notes(&mut self) -> Vec<Note> {
        Vec::new()
    }

    /// Tells what ended by itself before `end`, where a run ends. Nothing else changes.
    fn settle(&mut self, end: Nanos) {
        let _ = end;
    }

    /// The host had no power, and has it again.
    fn power_cycle(&mut self, now: Nanos);
}

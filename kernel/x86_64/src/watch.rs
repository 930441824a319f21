//! The costs of kernel paths by cause, in a run that is watched. An entry is timed from its first
//! instruction in Rust to the last, so what `entry.s` does around that is not in it.

use crate::console::announce;
use crate::tables::{FIRST_DEVICE, FIRST_INTERRUPT};
use diapason_abi::CallNumber;
use diapason_abi::record::{KernelCause, Record};

/// Causes are numbers of calls, or this and a vector.
pub const VECTORS_FROM: u64 = 256;

/// Numbers of calls are below this.
const CALLS: usize = 48;
const _: () = assert!((CallNumber::ALL[CallNumber::ALL.len() - 1] as usize) < CALLS);

/// The paths of one cause.
#[derive(Clone, Copy)]
struct Spent {
    entries: u64,
    instructions: u64,
    /// The longest entry that went on with another thread, and the longest that did not.
    longest: [u64; 2],
}

/// All paths so far.
pub struct Paths {
    spent: [Spent; 4],
    /// The longest of each call by number: after which another thread ran, and the others.
    calls: [[u16; 2]; CALLS],
    /// The cause of the longest path.
    pub longest_cause: u64,
}

impl Paths {
    pub const NONE: Paths = Paths {
        spent: [Spent { entries: 0, instructions: 0, longest: [0; 2] }; 4],
        calls: [[0; 2]; CALLS],
        longest_cause: 0,
    };

    /// Notes a path that ended. `stayed` says that the thread that was there before went on.
    pub fn note(&mut self, cause: u64, length: u64, stayed: bool) {
        let kind = match cause.checked_sub(VECTORS_FROM) {
            None => KernelCause::Call,
            Some(FIRST_DEVICE..) => KernelCause::Interrupt,
            Some(FIRST_INTERRUPT..) => KernelCause::Timer,
            Some(_) => KernelCause::Fault,
        };
        let spent = &mut self.spent[kind as usize];
        spent.entries += 1;
        spent.instructions += length;
        let longest = &mut spent.longest[usize::from(stayed)];
        *longest = length.max(*longest);
        if let Some(call) = self.calls.get_mut(cause as usize) {
            let longest = &mut call[usize::from(stayed)];
            *longest = (length.min(u16::MAX.into()) as u16).max(*longest);
        }
    }

    /// Says all of it.
    pub fn announce(&self) {
        for (cause, spent) in (0..).zip(&self.spent) {
            let [leaving, staying] = spent.longest;
            let words = [cause, spent.entries, spent.instructions, staying, leaving];
            announce(Record::KernelTime, &words);
        }
        for (call, [leaving, staying]) in (0..).zip(&self.calls) {
            if (*leaving, *staying) != (0, 0) {
                announce(Record::CallPath, &[call, (*staying).into(), (*leaving).into()]);
            }
        }
    }
}

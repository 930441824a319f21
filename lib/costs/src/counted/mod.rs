//! What kernel entries cost: one table, filled from counts of the real kernel.
//!
//! An entry takes `before` up to the instant its clock is read and `after` from there until the
//! chosen thread continues. The counts are the longest paths, in instructions, that `cargo xtask
//! costs` saw in QEMU: by call, by what else causes entries, and apart for those after which the
//! same thread goes on and those after which another does. A host is described by how long it
//! takes per instruction.

mod read;

use diapason_abi::Nanos;
use diapason_core::Cause;
use read::Paths;

/// Instructions of one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Until the clock is read.
    pub before: u64,
    /// From there to the first instruction of whoever runs.
    pub after: u64,
}

/// The longest paths of one kind of entry: the same thread goes on, or another does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Longest {
    /// The same thread goes on.
    pub staying: u64,
    /// Another thread goes on, or none.
    pub leaving: u64,
}

/// The instructions of everything that takes time besides declared work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Costs {
    /// Picoseconds per instruction.
    per_instruction: u64,
    paths: Paths,
}

/// From a trap to the reading of the clock, at least: from idle there are no registers to save.
/// The rest of the path is counted behind it, so this decides at what time an entry happens and
/// not how long it takes.
const BEFORE: u64 = 80;
/// What the assembly around the path of a call adds to what is timed.
const AROUND_CALL: u64 = 64;
/// The same around other entries, which keep and restore every register, and the way from the due
/// instant to their first instruction.
const AROUND: u64 = 120;
/// The program's own instructions from one trap to the next.
const USER: u64 = 60;

impl Costs {
    /// As measured, on a host that executes so many instructions a second.
    #[must_use]
    pub fn at(clock_hz: u64) -> Costs {
        Costs { per_instruction: per_instruction(clock_hz), paths: Paths::plain() }
    }

    /// The same of a kernel that keeps the flight record.
    #[must_use]
    pub fn recording(clock_hz: u64) -> Costs {
        Costs { per_instruction: per_instruction(clock_hz), paths: Paths::recording() }
    }

    /// The time of so many instructions, rounded up.
    #[must_use]
    pub const fn time(&self, instructions: u64) -> Nanos {
        Nanos(instructions.saturating_mul(self.per_instruction).div_ceil(1_000))
    }

    /// What an entry with this cause costs, if the same thread goes on (`stays`) or not.
    #[must_use]
    pub fn of(&self, cause: &Cause, stays: bool) -> Cost {
        let longest = match *cause {
            Cause::Boot => return Cost { before: 0, after: 0 },
            Cause::Timer => self.paths.timer,
            Cause::Irq(_) => self.paths.interrupt,
            Cause::Fault(_) => self.paths.fault,
            Cause::Syscall(number, _) => self.paths.call(number),
        };
        let path = if stays { longest.staying } else { longest.leaving };
        // A way that was never measured is as long as the other.
        let path = if path == 0 { longest.staying.max(longest.leaving) } else { path };
        let around = if matches!(cause, Cause::Syscall(..)) { AROUND_CALL } else { AROUND };
        Cost { before: BEFORE, after: (path + around).saturating_sub(BEFORE) }
    }

    /// Until the clock is read, whatever is decided then.
    #[must_use]
    pub fn before(&self, cause: &Cause) -> u64 {
        self.of(cause, true).before
    }

    /// A call that changes no schedule.
    #[must_use]
    pub fn quick(&self, number: u64) -> u64 {
        self.paths.call(number).staying + AROUND_CALL
    }

    /// The program's own instructions around a trap.
    #[must_use]
    pub const fn user(&self) -> u64 {
        USER
    }

    /// Reading the clock.
    #[must_use]
    pub const fn clock(&self) -> u64 {
        12
    }

    /// A point at which somebody else may run.
    #[must_use]
    pub const fn step(&self) -> u64 {
        5
    }

    /// An access to a device register.
    #[must_use]
    pub const fn mmio(&self) -> u64 {
        20
    }
}

const fn per_instruction(clock_hz: u64) -> u64 {
    1_000_000_000_000u64.div_ceil(if clock_hz == 0 { 1 } else { clock_hz })
}

impl Default for Costs {
    /// One nanosecond per instruction: the clock of QEMU's `-icount shift=0`.
    fn default() -> Costs {
        Costs::at(1_000_000_000)
    }
}

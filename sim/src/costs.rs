//! What kernel entries cost: one table, filled from counts of the real kernel.
//!
//! An entry takes `before` up to the instant its clock is read and `after` from there until the
//! chosen thread continues. The counts are maxima of instructions measured in QEMU (`docs/sim.md`
//! says how); a host is described by how long it takes per instruction.

use diapason_abi::{CallNumber, Nanos};
use diapason_core::Cause;

/// Instructions of one kind of entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Until the clock is read.
    pub before: u64,
    /// From there to the first instruction of whoever runs.
    pub after: u64,
}

/// The instructions of everything that takes time besides declared work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Costs {
    /// Picoseconds per instruction.
    pub per_instruction: u64,
    /// The program's own instructions from one trap to the next.
    pub user: u64,
    /// A call that changes no schedule.
    pub quick: u64,
    /// A message that changes hands the short way.
    pub exchange: Cost,
    /// Any other call.
    pub call: Cost,
    /// The timer.
    pub timer: Cost,
    /// An interrupt.
    pub interrupt: Cost,
    /// A fault, and the end of its process.
    pub fault: Cost,
    /// Reading the clock.
    pub clock: u64,
    /// A preemption point.
    pub step: u64,
    /// An access to a device register.
    pub mmio: u64,
}

impl Costs {
    /// As measured, at one nanosecond per instruction: the clock of QEMU's `-icount shift=0`.
    pub const MEASURED: Costs = Costs {
        per_instruction: 1_000,
        user: 60,
        quick: 130,
        exchange: Cost { before: 60, after: 330 },
        call: Cost { before: 60, after: 560 },
        timer: Cost { before: 80, after: 560 },
        interrupt: Cost { before: 90, after: 560 },
        fault: Cost { before: 90, after: 2_900 },
        clock: 12,
        step: 5,
        mmio: 20,
    };

    /// As measured, on a host that executes so many instructions a second.
    #[must_use]
    pub fn at(clock_hz: u64) -> Costs {
        let per_instruction = 1_000_000_000_000u64.div_ceil(clock_hz.max(1));
        Costs { per_instruction, ..Costs::MEASURED }
    }

    /// The time of so many instructions, rounded up.
    #[must_use]
    pub const fn time(&self, instructions: u64) -> Nanos {
        Nanos(instructions.saturating_mul(self.per_instruction).div_ceil(1_000))
    }

    /// What an entry with this cause costs.
    #[must_use]
    pub fn of(&self, cause: &Cause) -> Cost {
        match *cause {
            Cause::Boot => Cost { before: 0, after: 0 },
            Cause::Timer => self.timer,
            Cause::Irq(_) => self.interrupt,
            Cause::Fault(_) => self.fault,
            Cause::Syscall(number, _) => self.of_call(number),
        }
    }

    fn of_call(&self, number: u64) -> Cost {
        match CallNumber::decode(number) {
            Some(CallNumber::MboxCall) => self.exchange,
            Some(CallNumber::ProcCreate | CallNumber::ProcKill | CallNumber::Fail) => self.fault,
            _ => self.call,
        }
    }
}

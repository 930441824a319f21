//! The costs of kernel entries: two tables, filled from counts of the real kernel.
//!
//! An entry takes `before` up to the instant its clock is read and `after` from there until the
//! chosen thread continues. The counts are the longest paths, in instructions, that `cargo xtask
//! costs` saw in QEMU: by call, by what else causes entries, and apart for those after which the
//! same thread goes on and those after which another does. A host is described by how long it
//! takes per instruction.

mod read;

use crate::limits::{Counts, TRAP_FRAME};
use diapason_abi::{CallNumber, Nanos};

/// Numbers of calls are below this.
pub const CALLS: usize = 64;

/// The event with which a counted path begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelEntry {
    /// The first entry of all.
    Boot,
    /// The timer is due.
    Timer,
    Interrupt,
    /// A thread did what it may not.
    Fault,
    /// A call with this number.
    Call(u64),
}

/// Instructions of one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Until the clock is read.
    pub before: u64,
    /// From there to the first instruction of the next thread.
    pub after: u64,
}

/// The longest paths of one kind of entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Longest {
    /// The same thread goes on.
    pub staying: u64,
    /// Another thread goes on, or none.
    pub leaving: u64,
}

/// The longest paths of a kernel by what causes them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// The hash of the kernel that was counted: FNV-1a of the bytes that are loaded.
    pub kernel: u64,
    calls: [Longest; CALLS],
    timer: Longest,
    interrupt: Longest,
    fault: Longest,
}

/// The kernel as it boots.
pub const PLAIN: Table = Table::read(include_str!("plain.txt"));
/// The kernel as it boots to keep the flight record.
pub const RECORDING: Table = Table::read(include_str!("recording.txt"));

/// The longer way of an entry.
const fn longer(longest: Longest) -> u64 {
    if longest.staying > longest.leaving { longest.staying } else { longest.leaving }
}

impl Table {
    /// Returns the table that `cargo xtask costs` wrote as `text`.
    ///
    /// # Panics
    /// If a line is not of that form.
    #[must_use]
    pub const fn read(text: &str) -> Table {
        read::table(text)
    }

    /// Returns the longest paths of a call. One that was never counted costs what a fault costs,
    /// the most there is.
    #[must_use]
    pub const fn call(&self, number: u64) -> Longest {
        if number >= CALLS as u64 || longer(self.calls[number as usize]) == 0 {
            return self.fault;
        }
        self.calls[number as usize]
    }

    /// Returns the longest paths of an interrupt. One that has to be decided goes the way of the
    /// timer, and the counted runs may have met only those that had not.
    const fn interrupted(&self) -> Longest {
        let (own, timer) = (self.interrupt, self.timer.leaving);
        let leaving = if own.leaving > timer { own.leaving } else { timer };
        Longest { leaving, ..own }
    }

    /// Returns the longest path after which another thread goes on, but for the end of a process,
    /// with the assembly around it.
    #[must_use]
    pub fn switching(&self) -> u64 {
        let calls = self.calls.iter().map(|call| call.leaving).max().unwrap_or(0);
        (calls + AROUND_CALL.leaving).max(self.interrupted().leaving + AROUND.leaving)
    }

    /// Returns the longest path of an interrupt after which the same thread goes on.
    #[must_use]
    pub fn interrupting(&self) -> u64 {
        self.interrupt.staying + AROUND.staying
    }

    /// Returns why limits do not cover this table, and the limit to raise.
    #[must_use]
    pub const fn objection(&self, limits: &Counts) -> Option<&'static str> {
        let mut path = longer(self.fault);
        let mut call = 0;
        while call < CALLS {
            let longest = longer(self.calls[call]);
            path = if longest > path { longest } else { path };
            call += 1;
        }
        if path > limits.longest_path || longer(self.timer) > limits.longest_path {
            return Some("a path is longer than `RECORDED_PATH_MAX`: shorten it");
        }
        // An interrupt that switches to no other thread is a top half. If it does switch, the cost
        // of a switch is added.
        if self.interrupt.staying + TRAP_FRAME > limits.top_half {
            return Some("an interrupt takes longer than a top half: raise `KERNEL.top_half`");
        }
        if self.interrupted().leaving + TRAP_FRAME > limits.top_half + limits.switch {
            return Some("an interrupt that switches takes longer: raise `KERNEL.switch`");
        }
        // A VCPU whose thread is woken by another one runs and sleeps again: two switches.
        let wakes = self.call(CallNumber::SemUnlock as u64).leaving + AROUND_CALL.leaving;
        let sleeps = self.call(CallNumber::SemLock as u64).leaving + AROUND_CALL.leaving;
        if wakes + sleeps > 2 * limits.switch {
            return Some("a wake-up and the switch back take longer: raise `KERNEL.switch`");
        }
        None
    }
}

/// The instructions of everything that takes time besides declared work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    per_instruction: u64,
    paths: &'static Table,
}

/// From a trap to the reading of the clock, at least: from idle there are no registers to save.
/// The rest of the path is counted behind it, so this decides at what time an entry happens and
/// not how long it takes.
const BEFORE: u64 = 80;
/// The instructions that the assembly around the path of a call adds to the timed ones. A switch
/// clears the vector registers.
const AROUND_CALL: Longest = Longest { staying: 64, leaving: 96 };
/// The instructions around other entries, which keep and restore every register, and the way from
/// the due instant to their first instruction.
const AROUND: Longest = Longest { staying: 120, leaving: 160 };
/// The program's own instructions from one trap to the next.
const USER: u64 = 60;

// The assembly around an entry is no shorter than that of an interrupt.
const _: () = assert!(AROUND.staying >= TRAP_FRAME);

impl Costs {
    /// As measured, on a host that executes so many instructions a second.
    #[must_use]
    pub fn at(clock_hz: u64) -> Costs {
        Costs { per_instruction: per_instruction(clock_hz), paths: &PLAIN }
    }

    /// Returns the costs of a kernel that keeps the flight record.
    #[must_use]
    pub fn recording(clock_hz: u64) -> Costs {
        Costs { per_instruction: per_instruction(clock_hz), paths: &RECORDING }
    }

    /// Returns the time of so many instructions, rounded up.
    #[must_use]
    pub const fn time(&self, instructions: u64) -> Nanos {
        Nanos(instructions.saturating_mul(self.per_instruction).div_ceil(1_000))
    }

    /// Returns the cost of an entry of this kind, if the same thread continues (`stays`) or not.
    #[must_use]
    pub fn of(&self, entry: KernelEntry, stays: bool) -> Cost {
        let longest = match entry {
            KernelEntry::Boot => return Cost { before: 0, after: 0 },
            KernelEntry::Timer => self.paths.timer,
            KernelEntry::Interrupt => self.paths.interrupted(),
            KernelEntry::Fault => self.paths.fault,
            KernelEntry::Call(number) => self.paths.call(number),
        };
        let around = if matches!(entry, KernelEntry::Call(_)) { AROUND_CALL } else { AROUND };
        let way = |of: Longest| if stays { of.staying } else { of.leaving };
        // A way that was never measured is as long as the other.
        let path = if way(longest) == 0 { longer(longest) } else { way(longest) };
        Cost { before: BEFORE, after: (path + way(around)).saturating_sub(BEFORE) }
    }

    /// Until the clock is read, whatever is decided then.
    #[must_use]
    pub fn before(&self, entry: KernelEntry) -> u64 {
        self.of(entry, true).before
    }

    /// Returns a call that changes no schedule.
    #[must_use]
    pub fn quick(&self, number: u64) -> u64 {
        self.paths.call(number).staying + AROUND_CALL.staying
    }

    /// Returns the longest time of a call, with or without a switch, with the caller's own
    /// instructions around it.
    #[must_use]
    pub fn call(&self, call: CallNumber) -> Nanos {
        let path = |stays| {
            let cost = self.of(KernelEntry::Call(call as u64), stays);
            cost.before + cost.after + self.user()
        };
        self.time(path(true).max(path(false)))
    }

    /// Returns the program's own instructions around a trap.
    #[must_use]
    pub const fn user(&self) -> u64 {
        USER
    }

    /// Returns the cost of reading the clock.
    #[must_use]
    pub const fn clock(&self) -> u64 {
        12
    }

    /// Returns a point at which somebody else may run.
    #[must_use]
    pub const fn step(&self) -> u64 {
        5
    }

    /// Returns an access to a device register.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KERNEL;

    /// The calls that every program makes, the timer, and faults.
    #[test]
    fn both_tables_have_what_matters() {
        for paths in [&PLAIN, &RECORDING] {
            for call in [0, 6, 8, 11, 13, 16, 17, 20, 21, 28] {
                assert!(paths.calls[call] != Longest::default(), "call {call}");
            }
            assert!(paths.timer.leaving > 200 && paths.interrupt.leaving > 200);
            assert!(paths.fault.leaving > 1_000);
        }
    }

    #[test]
    fn each_limit_that_is_too_low_is_named() {
        let objection = |limits: Counts| PLAIN.objection(&limits).unwrap_or_default();
        assert_eq!(objection(KERNEL), "");
        let path = Counts { longest_path: PLAIN.fault.leaving - 1, ..KERNEL };
        assert!(objection(path).contains("RECORDED_PATH_MAX"));
        let top_half = Counts { top_half: PLAIN.interrupt.staying, ..KERNEL };
        assert!(objection(top_half).contains("top_half"));
        let switch = Counts { switch: 600, top_half: 2_000, ..KERNEL };
        assert!(objection(switch).contains("wake-up"));
    }
}

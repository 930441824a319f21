//! Why a process was ended, and the message its supervisor gets.

use crate::MESSAGE_BYTES;

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// A deed of a thread that its process is not permitted.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum FaultCause { $($(#[$doc])* $name = $number,)* }

        impl FaultCause {
            pub const ALL: &'static [FaultCause] = &[$(FaultCause::$name,)*];

            /// Returns the cause with this number, if there is one.
            #[must_use]
            pub const fn decode(number: u8) -> Option<FaultCause> {
                match number { $($number => Some(FaultCause::$name),)* _ => None }
            }

            /// Returns the cause in words.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(FaultCause::$name => $text,)* }
            }
        }
    };
}

causes! {
    /// Read outside the address space.
    Read = 1, "read outside its memory";
    /// Write outside the address space or to read-only memory.
    Write = 2, "wrote outside its memory";
    /// Executed memory that is not code.
    Execute = 3, "executed memory that is not code";
    /// Touched the guard page below a stack.
    StackOverflow = 4, "overflowed a stack";
    /// Division by zero or overflow of a quotient.
    Divide = 5, "divided by zero";
    /// Undefined or unavailable instruction.
    Instruction = 6, "executed an invalid instruction";
    /// Privileged instruction, port access or non-canonical address.
    Privilege = 7, "used a privileged instruction or a non-canonical address";
    /// Floating-point exception it had unmasked.
    FloatingPoint = 8, "raised a floating-point exception";
    /// Breakpoint, single step or overflow trap.
    Debug = 9, "hit a debug trap";
    /// Misaligned access with alignment checks on.
    Alignment = 10, "made a misaligned access";
    /// A call number that does not exist.
    BadCall = 16, "made a system call that does not exist";
    /// A handle it was never given.
    BadHandle = 17, "used a handle it was never given";
    /// A pointer in a call that is not its memory.
    BadAddress = 18, "passed a pointer outside its memory to a system call";
    /// A key its manifest does not grant.
    BadGrant = 19, "named something its manifest does not grant";
    /// An argument out of range.
    BadArgument = 20, "passed an impossible argument to a system call";
    /// More memory than its quota.
    Quota = 21, "exceeded its memory quota";
    /// The process gave up itself (panic in the program).
    Panic = 22, "panicked";
    /// The process's supervisor ended it.
    Killed = 23, "was ended by its supervisor";
    /// A device of the process accessed memory, or sent an interrupt, that is not the process's.
    StrayDma = 24, "let a device go beyond what its description grants";
}

/// Vectors and error bits of the processor's exceptions, as far as they mean something to a
/// process.
mod vector {
    /// Raised by an access that the page tables do not allow.
    pub const PAGE_FAULT: u64 = 14;
    /// Set in the error of a page fault if the access was a write.
    pub const WRITE: u64 = 1 << 1;
    /// Set in the error of a page fault if the processor fetched an instruction.
    pub const FETCH: u64 = 1 << 4;
}

impl FaultCause {
    /// Returns the fault for exception `vector` of a thread, and the address to report with it. For
    /// a page fault only, `address` reads the address, and `is_guard` says whether that address
    /// lies in the guard space of a stack.
    #[must_use]
    #[inline(always)]
    pub fn of_trap(
        vector: u64,
        error: u64,
        address: impl FnOnce() -> u64,
        is_guard: impl FnOnce(u64) -> bool,
    ) -> (FaultCause, u64) {
        let cause = match vector {
            0 => FaultCause::Divide,
            1 | 3 | 4 => FaultCause::Debug,
            5 | 6 => FaultCause::Instruction,
            7 | 16 | 19 => FaultCause::FloatingPoint,
            vector::PAGE_FAULT => {
                let address = address();
                let cause = if error & vector::FETCH != 0 {
                    FaultCause::Execute
                } else if is_guard(address) {
                    FaultCause::StackOverflow
                } else if error & vector::WRITE != 0 {
                    FaultCause::Write
                } else {
                    FaultCause::Read
                };
                return (cause, address);
            }
            17 => FaultCause::Alignment,
            _ => FaultCause::Privilege,
        };
        (cause, 0)
    }
}

/// The message a supervisor receives when a process it supervises ends by a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultReport {
    /// The process, by its place in the description.
    pub process: u16,
    /// The thread's slot in its process.
    pub thread: u16,
    pub cause: FaultCause,
    /// The address or argument concerned (a call's number for `BadCall`).
    pub address: u64,
    /// Address of the instruction.
    pub instruction: u64,
    /// When, in ns since boot.
    pub time: u64,
    /// The process's key, for restarting it.
    pub key: u64,
    pub restarts: u32,
    /// Most restarts its description allows (`u32::MAX`: no limit).
    pub restarts_max: u32,
    /// The description's first back-off in ns; it doubles with each restart.
    pub backoff: u64,
}

impl FaultReport {
    /// Encodes the report as a message.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; MESSAGE_BYTES] {
        let mut out = [0; MESSAGE_BYTES];
        let who = u64::from(self.process) | u64::from(self.thread) << 16;
        out[0..8].copy_from_slice(&(who | (self.cause as u64) << 32).to_le_bytes());
        out[8..16].copy_from_slice(&self.address.to_le_bytes());
        out[16..24].copy_from_slice(&self.instruction.to_le_bytes());
        out[24..32].copy_from_slice(&self.time.to_le_bytes());
        out[32..40].copy_from_slice(&self.key.to_le_bytes());
        out[40..44].copy_from_slice(&self.restarts.to_le_bytes());
        out[44..48].copy_from_slice(&self.restarts_max.to_le_bytes());
        out[48..56].copy_from_slice(&self.backoff.to_le_bytes());
        out
    }

    /// From a message; `None` if the cause is unknown.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; MESSAGE_BYTES]) -> Option<FaultReport> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Some(FaultReport {
            process: u16_at(0),
            thread: u16_at(2),
            cause: FaultCause::decode(bytes[4])?,
            address: u64_at(8),
            instruction: u64_at(16),
            time: u64_at(24),
            key: u64_at(32),
            restarts: u64_at(40) as u32,
            restarts_max: (u64_at(40) >> 32) as u32,
            backoff: u64_at(48),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exception_has_a_cause_and_only_page_faults_an_address() {
        let of = |vector, error, guard| FaultCause::of_trap(vector, error, || 0x77, |_| guard);
        assert_eq!(of(14, 0, false), (FaultCause::Read, 0x77));
        assert_eq!(of(14, 2, false), (FaultCause::Write, 0x77));
        assert_eq!(of(14, 0, true), (FaultCause::StackOverflow, 0x77));
        assert_eq!(of(14, 2, true), (FaultCause::StackOverflow, 0x77));
        assert_eq!(of(14, 1 << 4, true), (FaultCause::Execute, 0x77));
        let causes =
            (0..32).filter(|vector| *vector != 14).map(|vector| of(vector, u64::MAX, true));
        let causes: Vec<(FaultCause, u64)> = causes.collect();
        assert!(causes.iter().all(|(_, address)| *address == 0));
        let named: Vec<u8> = causes[..19].iter().map(|(cause, _)| *cause as u8).collect();
        assert_eq!(named, [5, 9, 7, 9, 9, 6, 6, 8, 7, 7, 7, 7, 7, 7, 7, 8, 10, 7, 8]);
        assert_eq!(of(u64::MAX, 0, false), (FaultCause::Privilege, 0));
    }

    #[test]
    fn a_report_survives_the_message() {
        let report = FaultReport {
            process: 3,
            thread: 1,
            cause: FaultCause::StackOverflow,
            address: 0x3_0400_0000,
            instruction: 0x3_0000_1234,
            time: 77,
            key: 0xfeed_face_cafe_beef,
            restarts: 2,
            restarts_max: u32::MAX,
            backoff: 5_000_000,
        };
        assert_eq!(FaultReport::from_bytes(&report.to_bytes()), Some(report));
        assert_eq!(FaultReport::from_bytes(&[0; MESSAGE_BYTES]), None);
    }
}

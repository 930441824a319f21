//! The kernel's messages on its console: numbered records instead of text.
//!
//! The kernel contains no formatting. It prints a line of hexadecimal words, and the host (or a
//! program) turns it into a sentence with this table. On the wire a record is
//! `~` NUMBER (` ` WORD)* newline, all in lower-case hexadecimal; every other line is text that a
//! program logged, preceded by `=` PROCESS ` `.

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident = $number:literal ($($field:literal),*),)*) => {
        /// The kind of a record.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Record { $($(#[$doc])* $name = $number,)* }

        impl Record {
            pub const ALL: &'static [Record] = &[$(Record::$name,)*];

            /// Returns the record with this number, if there is one.
            #[must_use]
            pub const fn decode(number: u64) -> Option<Record> {
                match number { $($number => Some(Record::$name),)* _ => None }
            }

            /// Returns the name of the record.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Record::$name => stringify!($name),)* }
            }

            /// Returns the meaning of its words, in order.
            #[must_use]
            pub const fn fields(self) -> &'static [&'static str] {
                match self { $(Record::$name => &[$($field),*],)* }
            }
        }
    };
}

records! {
    /// First sign of life: format version, kernel bytes (text, rodata, data, bss).
    Boot = 1 ("version", "text", "rodata", "data", "bss"),
    /// The processor's protections, found and switched on (bits of [`Protection`]).
    Cpu = 2 ("found", "enabled"),
    /// Memory: usable bytes in all, first byte free for processes, bytes left.
    Memory = 3 ("usable", "first_free", "free"),
    /// ACPI: RSDP address, processors, I/O APICs, HPET address (0: none).
    Acpi = 4 ("rsdp", "processors", "io_apics", "hpet"),
    /// Time sources: counter kHz, timer kHz, 1 if the timer takes deadlines.
    Clock = 5 ("counter_khz", "timer_khz", "deadline_mode"),
    /// The archive: processes, semaphores, conditions, mailboxes, segments, devices.
    Archive = 6 ("processes", "semaphores", "conditions", "mailboxes", "segments", "devices"),
    /// A program was refused (a number of `archive::Refusal`).
    Refused = 7 ("process", "reason"),
    /// The archive as a whole was refused: nothing can start.
    ArchiveRefused = 8 ("reason"),
    /// A process started (times started so far).
    Started = 9 ("time", "process", "starts"),
    /// A process ended by a fault.
    Fault = 10 ("time", "process", "thread", "cause", "address", "instruction"),
    /// A process whose last thread ended, or that its supervisor killed.
    Ended = 11 ("time", "process"),
    /// The kernel hit its own bug: hash of the source file name, line.
    Panic = 12 ("file", "line"),
    /// The kernel took an exception it cannot have: vector, error, address, instruction.
    KernelFault = 13 ("vector", "error", "address", "instruction"),
    /// Final table, one per thread slot ever used.
    Thread = 14 ("process", "slot", "name", "cpu_ns", "jobs", "misses", "response_max", "skipped"),
    /// Final table, one per process.
    Process = 15 ("process", "starts", "faults", "heap_pages", "state"),
    /// Final: time of the end, idle ns, kernel entries, CR3 writes, MSR writes, MMIO accesses,
    /// what VCPUs paid that ended and whose places others took, and what VCPUs paid for time that
    /// others were spared.
    End = 16 ("time", "idle_ns", "entries", "cr3", "msr", "mmio", "retired_ns", "levied_ns"),
    /// Longest kernel path so far: instructions, what caused it (call number, or 256 + vector).
    LongestPath = 17 ("instructions", "cause"),
    /// Records that found no room on the console and were dropped.
    ConsoleLost = 18 ("entries"),
    /// No thread can ever run again and nothing is due.
    Halted = 19 ("time"),
    /// Flight recorder: entries written, entries lost for want of space.
    Recorded = 20 ("entries", "lost"),
    /// A fault report found no room in the supervisor's mailbox: it restarts without reading.
    ReportLost = 21 ("process"),
    /// Final table, one per VCPU: its place in the description, time used of its budgets and in the
    /// background, times its threads waited for budget, most use in advance of a budget, longest
    /// time from a budget to the end of its use, budgets that had to return together, most wakes
    /// in one period.
    Vcpu = 22 (
        "vcpu", "used_ns", "extra_ns", "depleted", "overrun_max", "late_max", "merges", "wakes_max"
    ),
    /// Final table, one per VCPU, on what terms it is: the process that made it (`u64::MAX`: it was
    /// described), budget (of an I/O VCPU: its grant) and period at the end, share in parts per
    /// million (0: a Main VCPU), longest period it had, longest wait of an I/O VCPU for its grant,
    /// times its budget or period was changed.
    VcpuTerms = 23 (
        "vcpu", "process", "budget_ns", "period_ns", "share_ppm", "period_max", "lockout_max",
        "changes"
    ),
    /// Final table, one per device that interrupted: how often, shortest time between two
    /// (`u64::MAX`: there were not two).
    Irq = 24 ("device", "count", "gap_min"),
    /// A described PCI device was found: its place (bus, device and function as in a
    /// configuration address), vendor and product, where its registers are.
    Device = 25 ("device", "place", "vendor", "product", "address"),
    /// A described PCI device cannot be used (a number of `archive::Absence`).
    Absent = 26 ("device", "reason"),
    /// Final table, one per thread with a VCPU and jobs: most budget that one job used.
    Job = 27 ("process", "slot", "vcpu", "cost_max"),
    /// Final table of a watched run, one per cause of kernel paths (`KernelCause`): how many there
    /// were, instructions of all, longest after which the same thread ran, longest of the others.
    KernelTime = 28 ("cause", "entries", "instructions", "longest_staying", "longest_leaving"),
    /// Final table of a watched run, one per call that was made: its longest paths, as above.
    CallPath = 29 ("call", "longest_staying", "longest_leaving"),
    /// A measurement of a process: its number, as the kernel knows it, the time, the subject (a
    /// kind, a place, a channel and a part, as `diapason_pipe::measured` packs them), and
    /// [`MEASURED_VALUES`] values. A program cannot write this record for another process, and no
    /// line of text becomes one.
    Measured = 30 (
        "process", "at", "what", "value_0", "value_1", "value_2", "value_3", "value_4", "value_5",
        "value_6", "value_7"
    ),
    /// The hardware is broken, and this bank of the processor says how: before a [`KernelFault`]
    /// with the vector of machine checks. Address 0: the bank names none.
    ///
    /// [`KernelFault`]: Record::KernelFault
    MachineCheck = 34 ("bank", "status", "address"),
    /// Final table, one per process that wrote more than its share of the console has room for: how
    /// many of its lines were dropped.
    LinesLost = 35 ("process", "lines"),
    /// Whether the PCI devices of the description are confined to what it grants (a number of
    /// [`Confinement`]), and by how many units. Only if there are such devices.
    Confined = 36 ("state", "units"),
    /// A device went beyond its grants, and the machine stopped that: which (`u64::MAX`: none of
    /// the description's), the address that it asked for (of an interrupt: its index, from bit 48
    /// on), and the upper half of the fault record ([`StrayAccess`]).
    Stray = 37 ("time", "device", "address", "fault"),
    /// Leaks by speculation: whether the processor says anything about them, and its register
    /// `IA32_ARCH_CAPABILITIES`.
    Speculation = 38 ("known", "bits"),
    /// The run is over, and this core of the host says nothing any more: it has stopped.
    CoreStopped = 39 ("core"),
}

/// How far the machine confines the PCI devices of a description. Everything but the first two
/// means that their drivers are trusted, and says why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Confinement {
    /// The devices reach the segments that their drivers are granted, and send only their own
    /// interrupts.
    Full = 0,
    /// They reach these segments only. Interrupts are not checked.
    Memory = 1,
    /// Firmware describes no IOMMU.
    NoIommu = 2,
    /// A device is behind no IOMMU of the table, or behind a bridge that hides who asks.
    Uncovered = 3,
    /// An IOMMU lacks something that the kernel needs.
    Unfit = 4,
    /// An IOMMU did not do what it was told in time.
    Silent = 5,
}

impl Confinement {
    pub const ALL: [Confinement; 6] = [
        Confinement::Full,
        Confinement::Memory,
        Confinement::NoIommu,
        Confinement::Uncovered,
        Confinement::Unfit,
        Confinement::Silent,
    ];

    /// Returns the state with this number.
    #[must_use]
    pub fn decode(number: u64) -> Option<Confinement> {
        Confinement::ALL.into_iter().find(|state| *state as u64 == number)
    }
}

/// The upper half of a fault record of an IOMMU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StrayAccess(pub u64);

impl StrayAccess {
    /// Returns bus, device and function of who asked, as in a configuration address.
    #[must_use]
    pub const fn place(self) -> u64 {
        self.0 & 0xffff
    }

    /// Returns the reason, as the specification of the IOMMU numbers it.
    #[must_use]
    pub const fn reason(self) -> u64 {
        self.0 >> 32 & 0xff
    }

    /// Returns whether it was an interrupt.
    #[must_use]
    pub const fn is_interrupt(self) -> bool {
        self.reason() >= 0x20
    }

    /// Returns whether it was a read of memory.
    #[must_use]
    pub const fn is_read(self) -> bool {
        self.0 >> 62 & 1 == 1
    }
}

/// Returns the byte that the console shows for a byte of a line: a dot for all that could garble
/// it, or command the terminal behind it.
#[must_use]
#[inline(always)]
pub const fn shown(byte: u8) -> u8 {
    if matches!(byte, b' '..=b'~') { byte } else { b'.' }
}

/// Values of a [`Record::Measured`].
pub const MEASURED_VALUES: usize = 8;
/// Words that a program gives for a [`Record::Measured`]: when, what of, and the values.
pub const MEASURED_WORDS: usize = 2 + MEASURED_VALUES;

const _: () = assert!(Record::Measured.fields().len() == 1 + MEASURED_WORDS);

/// The reason for entering the kernel: words of [`Record::KernelTime`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum KernelCause {
    Call = 0,
    /// A fault of a thread.
    Fault = 1,
    Timer = 2,
    /// A device's interrupt: its top half.
    Interrupt = 3,
}

/// The bits of [`Record::Cpu`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Protection {
    NoExecute = 0,
    Smep = 1,
    Smap = 2,
    Umip = 3,
    GlobalPages = 4,
    /// Timer with absolute deadlines.
    TscDeadline = 5,
    /// Counter that does not stop or change speed.
    InvariantTsc = 6,
    /// Broken hardware is reported instead of resetting the machine.
    MachineCheck = 7,
}

/// How the kernel leaves the machine: the value written to the exit port.
pub mod exit {
    /// The horizon was reached.
    pub const FINISHED: u8 = 0x10;
    /// Nothing is left that could run.
    pub const HALTED: u8 = 0x11;
    pub const PANIC: u8 = 0x20;
    /// The archive could not be used.
    pub const NO_ARCHIVE: u8 = 0x21;
    /// A process that nobody supervises (the supervisor itself) faulted.
    pub const SUPERVISOR_DIED: u8 = 0x22;

    /// Returns the exit code of the emulator's process for a value written to the port.
    #[must_use]
    pub const fn status(value: u8) -> i32 {
        (value as i32) << 1 | 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique() {
        for record in Record::ALL {
            assert_eq!(Record::decode(*record as u64), Some(*record));
        }
    }
}

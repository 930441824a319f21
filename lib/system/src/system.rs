//! A system as its description says it, with every default filled in and every rule checked.

use crate::source::{Source, Span};

/// A checked description. Processes are numbered in the order of the text, and so are objects:
/// first the semaphores, then the conditions, then the mailboxes, as in the boot archive.
#[derive(Clone, Debug)]
pub struct System {
    /// Its name.
    pub name: String,
    /// Bytes of RAM it may use.
    pub memory: u64,
    /// Its processes.
    pub processes: Vec<Process>,
    /// Semaphores shared by name.
    pub semaphores: Vec<Semaphore>,
    /// Condition variables shared by name.
    pub conditions: Vec<Condition>,
    /// Mailboxes: the declared ones, then the receivers of fault reports, by supervisor.
    pub mailboxes: Vec<Mailbox>,
    /// Memory segments shared by name.
    pub segments: Vec<Segment>,
    /// Memory-mapped devices.
    pub devices: Vec<Device>,
    pub(crate) origin: Origin,
}

/// Where in the text things stand that `build` may still complain about.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub source: Source,
    /// The memory size, or the header of the system if it is the default.
    pub memory: Span,
    /// Of each process, the program's name.
    pub programs: Vec<Span>,
}

/// A process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// The program it runs.
    pub program: String,
    /// Highest priority of its threads, and that of its first.
    pub priority: u8,
    /// Most bytes of heap.
    pub heap: u64,
    /// Bytes of each thread's stack.
    pub stack: u64,
    /// Most threads.
    pub threads: u16,
    /// Most private semaphores.
    pub semaphores: u16,
    /// Most private condition variables.
    pub conditions: u16,
    /// Most timers, interrupts and notifications.
    pub events: u16,
    /// Names of what it may use.
    pub uses: Vec<String>,
    /// Numbers of the processes it may start, besides those it supervises.
    pub starts: Vec<u16>,
    /// Number of the process that gets its fault reports.
    pub supervisor: Option<u16>,
    /// How often it may be started again after a fault.
    pub restart: Restart,
    /// Pause before the first restart, in ns; it doubles with each further one.
    pub backoff_ns: u64,
    /// Started at boot, or only by another process?
    pub start_at_boot: bool,
    /// Passed to its entry point.
    pub arguments: [u64; 4],
}

/// How often a process may be started again after a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// Not at all.
    Never,
    /// So many times.
    AtMost(u32),
    /// Without limit.
    Always,
}

/// A semaphore shared by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Semaphore {
    /// Its name.
    pub name: String,
    /// Mutex or counting.
    pub kind: SemaphoreKind,
    /// Which processes may use it, one bit each.
    pub allowed: u64,
}

/// What a semaphore is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SemaphoreKind {
    /// It has an owner, and waiters lend the owner their priority.
    Mutex,
    /// A count that starts at this value.
    Counting(u64),
}

/// A condition variable shared by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Its name.
    pub name: String,
    /// Which processes may use it, one bit each.
    pub allowed: u64,
}

/// A mailbox shared by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mailbox {
    /// Its name.
    pub name: String,
    /// Most messages.
    pub messages: u16,
    /// Which processes may use it, one bit each.
    pub allowed: u64,
    /// The supervisor for whose fault reports it is, if it is not a declared one.
    pub faults_of: Option<u16>,
}

/// A memory segment shared by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Which processes may attach it, one bit each.
    pub allowed: u64,
}

/// A memory-mapped device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Physical address of its registers.
    pub address: u64,
    /// Bytes of registers.
    pub size: u64,
    /// Its interrupt, if it has one.
    pub interrupt: Option<Interrupt>,
    /// Which processes may map it and wait for its interrupt, one bit each.
    pub allowed: u64,
}

/// An interrupt line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// Its number at the I/O APIC.
    pub irq: u16,
    /// Level-triggered (else edge)?
    pub level: bool,
}

impl System {
    /// The name of process number `index`, for tables and traces.
    #[must_use]
    pub fn process_name(&self, index: u16) -> Option<&str> {
        self.processes.get(usize::from(index)).map(|process| process.name.as_str())
    }

    /// The name of object number `index` of the boot archive.
    #[must_use]
    pub fn object_name(&self, index: u16) -> Option<&str> {
        let semaphores = self.semaphores.iter().map(|object| &object.name);
        let conditions = self.conditions.iter().map(|object| &object.name);
        let mailboxes = self.mailboxes.iter().map(|object| &object.name);
        let name = semaphores.chain(conditions).chain(mailboxes).nth(usize::from(index))?;
        Some(name)
    }

    /// The name of segment number `index`.
    #[must_use]
    pub fn segment_name(&self, index: u16) -> Option<&str> {
        self.segments.get(usize::from(index)).map(|segment| segment.name.as_str())
    }

    /// The name of device number `index`.
    #[must_use]
    pub fn device_name(&self, index: u16) -> Option<&str> {
        self.devices.get(usize::from(index)).map(|device| device.name.as_str())
    }

    /// How many processes `supervisor` supervises.
    #[must_use]
    pub fn supervised_by(&self, supervisor: u16) -> usize {
        self.processes.iter().filter(|process| process.supervisor == Some(supervisor)).count()
    }
}

//! A system as its description says it, with every default filled in and every rule checked.

use crate::can_network::CanNetwork;
use crate::carried::{ChainSpec, FarPipe, PipeSpec, Tpipe};
use crate::diagnostics::{Diagnostics, Problem, Report};
use crate::ethernet::{EthernetAdapter, UdpPort};
use crate::fault::kinds::InjectedFault;
use crate::machine::MachineProfile;
use crate::mode::ModeSpec;
use crate::plugged::{UsbBus, UsbPlug};
use crate::source::{Source, Span};
use crate::state::StateSpec;
use diapason_abi::archive::{Location, VCPUS_MAX};

/// A checked description. Processes are numbered in the order of the text, and so are objects:
/// first the semaphores, then the conditions, then the mailboxes, as in the boot archive.
#[derive(Clone, Debug)]
pub struct System {
    pub name: String,
    /// Bytes of RAM it may use.
    pub memory: u64,
    /// Instructions a second that the analysis counts on.
    pub clock_hz: u64,
    /// The computer that it is planned for, if one was measured.
    pub machine: Option<MachineProfile>,
    /// The number of this core on its host.
    pub core: u16,
    /// How many there are.
    pub cores: u16,
    pub processes: Vec<ProcessSpec>,
    /// Semaphores shared by name.
    pub semaphores: Vec<SemaphoreSpec>,
    /// Condition variables shared by name.
    pub conditions: Vec<ConditionSpec>,
    /// Mailboxes: the declared ones, then the receivers of fault reports, by supervisor.
    pub mailboxes: Vec<MailboxSpec>,
    /// Memory segments shared by name.
    pub segments: Vec<SegmentSpec>,
    /// Devices: the declared ones, then the messages of each.
    pub devices: Vec<DeviceSpec>,
    pub vcpus: Vec<VcpuSpec>,
    /// USB devices that are plugged in.
    pub usb: Vec<UsbPlug>,
    /// USB buses of which something is declared: per controller, one for each speed.
    pub buses: Vec<UsbBus>,
    /// Names of the endpoints on them, by their numbers.
    pub endpoints: Vec<String>,
    /// Works that its programs declare.
    pub works: Vec<WorkSpec>,
    /// Pipes between its devices and processes.
    pub pipes: Vec<PipeSpec>,
    /// Pipes of other cores that its processes read.
    pub far: Vec<FarPipe>,
    /// Pipes that its processes may open while it runs.
    pub tpipes: Vec<Tpipe>,
    /// State messages between its processes, and those of other cores.
    pub states: Vec<StateSpec>,
    /// Ways of messages from a pipe through several processes.
    pub chains: Vec<ChainSpec>,
    /// Critical sections that its programs declare.
    pub sections: Vec<CriticalSection>,
    /// Modes of operation; the first is the one in which it begins.
    pub modes: Vec<ModeSpec>,
    /// The faults in the simulator.
    pub faults: Vec<InjectedFault>,
    /// CAN buses whose messages are described.
    pub cans: Vec<CanNetwork>,
    /// Adapters for Ethernet that a process drives.
    pub adapters: Vec<EthernetAdapter>,
    /// UDP sockets of its processes.
    pub sockets: Vec<UdpPort>,
    /// The hosts around it, if it is one of a list.
    pub neighbours: Neighbours,
    /// In which order they run.
    pub scheduling: Scheduling,
    pub(crate) origin: Origin,
}

/// The hosts around a host, as the list that it is in says it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Neighbours {
    /// The names of all hosts of the list.
    pub hosts: Vec<String>,
    /// The ends of its links.
    pub links: Vec<FarEnd>,
}

/// The host at the other end of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FarEnd {
    /// The number of the process that serves the link.
    pub process: u16,
    /// The number of the link.
    pub link: u8,
    /// The root port where it begins; `None` at the debug capability.
    pub port: Option<u8>,
    /// The name of the other host.
    pub host: String,
}

impl Neighbours {
    /// Returns the name of the host that belongs at a root port.
    #[must_use]
    pub fn at_port(&self, port: u8) -> Option<&str> {
        let end = self.links.iter().find(|end| end.port == Some(port))?;
        Some(&end.host)
    }
}

/// Where in the text things stand that `build` may still complain about.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub source: Source,
    /// The memory size, or the header of the system if it is the default.
    pub memory: Span,
    /// The number of cores, or the header of the system if it is the default.
    pub cores: Span,
    /// The names of the processes' programs.
    pub programs: Vec<Span>,
    /// The names of the VCPUs.
    pub vcpus: Vec<Span>,
    /// The names of the pipes.
    pub pipes: Vec<Span>,
    /// The names of the places for tuned pipes.
    pub tpipes: Vec<Span>,
    /// The names of the state messages.
    pub states: Vec<Span>,
    /// The names of the chains.
    pub chains: Vec<Span>,
    /// The names of the endpoints.
    pub endpoints: Vec<Span>,
    /// The name of each mode, and its cameras.
    pub modes: Vec<(Span, Vec<Span>)>,
    /// The names of the sockets.
    pub sockets: Vec<Span>,
    /// The name of each CAN bus.
    pub cans: Vec<Span>,
    /// The name of each message on a CAN bus.
    pub messages: Vec<Span>,
    /// The header of `[scheduling]`, or of the system.
    pub scheduling: Span,
}

/// A process of the system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessSpec {
    pub name: String,
    /// The program it runs.
    pub program: String,
    /// Highest priority of its threads, and that of its first.
    pub priority: u8,
    /// Most bytes of heap.
    pub heap: u64,
    /// Bytes of each thread's stack.
    pub stack: u64,
    pub threads: u16,
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
    /// The number of times that the process may be started again after a fault.
    pub restart: Restart,
    /// Pause before the first restart, in ns; it doubles with each further one.
    pub backoff_ns: u64,
    /// The process starts at boot, not only by another process.
    pub start_at_boot: bool,
    /// The process may read the counters of the machine, which tell of all processes.
    pub counters: bool,
    /// Passed to its entry point.
    pub arguments: [u64; 4],
    /// The settings of its program, by name.
    pub settings: Vec<Setting>,
    /// Number of the VCPU of its first thread, if it has one.
    pub vcpu: Option<u16>,
    /// Most VCPUs it may make while it runs.
    pub vcpus: u16,
}

impl ProcessSpec {
    /// Returns what its program is told under a name.
    #[must_use]
    pub fn setting(&self, name: &str) -> &[u64] {
        let told = self.settings.iter().find(|setting| setting.name == name);
        told.map_or(&[], |setting| &setting.numbers)
    }

    /// Tells its program these numbers under a name, instead of what it was told.
    pub fn set(&mut self, name: &str, numbers: &[u64]) {
        self.settings.retain(|setting| setting.name != name);
        self.settings.push(Setting::new(name, numbers));
    }
}

/// Numbers that a program is told under a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    pub name: String,
    pub numbers: Vec<u64>,
}

impl Setting {
    /// Numbers under a name.
    #[must_use]
    pub fn new(name: &str, numbers: &[u64]) -> Setting {
        Setting { name: name.to_owned(), numbers: numbers.to_vec() }
    }
}

/// How often a process may be started again after a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    Never,
    AtMost(u32),
    Always,
}

/// A semaphore shared by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SemaphoreSpec {
    pub name: String,
    pub kind: SemaphoreKind,
    /// The processes that may use it, one bit each.
    pub allowed: u64,
}

/// The kind of a semaphore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SemaphoreKind {
    /// The mutex has an owner, and waiters lend the owner their priority.
    Mutex,
    /// A count that starts at this value.
    Counting(u64),
}

/// A condition variable shared by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConditionSpec {
    pub name: String,
    /// The processes that may use it, one bit each.
    pub allowed: u64,
}

/// A mailbox shared by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailboxSpec {
    pub name: String,
    pub messages: u16,
    /// The server that answers its callers, if it has one.
    pub served: Option<ServedBy>,
    /// The processes that may use it, one bit each.
    pub allowed: u64,
    /// The supervisor for whose fault reports it is, if it is not a declared one.
    pub faults_of: Option<u16>,
}

/// The server of a mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServedBy {
    /// The number of its process.
    pub process: u16,
    /// The mutex that it holds, by its number among the semaphores. Nobody else locks the mutex:
    /// callers wait for it.
    pub mutex: u16,
}

/// A memory segment shared by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentSpec {
    pub name: String,
    pub size: u64,
    /// Devices may be told where it is.
    pub dma: bool,
    /// The segment is used on several cores of the host.
    pub common: bool,
    /// The processes that may attach it, one bit each.
    pub allowed: u64,
}

/// A device: registers, or one of the messages (MSI-X) that a PCI device interrupts with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceSpec {
    pub name: String,
    /// The place of the device's registers, or the device whose message it is.
    pub location: Location,
    pub size: u64,
    /// The device's interrupt, if it has one.
    pub interrupt: Option<Interrupt>,
    /// The processes that may map it and wait for its interrupt, one bit each.
    pub allowed: u64,
    /// In the simulator: how it differs from other USB controllers.
    pub simulated: ControllerVariant,
}

/// The ways in which PCs' USB controllers differ, as the simulator's one can.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControllerVariant {
    /// Contexts of 64 bytes instead of 32.
    pub large_contexts: bool,
    /// It wants 64 pages for itself instead of 4.
    pub scratchpads: bool,
    /// Firmware has it until its driver asks.
    pub firmware: bool,
    /// It sends up to 8 messages by MSI, which nobody can hold back one by one.
    pub msi: bool,
}

/// How long what a program does under a name takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkSpec {
    /// The name that the program uses.
    pub name: String,
    pub best_ns: u64,
    pub worst_ns: u64,
}

/// A section of a process in which it holds a mutex.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CriticalSection {
    /// Number of the process.
    pub process: u16,
    /// Number of the mutex, among [`System::semaphores`].
    pub mutex: u16,
    /// Longest execution time from lock to unlock, in ns, sections inside included.
    pub longest_ns: u64,
    /// The number of times that a job, the work for a message, or one run of the section outside
    /// runs this one.
    pub times: u32,
    /// The section in which it lies: a place in [`System::sections`].
    pub inside: Option<usize>,
}

/// An interrupt of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// The interrupt's line at the I/O APIC, or from `diapason_abi::archive::MESSAGES` on a
    /// message.
    pub irq: u16,
    pub level: bool,
    /// Shortest time between two of them, in ns, if the description promises one.
    pub interval_ns: Option<u64>,
}

/// A virtual CPU: what threads run on, and what is scheduled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VcpuSpec {
    pub name: String,
    pub server: ServerSpec,
    /// The VCPU's queue: those by deadline first, most urgent first; the one by period is the last.
    /// An I/O VCPU stands in the most urgent queue among those it serves.
    pub queue: u8,
    /// The processes that may put threads on it, one bit each.
    pub allowed: u64,
}

/// How a VCPU's time is given out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerSpec {
    Main {
        /// Time it may use in every period, in ns.
        budget_ns: u64,
        period_ns: u64,
        /// Length of its replenishment list.
        replenishments: u8,
        /// The VCPU may run without budget while nobody else is ready.
        background: bool,
        /// Most budget that one job of a thread on it uses, in ns.
        job_ns: Option<u64>,
        /// Shortest time between the beginnings of two jobs, in ns; the period, if nothing is said.
        interval_ns: Option<u64>,
        /// The largest number of wake-ups of the VCPU by one job.
        wakes: u8,
    },
    /// A server for bottom halves (PIBS).
    Io {
        /// The VCPU's share of a processor, in parts per million.
        utilization_ppm: u32,
        /// The longest period its grants are computed from, in ns.
        cap_ns: Option<u64>,
        /// In any time of this length, in ns, it is woken …
        interval_ns: u64,
        /// … so often at most.
        wakes: u8,
        /// Numbers of the Main VCPUs it works for; at least one.
        serves: Vec<u16>,
    },
}

/// In which order VCPUs run, and how they are admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scheduling {
    /// Queues by earliest deadline, above the one by period. 0: rate monotonic.
    pub dp_queues: u8,
    /// The exact test admits, not the closed form.
    pub exact: bool,
}

/// Something in the text that a tool can point at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The process of this number.
    Process(u16),
    /// The VCPU of this number.
    Vcpu(u16),
    /// The pipe of this number.
    Pipe(u16),
    /// The place for a tuned pipe of this number.
    Tpipe(u16),
    /// The state message in this place.
    State(u16),
    /// The chain of this number.
    Chain(u16),
    /// The USB endpoint of this number.
    Endpoint(u32),
    /// The socket of this number.
    Socket(u16),
    /// The CAN bus of this number.
    Can(u16),
    /// The message on a CAN bus of this number.
    CanMessage(u16),
    /// The mode of this number.
    Mode(u16),
    /// A camera of a mode, by their numbers.
    ModeCamera(u16, u16),
    /// The number of cores.
    Cores,
    /// The scheduling as a whole.
    Scheduling,
    /// The description as a whole.
    Description,
}

impl System {
    /// Returns the name of process number `index`, for tables and traces.
    #[must_use]
    pub fn process_name(&self, index: u16) -> Option<&str> {
        self.processes.get(usize::from(index)).map(|process| process.name.as_str())
    }

    /// Returns the name of object number `index` of the boot archive.
    #[must_use]
    pub fn object_name(&self, index: u16) -> Option<&str> {
        let semaphores = self.semaphores.iter().map(|object| &object.name);
        let conditions = self.conditions.iter().map(|object| &object.name);
        let mailboxes = self.mailboxes.iter().map(|object| &object.name);
        let name = semaphores.chain(conditions).chain(mailboxes).nth(usize::from(index))?;
        Some(name)
    }

    /// Returns the name of segment number `index`.
    #[must_use]
    pub fn segment_name(&self, index: u16) -> Option<&str> {
        self.segments.get(usize::from(index)).map(|segment| segment.name.as_str())
    }

    /// Returns the name of device number `index`.
    #[must_use]
    pub fn device_name(&self, index: u16) -> Option<&str> {
        self.devices.get(usize::from(index)).map(|device| device.name.as_str())
    }

    /// Returns the name of USB endpoint number `index`.
    #[must_use]
    pub fn endpoint_name(&self, index: u32) -> Option<&str> {
        self.endpoints.get(index as usize).map(String::as_str)
    }

    /// Returns the name of VCPU number `index`.
    #[must_use]
    pub fn vcpu_name(&self, index: u16) -> Option<&str> {
        self.vcpus.get(usize::from(index)).map(|vcpu| vcpu.name.as_str())
    }

    /// Returns whether a thread of process number `index` may run on a VCPU.
    #[must_use]
    pub fn may_reserve(&self, index: usize) -> bool {
        let granted = |v: &VcpuSpec| index < 64 && v.allowed >> index & 1 == 1;
        let own = |p: &ProcessSpec| p.vcpu.is_some() || p.vcpus > 0;
        self.processes.get(index).is_some_and(own) || self.vcpus.iter().any(granted)
    }

    /// Returns whether a thread of a process may be on a VCPU of the description.
    #[must_use]
    pub fn may_be_on(&self, process: usize, vcpu: u16) -> bool {
        let begins = self.processes.get(process).is_some_and(|it| it.vcpu == Some(vcpu));
        let allowed = self.vcpus.get(usize::from(vcpu)).map_or(0, |it| it.allowed);
        begins || process < 64 && allowed >> process & 1 == 1
    }

    /// VCPUs in use at a time, those that processes may make included.
    #[must_use]
    pub fn vcpus_at_most(&self) -> u64 {
        self.vcpus.len() as u64 + self.processes.iter().map(|p| u64::from(p.vcpus)).sum::<u64>()
    }

    /// Returns a problem that another stage found with this system, shown at `place` as those of
    /// this crate are: what is wrong (`title`, and `label` beside the place), facts, and the
    /// remedy.
    #[must_use]
    pub fn problem(&self, place: Place, [title, label, note, help]: [&str; 4]) -> Diagnostics {
        let nowhere = 0..0;
        let span = match place {
            Place::Process(index) => {
                self.origin.programs.get(usize::from(index)).unwrap_or(&nowhere)
            }
            Place::Vcpu(index) => self.origin.vcpus.get(usize::from(index)).unwrap_or(&nowhere),
            Place::Pipe(index) => self.origin.pipes.get(usize::from(index)).unwrap_or(&nowhere),
            Place::Tpipe(index) => self.origin.tpipes.get(usize::from(index)).unwrap_or(&nowhere),
            Place::State(index) => self.origin.states.get(usize::from(index)).unwrap_or(&nowhere),
            Place::Chain(index) => self.origin.chains.get(usize::from(index)).unwrap_or(&nowhere),
            Place::Endpoint(index) => self.origin.endpoints.get(index as usize).unwrap_or(&nowhere),
            Place::Socket(index) => self.origin.sockets.get(usize::from(index)).unwrap_or(&nowhere),
            Place::Can(index) => self.origin.cans.get(usize::from(index)).unwrap_or(&nowhere),
            Place::CanMessage(index) => {
                self.origin.messages.get(usize::from(index)).unwrap_or(&nowhere)
            }
            Place::Mode(index) => {
                self.origin.modes.get(usize::from(index)).map_or(&nowhere, |(name, _)| name)
            }
            Place::ModeCamera(mode, camera) => {
                let mode = self.origin.modes.get(usize::from(mode));
                mode.and_then(|mode| mode.1.get(usize::from(camera))).unwrap_or(&nowhere)
            }
            Place::Cores => &self.origin.cores,
            Place::Scheduling => &self.origin.scheduling,
            Place::Description => &nowhere,
        };
        let mut problem = Problem::new(span, title, help).label(label);
        if !note.is_empty() {
            problem = problem.note(note);
        }
        let mut report = Report::new();
        report.push(problem);
        Diagnostics::new(self.origin.source.clone(), report)
    }

    /// Returns a number that stands for the text of the description and all files that it includes.
    #[must_use]
    pub fn text_key(&self) -> u64 {
        diapason_abi::Key::new(&self.origin.source.text).0
    }

    /// Returns the problem, if there can be more VCPUs than the kernel schedules.
    #[must_use]
    pub fn overcrowded(&self) -> Option<Diagnostics> {
        let (most, all) = (u64::from(VCPUS_MAX), self.vcpus_at_most());
        if all <= most {
            return None;
        }
        let declared = self.vcpus.len() as u64;
        let title = format!("the system may have {all} VCPUs, the kernel schedules {most}");
        let note = format!("{declared} are declared, processes may make {}", all - declared);
        let help = format!("do with {} fewer: put several threads on one", all - most);
        let place = if declared > most { Place::Vcpu(VCPUS_MAX) } else { Place::Scheduling };
        Some(self.problem(place, [&title, "", &note, &help]))
    }

    /// Returns how many processes `supervisor` supervises.
    #[must_use]
    pub fn supervised_by(&self, supervisor: u16) -> usize {
        self.processes.iter().filter(|process| process.supervisor == Some(supervisor)).count()
    }
}

//! The declarations of a description, item by item, with the place of everything that a later stage
//! may refuse. Values are in range already; names are not resolved yet.

use crate::can_network::{CanClass, CanScheduler};
use crate::carried::{FarPipe, PipeDirection, PipeEnd};
use crate::fault::kinds::FaultKind;
use crate::limits::HUBS;
use crate::mailbox::DeclaredMailbox;
use crate::plugged::UsbModel;
use crate::source::{At, Span};
use crate::sources;
use crate::state::StateField;
use crate::system::{ControllerVariant, ProcessSpec, SemaphoreKind, ServerSpec};
use diapason_abi::archive::PciFunction;
use diapason_bus::{Async, BusInstance, PeriodicEndpoint, Speed};
use diapason_contract::ethernet::Peer;
use diapason_contract::source::PipeSource;

#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub name: String,
    pub memory: At<u64>,
    pub clock_hz: u64,
    /// The number of cores.
    pub cores: At<u16>,
    /// The core that this is about: the first, or the one whose part this is.
    pub core: u16,
    /// The USB server in a line.
    pub server: Option<AskedServer>,
    pub processes: Vec<DeclaredProcess>,
    pub semaphores: Vec<Named<SemaphoreKind>>,
    pub conditions: Vec<Named<()>>,
    pub mailboxes: Vec<Named<DeclaredMailbox>>,
    pub segments: Vec<Named<DeclaredSegment>>,
    pub devices: Vec<Named<DeclaredDevice>>,
    pub doorbells: Vec<Named<DeclaredBell>>,
    pub vcpus: Vec<Named<DeclaredVcpu>>,
    pub usb: Vec<DeclaredUsb>,
    pub buses: Vec<DeclaredBus>,
    pub endpoints: Vec<DeclaredEndpoint>,
    pub works: Vec<DeclaredWork>,
    pub pipes: Vec<DeclaredPipe>,
    /// Pipes of other cores whose readers are here.
    pub far: Vec<FarPipe>,
    pub tpipes: Vec<DeclaredTpipe>,
    pub states: Vec<DeclaredState>,
    pub chains: Vec<DeclaredChain>,
    pub sections: Vec<DeclaredSection>,
    pub modes: Vec<DeclaredMode>,
    pub faults: Vec<DeclaredFault>,
    pub cans: Vec<DeclaredCan>,
    pub messages: Vec<DeclaredMessage>,
    pub adapters: Vec<DeclaredAdapter>,
    pub sockets: Vec<DeclaredSocket>,
    pub scheduling: DeclaredScheduling,
    /// The places of the lists' headers, for what is wrong with a list as a whole.
    pub top: Span,
}

impl Declared {
    /// Returns the number of the process of this name.
    pub fn process(&self, name: &str) -> Option<usize> {
        self.processes.iter().position(|process| process.name.value == name)
    }

    /// Returns the pipe of this name, and its number.
    pub fn pipe(&self, name: &str) -> Option<(usize, &DeclaredPipe)> {
        self.pipes.iter().enumerate().find(|(_, pipe)| pipe.name.value == name)
    }

    /// Returns the CAN bus that carries a message.
    pub fn can(&self, message: &DeclaredMessage) -> Option<&DeclaredCan> {
        self.cans.iter().find(|can| message.is_on(can))
    }

    /// Returns the USB device of this name, and its number.
    pub fn plug(&self, name: &str) -> Option<(usize, &DeclaredUsb)> {
        self.usb.iter().enumerate().find(|(_, usb)| usb.name.value == name)
    }

    /// Returns the hubs between a device and its controller; one more than there may be if there
    /// is no end.
    pub fn hubs_above<'a>(&'a self, usb: &'a DeclaredUsb) -> impl Iterator<Item = &'a DeclaredUsb> {
        let above = |usb: &&'a DeclaredUsb| Some(self.plug(&usb.behind.as_ref()?.value)?.1);
        std::iter::successors(above(&usb), above).take(HUBS + 1)
    }

    /// Returns the controller that a device is plugged into, through however many hubs.
    pub fn controller_of<'a>(&'a self, usb: &'a DeclaredUsb) -> Option<&'a At<String>> {
        let last = self.hubs_above(usb).last().unwrap_or(usb);
        last.on.as_ref().filter(|_| last.behind.is_none())
    }

    /// Returns the number of the process that drives the controller of a device.
    pub fn server_of(&self, usb: Option<&At<String>>) -> Option<usize> {
        let on = &self.controller_of(self.plug(&usb?.value)?.1)?.value;
        let drives = |process: &DeclaredProcess| process.uses.iter().any(|used| used.value == *on);
        self.processes.iter().position(drives)
    }

    /// Returns the source of a pipe whose reader may be on another core than its server. Pipes to
    /// devices, of CAN channels, and of readers that ask their server cannot.
    pub fn crossing(&self, pipe: &DeclaredPipe) -> Option<&'static PipeSource> {
        let source = sources::of(self, pipe)?;
        (source.form.is_told() && source.home.asked.is_none()).then_some(source)
    }

    /// Returns whether a pipe leads from the core of its server to a reader on another one.
    pub fn crosses(&self, pipe: &DeclaredPipe) -> bool {
        let core = |number: Option<usize>| Some(self.processes[number?].core.value);
        let reader = pipe.process.as_ref().and_then(|name| self.process(&name.value));
        let (server, reader) = (core(self.server_of(pipe.usb.as_ref())), core(reader));
        server.zip(reader).is_some_and(|(server, reader)| server != reader)
            && self.crossing(pipe).is_some()
    }
}

/// `[usbd]`: what the description says of the server that the table stands for.
#[derive(Clone, Debug)]
pub(crate) struct AskedServer {
    pub core: u16,
    /// The settings that the table has: name and numbers.
    pub settings: Vec<(&'static str, Vec<u64>)>,
    /// Names of what it uses besides all that it needs.
    pub uses: Vec<At<String>>,
}

/// A CAN bus as `[[can]]` has it.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredCan {
    pub name: At<String>,
    pub rate: Option<At<u64>>,
    pub data_rate: Option<At<u64>>,
    pub scheduler: Option<At<CanScheduler>>,
    pub epoch: Option<At<u64>>,
    pub clocks: Option<At<u64>>,
    /// Within this time each node renews its identifiers when its clock says so.
    pub renewal: Option<At<u64>>,
    pub time: DeclaredCanTime,
    /// Name of the interface of this host, and its channel.
    pub usb: Option<At<String>>,
    pub channel: Option<At<u64>>,
    /// Name of the device that is the controller of this host, and how many messages have a buffer
    /// of their own.
    pub controller: Option<At<String>>,
    pub own_buffers: Option<At<u64>>,
    /// The time for each further frame that is destroyed, and how many are at once.
    pub error_interval: Option<At<u64>>,
    pub error_burst: Option<At<u64>>,
    /// Names of nodes that send in the order of requests.
    pub in_order: Vec<At<String>>,
}

/// The keys of a `[[can]]` about its common time.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredCanTime {
    /// Name of the message that carries the time.
    pub message: Option<At<String>>,
    pub read: Option<At<u64>>,
    pub step: Option<At<u64>>,
    pub drift: Option<At<u64>>,
    pub losses: Option<At<u64>>,
}

impl DeclaredCan {
    /// Returns whether its scheduler is this one.
    pub fn is(&self, scheduler: CanScheduler) -> bool {
        self.scheduler.as_ref().is_some_and(|own| own.value == scheduler)
    }

    /// Returns its channel, the first if nothing is said.
    pub fn channel(&self) -> u64 {
        self.channel.as_ref().map_or(0, |channel| channel.value)
    }
}

/// A message on a bus as `[[message]]` has it.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredMessage {
    pub name: At<String>,
    /// Name of the bus.
    pub bus: Option<At<String>>,
    /// Name of the sender: a process of this host, or a node.
    pub process: Option<At<String>>,
    pub node: Option<At<String>>,
    /// Name of the process of this host that reads it, and the longest it takes for one.
    pub reader: Option<At<String>>,
    pub work: Option<At<u64>>,
    pub class: Option<At<CanClass>>,
    pub bytes: Option<At<u64>>,
    /// The message is a frame of CAN FD.
    pub fd: bool,
    pub period: Option<At<u64>>,
    pub deadline: Option<At<u64>>,
    pub jitter: Option<At<u64>>,
    pub id: Option<At<u64>>,
    pub extended: bool,
}

impl DeclaredMessage {
    /// Returns whether its class is this one.
    pub fn is(&self, class: CanClass) -> bool {
        self.class.as_ref().is_some_and(|own| own.value == class)
    }

    /// Returns whether this bus carries it.
    pub fn is_on(&self, can: &DeclaredCan) -> bool {
        self.bus.as_ref().is_some_and(|bus| bus.value == can.name.value)
    }
}

/// An adapter for Ethernet as `[[adapter]]` has it.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredAdapter {
    pub place: Span,
    /// Name of its device.
    pub device: Option<At<String>>,
    pub address: [u8; 4],
    pub mac: [u8; 6],
    /// The speed of the wire, in Mbit/s.
    pub speed: u64,
    /// Most frames a second in the long run, and at once, if the description says.
    pub traffic: Option<(u64, u64)>,
    /// The first key that is there and that only a card has, and its place.
    pub of_card: Option<(Span, &'static str)>,
}

/// A UDP socket as `[[socket]]` has it.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredSocket {
    pub name: At<String>,
    /// Name of the device of its adapter.
    pub adapter: Option<At<String>>,
    /// Name of the process that has it.
    pub process: Option<At<String>>,
    pub port: At<u64>,
    pub real_time: bool,
    /// The priority in the tag of the frames that it sends, if they have one.
    pub priority: Option<u8>,
    pub quota: At<u64>,
    pub bytes: u64,
    pub period: Option<At<u64>>,
    pub burst: u64,
    pub work_ns: Option<u64>,
    pub latency: Option<At<u64>>,
    pub peer: Option<Peer>,
}

/// Something shared by name.
#[derive(Clone, Debug)]
pub(crate) struct Named<T> {
    pub name: At<String>,
    pub what: T,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredSegment {
    pub size: u64,
    /// Devices may be told where it is.
    pub dma: bool,
    /// The segment is used on several cores.
    pub common: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredBell {
    /// Name of the process that answers it.
    pub answered_by: Option<At<String>>,
    /// Shortest time between two rings that are heard.
    pub interval: Option<u64>,
    /// The core where it is answered, and its number among all; known once all is read.
    pub core: u16,
    pub number: u16,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredDevice {
    pub place: DeclaredPlace,
    pub size: u64,
    /// The device's line at the I/O APIC.
    pub irq: Option<At<u16>>,
    pub level: bool,
    /// The number of messages that the device sends.
    pub irqs: Option<At<u16>>,
    /// One for all of its interrupts, one for each, or none.
    pub intervals: Vec<u64>,
    pub simulated: ControllerVariant,
}

impl DeclaredDevice {
    /// Returns how often it can interrupt: by its line, or by each of its messages.
    pub fn interrupts(&self) -> u16 {
        u16::from(self.irq.is_some()) + self.messages()
    }

    /// Returns how many messages it sends.
    pub fn messages(&self) -> u16 {
        self.irqs.as_ref().map_or(0, |irqs| irqs.value)
    }

    /// Returns the interval of its interrupt number `index`.
    pub fn interval(&self, index: u16) -> Option<u64> {
        self.intervals.get(usize::from(index)).or(self.intervals.first()).copied()
    }
}

/// Where a device is.
#[derive(Clone, Debug)]
pub(crate) enum DeclaredPlace {
    /// At a physical address.
    Address(At<u64>),
    /// Where a PCI function says.
    Pci(At<PciFunction>),
    /// Something is wrong with its keys, and has been reported.
    Unusable,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredUsb {
    pub name: At<String>,
    /// Name of its controller.
    pub on: Option<At<String>>,
    /// Name of the hub it is plugged into instead.
    pub behind: Option<At<String>>,
    pub port: At<u64>,
    pub model: Option<UsbModel>,
    /// Vendor and product of an adapter of the computer on which QEMU runs.
    pub adapter: Option<At<(u16, u16)>>,
    /// Channels whose bus has a receiver, and the shortest and the longest time that it takes for a
    /// frame.
    pub receivers: Vec<At<String>>,
    pub turn: Vec<At<u64>>,
    pub drift: Option<At<u64>>,
    pub clock_at: Option<At<u64>>,
    /// Channels whose bus has a sender, and the shortest and the longest time between its frames.
    pub senders: Vec<At<String>>,
    pub gap: Vec<At<u64>>,
    pub takes: Option<At<u64>>,
    /// Numbered frames a second on each channel, from the first on; channels whose identifiers are
    /// extended.
    pub traffic: Vec<At<u64>>,
    pub extended: Vec<At<String>>,
    pub replay: Vec<At<String>>,
    pub vendor: Option<At<u64>>,
    pub product: Option<At<u64>>,
    pub serial: Option<At<String>>,
    /// The number of its CAN channels, and that of the first among those of the host. The latter is
    /// known once all is read.
    pub channels: Option<At<u64>>,
    pub first_channel: usize,
    /// The number of a camera with pipes among those of the host, known once all is read; 0 of any
    /// other device.
    pub seat: usize,
    /// Bit rates of its CAN channels, from the first on.
    pub bit_rates: Vec<At<u64>>,
    /// Rates of the data of CAN FD on its channels; 0 of a classic one.
    pub data_rates: Vec<At<u64>>,
    /// The place in a bit at which the receiver samples it, in tenths of a per cent.
    pub sample_point: Option<At<u64>>,
    /// The time after which a channel that went bus-off is opened again.
    pub restart: Option<At<u64>>,
}

/// A mode of operation as `[[mode]]` has it.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredMode {
    pub name: At<String>,
    pub cameras: Vec<DeclaredCamera>,
}

/// A camera that streams in a mode.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredCamera {
    pub place: Span,
    /// Name of the USB device.
    pub name: Option<At<String>>,
    /// Most bytes of an interval.
    pub bytes: Option<At<u64>>,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredBus {
    /// Name of its controller.
    pub on: Option<At<String>>,
    pub bus: BusInstance,
    /// The control endpoints of its devices count.
    pub control: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredEndpoint {
    pub name: At<String>,
    /// Name of its controller.
    pub on: Option<At<String>>,
    pub speed: Speed,
    pub what: DeclaredTransfers,
}

/// The transfers of an endpoint whose number is not known yet.
#[derive(Clone, Debug)]
pub(crate) enum DeclaredTransfers {
    Periodic(PeriodicEndpoint),
    Async(Async),
    /// Something is wrong with its keys, and has been reported.
    Unusable,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredWork {
    pub name: Option<At<String>>,
    pub best: At<u64>,
    pub worst: At<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredPipe {
    pub name: At<String>,
    pub way: PipeDirection,
    /// Name of the USB device.
    pub usb: Option<At<String>>,
    pub channel: At<u64>,
    /// Name of the process at the other end.
    pub process: Option<At<String>>,
    /// The place of that process, if it is not on the server's core.
    pub beyond: Option<PipeEnd>,
    pub rate: u64,
    pub period: Option<At<u64>>,
    pub bytes: Option<At<u64>>,
    pub stamp: Option<At<u64>>,
    /// The number of the device's endpoint.
    pub endpoint: Option<At<u64>>,
    pub burst: u64,
    pub jitter_ns: u64,
    pub work_ns: Option<u64>,
    pub latency: Option<At<u64>>,
    /// Keys of its contract and of its messages that it does not have, not even with a value that
    /// is out of range.
    pub unsaid: Vec<&'static str>,
}

impl DeclaredPipe {
    /// Returns whether it does not have a key of its contract or of its messages.
    pub fn lacks(&self, key: &str) -> bool {
        self.unsaid.contains(&key)
    }

    /// Returns whether a program writes it.
    pub fn is_to_device(&self) -> bool {
        self.way == PipeDirection::ToDevice
    }
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredTpipe {
    pub name: At<String>,
    /// Name of the USB device.
    pub usb: Option<At<String>>,
    /// Name of the process that may open it.
    pub process: Option<At<String>>,
    /// Those it may listen to, and those it may write to.
    pub channels: Vec<At<u64>>,
    pub to: Vec<At<u64>>,
    pub rate: At<u64>,
    pub burst: At<u64>,
    pub budget: At<u64>,
    pub period: At<u64>,
}

/// A state message as `[[state]]` has it.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredState {
    pub name: At<String>,
    pub fields: Vec<StateField>,
    /// Names of the process that writes it, and of those that read it.
    pub writer: Option<At<String>>,
    pub readers: Vec<At<String>>,
    /// The shortest time between two writes, if the description says it.
    pub period: Option<At<u64>>,
    pub slots: Option<At<u64>>,
    /// The number of the message, the time between two writes and the slots that its readers need;
    /// known once all is read.
    pub number: u8,
    pub every_ns: Option<u64>,
    pub needed: Option<u64>,
    /// The longest time of a read by each reader.
    pub windows: Vec<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredChain {
    pub name: At<String>,
    /// Name of the pipe it begins with.
    pub from: Option<At<String>>,
    /// Name of the pipe it ends with.
    pub to: Option<At<String>>,
    pub latency: Option<At<u64>>,
    pub links: Vec<DeclaredLink>,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredLink {
    pub place: Span,
    /// Name of the process.
    pub process: Option<At<String>>,
    /// Name of what hands messages over to it.
    pub by: Option<At<String>>,
    /// The period in which the thread takes a value.
    pub every: Option<At<u64>>,
    /// Places of the ring that a semaphore counts.
    pub slots: Option<At<u64>>,
    pub work_ns: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredSection {
    pub place: Span,
    /// Name of the process.
    pub process: Option<At<String>>,
    /// Name of the mutex.
    pub mutex: Option<At<String>>,
    /// Longest execution time from lock to unlock.
    pub longest: Option<At<u64>>,
    /// The number of times that a job runs the section.
    pub times: u32,
    /// Name of the mutex that is held meanwhile.
    pub inside: Option<At<String>>,
}

/// `[[fault]]`, or a `--fault`.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredFault {
    pub at: u64,
    pub kind: FaultKind,
    /// Name of what it happens to; none for the host.
    pub target: Option<At<String>>,
    pub arguments: [u64; 2],
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredProcess {
    pub name: At<String>,
    pub core: At<u16>,
    pub program: Span,
    pub restart: Span,
    pub start_at_boot: Span,
    pub uses: Vec<At<String>>,
    pub starts: Vec<At<String>>,
    pub supervisor: Supervision,
    pub vcpu: Option<At<String>>,
    /// The process, but for what names something else. `program`, `restart` and `start_at_boot`
    /// are places of its keys.
    pub whole: ProcessSpec,
}

#[derive(Clone, Debug)]
pub(crate) enum DeclaredVcpu {
    /// A Main VCPU, and the places of its budget and its period.
    Main { server: ServerSpec, budget: Span, period: Span },
    /// A server for bottom halves without those it serves, the place of its share, and the names of
    /// Main VCPUs that it serves.
    Io { server: ServerSpec, utilization: Span, serves: Vec<At<String>> },
    /// Something is wrong with its keys, and has been reported.
    Unusable,
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredScheduling {
    pub dynamic: Dynamic,
    /// The queue by period, if it is spelt out.
    pub fixed: Option<Vec<At<String>>>,
    /// The place of `fixed`, for what is missing from it.
    pub fixed_place: Span,
    pub exact: bool,
    /// Where the table is, or where it would be missed.
    pub place: Span,
}

/// The queues by deadline.
#[derive(Clone, Debug)]
pub(crate) enum Dynamic {
    /// These, most urgent first.
    Queues(Vec<At<Vec<At<String>>>>),
    /// One, of all Main VCPUs.
    All,
}

/// The receiver of fault reports.
#[derive(Clone, Debug)]
pub(crate) enum Supervision {
    /// Nothing said: the process named `supervisor`, if there is one.
    Default,
    Nobody(Span),
    By(At<String>),
}

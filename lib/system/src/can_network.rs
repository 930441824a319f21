//! A CAN bus and its messages, as a description that was checked has them.

use diapason_can::response::Errors;

pub(crate) const SCHEDULERS: [(&str, CanScheduler); 3] = [
    ("mts", CanScheduler::Mts),
    ("deadline-monotonic", CanScheduler::DeadlineMonotonic),
    ("as-written", CanScheduler::AsWritten),
];
pub(crate) const CLASSES: [(&str, CanClass); 3] =
    [("high", CanClass::High), ("low", CanClass::Low), ("none", CanClass::NonRealTime)];

/// Furthest clocks from the common time, in nanoseconds.
pub const CLOCKS_MAX: u64 = 1_000_000;

/// The rule by which messages go first on a bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CanScheduler {
    /// Deadlines in identifiers, renewed in every epoch: the mixed traffic scheduler.
    Mts,
    /// The shorter its deadline, the more urgent a message.
    DeadlineMonotonic,
    /// The identifiers of the description.
    AsWritten,
}

/// The kinds of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CanClass {
    /// Due soon: under MTS the earliest deadline goes first.
    High,
    /// Due later, below all those.
    Low,
    /// Not due at any time, below all others.
    NonRealTime,
}

/// A CAN bus whose messages are described.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CanNetwork {
    pub name: String,
    /// In bits a second.
    pub rate: u32,
    /// The rate of the data in frames of CAN FD, at least [`CanNetwork::rate`].
    pub data_rate: u32,
    pub scheduler: CanScheduler,
    /// The length of an epoch under MTS, if the description says.
    pub epoch_ns: Option<u64>,
    /// How far the clock of a node is from the common time at most, under MTS, if the description
    /// says. It does unless there is [`CanNetwork::time`].
    pub clocks_ns: Option<u64>,
    /// Under MTS, each node renews its identifiers within this time after its clock says that an
    /// epoch is over. None: they renew together, after a frame that tells them to.
    pub renewal_ns: Option<u64>,
    /// The message by which the nodes keep the common time, under MTS.
    pub time: Option<CanTime>,
    /// The CAN interface of this host that is on it: a number of
    /// [`System::usb`](crate::System::usb), and its channel.
    pub interface: Option<(usize, u8)>,
    /// The controller with message buffers by which this host is on it.
    pub controller: Option<CanController>,
    /// How often frames are destroyed at most.
    pub errors: Errors,
    /// The names of nodes that send in the order of requests, whatever is more urgent.
    pub in_order: Vec<String>,
    pub messages: Vec<CanMessage>,
}

/// The message that carries the time of a bus, and the clocks that follow it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CanTime {
    /// The place of the message in [`CanNetwork::messages`].
    pub message: usize,
    /// Longest time from the end of a frame until a node has read its clock, one bit included.
    pub read_ns: u64,
    /// The step of the clocks.
    pub step_ns: u64,
    /// Each clock is faster or slower than true time by at most this, in parts per million.
    pub drift_ppm: u32,
    /// A node keeps the time although it loses so many frames of the message in a row.
    pub losses: u32,
}

/// A CAN controller with message buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CanController {
    /// The controller's number on the host: the device is called `toucan` and this number.
    pub number: u8,
    /// The number of the device.
    pub device: usize,
    /// The least distance of two of its interrupts.
    pub interval_ns: u64,
    /// The number of the process that drives it.
    pub driver: u16,
    /// How many of the most urgent messages of this host have a buffer of their own.
    pub own: u8,
}

/// A message that some node sends again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CanMessage {
    pub name: String,
    /// The message's number among all messages of the description.
    pub number: u16,
    pub sender: CanSender,
    /// The process of this host that reads it, by a controller with message buffers.
    pub reader: Option<String>,
    /// The longest that the reader takes for one.
    pub work_ns: u64,
    /// The shortest time between two. None for one that is not due at any time.
    pub period_ns: Option<u64>,
    /// The deadline of the message, from its arrival. None: it is not due.
    pub deadline_ns: Option<u64>,
    /// The longest time from the message's arrival until it is in the queue of its node.
    pub jitter_ns: u64,
    /// Most bytes of data.
    pub bytes: u8,
    /// The message is a frame of CAN FD.
    pub fd: bool,
    /// The message's class, if the description says.
    pub class: Option<CanClass>,
    /// The message's identifier, and whether it is an extended one, if the description says.
    pub id: Option<(u32, bool)>,
}

/// The sender of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CanSender {
    /// A process of this host.
    Process(String),
    /// A node of which nothing but its messages is described.
    Node(String),
}

impl CanScheduler {
    /// Returns the word that a description has for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        SCHEDULERS.iter().find(|(_, it)| *it == self).map_or("", |(name, _)| name)
    }
}

impl CanClass {
    /// Returns the word that a description has for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        CLASSES.iter().find(|(_, it)| *it == self).map_or("", |(name, _)| name)
    }
}

impl CanNetwork {
    /// Returns whether this host is not on the bus.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        self.interface.is_none() && self.controller.is_none()
    }

    /// Returns whether another node of this name sends on the bus.
    #[must_use]
    pub fn has_node(&self, name: &str) -> bool {
        let is_it = |message: &CanMessage| match &message.sender {
            CanSender::Node(node) => node == name,
            CanSender::Process(_) => false,
        };
        self.messages.iter().any(is_it)
    }
}

impl CanSender {
    /// Returns the name of the node or of the process.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            CanSender::Process(name) | CanSender::Node(name) => name,
        }
    }
}

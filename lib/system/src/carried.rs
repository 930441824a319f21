//! The carriers of messages in a system: pipes between devices and processes, and chains through
//! several processes.

use crate::system::System;
use diapason_abi::Nanos;
use diapason_abi::pipe::Envelope;
use diapason_contract::carried::{Contract, PER_MAX};
use diapason_contract::source::{MessageForm, MessageShape, PipeSource};

/// The direction of the messages of a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipeDirection {
    /// From the device to a process that reads them.
    FromDevice,
    /// From a process that writes them to the device.
    ToDevice,
}

/// The process at the end of a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipeEnd {
    /// It is on the core of the server, and has this number.
    Here(u16),
    /// It is on another core, and has this number there.
    Beyond { core: u16, process: u16 },
}

/// A pipe whose reader is on this core, and whose server is on another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FarPipe {
    pub name: String,
    /// Number of the process that reads.
    pub process: u16,
    /// The number of its source, as [`PipeSpec::number`].
    pub number: u8,
}

/// Messages between a device and the thread at the other end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipeSpec {
    pub name: String,
    /// The USB device: a number of [`System::usb`](crate::System::usb).
    pub usb: usize,
    /// The channel of the device.
    pub channel: u8,
    /// The number of that channel among those of the host: N of the objects `canN`, or beyond those
    /// the number of a [`PipeSource`](diapason_contract::source::PipeSource).
    pub number: u8,
    /// Number of the process that drives the device.
    pub server: u16,
    pub way: PipeDirection,
    /// The process that reads or writes, on the VCPU of its first thread.
    pub end: PipeEnd,
    /// Most messages a second, in the long run, rounded up.
    pub rate: u64,
    /// The time from one message to the next in the long run, in ns, if the description says that
    /// instead of the rate.
    pub period_ns: Option<u64>,
    /// The shape of its messages, if its device is no CAN interface.
    pub shape: MessageShape,
    /// The number of the device's endpoint, if the pipe is of any endpoint; else 0.
    pub endpoint: u8,
    /// Most messages at once.
    pub burst: u64,
    /// How long after its nominal time a message may come, in ns.
    pub jitter_ns: u64,
    /// Longest time the process takes for a message, in ns, if the description says it.
    pub work_ns: Option<u64>,
    /// The longest that a message may take, in ns, if that matters.
    pub latency_ns: Option<u64>,
    /// How its reader sends each message to another host, if a flow says so.
    pub sent_on: Option<SentOn>,
    /// Its writer writes the messages of a flow from another host, as they come.
    pub ends_flow: bool,
}

/// The means by which the reader of a pipe sends messages to another host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SentOn {
    /// By a link, over a cable.
    Link,
    /// By a socket, as a datagram.
    Socket,
}

impl System {
    /// Returns how many pipes a process reads or writes, those of other cores included.
    #[must_use]
    pub fn pipe_ends(&self, process: u16) -> usize {
        let far = self.far.iter().filter(|pipe| pipe.process == process);
        self.pipes.iter().filter(|pipe| pipe.ends_at(process)).count() + far.count()
    }
}

impl PipeSpec {
    /// Returns the number of the process that reads or writes, if it is on the server's core.
    #[must_use]
    pub const fn process(&self) -> Option<u16> {
        match self.end {
            PipeEnd::Here(process) => Some(process),
            PipeEnd::Beyond { .. } => None,
        }
    }

    /// Returns whether this process of the server's core reads or writes it.
    #[must_use]
    pub fn ends_at(&self, process: u16) -> bool {
        self.process() == Some(process)
    }

    /// Returns the source that it comes from, or the sink that it goes to. A pipe of a CAN
    /// interface has none.
    #[must_use]
    pub fn source(&self) -> Option<&'static PipeSource> {
        PipeSource::numbered(self.number.into())
    }

    /// Returns whether a program writes its messages for the endpoint of a device that is no CAN
    /// interface: each is through when the server knows that the device has it.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.way == PipeDirection::ToDevice && self.source().is_some()
    }

    /// Returns whether its messages are runs of blocks of a disk.
    #[must_use]
    pub fn has_blocks(&self) -> bool {
        self.source().is_some_and(|source| matches!(source.form, MessageForm::Blocks(_)))
    }

    /// Returns whether its messages are frames of a network.
    #[must_use]
    pub fn has_frames(&self) -> bool {
        let form = self.source().map(|source| source.form);
        matches!(form, Some(MessageForm::Frame(_) | MessageForm::SentFrame(_)))
    }

    /// Returns the most that it carries.
    #[must_use]
    pub fn contract(&self) -> Contract {
        let every = |period: u64| (1, Nanos(period));
        let rate = (u32::try_from(self.rate).unwrap_or(u32::MAX), PER_MAX);
        let (messages, per) = self.period_ns.map_or(rate, every);
        Contract { messages, per, burst: self.burst, jitter: Nanos(self.jitter_ns) }
    }
}

/// The way of messages from a pipe through several processes. The pipe's reader is the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainSpec {
    pub name: String,
    /// The pipe it begins with: a number of [`System::pipes`](crate::System::pipes).
    pub from: u16,
    /// The pipe it ends with, if it ends with one.
    pub to: Option<u16>,
    /// The longest that a message may take, in ns, if that matters.
    pub latency_ns: Option<u64>,
    /// The processes after the first, in the order of the messages.
    pub links: Vec<ChainLink>,
}

/// A process of a chain after the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainLink {
    pub process: u16,
    /// The name of what hands messages over to it.
    pub by: String,
    /// The way in which the object hands messages over.
    pub handover: Handover,
    /// Longest time it takes for a message, in ns, if the description says it.
    pub work_ns: Option<u64>,
}

/// How a message comes from one process of a chain to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handover {
    Mailbox {
        /// Messages that it holds.
        messages: u16,
    },
    /// By a ring in memory, whose messages a semaphore counts.
    Semaphore {
        /// Messages that the ring holds.
        slots: u64,
    },
    /// As a state message, of which the newest is taken.
    State {
        /// The period, in ns.
        every_ns: u64,
    },
}

/// A place for a pipe that a process may open, change and close while the system runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tpipe {
    pub name: String,
    /// The USB device: a number of [`System::usb`](crate::System::usb).
    pub usb: usize,
    /// Number of the process that drives the device.
    pub server: u16,
    /// Number of the process that may open it.
    pub process: u16,
    /// Number of the VCPU of its thread, which has next to nothing while the pipe is closed.
    pub vcpu: u16,
    /// The most that it may be.
    pub envelope: Envelope,
}

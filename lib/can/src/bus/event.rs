//! The events that nodes receive, and the counts of their controllers.

use crate::decode::WireError;
use crate::fd::AnyFrame;
use core::fmt;
use diapason_abi::Nanos;

/// A node of one bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// A request to transmit, unique on its bus; later requests have larger ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// How far a controller trusts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Takes part, and destroys frames it finds wrong.
    ErrorActive,
    /// As before, with a counter of 96 or more.
    Warning,
    /// Takes part, but destroys no frame of others and waits longer between its own.
    ErrorPassive,
    BusOff,
}

/// Something that happened at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusEvent {
    /// The end of the bit at which it happened.
    pub time: Nanos,
    pub node: NodeId,
    /// The kind of event.
    pub kind: EventKind,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The node's frame is through: the last bit of end of frame was right.
    Sent {
        /// The request; none for babble.
        ticket: Option<Ticket>,
        frame: AnyFrame,
    },
    /// The node accepted another's frame: one bit before its end.
    Received { frame: AnyFrame },
    /// A one-shot request ended without success.
    Dropped {
        ticket: Ticket,
        /// The error; none if arbitration was lost.
        error: Option<WireError>,
    },
    /// The node found an error and begins its error flag.
    Error { error: WireError, transmitting: bool },
    /// The node's health changed.
    Health { health: Health, transmit_errors: u16, receive_errors: u16 },
}

/// The counts of a controller since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    pub sent: u64,
    /// Frames accepted from the bus, before filters.
    pub received: u64,
    /// Times that arbitration was lost.
    pub lost: u64,
    pub errors: u64,
    /// Frames for a full inbox.
    pub overruns: u64,
}

/// Why a request is refused: the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendRefusal {
    /// The bus has no such node.
    NoSuchNode {
        /// The number of nodes on the bus.
        nodes: usize,
    },
    /// The node's queue is full.
    QueueFull {
        /// The number of frames that the queue holds.
        capacity: usize,
    },
    /// The node is switched off, only listens, or is bus-off and will not recover by itself.
    Silent,
    /// The frame is of CAN FD, and the node or its bus is classic.
    Classic,
}

impl fmt::Display for SendRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendRefusal::NoSuchNode { nodes } => {
                write!(f, "no such node: this bus has {nodes}, counted from 0")
            }
            SendRefusal::QueueFull { capacity } => {
                write!(f, "the transmit queue holds {capacity} and is full; wait for a `Sent`")
            }
            SendRefusal::Classic => {
                write!(f, "a frame of CAN FD: the node or its bus has classic frames only")
            }
            SendRefusal::Silent => {
                write!(f, "the node does not transmit: switch it on, and not to listening only")
            }
        }
    }
}

/// The fate of a request that was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// It is never sent.
    Back,
    /// It is being sent, and is not tried again if that fails.
    LastTry,
    /// There is no such request any more.
    Gone,
}

/// The activity of a controller at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It takes no part, or waits until it may.
    Apart,
    /// The bus is idle.
    Idle,
    Sending,
    /// In another's frame, or between two.
    Listening,
}

/// Damage done on command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFault {
    /// Bit `bit` of the next frame, counted from start of frame with stuff bits, is seen inverted
    /// by the nodes of `seen_by` (bit *i* for node *i*; nodes above 63 see it if all ones).
    Flip {
        bit: u32,
        /// The nodes that see it wrong, as bits.
        seen_by: u64,
    },
    /// The transmitters of the next frame do not see its acknowledgement.
    DropAck,
}

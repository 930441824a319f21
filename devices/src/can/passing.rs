//! The messages between a host and a CAN interface, for observers.

use diapason_can::AnyFrame;

/// The content of a message about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameContent {
    Arrival(AnyFrame),
    /// This one is to be sent.
    Departure(AnyFrame),
    /// The one of the same transaction is through.
    Acknowledgement,
}

/// A message about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passing {
    /// The channel it belongs to.
    pub channel: usize,
    pub load: FrameContent,
    /// The transaction that an acknowledgement repeats.
    pub transaction: u16,
}

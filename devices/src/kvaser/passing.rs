//! The messages between host and interface, for observers.

use super::channel;
use super::command::KvaserCommand;
use super::{CHANNELS, FIRST_CHANNEL};
use diapason_can::CanFrame;

/// The content of a command about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameContent {
    Arrival(CanFrame),
    /// This one is to be sent.
    Departure(CanFrame),
    /// The one of the same transaction is through.
    Acknowledgement,
}

/// A command about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passing {
    /// The channel it belongs to.
    pub channel: usize,
    pub load: FrameContent,
    /// The transaction that an acknowledgement repeats.
    pub transaction: u16,
}

/// Returns the command, if it is about a frame: for observers of the traffic between host and
/// device.
#[must_use]
pub fn passing(command: &KvaserCommand) -> Option<Passing> {
    let (entity, load) = channel::load(command)?;
    let channel = usize::from(entity.checked_sub(FIRST_CHANNEL)?);
    let transaction = command.header().transaction;
    (channel < CHANNELS).then_some(Passing { channel, load, transaction })
}

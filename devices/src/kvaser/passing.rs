//! Kvaser's commands about frames, for observers.

use super::channel;
use super::command::KvaserCommand;
use super::{CHANNELS, FIRST_CHANNEL};
use crate::can::Passing;

/// Returns the command, if it is about a frame: for observers of the traffic between host and
/// device.
#[must_use]
pub fn passing(command: &KvaserCommand) -> Option<Passing> {
    let (entity, load) = channel::load(command)?;
    let channel = usize::from(entity.checked_sub(FIRST_CHANNEL)?);
    let transaction = command.header().transaction;
    (channel < CHANNELS).then_some(Passing { channel, load, transaction })
}

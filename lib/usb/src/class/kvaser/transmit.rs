//! Frames to the device.

use super::channel::Phase;
use super::command::{Command, number};
use super::{Kvaser, RESERVED, Refused, SLOTS_MAX};
use diapason_can::CanFrame;

const REMOTE: u8 = 1 << 4;
const LONG_ID: u8 = 1 << 5;
/// In an identifier of a normal command: it has 29 bits.
const LONG_ID_BIT: u32 = 1 << 31;
/// In the controller's own identifier word.
const CONTROLLER_REMOTE: u32 = 1 << 29;
const CONTROLLER_LONG: u32 = 1 << 30 | 1 << 31;
/// In the controller's own header word.
const ONE_SHOT: u32 = 1 << 16;
const WANT_ACKNOWLEDGE: u32 = 1 << 31;

impl Kvaser {
    /// Returns whether [`Kvaser::send`] would take a frame of this channel now.
    #[must_use]
    pub fn takes(&self, channel: u8) -> bool {
        let Ok((index, _)) = self.find(channel) else { return false };
        let known = &self.channels[index];
        let slots = u32::from(self.probe.identity.slots);
        known.phase == Phase::Open
            && known.slots.outstanding() < slots.min(SLOTS_MAX.into())
            && self.queue.room() > RESERVED
    }

    /// Sends a frame; [`super::InterfaceEvent::Acknowledged`] with the same slot follows when it is
    /// through. With `once`, it is not repeated after an error or a lost arbitration.
    ///
    /// # Errors
    /// The channel is not open, or there is no slot: nothing was queued.
    pub fn send(&mut self, channel: u8, frame: &CanFrame, once: bool) -> Result<u8, Refused> {
        let (index, entity) = self.find(channel)?;
        let identity = self.probe.identity;
        let known = &mut self.channels[index];
        if known.phase != Phase::Open {
            return Err(Refused::WrongPhase);
        }
        if once && !identity.extended {
            return Err(Refused::Unsupported);
        }
        if self.queue.room() <= RESERVED {
            return Err(Refused::Busy);
        }
        let slot = known.slots.take(identity.slots).ok_or(Refused::Busy)?;
        let command = if identity.extended {
            extended(entity, slot, frame, once)
        } else {
            normal(entity, slot, frame)
        };
        self.queue.push(&[command.bytes()]);
        Ok(slot)
    }
}

fn flags(frame: &CanFrame) -> u8 {
    let remote = if frame.is_remote() { REMOTE } else { 0 };
    remote | if frame.is_extended() { LONG_ID } else { 0 }
}

fn normal(entity: u8, slot: u8, frame: &CanFrame) -> Command {
    let long = if frame.is_extended() { LONG_ID_BIT } else { 0 };
    Command::new(number::TRANSMIT, entity, slot.into())
        .put(4, &(frame.raw_id() | long).to_le_bytes())
        .put(8, frame.bytes())
        .put(16, &[frame.code(), flags(frame)])
}

fn extended(entity: u8, slot: u8, frame: &CanFrame, once: bool) -> Command {
    let bytes = frame.bytes();
    let id = frame.raw_id();
    let remote = if frame.is_remote() { CONTROLLER_REMOTE } else { 0 };
    let long = if frame.is_extended() { CONTROLLER_LONG } else { 0 };
    let header = u32::from(frame.code()) << 8 | WANT_ACKNOWLEDGE | if once { ONE_SHOT } else { 0 };
    Command::extended(number::TRANSMIT_EXTENDED, entity, slot.into(), 32 + bytes.len())
        .put(8, &u32::from(flags(frame)).to_le_bytes())
        .put(12, &id.to_le_bytes())
        .put(16, &(id | remote | long).to_le_bytes())
        .put(20, &header.to_le_bytes())
        .put(24, &[bytes.len() as u8, frame.code()])
        .put(32, bytes)
}

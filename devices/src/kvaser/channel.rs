//! One channel: its settings, its controller on the bus, and the frames under way to it.

use super::command::{HostCommand, KvaserCommand, number};
use crate::can::{CanPlug, FrameContent, Mistuned};
use diapason_abi::Nanos;
use diapason_can::bus::{Health, SendRefusal, Ticket};
use diapason_can::frame::{extended, standard};
use diapason_can::{CanFrame, WireError};

/// Flags of frames, the same in both forms.
pub mod flag {
    /// Not a frame but an error on the bus.
    pub const ERROR: u8 = 1;
    pub const REMOTE: u8 = 1 << 4;
    /// An identifier of 29 bits.
    pub const EXTENDED: u8 = 1 << 5;
}
/// A 29-bit identifier, in the identifier of a normal command.
const ID_EXTENDED: u32 = 1 << 31;
/// The word that the controller gets: identifier and these bits.
const WORD_REMOTE: u32 = 1 << 29;
const WORD_EXTENDED: u32 = 3 << 30;
const ONE_SHOT: u32 = 1 << 16;
const FLEXIBLE_DATA_RATE: u32 = 1 << 16;
/// In the acknowledgement of a one-shot frame that failed.
const NOT_ACKNOWLEDGED: u32 = 1 << 12;
const ARBITRATION_LOST: u32 = 1 << 13;
const LISTEN_ONLY: u8 = 2;

const STATE_PASSIVE: u8 = 0x20;
const STATE_OFF: u8 = 0x40;

/// A frame on its way to the bus.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// `None` at a wrong bit rate: it waits for a bus that does not understand it.
    ticket: Option<Ticket>,
    transaction: u16,
    frame: CanFrame,
    extended: bool,
}

/// Why a frame is not sent: the codes of an error event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotSent {
    /// No classic frame is like that.
    Parameter,
    /// The controller does not talk.
    Controller,
    /// More frames than the host may have under way.
    Full,
}

/// A channel of the interface.
pub(crate) struct Channel {
    entity: u8,
    plug: Option<CanPlug>,
    nominal: [u8; 8],
    data: [u8; 8],
    listens: bool,
    started: bool,
    /// The errors that it heard at another bit rate than that of its bus.
    mistuned: Option<Mistuned>,
    outstanding: Vec<Outstanding>,
    most: usize,
}

impl Channel {
    /// Returns a channel that was never opened, on a bus or not, with room for `most` frames.
    pub fn new(entity: u8, plug: Option<CanPlug>, most: usize) -> Channel {
        let (nominal, data, outstanding) = ([0; 8], [0; 8], Vec::new());
        let (listens, started, mistuned) = (false, false, None);
        Channel { entity, plug, nominal, data, listens, started, mistuned, outstanding, most }
    }

    /// Returns the plug of the channel, if it is on a bus.
    pub fn plug(&self) -> Option<&CanPlug> {
        self.plug.as_ref()
    }

    /// Returns the address of its entity.
    pub fn entity(&self) -> u8 {
        self.entity
    }

    /// As it was when the device got power.
    pub fn reset(&mut self, now: Nanos) {
        self.stop(now);
        (self.nominal, self.data, self.listens) = ([0; 8], [0; 8], false);
    }

    /// The settings of bits: of the frame, or of its data in CAN FD.
    pub fn parameters(&mut self, of_data: bool) -> &mut [u8; 8] {
        if of_data { &mut self.data } else { &mut self.nominal }
    }

    /// Talks or only listens from the next start on.
    pub fn set_mode(&mut self, mode: u8) {
        self.listens = mode == LISTEN_ONLY;
    }

    /// Takes part in the bus. At another bit rate than its own it understands nothing that it
    /// hears, and nobody understands what it sends.
    pub fn start(&mut self, now: Nanos) {
        let [r0, r1, r2, r3, ..] = self.nominal;
        let hertz = u32::from_le_bytes([r0, r1, r2, r3]);
        self.outstanding.clear();
        let Some(plug) = self.plug.as_mut() else { return };
        self.mistuned = Mistuned::at(hertz, plug);
        self.started = true;
        plug.switch_on(now, self.listens || self.mistuned.is_some());
    }

    /// Another's frame went by. `None` at the right bit rate. At a wrong one it is an error, and
    /// true if this one makes the controller error-passive.
    pub fn stray(&mut self) -> Option<bool> {
        self.mistuned.as_mut().map(Mistuned::hear)
    }

    /// Leaves the bus; frames under way are forgotten.
    pub fn stop(&mut self, now: Nanos) {
        self.started = false;
        self.outstanding.clear();
        if let Some(plug) = self.plug.as_mut() {
            plug.switch_off(now);
        }
    }

    /// Forgets the frames that wait, but not the one on the bus.
    pub fn flush(&mut self, now: Nanos) {
        if let Some(plug) = self.plug.as_ref() {
            plug.flush(now);
        }
    }

    /// Sends the frame in a command.
    pub fn transmit(&mut self, now: Nanos, command: &KvaserCommand) -> Result<(), NotSent> {
        let extended = command.is_extended();
        let parsed = if extended { from_extended(command) } else { from_normal(command) };
        let (frame, once) = parsed.ok_or(NotSent::Parameter)?;
        let plug = self.plug.as_ref().filter(|_| self.started).ok_or(NotSent::Controller)?;
        if self.outstanding.len() >= self.most {
            return Err(NotSent::Full);
        }
        let ticket = match self.mistuned {
            Some(_) => None,
            None => Some(plug.send(now, frame, once).map_err(|refusal| match refusal {
                SendRefusal::QueueFull { .. } => NotSent::Full,
                SendRefusal::Classic => NotSent::Parameter,
                SendRefusal::NoSuchNode { .. } | SendRefusal::Silent => NotSent::Controller,
            })?),
        };
        let transaction = command.header().transaction;
        self.outstanding.push(Outstanding { ticket, transaction, frame, extended });
        Ok(())
    }

    /// The acknowledgement of a frame that is through, or of one that had a single attempt.
    pub fn acknowledge(
        &mut self,
        ticket: Ticket,
        ticks: u64,
        failed: Failed,
    ) -> Option<HostCommand> {
        let at = self.outstanding.iter().position(|o| o.ticket == Some(ticket))?;
        let Outstanding { transaction, frame, extended, .. } = self.outstanding.remove(at);
        if extended {
            let number = number::EXTENDED_ACKNOWLEDGE;
            let message = HostCommand::extended(number, self.entity, transaction, 0);
            let flags = u32::from(flags(&frame)) | failed.bits();
            return Some(message.put(8, flags.to_le_bytes()).put(16, ticks.to_le_bytes()));
        }
        let message = HostCommand::normal(number::ACKNOWLEDGE, self.entity, transaction);
        let message = message.put(4, id_normal(&frame)).put(8, padded(&frame));
        Some(message.put(16, [frame.code(), flags(&frame)]).put(18, stamp(ticks)))
    }

    /// Returns the state that the controller reports.
    pub fn state(&self, transaction: u16, ticks: u64) -> HostCommand {
        let (status, errors) = self.status();
        let message = HostCommand::normal(number::CHIP_STATE, self.entity, transaction);
        message.put(4, stamp(ticks)).put(10, errors).put(12, [status])
    }

    /// Bus status, transmit and receive errors.
    fn status(&self) -> (u8, [u8; 2]) {
        let Some(plug) = self.plug.as_ref().filter(|_| self.started) else {
            return (STATE_OFF, [0, 0]);
        };
        if let Some(mistuned) = self.mistuned {
            let status = if mistuned.is_passive() { STATE_PASSIVE } else { 0 };
            return (status, [0, mistuned.errors()]);
        }
        let (health, transmit, receive) = plug.health();
        let status = match health {
            Health::ErrorActive | Health::Warning => 0,
            Health::ErrorPassive => STATE_PASSIVE,
            Health::BusOff => STATE_OFF,
        };
        (status, [transmit, receive].map(|count| count.min(255) as u8))
    }

    /// Returns a frame from the bus.
    pub fn received(
        &self,
        channel: u8,
        frame: &CanFrame,
        ticks: u64,
        extended: bool,
    ) -> HostCommand {
        let (data, flags) = (frame.bytes().len(), flags(frame));
        if extended {
            let message = HostCommand::extended(number::EXTENDED_RECEIVED, self.entity, 0, data);
            let word = word(frame).to_le_bytes();
            let code = u32::from(frame.code()) << 8;
            let message = message.put(8, [flags]).put(12, frame.raw_id().to_le_bytes());
            let message = message.put(16, word).put(20, code.to_le_bytes());
            return message.put(24, ticks.to_le_bytes()).put(32, padded(frame));
        }
        let message = HostCommand::normal(number::RECEIVED, self.entity, 0);
        let message = message.put(4, [24, number::RECEIVED, channel, flags]).put(8, stamp(ticks));
        message.put(14, [frame.code()]).put(16, id_normal(frame)).put(20, padded(frame))
    }

    /// An error on the bus, told as a frame.
    pub fn bus_error(&self, channel: u8, ticks: u64, extended: bool) -> HostCommand {
        let (status, [transmit, receive]) = self.status();
        let details = [status, 0, transmit, receive];
        if extended {
            let message = HostCommand::extended(number::EXTENDED_RECEIVED, self.entity, 0, 8);
            let message = message.put(8, [flag::ERROR]).put(24, ticks.to_le_bytes());
            return message.put(32, details);
        }
        let message = HostCommand::normal(number::RECEIVED, self.entity, 0);
        let message = message.put(4, [24, number::RECEIVED, channel, flag::ERROR]);
        message.put(8, stamp(ticks)).put(20, details)
    }
}

/// How a frame with a single attempt ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failed {
    /// The frame did not fail.
    No,
    /// Another frame was more urgent.
    Arbitration,
    /// An error destroyed it.
    Error(WireError),
}

impl Failed {
    fn bits(self) -> u32 {
        match self {
            Failed::No => 0,
            Failed::Arbitration => ARBITRATION_LOST,
            Failed::Error(_) => NOT_ACKNOWLEDGED,
        }
    }
}

fn flags(frame: &CanFrame) -> u8 {
    let extended = if frame.is_extended() { flag::EXTENDED } else { 0 };
    extended | if frame.is_remote() { flag::REMOTE } else { 0 }
}

fn id_normal(frame: &CanFrame) -> [u8; 4] {
    let extended = if frame.is_extended() { ID_EXTENDED } else { 0 };
    (frame.raw_id() | extended).to_le_bytes()
}

fn word(frame: &CanFrame) -> u32 {
    let extended = if frame.is_extended() { WORD_EXTENDED } else { 0 };
    frame.raw_id() | extended | if frame.is_remote() { WORD_REMOTE } else { 0 }
}

fn padded(frame: &CanFrame) -> [u8; 8] {
    std::array::from_fn(|at| frame.bytes().get(at).copied().unwrap_or(0))
}

/// 48 bits of time, least significant first.
fn stamp(ticks: u64) -> [u8; 6] {
    let [a, b, c, d, e, f, ..] = ticks.to_le_bytes();
    [a, b, c, d, e, f]
}

fn frame(raw: u32, is_extended: bool, flags: u8, code: u8, data: [u8; 8]) -> Option<CanFrame> {
    let id = if is_extended { extended(raw) } else { standard(raw) };
    let id = id.ok().filter(|_| code <= 15 && flags & flag::ERROR == 0)?;
    if flags & flag::REMOTE != 0 {
        return CanFrame::remote(id, code.into()).ok();
    }
    let bytes = data.get(..usize::from(code).min(8))?;
    CanFrame::data(id, bytes).ok()?.with_code(code).ok()
}

/// The entity of a command about a frame, and what it says of it.
pub fn load(command: &KvaserCommand) -> Option<(u8, FrameContent)> {
    let header = command.header();
    let departs = |parsed: (CanFrame, bool)| (header.to, FrameContent::Departure(parsed.0.into()));
    match (command.is_extended(), header.number) {
        (true, number::EXTENDED_TRANSMIT) => from_extended(command).map(departs),
        (false, number::TRANSMIT) => from_normal(command).map(departs),
        (true, number::EXTENDED_ACKNOWLEDGE) | (false, number::ACKNOWLEDGE) => {
            Some((header.from, FrameContent::Acknowledgement))
        }
        _ => carried(command).map(|frame| (header.from, FrameContent::Arrival(frame.into()))),
    }
}

/// The frame in a command to the host, as [`Channel::received`] writes it.
fn carried(command: &KvaserCommand) -> Option<CanFrame> {
    match (command.is_extended(), command.header().number) {
        (true, number::EXTENDED_RECEIVED) => {
            let (flags, code) = (command.byte(8), (command.word(20) >> 8) as u8 & 15);
            frame(command.word(12), flags & flag::EXTENDED != 0, flags, code, command.array(32))
        }
        (false, number::RECEIVED) => {
            let (id, flags) = (command.word(16), command.byte(7));
            let is_extended = id & ID_EXTENDED != 0;
            frame(id & !ID_EXTENDED, is_extended, flags, command.byte(14), command.array(20))
        }
        _ => None,
    }
}

fn from_normal(command: &KvaserCommand) -> Option<(CanFrame, bool)> {
    let id = command.word(4);
    let (code, flags) = (command.byte(16), command.byte(17));
    let is_extended = id & ID_EXTENDED != 0;
    let frame = frame(id & !ID_EXTENDED, is_extended, flags, code, command.array(8))?;
    Some((frame, false))
}

fn from_extended(command: &KvaserCommand) -> Option<(CanFrame, bool)> {
    let (flags, id, header) = (command.word(8), command.word(12), command.word(20));
    let code = (header >> 8) as u8 & 15;
    let remote = flags as u8 & flag::REMOTE != 0;
    let wanted = if remote { 0 } else { code.min(8) };
    if flags & FLEXIBLE_DATA_RATE != 0 || command.byte(24) != wanted {
        return None;
    }
    let is_extended = flags as u8 & flag::EXTENDED != 0;
    let frame = frame(id, is_extended, flags as u8, code, command.array(32))?;
    Some((frame, header & ONE_SHOT != 0))
}

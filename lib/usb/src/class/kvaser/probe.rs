//! Finding out what the device is: one question after the other, each with its answer.

use super::command::{Command, NOBODY, ROUTER, Received, number};
use super::personality::{Personality, flag};
use super::{CHANNELS_MAX, InterfaceFailure, ProbeStep, SLOTS_MAX};
use diapason_abi::Nanos;

/// Transaction of the first question about a channel; the answer is filed by it.
const MAP_CHANNEL: u16 = 0x40;
/// Transaction of the question about the entity for everything else.
const MAP_DEBUG: u16 = 0x61;
/// Sub-commands of the question about capabilities.
const CAPABILITIES: [u16; 3] = [2, 5, 6];

/// The identity that the device reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceIdentity {
    pub personality: Personality,
    /// How many channels, from 0.
    pub channels: u8,
    /// Frames on their way at once, for each channel.
    pub slots: u16,
    /// Frames travel as extended commands.
    pub extended: bool,
    /// The device's own flags.
    pub flags: u32,
    /// Version: major in the top byte, then minor, then build in 16 bits.
    pub firmware: u32,
    pub serial: u32,
    /// Bit n of each: channel n can only listen; reports errors; can send once without repeating.
    pub can: [u32; 3],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    step: ProbeStep,
    deadline: Nanos,
    wants_extended: bool,
    entities: [u8; CHANNELS_MAX],
    debug: u8,
    pub(super) identity: InterfaceIdentity,
}

/// The step after an answer.
pub(super) enum Next {
    /// The answer was about something else.
    Wait,
    Ask(Command),
    Ready([u8; CHANNELS_MAX]),
    Fail(InterfaceFailure),
}

impl Probe {
    pub(super) fn new(wants_extended: bool) -> Probe {
        let identity = InterfaceIdentity {
            personality: Personality::Flexc,
            channels: 0,
            slots: 0,
            extended: false,
            flags: 0,
            firmware: 0,
            serial: 0,
            can: [0; 3],
        };
        Probe {
            step: ProbeStep::Start,
            deadline: Nanos::FOREVER,
            wants_extended,
            entities: [NOBODY; CHANNELS_MAX],
            debug: NOBODY,
            identity,
        }
    }

    pub(super) const fn deadline(&self) -> Nanos {
        self.deadline
    }

    pub(super) const fn step(&self) -> ProbeStep {
        self.step
    }

    /// No question is open any more.
    pub(super) fn end(&mut self) {
        (self.step, self.deadline) = (ProbeStep::Done, Nanos::FOREVER);
    }

    /// Returns the question of this step, which has time until `deadline`.
    pub(super) fn ask(&mut self, step: ProbeStep, deadline: Nanos, transaction: u16) -> Command {
        (self.step, self.deadline) = (step, deadline);
        let new = |number| Command::new(number, NOBODY, transaction);
        let map = |name: &[u8], channel, transaction| {
            Command::new(number::MAP, ROUTER, transaction).put(4, name).put(20, &[channel])
        };
        match step {
            ProbeStep::Map(channel) => map(b"CAN", channel, MAP_CHANNEL + u16::from(channel)),
            ProbeStep::MapDebug => map(b"SYSDBG", 0, MAP_DEBUG),
            ProbeStep::Software => new(number::GET_SOFTWARE),
            ProbeStep::Details => new(number::GET_DETAILS).put(4, &[self.wants_extended.into()]),
            ProbeStep::Card => new(number::GET_CARD),
            ProbeStep::Capability(which) => {
                let wanted = CAPABILITIES[usize::from(which) % CAPABILITIES.len()];
                Command::new(number::GET_CAPABILITIES, self.debug, transaction)
                    .put(4, &wanted.to_le_bytes())
            }
            ProbeStep::Start
            | ProbeStep::Done
            | ProbeStep::Format
            | ProbeStep::Limits(_)
            | ProbeStep::DataLimits(_) => Command::EMPTY,
        }
    }

    /// A command came while a question is open.
    pub(super) fn answer(&mut self, from: Received<'_>, deadline: Nanos, transaction: u16) -> Next {
        if from.is_extended() {
            return Next::Wait;
        }
        let step = match (self.step, from.number()) {
            (ProbeStep::Map(channel), number::MAPPED)
                if from.transaction() == MAP_CHANNEL + u16::from(channel) =>
            {
                self.mapped(channel, from.byte(4) & 0x3f)
            }
            (ProbeStep::MapDebug, number::MAPPED) if from.transaction() == MAP_DEBUG => {
                self.debug = from.byte(4) & 0x3f;
                Ok(ProbeStep::Software)
            }
            (ProbeStep::Software, number::SOFTWARE) => {
                self.identity.slots = from.half(12).min(SLOTS_MAX);
                if from.half(12) == 0 {
                    Err(InterfaceFailure::NoSlots)
                } else {
                    Ok(ProbeStep::Details)
                }
            }
            (ProbeStep::Details, number::DETAILS) => self.details(from),
            (ProbeStep::Card, number::CARD) => self.card(from),
            (ProbeStep::Capability(which), number::CAPABILITIES)
                if from.half(4) == CAPABILITIES[usize::from(which) % CAPABILITIES.len()] =>
            {
                self.capability(which, from)
            }
            _ => return Next::Wait,
        };
        match step {
            Ok(ProbeStep::Done) => Next::Ready(self.entities),
            Ok(step) => Next::Ask(self.ask(step, deadline, transaction)),
            Err(reason) => Next::Fail(reason),
        }
    }

    fn mapped(&mut self, channel: u8, entity: u8) -> Result<ProbeStep, InterfaceFailure> {
        if entity == ROUTER || entity != NOBODY && self.entities.contains(&entity) {
            return Err(InterfaceFailure::Map(channel));
        }
        self.entities[usize::from(channel) % CHANNELS_MAX] = entity;
        let last = usize::from(channel) + 1 == CHANNELS_MAX;
        Ok(if last { ProbeStep::MapDebug } else { ProbeStep::Map(channel + 1) })
    }

    fn details(&mut self, from: Received<'_>) -> Result<ProbeStep, InterfaceFailure> {
        let flags = from.word(4);
        self.identity.flags = flags;
        self.identity.firmware = from.word(8);
        self.identity.personality = Personality::of(flags);
        self.identity.extended = flags & flag::EXTENDED != 0;
        if flags & flag::BAD_FIRMWARE != 0 {
            Err(InterfaceFailure::BadFirmware)
        } else {
            Ok(ProbeStep::Card)
        }
    }

    fn card(&mut self, from: Received<'_>) -> Result<ProbeStep, InterfaceFailure> {
        let channels = from.byte(28);
        let there = usize::from(channels).min(CHANNELS_MAX);
        let unmapped = self.entities[..there].iter().position(|entity| *entity == NOBODY);
        if there == 0 || there < usize::from(channels) {
            return Err(InterfaceFailure::Channels(channels));
        }
        if let Some(channel) = unmapped {
            return Err(InterfaceFailure::Map(channel as u8));
        }
        self.identity.channels = channels;
        self.identity.serial = from.word(4);
        let more = self.identity.flags & flag::CAPABILITIES != 0;
        Ok(if more { ProbeStep::Capability(0) } else { ProbeStep::Done })
    }

    fn capability(&mut self, which: u8, from: Received<'_>) -> Result<ProbeStep, InterfaceFailure> {
        let index = usize::from(which) % CAPABILITIES.len();
        if from.half(6) == 0 {
            self.identity.can[index] = from.word(8) & from.word(12);
        }
        let last = index + 1 == CAPABILITIES.len();
        Ok(if last { ProbeStep::Done } else { ProbeStep::Capability(which + 1) })
    }
}

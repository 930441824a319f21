//! Commands from the device.

use super::channel::Phase;
use super::command::{Received, number};
use super::{ANSWER_TIME, CloseCause, InterfaceEvent, InterfaceFailure, Kvaser, Mode, State};
use crate::class::can::FrameOutcome;
use diapason_abi::Nanos;
use diapason_can::CanFrame;
use diapason_can::bus::Health;
use diapason_can::frame::{extended, standard};

/// Flags of a frame.
mod flag {
    pub const ERROR: u32 = 1;
    pub const OVERRUN: u32 = 1 << 1;
    pub const REMOTE: u32 = 1 << 4;
    pub const LONG_ID: u32 = 1 << 5;
    /// Our own frame, coming back.
    pub const ECHO: u32 = 1 << 6;
    pub const FLEXIBLE: u32 = 1 << 16;
    pub const NOT_ACKNOWLEDGED: u32 = 1 << 12;
    pub const ARBITRATION_LOST: u32 = 1 << 13;
}

/// Bits of the bus status.
const BUS_OFF: u8 = 0x40;
const ERROR_PASSIVE: u8 = 0x20;

/// Returns the health that a bus status and two counters mean.
fn health(status: u8, (transmit, receive): (u8, u8)) -> Health {
    let counter = transmit.max(receive);
    if status & BUS_OFF != 0 {
        Health::BusOff
    } else if status & ERROR_PASSIVE != 0 || counter >= 128 {
        Health::ErrorPassive
    } else if counter >= 96 {
        Health::Warning
    } else {
        Health::ErrorActive
    }
}

/// A time stamp in ticks of the device.
#[derive(Clone, Copy)]
enum Stamp {
    /// The lowest 48 bits.
    Short(u64),
    Full(u64),
}

/// A frame as either kind of command has it.
struct Arrived<'a> {
    flags: u32,
    stamp: Stamp,
    id: u32,
    long: bool,
    code: u8,
    /// Data, or what is said about an error.
    data: &'a [u8],
}

impl<'a> Arrived<'a> {
    fn normal(from: Received<'a>) -> Arrived<'a> {
        let id = from.word(16);
        Arrived {
            flags: from.byte(7).into(),
            stamp: Stamp::Short(from.ticks(8)),
            id: id & !(1 << 31),
            long: id >> 31 != 0,
            code: from.byte(14),
            data: from.0.get(20..28).unwrap_or(&[]),
        }
    }

    fn extended(from: Received<'a>) -> Arrived<'a> {
        let flags = from.word(8);
        Arrived {
            flags,
            stamp: Stamp::Full(from.long(24)),
            id: from.word(12),
            long: flags & flag::LONG_ID != 0,
            code: (from.word(20) >> 8 & 0xf) as u8,
            data: from.0.get(32..).unwrap_or(&[]),
        }
    }

    /// Returns the frame, if classic CAN has such a one.
    fn frame(&self) -> Option<CanFrame> {
        let id = if self.long { extended(self.id) } else { standard(self.id) }.ok()?;
        if self.flags & flag::FLEXIBLE != 0 {
            return None;
        }
        if self.flags & flag::REMOTE != 0 {
            return CanFrame::remote(id, self.code.into()).ok();
        }
        let data = self.data.get(..usize::from(self.code.min(8)))?;
        CanFrame::data(id, data).ok()?.with_code(self.code).ok()
    }

    fn byte(&self, at: usize) -> u8 {
        self.data.get(at).copied().unwrap_or(0)
    }
}

impl Kvaser {
    /// Takes a command of the device.
    pub(super) fn command(
        &mut self,
        now: Nanos,
        from: Received<'_>,
        tell: &mut dyn FnMut(InterfaceEvent),
    ) {
        match self.state {
            State::Failed => {}
            State::Probing => {
                let transaction = self.transaction();
                let next = self.probe.answer(from, now + ANSWER_TIME, transaction);
                self.proceed(next, tell);
            }
            State::Ready => {
                let source = Some(from.source());
                match self.channels.iter().position(|channel| channel.entity == source) {
                    Some(index) => self.about(now, index, from, tell),
                    None => self.counts.strangers += 1,
                }
            }
        }
    }

    /// A command about a channel.
    fn about(
        &mut self,
        now: Nanos,
        index: usize,
        from: Received<'_>,
        tell: &mut dyn FnMut(InterfaceEvent),
    ) {
        match (from.is_extended(), from.number()) {
            (false, number::RECEIVE) => self.arrived(index, &Arrived::normal(from), tell),
            (true, number::RECEIVE_EXTENDED) => {
                self.arrived(index, &Arrived::extended(from), tell);
            }
            (false, number::ACKNOWLEDGE) => {
                let time = self.time(Stamp::Short(from.ticks(18)));
                self.acknowledged(index, from.transaction(), time, FrameOutcome::Sent, tell);
            }
            (true, number::ACKNOWLEDGE_EXTENDED) => {
                let time = self.time(Stamp::Full(from.long(16)));
                self.acknowledged(index, from.transaction(), time, outcome(from.word(8)), tell);
            }
            (false, number::CHIP_STATE) => self.chip_state(now, index, from, tell),
            (false, number::ERROR) => {
                let reason =
                    InterfaceFailure::Device { code: from.byte(11), command: from.half(12) };
                tell(InterfaceEvent::Failed { channel: Some(index as u8), reason });
            }
            (false, answer) => self.answered(now, index, answer, from, tell),
            (true, _) => self.counts.skipped += 1,
        }
    }

    /// Returns the time that a stamp means, which goes on when short stamps wrap.
    fn time(&mut self, stamp: Stamp) -> Nanos {
        let ticks = match stamp {
            Stamp::Short(ticks) => self.clock.at(ticks),
            Stamp::Full(ticks) => {
                self.clock.reached(ticks);
                ticks
            }
        };
        self.probe.identity.personality.time(ticks)
    }

    fn arrived(&mut self, index: usize, what: &Arrived<'_>, tell: &mut dyn FnMut(InterfaceEvent)) {
        let channel = index as u8;
        let time = self.time(what.stamp);
        if self.channels[index].phase != Phase::Open {
            self.counts.unwanted += 1;
            return;
        }
        if what.flags & flag::OVERRUN != 0 {
            tell(InterfaceEvent::Overrun { channel });
        }
        if what.flags & flag::ERROR != 0 {
            let counters = (what.byte(2), what.byte(3));
            tell(InterfaceEvent::BusError { channel, time, counters });
            return;
        }
        if what.flags & flag::ECHO != 0 {
            self.counts.skipped += 1;
            return;
        }
        match what.frame() {
            Some(frame) => tell(InterfaceEvent::Frame { channel, time, frame }),
            None => self.counts.malformed += 1,
        }
    }

    fn acknowledged(
        &mut self,
        index: usize,
        slot: u16,
        time: Nanos,
        outcome: FrameOutcome,
        tell: &mut dyn FnMut(InterfaceEvent),
    ) {
        if !self.channels[index].slots.free(slot) {
            self.counts.stray_acknowledgements += 1;
            return;
        }
        tell(InterfaceEvent::Acknowledged {
            channel: index as u8,
            slot: slot as u8,
            time,
            outcome,
        });
    }

    fn chip_state(
        &mut self,
        now: Nanos,
        index: usize,
        from: Received<'_>,
        tell: &mut dyn FnMut(InterfaceEvent),
    ) {
        let time = self.time(Stamp::Short(from.ticks(4)));
        let counters = (from.byte(10), from.byte(11));
        let health = health(from.byte(12), counters);
        tell(InterfaceEvent::ChipState { channel: index as u8, time, counters, health });
        // A stopped controller calls itself bus-off, too; only an open one must be stopped.
        if health == Health::BusOff && self.channels[index].phase == Phase::Open {
            self.stop(now, index, CloseCause::BusOff);
        }
    }

    /// The answer that a phase waits for, or one that nobody does.
    fn answered(
        &mut self,
        now: Nanos,
        index: usize,
        answer: u8,
        from: Received<'_>,
        tell: &mut dyn FnMut(InterfaceEvent),
    ) {
        let channel = index as u8;
        let deadline = now + ANSWER_TIME;
        match (self.channels[index].phase, answer) {
            (Phase::Setting { wanted, mode, .. }, number::BUSPARAMS) => {
                if from.0.get(4..12) != Some(&wanted.encode()[..]) {
                    self.channels[index].enter(Phase::Closed);
                    let reason = InterfaceFailure::ParametersDiffer;
                    tell(InterfaceEvent::Failed { channel: Some(channel), reason });
                    tell(InterfaceEvent::Closed { channel, cause: CloseCause::NotOpened });
                    return;
                }
                let entity = self.channels[index].entity.unwrap_or(0);
                let mode = if mode == Mode::Normal { 1 } else { 2 };
                self.say(number::SET_DRIVERMODE, entity, &[mode]);
                self.say(number::START_CHIP, entity, &[]);
                self.channels[index].enter(Phase::Starting { deadline });
            }
            (Phase::Starting { .. }, number::STARTED) => {
                self.channels[index].enter(Phase::Open);
                tell(InterfaceEvent::Opened { channel });
            }
            (Phase::Flushing { cause, .. }, number::FLUSHED) => self.stop(now, index, cause),
            (Phase::Stopping { cause, .. }, number::STOPPED) => {
                self.channels[index].enter(Phase::Closed);
                tell(InterfaceEvent::Closed { channel, cause });
            }
            // Some devices answer, some do not; what they keep is read back.
            (_, number::BUSPARAMS_SET) => {}
            _ => self.counts.skipped += 1,
        }
    }

    fn stop(&mut self, now: Nanos, index: usize, cause: CloseCause) {
        let entity = self.channels[index].entity.unwrap_or(0);
        self.say(number::STOP_CHIP, entity, &[]);
        self.channels[index].enter(Phase::Stopping { deadline: now + ANSWER_TIME, cause });
    }

    /// A channel's answer did not come. Stops every channel that may be running.
    pub(super) fn late(&mut self, now: Nanos, index: usize, tell: &mut dyn FnMut(InterfaceEvent)) {
        let channel = index as u8;
        tell(InterfaceEvent::Failed { channel: Some(channel), reason: InterfaceFailure::Late });
        match self.channels[index].phase {
            Phase::Starting { .. } => self.stop(now, index, CloseCause::NotOpened),
            Phase::Flushing { cause, .. } => self.stop(now, index, cause),
            Phase::Setting { .. } => {
                self.channels[index].enter(Phase::Closed);
                tell(InterfaceEvent::Closed { channel, cause: CloseCause::NotOpened });
            }
            Phase::Stopping { cause, .. } => {
                self.channels[index].enter(Phase::Closed);
                tell(InterfaceEvent::Closed { channel, cause });
            }
            Phase::Closed | Phase::Open => {}
        }
    }
}

fn outcome(flags: u32) -> FrameOutcome {
    if flags & flag::ARBITRATION_LOST != 0 {
        FrameOutcome::ArbitrationLost
    } else if flags & flag::NOT_ACKNOWLEDGED != 0 {
        FrameOutcome::NotAcknowledged
    } else {
        FrameOutcome::Sent
    }
}

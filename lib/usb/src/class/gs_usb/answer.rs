//! Answers to requests, and frames from the device.

use super::channel::{Channel, Phase};
use super::wire::{Ask, Content, Received, health, word};
use super::{CHANNELS_MAX, CLOCK_READ, GsUsb, Stage, time_of};
use crate::class::TransferFault;
use crate::class::can::{CloseCause, FrameOutcome, InterfaceEvent, InterfaceFailure};
use diapason_abi::Nanos;
use diapason_can::bus::Health;

type Answer<'a> = Result<&'a [u8], TransferFault>;

impl GsUsb {
    /// Takes the answer to a request.
    pub(super) fn answered(
        &mut self,
        now: Nanos,
        ask: Ask,
        answer: Answer<'_>,
        tell: &mut dyn FnMut(InterfaceEvent),
    ) {
        if answer == Err(TransferFault::Gone) {
            return self.fail(InterfaceFailure::Pipe, tell);
        }
        match ask {
            Ask::Format | Ask::Config | Ask::Limits(_) | Ask::DataLimits(_) => {
                match self.probed(ask, answer) {
                    Ok(Some(next)) => self.stage = Stage::Probing(next),
                    Ok(None) => {
                        self.stage = Stage::Ready;
                        tell(InterfaceEvent::Ready { channels: self.there as u8, serial: None });
                    }
                    Err(reason) => self.fail(reason, tell),
                }
            }
            Ask::Timing(channel)
            | Ask::DataTiming(channel)
            | Ask::Start(channel)
            | Ask::Stop(channel) => {
                self.switched(now, channel, answer, tell);
            }
            Ask::State(channel) => self.state(channel, answer, tell),
            Ask::Time => {
                if let Ok(bytes @ [_, _, _, _]) = answer {
                    self.clock.at(word(bytes, 0).into());
                }
                self.read_again(now);
            }
        }
    }

    /// Takes the answer to a question of the probe. Returns the next question, if there is one.
    fn probed(&mut self, ask: Ask, answer: Answer<'_>) -> Result<Option<Ask>, InterfaceFailure> {
        let bytes = answer.map_err(|_| InterfaceFailure::NoAnswer(self.step()))?;
        match (ask, bytes) {
            (Ask::Config, [_, _, _, last, ..]) if bytes.len() >= 12 => {
                self.there = usize::from(*last) + 1;
                if self.there > CHANNELS_MAX {
                    return Err(InterfaceFailure::Channels(last.saturating_add(1)));
                }
                Ok(Some(Ask::Limits(0)))
            }
            (Ask::Limits(channel), [..]) if bytes.len() >= 40 => {
                let mut known = self.channels.get_mut(usize::from(channel));
                if !known.as_deref_mut().is_some_and(|known| known.learn(bytes)) {
                    return Err(InterfaceFailure::Limits(channel));
                }
                let tells_data = self.fd && known.is_some_and(|known| known.tells_data());
                Ok(if tells_data { Some(Ask::DataLimits(channel)) } else { self.after(channel) })
            }
            (Ask::DataLimits(channel), [..]) if bytes.len() >= 72 => {
                let known = self.channels.get_mut(usize::from(channel));
                if !known.is_some_and(|known| known.learn_data(bytes)) {
                    return Err(InterfaceFailure::Limits(channel));
                }
                Ok(self.after(channel))
            }
            (Ask::Format, _) => Ok(Some(Ask::Config)),
            _ => Err(InterfaceFailure::NoAnswer(self.step())),
        }
    }

    /// Returns the question about the channel after this one, if there is another.
    fn after(&self, channel: u8) -> Option<Ask> {
        (usize::from(channel) + 1 < self.there).then(|| Ask::Limits(channel + 1))
    }

    /// A channel was set, started or stopped, or was not.
    fn switched(
        &mut self,
        now: Nanos,
        channel: u8,
        answer: Answer<'_>,
        tell: &mut dyn FnMut(InterfaceEvent),
    ) {
        let others = (0..).zip(&self.channels).any(|(number, other)| {
            number != channel
                && !matches!(
                    other.phase,
                    Phase::Closed | Phase::Setting { .. } | Phase::SettingData { .. }
                )
        });
        let Some(known) = self.channels.get_mut(usize::from(channel)) else { return };
        let reason = match (known.phase, answer) {
            (Phase::Setting { mode, data, .. }, Ok(_)) => {
                return known.enter(match data {
                    Some(data) => Phase::SettingData { data, mode },
                    None => Phase::Starting { fd: false, mode },
                });
            }
            (Phase::SettingData { mode, .. }, Ok(_)) => {
                return known.enter(Phase::Starting { fd: true, mode });
            }
            (Phase::Starting { fd, .. }, Ok(_)) => {
                known.enter(Phase::Open { fd });
                if !others {
                    // Nobody read the clock for a while, and it may have wrapped.
                    self.clock.restart();
                    self.read_at = now;
                }
                return tell(InterfaceEvent::Opened { channel });
            }
            (Phase::Stopping { cause }, Ok(_)) => {
                known.enter(Phase::Closed);
                self.read_again(now);
                return tell(InterfaceEvent::Closed { channel, cause });
            }
            (Phase::Open { .. } | Phase::Closed, _) => return,
            (_, Err(TransferFault::Late)) => InterfaceFailure::Late,
            (Phase::Setting { .. } | Phase::SettingData { .. }, Err(_)) => {
                InterfaceFailure::ParametersDiffer
            }
            (_, Err(_)) => InterfaceFailure::NotStarted,
        };
        tell(InterfaceEvent::Failed { channel: Some(channel), reason });
        match known.phase {
            // It may have been started.
            Phase::Starting { .. } => known.enter(Phase::Stopping { cause: CloseCause::NotOpened }),
            Phase::Stopping { cause } => {
                known.enter(Phase::Closed);
                tell(InterfaceEvent::Closed { channel, cause });
            }
            _ => {
                known.enter(Phase::Closed);
                tell(InterfaceEvent::Closed { channel, cause: CloseCause::NotOpened });
            }
        }
    }

    /// Reads the clock again after a while, as long as a channel is open.
    fn read_again(&mut self, now: Nanos) {
        let open = self.channels.iter().any(Channel::is_open);
        self.read_at = if open { now + CLOCK_READ } else { Nanos::FOREVER };
    }

    /// Takes the answer about a controller.
    fn state(&mut self, channel: u8, answer: Answer<'_>, tell: &mut dyn FnMut(InterfaceEvent)) {
        let index = usize::from(channel);
        let Some(known) = self.channels.get_mut(index) else { return };
        if let Ok(bytes) = answer
            && bytes.len() >= 12
        {
            let counter = |at| word(bytes, at).min(255) as u8;
            known.counters = (counter(2), counter(1));
            known.health = health(word(bytes, 0));
        }
        self.tell_state(index, time_of(self.clock.latest()), tell);
    }

    /// Tells how a controller is, as far as it is known.
    pub(super) fn tell_state(
        &mut self,
        index: usize,
        time: Nanos,
        tell: &mut dyn FnMut(InterfaceEvent),
    ) {
        let Some(known) = self.channels.get_mut(index) else { return };
        known.asked = false;
        let (health, counters) = (known.health, known.counters);
        tell(InterfaceEvent::ChipState { channel: index as u8, time, counters, health });
        if health == Health::BusOff && known.is_open() {
            known.enter(Phase::Stopping { cause: CloseCause::BusOff });
        }
    }

    /// Takes a transfer from the device.
    pub(super) fn came(&mut self, bytes: &[u8], tell: &mut dyn FnMut(InterfaceEvent)) {
        let Some(received) = Received::read(bytes) else {
            self.counts.malformed += 1;
            return;
        };
        let Received { channel, overflow, micros, content } = received;
        let Some(known) = self.channels[..self.there].get_mut(usize::from(channel)) else {
            self.counts.strangers += 1;
            return;
        };
        let Phase::Open { fd } = known.phase else {
            self.counts.unwanted += 1;
            return;
        };
        let time = time_of(self.clock.at(micros.into()));
        if overflow {
            tell(InterfaceEvent::Overrun { channel });
        }
        match content {
            Content::Frame(Some(frame)) => tell(InterfaceEvent::Frame { channel, time, frame }),
            Content::FdFrame(Some(frame)) if fd => {
                tell(InterfaceEvent::FdFrame { channel, time, frame });
            }
            Content::Frame(None) | Content::FdFrame(_) => self.counts.malformed += 1,
            Content::Echo(echo) => {
                let slot = (echo & 0xff) as u16;
                if echo >> 8 != u32::from(known.life) || !known.slots.free(slot) {
                    self.counts.stray_acknowledgements += 1;
                    return;
                }
                let outcome = FrameOutcome::Sent;
                tell(InterfaceEvent::Acknowledged { channel, slot: slot as u8, time, outcome });
            }
            Content::Error { bus, health, counters } => {
                known.counters = counters;
                if bus {
                    tell(InterfaceEvent::BusError { channel, time, counters });
                }
                if let Some(health) = health {
                    known.health = health;
                    self.tell_state(channel.into(), time, tell);
                }
            }
        }
    }
}

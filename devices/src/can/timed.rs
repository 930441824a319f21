//! The other nodes of a bus under MTS: units with clocks of their own, which keep the common time
//! by the frames of one of them, and renew the identifiers of their messages by their clocks.

use super::traffic::numbered;
use diapason_abi::Nanos;
use diapason_can::bus::{BusEvent, EventKind, NodeId, Ticket};
use diapason_can::mts::{Epochs, NodeDuty, NodeTime, Oscillator, TimeFrame, TimeTerms};
use diapason_can::{AnyFrame, BitRate, Bus, CanFrame, Id};
use diapason_random::Random;
use std::collections::VecDeque;

/// The identifier of a message of such a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedName {
    /// A high-speed message with this code. It has to begin this long after it comes at most.
    Code {
        code: u16,
        distance: Nanos,
    },
    Fixed(Id),
    /// The frame of the time. Its unit is the master.
    Time(Id),
}

/// A message of a unit, which comes evenly by the unit's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedMessage {
    pub name: TimedName,
    pub length: u8,
    pub period: Nanos,
}

/// A unit: its clock, and what it sends.
#[derive(Clone, Debug)]
pub struct TimedUnit {
    pub clock: Oscillator,
    pub messages: Vec<TimedMessage>,
}

/// The terms that all units of a bus keep.
#[derive(Clone, Copy, Debug)]
pub struct TimedTerms {
    pub time: TimeTerms,
    pub epochs: Epochs,
    /// No clock is further from the common time, and each unit renews within that time.
    pub clocks: Nanos,
    pub within: Nanos,
    /// The identifier of the frame of the time.
    pub id: Id,
}

/// A message that waits at a unit.
struct Waiting {
    ticket: Ticket,
    message: usize,
    /// By the common time.
    start_by: Nanos,
}

/// A frame of the time that a unit has not yet read its clock for, and whether it is its own.
struct Reading {
    at: Nanos,
    frame: TimeFrame,
    own: bool,
}

struct Unit {
    node: NodeId,
    of: TimedUnit,
    time: NodeTime,
    /// By message: how many came.
    came: Vec<u64>,
    waiting: Vec<Waiting>,
    readings: VecDeque<Reading>,
    /// The renewal that has begun is over at this time.
    renews: Nanos,
}

/// All such units of a bus.
pub(super) struct TimedUnits {
    terms: TimedTerms,
    units: Vec<Unit>,
    random: Random,
    /// Longest from the end of a frame until a unit reads its clock. The frame of a sender ends
    /// one bit later.
    reads: Nanos,
    /// High-speed messages that came while their unit did not know the time.
    untimed: u64,
}

impl TimedUnits {
    /// Returns no units yet. The seed says when they read their clocks and how soon they renew.
    pub fn new(rate: BitRate, terms: TimedTerms, seed: u64) -> TimedUnits {
        let reads = terms.time.base().stamp - rate.time(1);
        TimedUnits { terms, units: Vec::new(), random: Random::new(seed), reads, untimed: 0 }
    }

    /// Adds a unit. The unit is switched on at the start, and is the master if it has the message
    /// of the time.
    pub fn add(&mut self, node: NodeId, of: TimedUnit) {
        let TimedTerms { time, epochs, clocks, within, .. } = self.terms;
        let leads = of.messages.iter().any(|it| matches!(it.name, TimedName::Time(_)));
        let start = of.clock.local(Nanos::ZERO);
        let time = NodeTime::new((time, leads.then_some(0)), epochs, (clocks, within), start);
        let came = vec![0; of.messages.len()];
        let (waiting, readings) = (Vec::new(), VecDeque::new());
        self.units.push(Unit { node, of, time, came, waiting, readings, renews: Nanos::FOREVER });
    }

    /// Returns how many high-speed messages came while their unit did not know the time.
    pub fn untimed(&self) -> u64 {
        self.untimed
    }

    /// Returns when a unit does something.
    pub fn next(&self, now: Nanos) -> Nanos {
        self.units.iter().map(|unit| unit.next(now)).fold(Nanos::FOREVER, Nanos::min)
    }

    /// Carries out what units do at `now`.
    pub fn act(&mut self, now: Nanos, bus: &mut Bus) {
        let TimedUnits { terms, units, random, untimed, .. } = self;
        for unit in units.iter_mut() {
            unit.act(now, bus, terms, random, untimed);
        }
    }

    /// A node heard or sent a frame.
    pub fn hear(&mut self, event: &BusEvent) {
        let Some(unit) = self.units.iter_mut().find(|unit| unit.node == event.node) else { return };
        let (frame, own) = match &event.kind {
            EventKind::Sent { frame, ticket } => {
                unit.waiting.retain(|it| Some(it.ticket) != *ticket);
                (frame, true)
            }
            EventKind::Received { frame } => (frame, false),
            _ => return,
        };
        let AnyFrame::Classic(frame) = frame else { return };
        if frame.id() != self.terms.id {
            return;
        }
        let Some(frame) = TimeFrame::read(frame.bytes()) else { return };
        let at = event.time + Nanos(self.random.below(self.reads.0 + 1));
        unit.readings.push_back(Reading { at, frame, own });
    }
}

impl Unit {
    /// Returns when a message comes for the first time after those that came.
    fn comes(&self, message: usize) -> Nanos {
        let of = &self.of.messages[message];
        let first = Nanos(self.of.clock.offset) + Nanos::from_millis(1);
        self.of.clock.when(first + Nanos(of.period.0.saturating_mul(self.came[message])))
    }

    fn next(&self, now: Nanos) -> Nanos {
        let is_time = |it: &TimedMessage| matches!(it.name, TimedName::Time(_));
        let messages = (0..self.came.len()).filter(|at| !is_time(&self.of.messages[*at]));
        let comes = messages.map(|message| self.comes(message)).fold(Nanos::FOREVER, Nanos::min);
        let local = self.of.clock.local(now);
        let look = self.of.clock.when(self.time.next_look(local)).max(now);
        let reads = self.readings.front().map_or(Nanos::FOREVER, |reading| reading.at);
        comes.min(look).min(reads).min(self.renews)
    }

    fn act(
        &mut self,
        now: Nanos,
        bus: &mut Bus,
        terms: &TimedTerms,
        random: &mut Random,
        untimed: &mut u64,
    ) {
        let local = self.of.clock.local(now);
        while let Some(Reading { at, frame, own }) = self.readings.pop_front_if(|it| it.at <= now) {
            // The bus may have told of the frame only now.
            let read = self.of.clock.local(at);
            match own {
                true => self.time.clock().sent(read, true),
                false => drop(self.time.clock().heard(read, 0, &frame)),
            }
        }
        if let Some(frame) = self.time.clock().look(local) {
            self.send_time(now, bus, &frame);
        }
        if local >= self.time.next_look(local) {
            match self.time.look(local) {
                NodeDuty::Renew => {
                    let within = terms.within.0;
                    let delay = [0, within, random.below(within + 1)][random.below(3) as usize];
                    self.renews = self.of.clock.when(local + Nanos(delay)).max(now);
                }
                NodeDuty::TakeBack => self.take_back(now, bus),
                NodeDuty::None => {}
            }
        }
        if now >= self.renews {
            self.renews = Nanos::FOREVER;
            self.time.renewed();
            self.rename(now, bus, terms);
        }
        for message in 0..self.came.len() {
            let name = self.of.messages[message].name;
            while !matches!(name, TimedName::Time(_)) && self.comes(message) <= now {
                *untimed += u64::from(!self.send(now, bus, terms, message));
                self.came[message] += 1;
            }
        }
    }

    fn send_time(&mut self, now: Nanos, bus: &mut Bus, frame: &TimeFrame) {
        let time = |it: &TimedMessage| match it.name {
            TimedName::Time(id) => Some(id),
            _ => None,
        };
        let id = self.of.messages.iter().find_map(time);
        let frame = id.and_then(|id| CanFrame::data(id, &frame.bytes()).ok());
        if let Some(frame) = frame {
            // A queue has room: the frame before is through.
            let _ = bus.send(now, self.node, frame);
        }
    }

    /// Returns whether the message could be sent.
    fn send(&mut self, now: Nanos, bus: &mut Bus, terms: &TimedTerms, message: usize) -> bool {
        let of = self.of.messages[message];
        let local = self.of.clock.local(now);
        let (id, start_by) = match of.name {
            TimedName::Fixed(id) | TimedName::Time(id) => (id, Nanos::FOREVER),
            TimedName::Code { code, distance } => {
                let (Some(epoch), Some(common)) = (self.time.epoch(), self.time.common(local))
                else {
                    return false;
                };
                let start_by = common + distance;
                let Ok(id) = terms.epochs.id(code, start_by, epoch) else { return false };
                (Id::from(id), start_by)
            }
        };
        let Some(frame) = numbered(id, of.length, self.came[message]) else { return false };
        match bus.send(now, self.node, frame) {
            Ok(ticket) => {
                self.waiting.push(Waiting { ticket, message, start_by });
                true
            }
            Err(_) => false,
        }
    }

    /// Gives all high-speed messages that wait the identifiers of the epoch. One in arbitration
    /// keeps its own until that is over, as a controller with buffers that are changed does.
    fn rename(&mut self, now: Nanos, bus: &mut Bus, terms: &TimedTerms) {
        let Some(epoch) = self.time.epoch() else { return };
        for it in &self.waiting {
            let TimedName::Code { code, .. } = self.of.messages[it.message].name else { continue };
            if let Ok(id) = terms.epochs.id(code, it.start_by, epoch) {
                bus.rename(now, self.node, it.ticket, id.into());
            }
        }
    }

    /// Takes all high-speed messages back that are not on the wire.
    fn take_back(&mut self, now: Nanos, bus: &mut Bus) {
        let (node, messages) = (self.node, &self.of.messages);
        let is_high = |it: &Waiting| matches!(messages[it.message].name, TimedName::Code { .. });
        self.waiting.retain(|it| !is_high(it) || !bus.cancel(now, node, it.ticket));
    }
}

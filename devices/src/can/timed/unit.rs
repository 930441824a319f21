//! One unit: when it acts, and how it keeps the time.

use super::{Around, MessageBooks, TimedMessage, TimedName, TimedTerms, TimedUnit, UnitTrouble};
use diapason_abi::Nanos;
use diapason_can::bus::{Activity, BusEvent, EventKind, NodeId, Ticket};
use diapason_can::mts::{
    BusClock, NodeDuty, NodeTime, RENEW_FROM_BITS, RENEW_UNTIL_BITS, Renewal, Renewing, TimeFrame,
};
use diapason_can::{AnyFrame, Bus};
use std::collections::VecDeque;

/// A message that is in the queue of a unit, or the frame that tells to renew if it has no message.
pub(super) struct Waiting {
    pub ticket: Ticket,
    pub message: Option<usize>,
    pub came: Nanos,
    /// By the common time.
    pub start_by: Nanos,
    /// The frame as it is if it does not tell to renew.
    pub frame: AnyFrame,
    /// The frame tells to renew.
    pub marked: bool,
}

/// A message that came and is not in the queue yet.
pub(super) struct Pending {
    pub at: Nanos,
    pub message: usize,
    pub number: u64,
    pub came: Nanos,
}

/// A frame of the time that a unit has not yet read its clock for, and whether it is its own.
struct Reading {
    at: Nanos,
    frame: TimeFrame,
    own: bool,
}

pub(super) struct Unit {
    pub node: NodeId,
    /// The unit's number on the bus.
    pub number: u16,
    pub of: TimedUnit,
    /// The time of the unit while it is switched on, under MTS.
    pub time: Option<NodeTime>,
    is_on: bool,
    /// The unit knew the epoch once.
    pub knew: bool,
    /// There was no error since its frame of the time was asked for.
    clean: bool,
    /// By message: how many would have come by now.
    numbers: Vec<u64>,
    pub books: Vec<MessageBooks>,
    pub pending: Vec<Pending>,
    pub waiting: Vec<Waiting>,
    readings: VecDeque<Reading>,
    /// When the renewal that has begun is over.
    renews: Nanos,
    /// When it tries again what could not be done to a frame that was in arbitration.
    pub again: Nanos,
    /// The upsets that are over or have begun, and when that which switched it off ends.
    upset: usize,
    back: Nanos,
    deaf: Nanos,
    /// No message without a period is asked for before this time, because one was refused.
    pub refused: Nanos,
}

impl Unit {
    /// Returns a unit that is switched on at the start.
    pub fn new((node, number): (NodeId, u16), of: TimedUnit, terms: Option<TimedTerms>) -> Unit {
        let time = terms.map(|terms| time(&of, terms, Nanos::ZERO));
        let count = of.messages.len();
        Unit {
            node,
            number,
            of,
            time,
            is_on: true,
            knew: false,
            clean: true,
            numbers: vec![0; count],
            books: vec![MessageBooks::default(); count],
            pending: Vec::new(),
            waiting: Vec::new(),
            readings: VecDeque::new(),
            renews: Nanos::FOREVER,
            again: Nanos::FOREVER,
            upset: 0,
            back: Nanos::FOREVER,
            deaf: Nanos::ZERO,
            refused: Nanos::ZERO,
        }
    }

    /// Returns whether this is its node.
    pub fn is(&self, node: NodeId) -> bool {
        self.node == node
    }

    /// Returns the books of its messages at `now`.
    pub fn books(&self, now: Nanos) -> Vec<MessageBooks> {
        let mut books = self.books.clone();
        let queued = self.waiting.iter().filter_map(|it| Some((it.message?, it.came)));
        let pending = self.pending.iter().map(|it| (it.message, it.came));
        for (message, came) in queued.chain(pending) {
            let deadline = self.of.messages[message].deadline;
            books[message].waiting += 1;
            books[message].late += u64::from(deadline.is_some_and(|it| now - came > it));
        }
        books
    }

    /// Returns when a message comes for the first time after those that came.
    fn comes(&self, message: usize) -> Nanos {
        let of = &self.of.messages[message];
        let Some(period) = of.period.filter(|_| !is_time(of)) else { return Nanos::FOREVER };
        let first = Nanos(self.of.clock.offset) + of.first;
        self.of.clock.when(first + Nanos(period.0.saturating_mul(self.numbers[message])))
    }

    /// Returns when the unit does something.
    pub fn next(&self, now: Nanos) -> Nanos {
        let upset = self.of.upsets.get(self.upset).map_or(Nanos::FOREVER, |upset| upset.at);
        if !self.is_on {
            return upset.min(self.back).max(now);
        }
        let comes = (0..self.numbers.len()).map(|message| self.comes(message));
        let queued = self.pending.iter().map(|pending| pending.at);
        let local = self.of.clock.local(now);
        let look = self
            .time
            .as_ref()
            .map_or(Nanos::FOREVER, |time| self.of.clock.when(time.next_look(local)).max(now));
        let reads = self.readings.front().map_or(Nanos::FOREVER, |reading| reading.at);
        let next = comes.chain(queued).fold(upset, Nanos::min);
        let next = next.min(look).min(reads).min(self.renews).min(self.again);
        if self.rests().next().is_some() { next.min(self.refused.max(now)) } else { next }
    }

    /// Returns the messages without a period of which none waits.
    fn rests(&self) -> impl Iterator<Item = usize> {
        let waits = |message| self.waiting.iter().any(|it| it.message == Some(message));
        let all = self.of.messages.iter().enumerate();
        let endless = all.filter(|(_, it)| it.period.is_none()).map(|(message, _)| message);
        endless.filter(move |message| !waits(*message))
    }

    /// Carries out what is due at `now`.
    pub fn act(&mut self, now: Nanos, bus: &mut Bus, around: &mut Around) {
        self.suffer(now, bus, around);
        if !self.is_on {
            return;
        }
        self.keep_time(now, bus, around);
        for message in 0..self.numbers.len() {
            while self.comes(message) <= now {
                let came = self.comes(message);
                let jitter = self.of.messages[message].jitter;
                let at = came + Nanos(around.random.below(jitter.0 + 1));
                self.pending.push(Pending { at, message, number: self.numbers[message], came });
                self.numbers[message] += 1;
                self.books[message].came += 1;
            }
        }
        let rests: Vec<usize> = self.rests().filter(|_| now >= self.refused).collect();
        for message in rests {
            let number = self.numbers[message];
            self.pending.push(Pending { at: now, message, number, came: now });
            self.numbers[message] += 1;
            self.books[message].came += 1;
        }
        while let Some(place) = self.pending.iter().position(|it| it.at <= now) {
            let pending = self.pending.remove(place);
            self.send(now, bus, around, &pending);
        }
    }

    /// Begins and ends the trouble that is due.
    fn suffer(&mut self, now: Nanos, bus: &mut Bus, around: &Around) {
        if !self.is_on && self.back <= now {
            (self.is_on, self.back) = (true, Nanos::FOREVER);
            bus.switch(now, self.node, true);
            self.time = around.terms.map(|terms| time(&self.of, terms, now));
            for message in 0..self.numbers.len() {
                while self.comes(message) <= now {
                    self.numbers[message] += 1;
                }
            }
        }
        while let Some(upset) = self.of.upsets.get(self.upset).copied().filter(|it| it.at <= now) {
            match upset.trouble {
                UnitTrouble::Deaf => self.deaf = upset.at + upset.lasts,
                // A unit that breaks off its frame costs the others an error.
                UnitTrouble::Off if bus.activity(now, self.node) == Activity::Sending => {
                    self.of.upsets[self.upset].at = now + around.rate.time(1);
                    return;
                }
                UnitTrouble::Off => {
                    self.back = upset.at + upset.lasts;
                    self.switch_off(now, bus);
                }
            }
            self.upset += 1;
        }
    }

    fn switch_off(&mut self, now: Nanos, bus: &mut Bus) {
        bus.switch(now, self.node, false);
        let pending = self.pending.drain(..).map(|it| it.message);
        let gone = self.waiting.drain(..).filter_map(|it| it.message).chain(pending);
        gone.for_each(|message| self.books[message].lost += 1);
        self.readings.clear();
        (self.renews, self.again) = (Nanos::FOREVER, Nanos::FOREVER);
        (self.is_on, self.time) = (false, None);
    }

    /// Reads its clock for frames of the time, and looks at what its clock asks for.
    fn keep_time(&mut self, now: Nanos, bus: &mut Bus, around: &mut Around) {
        let (Some(terms), Some(time)) = (around.terms, &mut self.time) else { return };
        let local = self.of.clock.local(now);
        if let Some(clock) = time.clock() {
            while let Some(reading) = self.readings.pop_front_if(|it| it.at <= now) {
                let read = self.of.clock.local(reading.at);
                match reading.own {
                    true => clock.sent(read, self.clean),
                    false => drop(clock.heard(read, 0, &reading.frame)),
                }
            }
            if let Some(frame) = clock.look(local) {
                self.clean = true;
                self.send_time(now, bus, &frame);
            }
        }
        let Some(time) = &mut self.time else { return };
        if local >= time.next_look(local) {
            match time.look(local) {
                NodeDuty::Renew => {
                    let within = match terms.renewing {
                        Renewing::ByClock { within, .. } => within.0,
                        Renewing::OnSignal { .. } => 0,
                    };
                    let random = &mut around.random;
                    let delay = [0, within, random.below(within + 1)][random.below(3) as usize];
                    self.renews = self.of.clock.when(local + Nanos(delay)).max(now);
                }
                NodeDuty::Tell => self.tell(now, bus, around),
                NodeDuty::Repair => self.rename(now, bus, around),
                NodeDuty::TakeBack => self.take_back(now, bus, around),
                NodeDuty::None => {}
            }
        }
        if now >= self.renews {
            self.renews = Nanos::FOREVER;
            self.time.iter_mut().for_each(NodeTime::renewed);
            self.rename(now, bus, around);
        }
        if now >= self.again {
            self.again = Nanos::FOREVER;
            match self.time.as_ref().map(|time| (time.epoch(), time.tells())) {
                Some((None, _)) => self.take_back(now, bus, around),
                Some((_, true)) => self.mark(now, bus, around),
                _ => self.rename(now, bus, around),
            }
        }
        self.knew |= self.time.as_ref().is_some_and(|time| time.epoch().is_some());
    }

    /// Hears an event of its node, and returns whether a frame of its own told to renew.
    pub fn hear(&mut self, event: &BusEvent, around: &mut Around) -> bool {
        let (frame, own) = match &event.kind {
            EventKind::Sent { frame, .. } => (frame, true),
            EventKind::Received { frame } => (frame, false),
            EventKind::Error { .. } => {
                self.clean = false;
                return false;
            }
            EventKind::Dropped { .. } | EventKind::Health { .. } => return false,
        };
        self.hear_time(event.time, frame, own, around);
        let EventKind::Sent { ticket: Some(ticket), .. } = event.kind else { return false };
        let Some(place) = self.waiting.iter().position(|it| it.ticket == ticket) else {
            return false;
        };
        let it = self.waiting.swap_remove(place);
        if let Some(message) = it.message {
            let deadline = self.of.messages[message].deadline;
            self.books[message].through(it.came, deadline, event.time);
        }
        it.marked
    }

    /// Reads its clock soon if this is a frame of the time.
    fn hear_time(&mut self, at: Nanos, frame: &AnyFrame, own: bool, around: &mut Around) {
        let time = around.terms.and_then(|terms| terms.time);
        let (AnyFrame::Classic(frame), Some((_, id))) = (frame, time) else { return };
        if frame.id() != id || !own && at < self.deaf {
            return;
        }
        let Some(frame) = TimeFrame::read(frame.bytes()) else { return };
        let at = at + Nanos(around.random.below(around.reads().0 + 1));
        self.readings.push_back(Reading { at, frame, own });
    }

    /// A frame that tells to renew is through.
    pub fn told(&mut self, now: Nanos, around: &mut Around) {
        let Some(time) = self.time.as_mut().filter(|_| now >= self.deaf) else { return };
        if time.told(self.of.clock.local(now)) == NodeDuty::Renew {
            let room = u64::from(RENEW_UNTIL_BITS - RENEW_FROM_BITS);
            let bits = u64::from(RENEW_FROM_BITS) + around.random.below(room + 1);
            self.renews = now + around.rate.time(bits);
        }
    }
}

/// Returns whether this is the frame of the time.
pub(super) fn is_time(message: &TimedMessage) -> bool {
    matches!(message.name, TimedName::Time(_))
}

/// Returns the time of a unit that is switched on `now`.
fn time(of: &TimedUnit, terms: TimedTerms, now: Nanos) -> NodeTime {
    let leads = of.messages.iter().any(is_time);
    let start = of.clock.local(now);
    let clock = terms.time.map(|(time, _)| BusClock::new(time, leads.then_some(0), start));
    NodeTime::new(clock, Renewal::new(terms.epochs, terms.clocks, terms.renewing))
}

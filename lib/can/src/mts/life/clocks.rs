//! The clocks of nodes in a life: given to be off by so much, or kept by the frames of a master.

use super::sends::marked;
use super::{Act, Life, LifeStream, Waiting};
use crate::bus::{Activity, Withdrawn};
use crate::frame::CanFrame;
use crate::mts::{BusClock, Oscillator, RENEW_FROM_BITS, TimeFrame, TimeTerms};
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// The clock of a node that learns the common time on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeClock {
    /// The clock says this at time 0, and is too fast by so many millionths.
    pub offset: u64,
    pub ppm: i64,
    /// The node may become the master, and then sends the low-speed message of this rank.
    pub candidate: Option<u8>,
    /// The node does not hear one of so many frames of the master; 0: it hears all.
    pub deaf: u64,
    /// The node is switched off from here to there.
    pub off: Option<(Nanos, Nanos)>,
}

/// How the nodes of a life know the common time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifeTime {
    pub terms: TimeTerms,
    /// One for each node.
    pub clocks: Vec<LifeClock>,
}

const NEVER: [Nanos; 2] = [Nanos::FOREVER; 2];

/// A node that learns the time on the bus.
pub(super) struct Learner {
    of: LifeClock,
    clock: BusClock,
    terms: TimeTerms,
    is_on: bool,
    /// The frame that is asked for met no error yet.
    clean: bool,
    /// Since when the node does not know the time.
    lost: Option<Nanos>,
    /// Times of its clock for which [`Act::Lead`] and [`Act::Mind`] are planned.
    planned: [Nanos; 2],
}

/// A node has read its clock for a frame of a master.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    node: usize,
    sender: usize,
    frame: TimeFrame,
}

impl Learner {
    fn new(terms: TimeTerms, of: LifeClock) -> Learner {
        let clock = BusClock::new(terms, of.candidate, Nanos::ZERO);
        Learner {
            of,
            clock,
            terms,
            is_on: false,
            clean: true,
            lost: Some(Nanos::ZERO),
            planned: NEVER,
        }
    }

    fn oscillator(&self) -> Oscillator {
        let grain = self.terms.base().grain;
        Oscillator { offset: self.of.offset, ppm: self.of.ppm, grain }
    }

    /// Returns what the clock says.
    fn local(&self, now: Nanos) -> Nanos {
        self.oscillator().local(now)
    }

    /// Returns when the clock says at least this.
    fn when(&self, local: Nanos) -> Nanos {
        self.oscillator().when(local)
    }
}

impl Life<'_> {
    /// Lets the nodes learn the time on the bus.
    pub(super) fn learn(&mut self, time: &LifeTime) {
        let clocks = time.clocks.iter();
        self.learners = clocks.map(|clock| Learner::new(time.terms, *clock)).collect();
        for (node, clock) in time.clocks.iter().enumerate() {
            self.push(self.units[node].joins, Act::On(node));
            if let Some((from, until)) = clock.off {
                self.push(from, Act::Off(node));
                self.push(until, Act::On(node));
            }
        }
    }

    /// Returns the common time as a node knows it.
    pub(super) fn clock(&self, node: usize, now: Nanos) -> Option<Nanos> {
        match self.learners.get(node) {
            Some(learner) if !learner.is_on => None,
            Some(learner) => learner.clock.common(learner.local(now)),
            None => Some(Nanos(now.0.saturating_add_signed(self.units[node].offset))),
        }
    }

    /// Returns when a node's idea of the common time is this.
    pub(super) fn when(&self, node: usize, common: Nanos) -> Option<Nanos> {
        match self.learners.get(node) {
            Some(learner) => learner.clock.local(common).map(|local| learner.when(local)),
            None => Some(Nanos(common.0.saturating_add_signed(-self.units[node].offset))),
        }
    }

    /// Returns whether the node is there.
    pub(super) fn is_on(&self, node: usize, now: Nanos) -> bool {
        match self.learners.get(node) {
            Some(learner) => learner.is_on,
            None => now >= self.units[node].joins,
        }
    }

    pub(super) fn switch_on(&mut self, now: Nanos, node: usize) {
        let learner = &mut self.learners[node];
        if learner.is_on {
            return;
        }
        let since = learner.local(now);
        (learner.is_on, learner.planned) = (true, NEVER);
        learner.clock = BusClock::new(learner.terms, learner.of.candidate, since);
        self.bus.switch(now, self.nodes[node], true);
        self.mind(now, node);
    }

    /// Switches a node off, but not in its frame: that would cost the others an error.
    pub(super) fn switch_off(&mut self, now: Nanos, node: usize) {
        if self.bus.activity(now, self.nodes[node]) == Activity::Sending {
            return self.push(now + self.set.rate.time(1), Act::Off(node));
        }
        self.bus.switch(now, self.nodes[node], false);
        self.learners[node].is_on = false;
        self.learners[node].lost = Some(now);
        self.keepers[node].lost();
        for ticket in self.tickets(node) {
            let gone = self.waiting.remove(&ticket).and_then(|it| it.which);
            self.outcome.late.extend(gone.map(|which| (node, which)));
        }
    }

    /// A node sends the master's frame if it is due.
    pub(super) fn lead(&mut self, now: Nanos, node: usize) {
        if !self.learners[node].is_on {
            return;
        }
        let learner = &mut self.learners[node];
        let due = learner.clock.look(learner.local(now));
        let rank = usize::from(learner.of.candidate.unwrap_or_default());
        if let Some(message) = self.set.low.get(rank)
            && let Some(frame) = due.and_then(|it| CanFrame::data(message.id, &it.bytes()).ok())
        {
            self.learners[node].clean = true;
            let of = Some(LifeStream::Low(rank));
            let it = Waiting { is_time: true, ..Waiting::new(node, of, frame, now) };
            self.queue(now, Waiting { due: now + message.deadline, ..it });
        }
        self.mind(now, node);
    }

    /// A frame of a master is through: all nodes read their clocks soon.
    pub(super) fn read_clocks(&mut self, now: Nanos, sender: usize, frame: &CanFrame) {
        let Some(frame) = TimeFrame::read(frame.bytes()) else { return };
        for node in 0..self.units.len() {
            let Learner { of, terms, is_on, .. } = &self.learners[node];
            let room = (terms.base().stamp - self.set.rate.time(1)).0;
            let deaf = node != sender && of.deaf > 0 && (self.draw)(of.deaf) == 0;
            if *is_on && !deaf {
                let at = now + Nanos((self.draw)(room + 1));
                self.readings.push(Reading { node, sender, frame });
                self.push(at, Act::Read(self.readings.len() - 1));
            }
        }
    }

    pub(super) fn read(&mut self, now: Nanos, number: usize) {
        let Reading { node, sender, frame } = self.readings[number];
        let source = self.learners[sender].of.candidate.unwrap_or_default();
        let learner = &mut self.learners[node];
        if !learner.is_on {
            return;
        }
        let local = learner.local(now);
        if node == sender {
            learner.clock.sent(local, learner.clean);
        } else if learner.clock.heard(local, source, &frame) {
            let of_time = |it: &Waiting| it.node == node && it.is_time;
            let own = self.waiting.iter().find(|(_, it)| of_time(it)).map(|(ticket, _)| *ticket);
            if let Some(ticket) = own
                && self.bus.withdraw(now, self.nodes[node], ticket) == Withdrawn::Back
            {
                self.waiting.remove(&ticket);
            }
        }
        self.mind(now, node);
    }

    /// There was an error on the bus.
    pub(super) fn doubt(&mut self, node: usize) {
        if let Some(learner) = self.learners.get_mut(node) {
            learner.clean = false;
        }
    }

    /// Plans what a node does next, now that it may know the time or not know it any more.
    pub(super) fn mind(&mut self, now: Nanos, node: usize) {
        let learner = &mut self.learners[node];
        let local = learner.local(now);
        let step = Nanos(learner.terms.base().grain.0.max(1));
        let ends = learner.clock.known_until().filter(|until| *until >= local);
        let times = [learner.clock.next_look(), ends.map_or(Nanos::FOREVER, |until| until + step)];
        for (place, act) in [Act::Lead(node), Act::Mind(node)].into_iter().enumerate() {
            let Learner { planned, .. } = &mut self.learners[node];
            let is_new = times[place] != planned[place] || local >= planned[place];
            planned[place] = times[place];
            if is_new && times[place] < Nanos::FOREVER {
                let at = self.learners[node].when(times[place]).max(now + Nanos(1));
                self.push(at, act);
            }
        }
        match (self.clock(node, now), self.learners[node].lost) {
            (Some(_), None) => {}
            (Some(_), Some(_)) => {
                self.learners[node].lost = None;
                self.look_again(now, node);
            }
            (None, None) => {
                self.learners[node].lost = Some(now);
                self.outcome.lost += 1;
                self.keepers[node].lost();
                self.forget(now, node);
            }
            (None, Some(_)) => {}
        }
    }

    /// A node that does not know the time takes its high-speed messages back, and tells nobody.
    pub(super) fn forget(&mut self, now: Nanos, node: usize) {
        if self.keepers[node].epoch().is_some() {
            return;
        }
        let mut again = false;
        for ticket in self.tickets(node) {
            let it = self.waiting[&ticket];
            let is_high = matches!(it.which, Some(LifeStream::High(_)));
            if !is_high && !it.marked {
                continue;
            }
            if !self.bus.cancel(now, self.nodes[node], ticket) {
                // It is on the wire, or loses and is taken back then.
                again = true;
                continue;
            }
            self.waiting.remove(&ticket);
            match it.which {
                Some(which) if is_high => self.outcome.late.push((node, which)),
                Some(_) => self.request(now, marked(it, false)),
                None => {}
            }
        }
        if again {
            self.push(now + self.set.rate.time(RENEW_FROM_BITS.into()), Act::Forget(node));
        }
    }

    /// Counts a high-speed frame that began when its node did not know the time any more.
    pub(super) fn count_unknown(&mut self, sent: &Waiting, began: Nanos) {
        let lost = self.learners.get(sent.node).and_then(|learner| learner.lost);
        let is_high = matches!(sent.which, Some(LifeStream::High(_)));
        self.outcome.unknown += u64::from(is_high && lost.is_some_and(|lost| began > lost));
    }
}

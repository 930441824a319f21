//! Nodes under MTS on the simulated bus: what a set promises, tried out.
//!
//! Each node has a clock of its own and the state machine of [`super::renewal`]. The clock is off
//! by a given time, up to what the set says, or it learns the time on the bus as
//! [`super::BusClock`] does. Nothing here knows the proof: a life says which messages were late,
//! and which frame went before one that was more urgent.

mod clocks;

pub use clocks::{LifeClock, LifeTime};

use super::{Duty, MtsRefusal, MtsSet, RENEW_FROM_BITS, RENEW_UNTIL_BITS, Renewal};
use super::{beacon_id, read_update, signal_update};
use crate::bus::{Bus, EventKind, NodeId, NodeSetup, Ticket};
use crate::frame::CanFrame;
use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
use clocks::{Learner, Reading};
use core::cmp::Reverse;
use diapason_abi::Nanos;

/// A message of a set: of high speed by code, of low speed by priority, or not due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LifeStream {
    High(usize),
    Low(usize),
    /// A frame that is not due and has an identifier of its own, by its number.
    Other(usize),
}

/// One message that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeMessage {
    /// The time at which the message came, by the common time.
    pub came: Nanos,
    /// The time at which the message is in the queue of its node.
    pub queued: Nanos,
    pub which: LifeStream,
    /// The number of its node.
    pub node: usize,
}

/// A node of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeUnit {
    /// By how many nanoseconds its clock is before the common time, if it does not learn that.
    pub offset: i64,
    /// The node is switched on at this time.
    pub joins: Nanos,
    /// The node does not hear one of so many frames that tell to renew; 0: it hears all.
    pub deaf: u64,
}

/// The frames of the messages of a set; identifiers are given to them here.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    pub high: Vec<CanFrame>,
    pub low: Vec<CanFrame>,
    pub other: Vec<CanFrame>,
}

/// The outcome of a life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LifeOutcome {
    /// Messages that were sent.
    pub sent: u64,
    /// Late messages, or such that were never sent: node and message.
    pub late: Vec<(usize, LifeStream)>,
    /// Frames that began although a more urgent high-speed message waited, on a bus that was not
    /// idle just before.
    pub inverted: u64,
    /// Frames that told to renew.
    pub told: u64,
    /// Renewals without having heard.
    pub missed: u64,
    /// High-speed messages whose start-by time no identifier could say.
    pub beyond: u64,
    /// How often a node that knew the time did not know it any more, resets not counted.
    pub lost: u64,
    /// High-speed frames that began when their node did not know the time.
    pub unknown: u64,
    /// High-speed frames that began with an identifier of an epoch longer over than is proved.
    pub stale: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Off(usize),
    On(usize),
    Renew(usize),
    Mark(usize),
    Rename(usize),
    Look(usize),
    /// A node may have to send the master's frame.
    Lead(usize),
    /// A node has read its clock.
    Read(usize),
    /// A node may not know the time any more.
    Mind(usize),
    Forget(usize),
    Come(usize),
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    node: usize,
    which: Option<LifeStream>,
    frame: CanFrame,
    /// When the message came, and when it was queued.
    came: Nanos,
    queued: Nanos,
    due: Nanos,
    /// The message's start-by time by the clock of its node, and the epoch of its identifier.
    start_by: Nanos,
    epoch: Nanos,
    marked: bool,
    /// The message says the time of a master.
    is_time: bool,
}

impl Waiting {
    /// Returns a message that is never due.
    fn new(node: usize, which: Option<LifeStream>, frame: CanFrame, now: Nanos) -> Waiting {
        Waiting {
            node,
            which,
            frame,
            came: now,
            queued: now,
            due: Nanos::FOREVER,
            start_by: Nanos::FOREVER,
            epoch: Nanos::ZERO,
            marked: false,
            is_time: false,
        }
    }
}

/// Lets these messages come.
///
/// `draw(n)` is a random number below `n`.
///
/// # Errors
/// More nodes than there can be.
pub fn live(
    set: &MtsSet,
    frames: &Frames,
    units: &[LifeUnit],
    comings: &[LifeMessage],
    draw: &mut dyn FnMut(u64) -> u64,
) -> Result<LifeOutcome, MtsRefusal> {
    Life::new(set, frames, units, comings, draw)?.run()
}

/// Lets these messages come to nodes that learn the time on the bus. The first messages of low
/// speed are those of the masters: their contents and their instants are given here.
///
/// # Errors
/// More nodes than there can be.
pub fn live_on_bus_time(
    set: &MtsSet,
    frames: &Frames,
    (units, time): (&[LifeUnit], &LifeTime),
    comings: &[LifeMessage],
    draw: &mut dyn FnMut(u64) -> u64,
) -> Result<LifeOutcome, MtsRefusal> {
    let mut life = Life::new(set, frames, units, comings, draw)?;
    life.learn(time);
    life.run()
}

struct Life<'a> {
    set: &'a MtsSet,
    frames: &'a Frames,
    units: &'a [LifeUnit],
    comings: &'a [LifeMessage],
    draw: &'a mut dyn FnMut(u64) -> u64,
    bus: Bus,
    nodes: Vec<NodeId>,
    keepers: Vec<Renewal>,
    acts: BinaryHeap<Reverse<(Nanos, Act)>>,
    waiting: BTreeMap<Ticket, Waiting>,
    /// The clocks of nodes that learn the time. There is none if the clocks are given.
    learners: Vec<Learner>,
    readings: Vec<Reading>,
    /// The last end of a frame.
    ended: Nanos,
    last: Nanos,
    outcome: LifeOutcome,
}

impl<'a> Life<'a> {
    fn new(
        set: &'a MtsSet,
        frames: &'a Frames,
        units: &'a [LifeUnit],
        comings: &'a [LifeMessage],
        draw: &'a mut dyn FnMut(u64) -> u64,
    ) -> Result<Life<'a>, MtsRefusal> {
        for node in 0..units.len() {
            beacon_id(u16::try_from(node).unwrap_or(u16::MAX))?;
        }
        let mut bus = Bus::new(set.rate);
        let setup = || NodeSetup { queue: 256, ..NodeSetup::default() };
        let nodes = units.iter().map(|_| bus.add_node(setup())).collect();
        // Somebody is always there to acknowledge.
        bus.add_node(setup());
        let keeper = |_: &LifeUnit| Renewal::new(set.epochs, set.clocks, set.renewal);
        let mut acts = BinaryHeap::new();
        for (number, coming) in comings.iter().enumerate() {
            acts.push(Reverse((coming.queued, Act::Come(number))));
        }
        for (number, unit) in units.iter().enumerate() {
            acts.push(Reverse((unit.joins, Act::Look(number))));
        }
        let last = comings.iter().map(|coming| coming.queued).max().unwrap_or_default();
        Ok(Life {
            set,
            frames,
            units,
            comings,
            draw,
            bus,
            nodes,
            keepers: units.iter().map(keeper).collect(),
            acts,
            waiting: BTreeMap::new(),
            learners: Vec::new(),
            readings: Vec::new(),
            ended: Nanos::ZERO,
            last,
            outcome: LifeOutcome::default(),
        })
    }

    fn push(&mut self, at: Nanos, act: Act) {
        self.acts.push(Reverse((at, act)));
    }

    fn run(mut self) -> Result<LifeOutcome, MtsRefusal> {
        let end = self.last + Nanos(4 * self.set.epochs.epoch().0);
        loop {
            let act = self.acts.peek().map(|Reverse((at, _))| *at);
            let busy = self.bus.next_event();
            let now = match (act, busy) {
                (Some(act), Some(busy)) => act.min(busy),
                (Some(at), None) | (None, Some(at)) => at,
                (None, None) => break,
            };
            if now > end && self.nothing_due() {
                break;
            }
            self.bus.advance(now);
            self.collect();
            while let Some(Reverse((at, act))) = self.acts.peek().copied() {
                if at > now {
                    break;
                }
                self.acts.pop();
                self.act(now, act);
            }
        }
        let left = self.waiting.values();
        let left = left.filter_map(|it| Some((it.node, it.which.filter(|_| it.due < end)?)));
        self.outcome.late.extend(left);
        self.outcome.missed = self.keepers.iter().map(Renewal::missed).sum();
        Ok(self.outcome)
    }

    fn nothing_due(&self) -> bool {
        self.waiting.values().all(|it| it.which.is_none() || it.is_time)
            || self.bus.now() > self.last + Nanos(64 * self.set.epochs.epoch().0)
    }

    fn act(&mut self, now: Nanos, act: Act) {
        match act {
            Act::Come(number) => self.come(now, number),
            Act::Mark(node) => self.mark(now, node),
            Act::Rename(node) => self.rename(now, node),
            Act::Renew(node) => {
                self.keepers[node].renewed();
                self.rename(now, node);
                self.look_again(now, node);
            }
            Act::Off(node) => self.switch_off(now, node),
            Act::On(node) => self.switch_on(now, node),
            Act::Lead(node) => self.lead(now, node),
            Act::Read(number) => self.read(now, number),
            Act::Mind(node) => self.mind(now, node),
            Act::Forget(node) => self.forget(now, node),
            Act::Look(node) => self.look(now, node),
        }
    }

    fn look(&mut self, now: Nanos, node: usize) {
        let Some(clock) = self.clock(node, now) else { return };
        if clock < self.keepers[node].next_look(clock) {
            return self.look_again(now, node);
        }
        match self.keepers[node].look(clock) {
            Duty::Tell => {
                let id = beacon_id(u16::try_from(node).unwrap_or(u16::MAX));
                if let Some(frame) = id.ok().and_then(|id| CanFrame::data(id, &[]).ok()) {
                    let beacon = Waiting::new(node, None, frame, now);
                    self.request(now, Waiting { marked: true, ..beacon });
                }
                self.mark(now, node);
            }
            Duty::Repair => self.rename(now, node),
            Duty::None | Duty::Renew | Duty::Join => {}
        }
        self.look_again(now, node);
    }

    fn look_again(&mut self, now: Nanos, node: usize) {
        let Some(clock) = self.clock(node, now) else { return };
        let next = self.keepers[node].next_look(clock);
        if next < Nanos::FOREVER
            && now <= self.last + Nanos(64 * self.set.epochs.epoch().0)
            && let Some(at) = self.when(node, next)
        {
            self.push(at.max(now + Nanos(1)), Act::Look(node));
        }
    }

    fn come(&mut self, now: Nanos, number: usize) {
        let LifeMessage { came, which, node, .. } = self.comings[number];
        if !self.is_on(node, now) {
            return;
        }
        let (frame, deadline) = match which {
            LifeStream::High(code) => (self.frames.high[code], self.set.high[code].deadline),
            LifeStream::Low(rank) => {
                let message = &self.set.low[rank];
                (self.frames.low[rank].with_id(message.id), message.deadline)
            }
            LifeStream::Other(number) => (self.frames.other[number], Nanos::FOREVER),
        };
        let it = Waiting::new(node, Some(which), frame, now);
        self.queue(now, Waiting { came, due: came + deadline, ..it });
    }

    /// A message is in the queue of its node. One of high speed at a node that does not know the
    /// epoch is never sent: later it would come too close to the next one.
    fn queue(&mut self, now: Nanos, mut it: Waiting) {
        if let Some(LifeStream::High(code)) = it.which {
            let clock = self.clock(it.node, it.came);
            let (Some(epoch), Some(came)) = (self.keepers[it.node].epoch(), clock) else {
                return self.outcome.late.push((it.node, LifeStream::High(code)));
            };
            let message = &self.set.high[code];
            let distance = message.deadline - self.set.rate.time(message.bits.into());
            it = self.identified(Waiting { start_by: came + distance, ..it }, epoch);
        }
        if self.keepers[it.node].tells() {
            it = marked(it, true);
        }
        self.request(now, it);
    }

    fn request(&mut self, now: Nanos, it: Waiting) {
        if let Ok(ticket) = self.bus.send(now, self.nodes[it.node], it.frame) {
            self.waiting.insert(ticket, it);
        }
    }

    /// Returns the message with the identifier of an epoch.
    fn identified(&mut self, it: Waiting, epoch: Nanos) -> Waiting {
        let Some(LifeStream::High(code)) = it.which else { return it };
        let code = u16::try_from(code).unwrap_or(u16::MAX);
        if let Ok(id) = self.set.epochs.id(code, it.start_by, epoch) {
            Waiting { frame: it.frame.with_id(id), epoch, ..it }
        } else {
            self.outcome.beyond += 1;
            it
        }
    }

    /// Returns the tickets of a node, the first requested first.
    fn tickets(&self, node: usize) -> Vec<Ticket> {
        let own = self.waiting.iter().filter(|(_, it)| it.node == node);
        own.map(|(ticket, _)| *ticket).collect()
    }

    /// All that waits at a node tells to renew from now on. A message that just takes part in
    /// arbitration is tried again after it.
    fn mark(&mut self, now: Nanos, node: usize) {
        if !self.keepers[node].tells() {
            return;
        }
        let mut again = false;
        for ticket in self.tickets(node) {
            let it = self.waiting[&ticket];
            if it.marked {
                continue;
            }
            if self.bus.cancel(now, self.nodes[node], ticket) {
                self.waiting.remove(&ticket);
                self.request(now, marked(it, true));
            } else {
                again = true;
            }
        }
        if again {
            let at = now + self.set.rate.time(RENEW_FROM_BITS.into());
            self.push(at, Act::Mark(node));
        }
    }

    /// All that waits at a node gets the identifiers of its epoch, and tells nothing any more. A
    /// message that just takes part in arbitration is tried again after it.
    fn rename(&mut self, now: Nanos, node: usize) {
        let Some(epoch) = self.keepers[node].epoch().filter(|_| !self.keepers[node].tells()) else {
            return;
        };
        let mut again = false;
        for ticket in self.tickets(node) {
            let it = self.identified(self.waiting[&ticket], epoch);
            if !it.marked {
                self.bus.rename(now, self.nodes[node], ticket, it.frame.id());
                self.waiting.insert(ticket, it);
            } else if self.bus.cancel(now, self.nodes[node], ticket) {
                self.waiting.remove(&ticket);
                if it.which.is_some() {
                    self.request(now, marked(it, false));
                }
            } else {
                again = true;
            }
        }
        if again {
            let at = now + self.set.rate.time(RENEW_FROM_BITS.into());
            self.push(at, Act::Rename(node));
        }
    }

    fn collect(&mut self) {
        while let Some(event) = self.bus.poll() {
            match event.kind {
                EventKind::Error { .. } => self.doubt(event.node.0),
                EventKind::Dropped { ticket, .. } => drop(self.waiting.remove(&ticket)),
                _ => {}
            }
            let EventKind::Sent { ticket: Some(ticket), frame } = event.kind else { continue };
            let Some(it) = self.waiting.remove(&ticket) else { continue };
            self.outcome.sent += 1;
            if let Some(which) = it.which.filter(|_| event.time > it.due) {
                self.outcome.late.push((it.node, which));
            }
            if let Some(frame) = frame.classic() {
                self.compare(event.time, &it, &frame);
                if it.is_time {
                    self.read_clocks(event.time, it.node, &frame);
                }
            }
            self.ended = event.time;
            if it.marked {
                self.outcome.told += 1;
                self.tell(event.time);
            }
        }
    }

    /// Counts a frame that went before a more urgent message.
    fn compare(&mut self, ended: Nanos, sent: &Waiting, frame: &CanFrame) {
        let length = self.set.rate.time(crate::wire::length(frame).into());
        let space = self.set.rate.time(4);
        let began = ended - length;
        let was_idle = began > self.ended + space;
        // A frame that was under way when its node renewed keeps the identifier of before.
        let epoch = match sent.which {
            Some(LifeStream::High(_)) if frame.id() == sent.frame.id() => sent.epoch,
            Some(LifeStream::High(_)) => sent.epoch - self.set.epochs.epoch(),
            _ => Nanos::ZERO,
        };
        if let Some(LifeStream::High(_)) = sent.which {
            // Since then the node may have changed its idea of the time, by the error of both.
            let patience = self.keepers[sent.node].patience() + Nanos(2 * self.set.clocks.0);
            let over = epoch + self.set.epochs.epoch() + patience;
            self.outcome.stale +=
                u64::from(self.clock(sent.node, began).is_some_and(|at| at > over));
            self.count_unknown(sent, began);
        }
        let own = self.order(sent, epoch);
        let urgent = self.waiting.values().any(|it| {
            let bit = self.set.rate.time(1);
            it.queued + bit < began && self.deaf(it.node) == 0 && self.order(it, epoch) < own
        });
        self.outcome.inverted += u64::from(urgent && !was_idle);
    }

    fn deaf(&self, node: usize) -> u64 {
        self.units[node].deaf
    }

    /// Returns the order in which messages go, the most urgent first.
    fn order(&self, it: &Waiting, epoch: Nanos) -> (u8, u64, usize) {
        match it.which {
            Some(LifeStream::High(code)) => {
                let region = it.start_by.max(epoch).0 / self.set.epochs.region().0;
                (0, region, code)
            }
            Some(LifeStream::Low(rank)) => (1, 0, rank),
            _ => (2, 0, 0),
        }
    }

    /// All nodes hear a frame that tells to renew.
    fn tell(&mut self, now: Nanos) {
        for node in 0..self.units.len() {
            let deaf = self.units[node].deaf;
            if !self.is_on(node, now) || (deaf > 0 && (self.draw)(deaf) == 0) {
                continue;
            }
            // A node that does not know the time joins later, when it does.
            let Some(clock) = self.clock(node, now) else { continue };
            if self.keepers[node].heard(clock) == Duty::Renew {
                let room = u64::from(RENEW_UNTIL_BITS - RENEW_FROM_BITS);
                let bits = u64::from(RENEW_FROM_BITS) + (self.draw)(room + 1);
                let at = now + self.set.rate.time(bits);
                self.push(at, Act::Renew(node));
            }
        }
    }
}

/// Returns the message, telling to renew or not.
fn marked(it: Waiting, marked: bool) -> Waiting {
    let plain = match it.marked {
        true => read_update(&it.frame, usize::from(it.frame.code()).saturating_sub(1)).1,
        false => it.frame,
    };
    let frame = if marked { signal_update(&plain).unwrap_or(plain) } else { plain };
    Waiting { frame, marked, ..it }
}

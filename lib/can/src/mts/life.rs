//! Nodes under MTS on the simulated bus: what a set promises, tried out.
//!
//! Each node has a clock of its own, which is off by up to what the set says, and the state machine
//! of [`super::renewal`]. Nothing here knows the proof: a life says which messages were late, and
//! which frame went before one that was more urgent.

use super::{Duty, MtsRefusal, MtsSet, RENEW_FROM_BITS, RENEW_UNTIL_BITS, Renewal};
use super::{beacon_id, read_update, signal_update};
use crate::bus::{Bus, EventKind, NodeId, NodeSetup, Ticket};
use crate::frame::CanFrame;
use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
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
    /// By how many nanoseconds its clock is before the common time.
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Renew(usize),
    Mark(usize),
    Look(usize),
    Come(usize),
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    node: usize,
    which: Option<LifeStream>,
    frame: CanFrame,
    queued: Nanos,
    due: Nanos,
    /// The message's start-by time by the clock of its node, and the epoch of its identifier.
    start_by: Nanos,
    epoch: Nanos,
    marked: bool,
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
    for node in 0..units.len() {
        beacon_id(u16::try_from(node).unwrap_or(u16::MAX))?;
    }
    let mut life = Life::new(set, frames, units, comings, draw);
    life.run();
    life.outcome.missed = life.keepers.iter().map(Renewal::missed).sum();
    Ok(life.outcome)
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
    /// High-speed messages of nodes that do not know the epoch.
    held: Vec<Waiting>,
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
    ) -> Life<'a> {
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
        Life {
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
            held: Vec::new(),
            ended: Nanos::ZERO,
            last,
            outcome: LifeOutcome::default(),
        }
    }

    /// Returns the clock of a node.
    fn clock(&self, node: usize, now: Nanos) -> Nanos {
        Nanos(now.0.saturating_add_signed(self.units[node].offset))
    }

    /// Returns the common time at which a node's clock says this.
    fn common(&self, node: usize, local: Nanos) -> Nanos {
        Nanos(local.0.saturating_add_signed(-self.units[node].offset))
    }

    fn run(&mut self) {
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
        let left = self.waiting.values().chain(&self.held);
        let left = left.filter_map(|it| Some((it.node, it.which.filter(|_| it.due < end)?)));
        self.outcome.late.extend(left);
    }

    fn nothing_due(&self) -> bool {
        self.held.is_empty() && self.waiting.values().all(|it| it.which.is_none())
            || self.bus.now() > self.last + Nanos(64 * self.set.epochs.epoch().0)
    }

    fn act(&mut self, now: Nanos, act: Act) {
        match act {
            Act::Come(number) => self.come(now, number),
            Act::Mark(node) => self.mark(now, node),
            Act::Renew(node) => {
                self.keepers[node].renewed();
                self.rename(now, node);
                self.release(now, node);
                self.look_again(now, node);
            }
            Act::Look(node) => self.look(now, node),
        }
    }

    fn look(&mut self, now: Nanos, node: usize) {
        let clock = self.clock(node, now);
        if clock < self.keepers[node].next_look(clock) {
            return self.look_again(now, node);
        }
        match self.keepers[node].look(clock) {
            Duty::Tell => {
                let id = beacon_id(u16::try_from(node).unwrap_or(u16::MAX));
                if let Some(frame) = id.ok().and_then(|id| CanFrame::data(id, &[]).ok()) {
                    let beacon = Waiting {
                        node,
                        which: None,
                        frame,
                        queued: now,
                        due: Nanos::FOREVER,
                        start_by: Nanos::FOREVER,
                        epoch: Nanos::ZERO,
                        marked: true,
                    };
                    self.request(now, beacon);
                }
                self.mark(now, node);
            }
            Duty::Repair => self.rename(now, node),
            Duty::Join => self.release(now, node),
            Duty::None | Duty::Renew => {}
        }
        self.look_again(now, node);
    }

    /// The node knows the epoch: what it held back is queued.
    fn release(&mut self, now: Nanos, node: usize) {
        let held = core::mem::take(&mut self.held);
        let (own, others): (Vec<Waiting>, Vec<Waiting>) =
            held.into_iter().partition(|it| it.node == node);
        self.held = others;
        own.into_iter().for_each(|it| self.queue(now, it));
    }

    fn look_again(&mut self, now: Nanos, node: usize) {
        let next = self.keepers[node].next_look(self.clock(node, now));
        if next < Nanos::FOREVER && now <= self.last + Nanos(64 * self.set.epochs.epoch().0) {
            let at = self.common(node, next).max(now + Nanos(1));
            self.acts.push(Reverse((at, Act::Look(node))));
        }
    }

    fn come(&mut self, now: Nanos, number: usize) {
        let LifeMessage { came, which, node, .. } = self.comings[number];
        if now < self.units[node].joins {
            return;
        }
        let waiting = |frame, due, start_by| Waiting {
            node,
            which: Some(which),
            frame,
            queued: now,
            due,
            start_by,
            epoch: Nanos::ZERO,
            marked: false,
        };
        let it = match which {
            LifeStream::High(code) => {
                let message = &self.set.high[code];
                let distance = message.deadline - self.set.rate.time(message.bits.into());
                let start_by = self.clock(node, came) + distance;
                waiting(self.frames.high[code], came + message.deadline, start_by)
            }
            LifeStream::Low(rank) => {
                let message = &self.set.low[rank];
                let frame = self.frames.low[rank].with_id(message.id);
                waiting(frame, came + message.deadline, Nanos::FOREVER)
            }
            LifeStream::Other(number) => {
                waiting(self.frames.other[number], Nanos::FOREVER, Nanos::FOREVER)
            }
        };
        self.queue(now, it);
    }

    /// A message is in the queue of its node, or waits there until the node knows the epoch.
    fn queue(&mut self, now: Nanos, mut it: Waiting) {
        let keeper = &self.keepers[it.node];
        if let Some(LifeStream::High(_)) = it.which {
            let Some(epoch) = keeper.epoch() else {
                self.held.push(it);
                return;
            };
            it = Waiting { queued: now, ..self.identified(it, epoch) };
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
            self.acts.push(Reverse((at, Act::Mark(node))));
        }
    }

    /// All that waits at a node gets the identifiers of its epoch, and tells nothing any more.
    fn rename(&mut self, now: Nanos, node: usize) {
        let Some(epoch) = self.keepers[node].epoch() else { return };
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
            }
        }
    }

    fn collect(&mut self) {
        while let Some(event) = self.bus.poll() {
            let EventKind::Sent { ticket: Some(ticket), frame } = event.kind else { continue };
            let Some(it) = self.waiting.remove(&ticket) else { continue };
            self.outcome.sent += 1;
            if let Some(which) = it.which.filter(|_| event.time > it.due) {
                self.outcome.late.push((it.node, which));
            }
            frame.classic().into_iter().for_each(|frame| self.compare(event.time, &it, &frame));
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
            let LifeUnit { deaf, joins, .. } = self.units[node];
            if now < joins || (deaf > 0 && (self.draw)(deaf) == 0) {
                continue;
            }
            let clock = self.clock(node, now);
            if self.keepers[node].heard(clock) == Duty::Renew {
                let room = u64::from(RENEW_UNTIL_BITS - RENEW_FROM_BITS);
                let bits = u64::from(RENEW_FROM_BITS) + (self.draw)(room + 1);
                let at = now + self.set.rate.time(bits);
                self.acts.push(Reverse((at, Act::Renew(node))));
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

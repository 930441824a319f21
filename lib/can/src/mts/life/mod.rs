//! Nodes under MTS on the simulated bus: what a set promises, tried out.
//!
//! Each node has a clock of its own and the state machine of [`super::renewal`]. The clock is off
//! by a given time, up to what the set says, or it learns the time on the bus as
//! [`super::BusClock`] does. Frames are destroyed, but less often than the set has time for.
//! Nothing here knows the proof: a life says which messages were late, and which frame went before
//! one that was more urgent.

mod clocks;
mod heard;
mod sends;

pub use clocks::{LifeClock, LifeTime};

use super::{MtsRefusal, MtsSet, Renewal, beacon_id};
use crate::bus::{Bus, NodeId, NodeSetup, Ticket, WireFault};
use crate::frame::CanFrame;
use crate::response::Errors;
use crate::wire::worst;
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
    /// A bit of the next frame is turned over for some nodes.
    Destroy,
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
        let keeper = |_: &LifeUnit| Renewal::new(set.epochs, set.clocks, set.renewing);
        let mut acts = BinaryHeap::new();
        for (number, coming) in comings.iter().enumerate() {
            acts.push(Reverse((coming.queued, Act::Come(number))));
        }
        for (number, unit) in units.iter().enumerate() {
            acts.push(Reverse((unit.joins, Act::Look(number))));
        }
        if set.errors != Errors::NONE {
            acts.push(Reverse((Nanos(draw(set.errors.interval.0)), Act::Destroy)));
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

    /// Turns a bit of the next frame over. The frame may have to wait, so the next but three
    /// intervals later is destroyed.
    fn destroy(&mut self, now: Nanos) {
        let bit = (self.draw)(u64::from(worst(false, 8))) as u32;
        let seen_by = 1 + (self.draw)((1 << (self.nodes.len() + 1)) - 1);
        self.bus.arm(now, WireFault::Flip { bit, seen_by });
        if now < self.last {
            self.push(now + Nanos(4 * self.set.errors.interval.0), Act::Destroy);
        }
    }

    fn act(&mut self, now: Nanos, act: Act) {
        match act {
            Act::Come(number) => self.come(now, number),
            Act::Destroy => self.destroy(now),
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
}

//! The life of one message, as items that add up to its latency exactly: stage by stage as the plan
//! has them, and in each what kept it.

use super::wire::{Carried, Waits, Wire};
use diapason_abi::Nanos;
use diapason_can::Frame;
use diapason_core::{Cause, Standing, ThreadId};
use diapason_pipe::bill::{self, What};
use diapason_sim::{self as sim, History};

/// The way that a message took.
pub struct Journey {
    pub pipe: usize,
    pub number: u64,
    pub frame: Frame,
    /// When its device had it.
    pub heard: Nanos,
    pub carried: Carried,
    /// When and by whom it was put into its pipe, and taken out.
    pub put: (Nanos, ThreadId),
    pub taken: (Nanos, ThreadId),
}

impl Journey {
    /// The device's clock may be fast, so it may say that a message came after it was sent on.
    fn begun(&self) -> Nanos {
        self.heard.min(self.carried.from)
    }

    fn latency(&self) -> Nanos {
        self.taken.0 - self.begun()
    }

    /// Later than another, measured by what was promised of each?
    pub fn is_worse_than(&self, bound: Option<Nanos>, other: &Life) -> bool {
        is_worse((self.latency(), bound), (other.latency(), other.bound))
    }
}

/// Is the first time a larger part of the most that it may be than the second?
fn is_worse(one: (Nanos, Option<Nanos>), other: (Nanos, Option<Nanos>)) -> bool {
    let most = |bound: Option<Nanos>| u128::from(bound.unwrap_or(Nanos::FOREVER).0.max(1));
    u128::from(one.0.0) * most(other.1) > u128::from(other.0.0) * most(one.1)
}

/// What one item of a life is spent with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum During {
    /// It waits in its device.
    Device(Waits),
    /// A packet with it is on the bus.
    Packet,
    /// Its transfer goes on behind it.
    Transfer,
    /// The controller may not interrupt yet.
    Interval,
    /// It is for this thread to go on with it.
    Processor(ThreadId, sim::Item),
}

/// A part of a message's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    pub from: Nanos,
    pub to: Nanos,
    pub stage: What,
    pub during: During,
}

/// The life of one message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Life {
    /// The number of its pipe.
    pub pipe: usize,
    /// Its own in it, from 1.
    pub number: u64,
    /// What it says.
    pub frame: Frame,
    /// When its device had it.
    pub from: Nanos,
    /// When its reader had it.
    pub to: Nanos,
    /// How long it may take.
    pub bound: Option<Nanos>,
    /// How long at each stage, by the plan.
    pub bill: Option<bill::Bill>,
    /// What happened in between, in order.
    pub items: Vec<Item>,
}

impl Life {
    /// Of a journey with these items.
    ///
    /// # Panics
    /// If they are not its life without gaps: a fault of Diapason.
    pub fn new(
        journey: &Journey,
        items: Vec<Item>,
        bound: Option<Nanos>,
        bill: Option<bill::Bill>,
    ) -> Life {
        let (from, to) = (journey.begun(), journey.taken.0);
        let end = items.iter().fold(from, |end, item| {
            assert_eq!(item.from, end, "a gap in the life of a message");
            item.to
        });
        assert_eq!(end, to, "the life of a message ends with its reading");
        let Journey { pipe, number, frame, .. } = *journey;
        Life { pipe, number, frame, from, to, bound, bill, items }
    }

    /// Later than something else that had so long, measured by what was promised of each?
    #[must_use]
    pub fn is_worse_than(&self, took: Nanos, had: Nanos) -> bool {
        is_worse((self.latency(), self.bound), (took, Some(had)))
    }

    /// From the device to the reader.
    #[must_use]
    pub fn latency(&self) -> Nanos {
        self.to - self.from
    }
}

/// Where a journey can be looked up.
pub struct Roads<'a> {
    pub wire: &'a Wire,
    pub history: &'a History,
    /// The device whose interrupt tells its transfer.
    pub interrupt: Option<u16>,
}

/// Its items; none if what happened is not known any more.
pub fn items(journey: &Journey, roads: &Roads<'_>) -> Option<Vec<Item>> {
    let Journey { carried, put: (put, server), taken: (taken, reader), .. } = *journey;
    let begun = journey.begun();
    roads.history.reaches(carried.over).then_some(())?;
    let mut items = Vec::new();
    for (from, to, waits) in roads.wire.waits(carried.place, begun, carried.from) {
        items.push(Item { from, to, stage: What::Request, during: During::Device(waits) });
    }
    let mut push = |stage, from, to, during| {
        if to > from {
            items.push(Item { from, to, stage, during });
        }
    };
    push(What::Bus, carried.from, carried.to, During::Packet);
    push(What::Bus, carried.to, carried.over, During::Transfer);
    // Who is at work already needs no interrupt.
    let raised = roads.wire.interrupt(carried.vector, carried.over, put);
    let handled = raised
        .zip(roads.interrupt)
        .and_then(|(raised, device)| roads.history.handled(Cause::Irq(device), raised, put));
    let raised = handled.and(raised).unwrap_or(carried.over);
    push(What::Moderation, carried.over, raised, During::Interval);
    let told = handled.unwrap_or(raised);
    let woken = woken(roads.history, reader, put, taken);
    let stages = [
        (What::TopHalf, server, raised, told),
        (What::BottomHalf, server, told, woken),
        (What::User, reader, woken, taken),
    ];
    for (stage, thread, from, to) in stages {
        for item in roads.history.items(thread, from, to) {
            push(stage, item.from, item.to, During::Processor(thread, item));
        }
    }
    Some(items)
}

/// When the reader could go on with what was put in.
fn woken(history: &History, reader: ThreadId, put: Nanos, taken: Nanos) -> Nanos {
    let items = history.items(reader, put, taken);
    let waits = |item: &sim::Item| matches!(item.standing, Standing::Waiting(_));
    items.iter().find(|item| !waits(item)).map_or(taken, |item| item.from)
}

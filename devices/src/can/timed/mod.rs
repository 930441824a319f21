//! The other nodes of a bus: units that send messages evenly by clocks of their own, and keep books
//! of them.
//!
//! Under MTS the units keep the common time by the frames of one of them, and renew the identifiers
//! of their messages: by their clocks, or together after a frame that tells them to. A unit may be
//! switched off for some time, or hear nothing.

mod books;
mod sends;
mod unit;

pub use books::MessageBooks;

use super::{CanBus, unit as plain};
use diapason_abi::Nanos;
use diapason_can::bus::{BusEvent, EventKind, NodeId, NodeSetup};
use diapason_can::mts::{Epochs, Oscillator, Renewing, TimeTerms};
use diapason_can::{BitRate, Bus, Id};
use diapason_random::Random;
use unit::Unit;

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
    /// The message is a frame of CAN FD.
    pub fd: bool,
    /// From one to the next. Of a message without a period one always waits.
    pub period: Option<Nanos>,
    /// When the first comes, after the clock of its unit began.
    pub first: Nanos,
    /// Longest from when it comes until it is in the queue.
    pub jitter: Nanos,
    /// Longest from when it comes until it is through.
    pub deadline: Option<Nanos>,
}

/// The trouble of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitTrouble {
    /// The unit is switched off. It forgets all that waits, and then begins anew.
    Off,
    /// The unit hears no frame of the time, and none that tells to renew.
    Deaf,
}

/// Trouble that a unit has from this time on, for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitUpset {
    pub at: Nanos,
    pub lasts: Nanos,
    pub trouble: UnitTrouble,
}

/// A unit: its clock, and what it sends.
#[derive(Clone, Debug)]
pub struct TimedUnit {
    pub clock: Oscillator,
    pub messages: Vec<TimedMessage>,
    /// The unit sends in the order of requests, whatever is more urgent.
    pub in_order: bool,
    /// In the order of their times.
    pub upsets: Vec<UnitUpset>,
}

/// The terms that all units of a bus under MTS keep.
#[derive(Clone, Copy, Debug)]
pub struct TimedTerms {
    /// The time that they learn, and the identifier of its frames. Without it their own clocks are
    /// near enough to the common time.
    pub time: Option<(TimeTerms, Id)>,
    pub epochs: Epochs,
    /// No clock is further from the common time.
    pub clocks: Nanos,
    pub renewing: Renewing,
}

/// The bus, the terms and the chance that all units act by.
struct Around {
    rate: BitRate,
    terms: Option<TimedTerms>,
    random: Random,
}

impl Around {
    /// Returns the longest time from the end of a frame until a unit reads its clock. The frame of
    /// a sender ends one bit later.
    fn reads(&self) -> Nanos {
        let time = self.terms.and_then(|terms| terms.time);
        time.map_or(Nanos::ZERO, |(time, _)| time.base().stamp - self.rate.time(1))
    }
}

/// All such units of a bus.
pub(super) struct TimedUnits {
    around: Around,
    units: Vec<Unit>,
    /// When frames of theirs were destroyed.
    destroyed: Vec<Nanos>,
}

impl TimedUnits {
    /// Returns no units yet. The seed says when they read their clocks, how late a message is
    /// queued, and how soon they renew.
    pub fn new(rate: BitRate, terms: Option<TimedTerms>, seed: u64) -> TimedUnits {
        let around = Around { rate, terms, random: Random::new(seed) };
        TimedUnits { around, units: Vec::new(), destroyed: Vec::new() }
    }

    /// Adds a unit. The unit is switched on at the start, and is the master if it has the message
    /// of the time.
    pub fn add(&mut self, node: NodeId, of: TimedUnit) {
        let number = u16::try_from(self.units.len()).unwrap_or(u16::MAX);
        self.units.push(Unit::new((node, number), of, self.around.terms));
    }

    /// Returns the books of each message of each unit, as they are at `now`.
    pub fn books(&self, now: Nanos) -> Vec<Vec<MessageBooks>> {
        self.units.iter().map(|unit| unit.books(now)).collect()
    }

    /// Returns when a unit does something.
    pub fn next(&self, now: Nanos) -> Nanos {
        self.units.iter().map(|unit| unit.next(now)).fold(Nanos::FOREVER, Nanos::min)
    }

    /// Carries out what units do at `now`.
    pub fn act(&mut self, now: Nanos, bus: &mut Bus) {
        let TimedUnits { around, units, .. } = self;
        units.iter_mut().for_each(|unit| unit.act(now, bus, around));
    }

    /// A node heard or sent a frame, or found an error.
    pub fn hear(&mut self, event: &BusEvent) {
        let TimedUnits { around, units, destroyed } = self;
        let Some(unit) = units.iter_mut().find(|unit| unit.is(event.node)) else { return };
        // Of several that send until they find the error there is one frame.
        if matches!(event.kind, EventKind::Error { transmitting: true, .. })
            && destroyed.last() != Some(&event.time)
        {
            destroyed.push(event.time);
        }
        let tells = unit.hear(event, around);
        if tells && matches!(event.kind, EventKind::Sent { .. }) {
            units.iter_mut().for_each(|unit| unit.told(event.time, around));
        }
    }
}

impl CanBus {
    /// Adds units that send by their clocks. Under MTS they keep these terms. The seed says when
    /// they read their clocks, how late they queue a message, and how soon they renew.
    pub fn add_timed(&self, terms: Option<TimedTerms>, units: Vec<TimedUnit>, seed: u64) {
        self.change(|segment| {
            let mut timed = TimedUnits::new(segment.bus.rate(), terms, seed);
            for of in units {
                let node = segment.node(NodeSetup { in_order: of.in_order, ..plain() }, None);
                timed.add(node, of);
            }
            segment.timed = Some(timed);
        });
    }

    /// Returns the books of each message of each of those units, as they are at `now`.
    #[must_use]
    pub fn books(&self, now: Nanos) -> Vec<Vec<MessageBooks>> {
        self.0.borrow().timed.as_ref().map(|timed| timed.books(now)).unwrap_or_default()
    }

    /// Returns when frames of those units were destroyed.
    #[must_use]
    pub fn destroyed(&self) -> Vec<Nanos> {
        self.0.borrow().timed.as_ref().map(|timed| timed.destroyed.clone()).unwrap_or_default()
    }
}

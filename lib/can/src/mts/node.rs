//! The common time and the epoch of one node that renews its identifiers by its clock: what a
//! driver and a modelled unit have in common.

use super::{BusClock, Duty, Epochs, Renewal, Renewing, TimeTerms};
use diapason_abi::Nanos;

/// The duty of a node towards the high-speed messages that wait in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeDuty {
    None,
    /// Give them the identifiers of the epoch that has begun, and then call
    /// [`NodeTime::renewed`].
    Renew,
    /// Take them back: the node does not know the time any more.
    TakeBack,
}

/// The time of a node. All times that it takes and returns are of the node's own clock, but for
/// those that are called common.
#[derive(Clone, Debug)]
pub struct NodeTime {
    clock: BusClock,
    renewal: Renewal,
}

impl NodeTime {
    /// Returns a node that is switched on `now`, and may become the master if it has a number. Its
    /// clock is within `clocks` of the common time, and it renews within `within`.
    #[must_use]
    pub fn new(
        (terms, candidate): (TimeTerms, Option<u8>),
        epochs: Epochs,
        (clocks, within): (Nanos, Nanos),
        now: Nanos,
    ) -> NodeTime {
        let renewing = Renewing::ByClock { within, repeating: 0 };
        NodeTime {
            clock: BusClock::new(terms, candidate, now),
            renewal: Renewal::new(epochs, clocks, renewing),
        }
    }

    /// Returns the clock, which has to be told of each frame of the time.
    pub fn clock(&mut self) -> &mut BusClock {
        &mut self.clock
    }

    /// Returns the common time; `None` while the node does not know it.
    #[must_use]
    pub fn common(&self, now: Nanos) -> Option<Nanos> {
        self.clock.common(now)
    }

    /// Returns the instant of the common time from which identifiers count; `None` while the node
    /// may send no high-speed message.
    #[must_use]
    pub fn epoch(&self) -> Option<Nanos> {
        self.renewal.epoch()
    }

    /// Returns when the node has to look at its clock.
    #[must_use]
    pub fn next_look(&self, now: Nanos) -> Nanos {
        let Some(common) = self.clock.common(now) else {
            return if self.epoch().is_some() { now } else { self.clock.next_look() };
        };
        let renewal = match self.renewal.next_look(common) {
            Nanos::FOREVER => Nanos::FOREVER,
            next => self.clock.local(next).unwrap_or(Nanos::FOREVER),
        };
        let end = self.clock.known_until().map_or(Nanos::FOREVER, |until| until + Nanos(1));
        renewal.min(end).min(self.clock.next_look())
    }

    /// The node looks at its clock. Whether it has to send a frame of the time is for
    /// [`BusClock::look`].
    pub fn look(&mut self, now: Nanos) -> NodeDuty {
        let Some(common) = self.clock.common(now) else {
            let knew = self.epoch().is_some();
            self.renewal.lost();
            return if knew { NodeDuty::TakeBack } else { NodeDuty::None };
        };
        match self.renewal.look(common) {
            Duty::Renew => NodeDuty::Renew,
            _ => NodeDuty::None,
        }
    }

    /// All identifiers are renewed.
    pub fn renewed(&mut self) {
        self.renewal.renewed();
    }
}

/// A clock that runs evenly, and shows whole steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oscillator {
    /// The clock says this at true time 0.
    pub offset: u64,
    /// The clock is too fast by so many millionths.
    pub ppm: i64,
    pub grain: Nanos,
}

impl Oscillator {
    /// Returns what the clock says.
    #[must_use]
    pub fn local(&self, now: Nanos) -> Nanos {
        let ran = i128::from(now.0) * i128::from(1_000_000 + self.ppm) / 1_000_000;
        let local = u64::try_from(i128::from(self.offset) + ran).unwrap_or(u64::MAX);
        Nanos(local - local % self.grain.0.max(1))
    }

    /// Returns when the clock says at least this.
    #[must_use]
    pub fn when(&self, local: Nanos) -> Nanos {
        if local == Nanos::FOREVER {
            return local;
        }
        let local = u128::from(local.0).next_multiple_of(u128::from(self.grain.0.max(1)));
        let ran = local.saturating_sub(u128::from(self.offset)) * 1_000_000;
        let when = ran.div_ceil(u128::from(1_000_000u64.saturating_add_signed(self.ppm)));
        Nanos(u64::try_from(when).unwrap_or(u64::MAX))
    }
}

//! The common time and the epoch of one node: what a driver and a modelled unit have in common.

use super::{BusClock, Duty, Renewal};
use diapason_abi::Nanos;

/// The duty of a node towards the high-speed messages that wait in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeDuty {
    None,
    /// Tell the others, with all that waits and is sent, that the epoch is over.
    Tell,
    /// Give them the identifiers of the epoch that has begun, and then call
    /// [`NodeTime::renewed`].
    Renew,
    /// Give them those identifiers at once: the node missed the signal.
    Repair,
    /// Take them back: the node does not know the time any more.
    TakeBack,
}

/// The time of a node. All times that it takes and returns are of the node's own clock, but for
/// those that are called common.
#[derive(Clone, Debug)]
pub struct NodeTime {
    clock: Option<BusClock>,
    renewal: Renewal,
}

impl NodeTime {
    /// Returns the time of a node that learns it by this clock. Without one the node's own clock is
    /// as near the common time as the renewal counts with.
    #[must_use]
    pub fn new(clock: Option<BusClock>, renewal: Renewal) -> NodeTime {
        NodeTime { clock, renewal }
    }

    /// Returns the clock that has to be told of each frame of the time, if the node learns it.
    pub fn clock(&mut self) -> Option<&mut BusClock> {
        self.clock.as_mut()
    }

    /// Returns the common time; `None` while the node does not know it.
    #[must_use]
    pub fn common(&self, now: Nanos) -> Option<Nanos> {
        self.clock.as_ref().map_or(Some(now), |clock| clock.common(now))
    }

    /// Returns the instant of the common time from which identifiers count; `None` while the node
    /// may send no high-speed message.
    #[must_use]
    pub fn epoch(&self) -> Option<Nanos> {
        self.renewal.epoch()
    }

    /// Returns whether what the node sends tells to renew.
    #[must_use]
    pub fn tells(&self) -> bool {
        self.renewal.tells()
    }

    /// Returns when the node has to look at its clock.
    #[must_use]
    pub fn next_look(&self, now: Nanos) -> Nanos {
        let own = self.clock.as_ref().map_or(Nanos::FOREVER, BusClock::next_look);
        let Some(common) = self.common(now) else {
            return if self.epoch().is_some() { now } else { own };
        };
        let local = |common| match &self.clock {
            Some(clock) => clock.local(common).unwrap_or(Nanos::FOREVER),
            None => common,
        };
        let renewal = match self.renewal.next_look(common) {
            Nanos::FOREVER => Nanos::FOREVER,
            next => local(next),
        };
        let known = self.clock.as_ref().and_then(BusClock::known_until);
        let end = known.map_or(Nanos::FOREVER, |until| until + Nanos(1));
        renewal.min(end).min(own)
    }

    /// The node looks at its clock. Whether it has to send a frame of the time is for
    /// [`BusClock::look`].
    pub fn look(&mut self, now: Nanos) -> NodeDuty {
        let Some(common) = self.common(now) else {
            let knew = self.epoch().is_some();
            self.renewal.lost();
            return if knew { NodeDuty::TakeBack } else { NodeDuty::None };
        };
        self.renewal.look(common).into()
    }

    /// A frame that tells to renew is through, the node's own or another's. A node that does not
    /// know the time takes no notice.
    pub fn told(&mut self, now: Nanos) -> NodeDuty {
        self.common(now).map_or(NodeDuty::None, |common| self.renewal.heard(common).into())
    }

    /// All identifiers are renewed.
    pub fn renewed(&mut self) {
        self.renewal.renewed();
    }
}

impl From<Duty> for NodeDuty {
    fn from(duty: Duty) -> NodeDuty {
        match duty {
            Duty::Tell => NodeDuty::Tell,
            Duty::Renew => NodeDuty::Renew,
            Duty::Repair => NodeDuty::Repair,
            Duty::None | Duty::Join => NodeDuty::None,
        }
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

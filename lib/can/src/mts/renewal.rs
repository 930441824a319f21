//! The renewal of identifiers at the end of an epoch, as one node sees it (§7.3.5).
//!
//! **By clocks.** Each node renews when its clock says that the epoch is over, as soon as it can.
//! This is the way for nodes whose driver is a process, which cannot follow a frame to the bit.
//!
//! **On a signal.** By its own clock a node sees that an epoch is over. From then on everything
//! that it sends tells the others ([`super::signal_update`]), and it has a frame of lowest urgency
//! to tell them if nobody has anything to send ([`beacon_id`]). All nodes hear the end of the
//! first such frame at the same bit. They renew their identifiers while the next arbitration is
//! over and the next frame is not: then no two identifiers of different epochs ever meet, but on a
//! bus that was idle just before.
//!
//! A node may hear a frame up to twice the clocks' error before its own clock gets there, so the
//! frame says which epoch has begun: the one of its end and that error later.
//!
//! A node that did not hear the frame finds that out by its clock and renews then. Its identifiers
//! are late by that time only, which makes nobody late but itself. A node that joins or returns
//! sends no high-speed message before it knows the epoch beyond doubt.

use super::{BEACONS, Epochs, MtsRefusal, NON_REAL_TIME, Renewing, non_real_time_id};
use crate::timing::BitRate;
use crate::wire::INTERFRAME_BITS;
use diapason_abi::Nanos;
use embedded_can::StandardId;

/// Nodes renew no identifier within so many bits after the frame that tells them to: by then the
/// next arbitration, if it follows at once, is decided: start of frame, 11 bits, the bit that says
/// what frame it is, and two stuff bits.
pub const RENEW_FROM_BITS: u32 = INTERFRAME_BITS + 15;
/// They have renewed all after so many: no frame that follows at once is over by then.
pub const RENEW_UNTIL_BITS: u32 = INTERFRAME_BITS + 44;

/// Returns the longest time from the end of an epoch until the last node has renewed its
/// identifiers, if `longest` bits are the longest frame of all, one that tells to renew included.
///
/// The last clock to get there is `clocks` late. A frame that has just begun goes first. After it
/// comes one that tells to renew: every node has one.
#[must_use]
pub fn longest_renewal(rate: BitRate, longest: u32, clocks: Nanos) -> Nanos {
    let frame = u64::from(longest + INTERFRAME_BITS);
    clocks + rate.time(2 * frame + u64::from(RENEW_UNTIL_BITS))
}

/// Returns the identifier of the frame with which node number `node` tells to renew if nobody else
/// does.
///
/// # Errors
/// More nodes than there are such identifiers.
pub fn beacon_id(node: u16) -> Result<StandardId, MtsRefusal> {
    if node >= BEACONS {
        return Err(MtsRefusal::TooMany { given: node, holds: BEACONS });
    }
    non_real_time_id(NON_REAL_TIME - BEACONS + node)
}

/// The duty of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    None,
    /// From now on everything it sends tells to renew; its frame of lowest urgency is queued, too.
    Tell,
    /// Between [`RENEW_FROM_BITS`] and [`RENEW_UNTIL_BITS`] after the frame, or by clocks within
    /// the time that was promised: renew all identifiers, tell nobody any more, and then say so by
    /// [`Renewal::renewed`].
    Renew,
    /// At once: renew all identifiers and tell nobody any more. The node missed the frame.
    Repair,
    /// The node knows the epoch now, and may send high-speed messages.
    Join,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No high-speed message may be sent.
    Apart,
    /// Identifiers count from this instant.
    Steady { epoch: Nanos },
    /// They still do, and everything tells that it is over.
    Ending { epoch: Nanos },
    /// The frame that tells to renew is through, or the node's clock says so.
    Told { epoch: Option<Nanos>, next: Nanos },
}

/// The epochs of one node. All times are of its own clock, which is synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    epochs: Epochs,
    clocks: Nanos,
    renewing: Renewing,
    state: State,
    missed: u64,
}

impl Renewal {
    /// Returns a node that has just been switched on. No clock is further than `clocks` from the
    /// common time.
    #[must_use]
    pub fn new(epochs: Epochs, clocks: Nanos, renewing: Renewing) -> Renewal {
        Renewal { epochs, clocks, renewing, state: State::Apart, missed: 0 }
    }

    /// Returns the instant from which the node's identifiers count; `None` while it may send no
    /// high-speed message.
    #[must_use]
    pub fn epoch(&self) -> Option<Nanos> {
        match self.state {
            State::Apart => None,
            State::Steady { epoch } | State::Ending { epoch } => Some(epoch),
            State::Told { epoch, .. } => epoch,
        }
    }

    /// Returns whether what it sends tells to renew.
    #[must_use]
    pub fn tells(&self) -> bool {
        matches!(self.state, State::Ending { .. })
    }

    /// Returns how often it renewed without having heard the frame.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// A node has renewed so long after the end of an epoch, by its own clock. If others tell it
    /// to, their clocks may be behind by twice the error.
    #[must_use]
    pub fn patience(&self) -> Nanos {
        match self.renewing {
            Renewing::OnSignal { last } => last + Nanos(2 * self.clocks.0),
            Renewing::ByClock { within, .. } => within,
        }
    }

    fn is_by_clock(&self) -> bool {
        matches!(self.renewing, Renewing::ByClock { .. })
    }

    /// Returns the next instant at which the node has to look at its clock.
    #[must_use]
    pub fn next_look(&self, now: Nanos) -> Nanos {
        let length = self.epochs.epoch();
        match self.state {
            State::Steady { epoch } => epoch + length,
            State::Ending { epoch } => epoch + length + self.patience(),
            State::Told { .. } => Nanos::FOREVER,
            State::Apart => {
                let (from, until) = self.certain(now);
                if now < until { from } else { from + length }
            }
        }
        .max(now)
    }

    /// Returns the part of the epoch of `now` in which every node that is up counts from its
    /// beginning. By clocks a node joins at any time, since it renews when its clock says so.
    fn certain(&self, now: Nanos) -> (Nanos, Nanos) {
        let start = self.epochs.start(now);
        if self.is_by_clock() {
            return (start, start + self.epochs.epoch());
        }
        let apart = Nanos(2 * self.clocks.0);
        (start + self.patience(), start + self.epochs.epoch() - apart)
    }

    /// The node looks at its clock.
    pub fn look(&mut self, now: Nanos) -> Duty {
        let length = self.epochs.epoch();
        match self.state {
            State::Apart => {
                let (from, until) = self.certain(now);
                if now < from || now >= until {
                    return Duty::None;
                }
                self.state = State::Steady { epoch: self.epochs.start(now) };
                Duty::Join
            }
            State::Steady { epoch } if self.is_by_clock() => {
                let next = self.epochs.start(now);
                if next <= epoch {
                    return Duty::None;
                }
                self.state = State::Told { epoch: Some(epoch), next };
                Duty::Renew
            }
            State::Steady { epoch } if now >= epoch + length + self.patience() => self.repair(now),
            State::Ending { epoch } if now >= epoch + length + self.patience() => self.repair(now),
            State::Steady { epoch } if now >= epoch + length => {
                self.state = State::Ending { epoch };
                Duty::Tell
            }
            _ => Duty::None,
        }
    }

    fn repair(&mut self, now: Nanos) -> Duty {
        self.missed += 1;
        self.state = State::Steady { epoch: self.epochs.start(now) };
        Duty::Repair
    }

    /// A frame that tells to renew is through, the node's own or another's.
    pub fn heard(&mut self, now: Nanos) -> Duty {
        if self.is_by_clock() {
            return Duty::None;
        }
        // The clock of the sender is beyond the end; this one is behind by twice the error at most.
        let next = self.epochs.start(now + Nanos(2 * self.clocks.0));
        let epoch = match self.state {
            State::Told { .. } => return Duty::None,
            State::Apart => None,
            State::Steady { epoch } | State::Ending { epoch } => Some(epoch),
        };
        if epoch.is_some_and(|epoch| epoch >= next) {
            return Duty::None;
        }
        self.state = State::Told { epoch, next };
        Duty::Renew
    }

    /// All identifiers are renewed.
    pub fn renewed(&mut self) {
        if let State::Told { next, .. } = self.state {
            self.state = State::Steady { epoch: next };
        }
    }

    /// The node is switched off, or its clock is lost: it does not know the epoch any more.
    pub fn lost(&mut self) {
        self.state = State::Apart;
    }
}

//! A branch of the server: the devices of one interrupter, the service for them, and their lane of
//! the driver. Each has a lock of its own, so that no bottom half waits for what another does.
//!
//! Commands, ports, control endpoints and the bus schedule are the server's, under its own lock. A
//! branch leaves *posts* for it, and the thread that did so takes them there once it is out of the
//! branch. The server puts *letters* into a branch. Only the server enters a branch from inside its
//! lock, and nobody enters the server from inside a branch.

use crate::attended::{Attended, WakeCause};
use crate::places::PlaceOrder;
use crate::platform::{Guarded, Platform};
use crate::policy::{BATCH, LOST};
use crate::posts::DriverLane;
use crate::presence::Presence;
use crate::serving::Serving;
use alloc::sync::Arc;
use diapason_abi::{Errno, Nanos};
use diapason_usb::xhci::{Controller, Finished, Lanes};

/// A branch: a lane, and the serving for its devices.
pub struct Branch<P: Platform> {
    lane: DriverLane<P>,
    serving: Serving<P>,
    /// Since when there have been events, but no interrupt.
    waiting: Option<Nanos>,
}

impl<P: Platform> Branch<P> {
    pub(crate) fn new(lane: DriverLane<P>, serving: Serving<P>) -> Branch<P> {
        Branch { lane, serving, waiting: None }
    }

    pub(crate) fn serving(&mut self) -> &mut Serving<P> {
        &mut self.serving
    }

    /// Does whatever is due in the branch.
    pub fn attend(&mut self, cause: WakeCause, now: Nanos) -> Attended {
        let reads = matches!(cause, WakeCause::Interrupt(_))
            || cause == WakeCause::Time && self.is_lost(now);
        if reads {
            self.waiting = None;
        }
        self.serving.read(&mut self.lane, now);
        let mut transfers = 0;
        while let Some(done) = self.next_finished(reads, now) {
            transfers += 1;
            self.serving.finish(&mut self.lane, &done, now);
        }
        self.serving.attend(&mut self.lane, cause == WakeCause::Asked, now);
        let (fresh, messages) = (self.serving.take_fresh(), self.serving.take_messages());
        Attended { fresh, messages, transfers, ..self.outlook() }
    }

    /// Returns the next transfer that is finished. With `reads`, events are taken off the ring for
    /// it; else it is one that a command ended.
    fn next_finished(&mut self, reads: bool, now: Nanos) -> Option<Finished> {
        if reads { self.lane.next_finished(BATCH, now) } else { self.lane.take_finished() }
    }

    /// Returns whether the branch has something to do although nobody asked: a letter, a transfer
    /// that a command ended, a time that has come, or events whose interrupt is lost.
    pub fn is_due(&mut self, now: Nanos) -> bool {
        let news = self.serving.has_letters() || self.lane.has_finished();
        self.is_lost(now) || news || self.serving.next_wake() <= now
    }

    /// Returns whether it needs the server, and when it is due.
    pub fn outlook(&self) -> Attended {
        let posts = self.serving.has_posts() || self.lane.wants();
        Attended { posts, wake: self.serving.next_wake(), ..Attended::default() }
    }

    /// Returns whether events have waited for so long that their interrupt must be lost.
    fn is_lost(&mut self, now: Nanos) -> bool {
        let since = self.lane.has_events().then(|| self.waiting.unwrap_or(now));
        self.waiting = since;
        since.is_some_and(|since| now >= since + LOST)
    }

    /// Returns the view of whether there is a CAN interface, if the branch serves those.
    pub fn presence(&mut self) -> Option<Presence> {
        self.serving.can().map(|can| can.presence())
    }

    /// Somebody listens to a channel, or no more.
    pub fn order(&mut self, order: &PlaceOrder, now: Nanos) {
        if let Some(can) = self.serving.can() {
            can.order(order, now);
        }
    }
}

/// The driver on this machine.
pub type Driver<P> = Controller<<P as Platform>::Registers, <P as Platform>::Memory, Branches<P>>;

/// All branches, each behind its lock. Branch n has interrupter n, from 1.
pub struct Branches<P: Platform>(Arc<[P::Guarded<Branch<P>>]>);

impl<P: Platform> Clone for Branches<P> {
    fn clone(&self) -> Branches<P> {
        Branches(Arc::clone(&self.0))
    }
}

impl<P: Platform> Branches<P> {
    pub(crate) fn new(all: impl Iterator<Item = Branch<P>>) -> Branches<P> {
        Branches(all.map(Guarded::new).collect())
    }

    /// Makes the lock of every branch.
    pub(crate) fn open(&self) -> Result<(), Errno> {
        self.0.iter().try_for_each(Guarded::open)
    }

    /// Returns how many bottom halves there are.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.0.len() as u16
    }

    /// Returns the branch with this interrupter.
    #[must_use]
    pub fn of(&self, number: u16) -> &P::Guarded<Branch<P>> {
        &self.0[usize::from(number) - 1]
    }
}

impl<P: Platform> Lanes<P::Registers, P::Memory> for Branches<P> {
    fn with<R>(&self, lane: u16, act: impl FnOnce(&mut DriverLane<P>) -> R) -> R {
        self.of(lane).enter(|branch| act(&mut branch.lane))
    }
}

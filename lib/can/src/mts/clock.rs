//! The common time of a bus, as one node knows it: pure code with explicit time.
//!
//! One node is the master, and its clock is the common time. It sends a frame each interval, and
//! each frame says when the one before was through ([`super::TimeTerms`] has the proof of the
//! bound). Several nodes may be candidates, the smallest number first. These rules keep two times
//! apart:
//!
//! - A candidate starts if it heard no master for [`TimeTerms::silence`]. By then no node knows the
//!   time of an earlier master, nor that of the candidate itself before a reset.
//! - A node knows the time once two instants agree. For each it heard two frames in a row of one
//!   master, and between the first and the last of these it heard no other one.
//! - A master counts on its own time from its third frame on that no other master followed.
//! - A master that hears a candidate before it, or a second one of its own number, stands down.
//!
//! **One master.** Whatever frames are lost, a node that knows the time is within
//! [`TimeTerms::clocks`] of it.
//!
//! **Two masters.** No two nodes know different times, if of two frames in a row of one master each
//! node hears at least one. Let X know the time of one master from x on, and Y that of another from
//! y ≤ x on. X heard two frames in a row of its master before x, and Y heard one of them, at e. If
//! y ≤ e, Y forgot its time at e. If e < y, Y heard two frames in a row of its own master between
//! e and y, and X heard one of them: so X did not know the time at x.

use super::{TimeFrame, TimeTerms};
use diapason_abi::Nanos;

/// The number of a master's first frame. Numbers wrap after ten frames, in every run, so that
/// nothing can come to depend on their order.
const FIRST_SEQUENCE: u16 = u16::MAX - 9;

/// Frames of a master after which its time counts.
const FRAMES: u8 = 3;

/// A frame of the master and the clock at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    sequence: u16,
    local: Nanos,
}

/// One instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fix {
    local: Nanos,
    common: Nanos,
}

impl Fix {
    /// Returns the common time at this time of the node's clock.
    fn at(&self, now: Nanos) -> Nanos {
        self.common + (now - self.local) - (self.local - now)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Following {
    source: Option<u8>,
    stamp: Option<Stamp>,
    fix: Option<Fix>,
    /// Two instants agreed with each other: the node may use the time.
    known: bool,
    /// When a candidate starts if it hears nothing.
    quiet: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leading {
    number: u8,
    sequence: u16,
    /// When the next frame is due.
    next: Nanos,
    /// A frame is asked for and not through.
    pending: bool,
    /// The end of the frame before.
    before: Option<Nanos>,
    /// Frames through since another master was heard.
    alone: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Follows(Following),
    Leads(Leading),
}

/// The common time of one node. All times that it takes are of the node's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusClock {
    terms: TimeTerms,
    candidate: Option<u8>,
    role: Role,
}

impl Following {
    /// Returns a node that heard nothing of a master by now.
    fn new(terms: &TimeTerms, now: Nanos) -> Following {
        let quiet = now + terms.silence();
        Following { source: None, stamp: None, fix: None, known: false, quiet }
    }

    /// Returns whether the node's last instant is young enough.
    fn is_valid(&self, terms: &TimeTerms, now: Nanos) -> bool {
        self.fix.is_some_and(|fix| now - fix.local <= terms.valid())
    }

    /// A master's frame ended at `local`.
    fn heard(&mut self, terms: &TimeTerms, source: u8, local: Nanos, frame: &TimeFrame) {
        if self.source != Some(source) {
            *self = Following { source: Some(source), ..Following::new(terms, local) };
        }
        self.quiet = local + terms.silence();
        let stamp = self.stamp.replace(Stamp { sequence: frame.sequence, local });
        // Neither a frame before one that was lost, nor one of the same number long ago.
        let stamp = stamp.filter(|it| it.sequence.wrapping_add(1) == frame.sequence);
        let stamp = stamp.filter(|it| local - it.local <= terms.valid());
        if let (Some(stamp), Some(common)) = (stamp, frame.before) {
            self.learn(terms, Fix { local: stamp.local, common });
        }
    }

    /// The node learns the common time of an instant.
    fn learn(&mut self, terms: &TimeTerms, new: Fix) {
        let agrees = |old: Fix| {
            let apart = old.at(new.local).0.abs_diff(new.common.0);
            let bound = terms.error(new.local - old.local) + terms.error(Nanos::ZERO);
            apart <= bound.0
        };
        // If not, a clock or a reading is not what the bound rests on, or the master began anew.
        self.known = self.fix.is_some_and(agrees);
        self.fix = Some(new);
    }
}

impl BusClock {
    /// Returns the clock of a node that is switched on `now`. A candidate has a number of its own;
    /// the smallest goes first.
    #[must_use]
    pub fn new(terms: TimeTerms, candidate: Option<u8>, now: Nanos) -> BusClock {
        BusClock { terms, candidate, role: Role::Follows(Following::new(&terms, now)) }
    }

    /// Returns the common time; `None` while the node does not know it.
    #[must_use]
    pub fn common(&self, now: Nanos) -> Option<Nanos> {
        match &self.role {
            Role::Leads(leading) => (leading.alone >= FRAMES).then_some(now),
            Role::Follows(following) => {
                let fix = following.fix.filter(|_| following.known)?;
                following.is_valid(&self.terms, now).then(|| fix.at(now))
            }
        }
    }

    /// Returns the last instant at which the node knows the time if it hears no frame any more.
    #[must_use]
    pub fn known_until(&self) -> Option<Nanos> {
        match &self.role {
            Role::Leads(leading) => (leading.alone >= FRAMES).then_some(Nanos::FOREVER),
            Role::Follows(following) => {
                let fix = following.fix.filter(|_| following.known)?;
                Some(fix.local + self.terms.valid())
            }
        }
    }

    /// Returns the time of the node's clock at which the common time is `common`.
    #[must_use]
    pub fn local(&self, common: Nanos) -> Option<Nanos> {
        match &self.role {
            Role::Leads(_) => Some(common),
            Role::Follows(following) => following
                .fix
                .map(|Fix { local, common: at }| Fix { local: at, common: local }.at(common)),
        }
    }

    /// Returns whether the node is the master.
    #[must_use]
    pub fn leads(&self) -> bool {
        matches!(self.role, Role::Leads(_))
    }

    /// Returns when the node has to look at its clock.
    #[must_use]
    pub fn next_look(&self) -> Nanos {
        match &self.role {
            Role::Leads(leading) if leading.pending => Nanos::FOREVER,
            Role::Leads(leading) => leading.next,
            Role::Follows(following) if self.candidate.is_some() => following.quiet,
            Role::Follows(_) => Nanos::FOREVER,
        }
    }

    /// The node looks at its clock. Returns the frame that it has to send, if any, and tell of by
    /// [`BusClock::sent`].
    pub fn look(&mut self, now: Nanos) -> Option<TimeFrame> {
        if let (Role::Follows(following), Some(number)) = (&self.role, self.candidate)
            && now >= following.quiet
        {
            let (sequence, before) = (FIRST_SEQUENCE, None);
            let leading = Leading { number, sequence, next: now, pending: false, before, alone: 0 };
            self.role = Role::Leads(leading);
        }
        let Role::Leads(leading) = &mut self.role else { return None };
        if leading.pending || now < leading.next {
            return None;
        }
        let interval = self.terms.base().interval.0;
        leading.next += Nanos(((now - leading.next).0 / interval + 1).saturating_mul(interval));
        leading.pending = true;
        Some(TimeFrame { sequence: leading.sequence, before: leading.before })
    }

    /// The node's frame is through, and its clock said `local` at the end. `clean` if there was no
    /// error on the bus since the node asked for it: else some nodes may have heard it earlier.
    pub fn sent(&mut self, local: Nanos, clean: bool) {
        if let Role::Leads(leading) = &mut self.role
            && leading.pending
        {
            leading.pending = false;
            leading.before = clean.then_some(local);
            leading.sequence = leading.sequence.wrapping_add(1);
            leading.alone = leading.alone.saturating_add(1).min(FRAMES);
        }
    }

    /// A frame of master `source` is through, and the node's clock said `local` at its end. Returns
    /// whether the node stands down: then it takes its own frame back.
    pub fn heard(&mut self, local: Nanos, source: u8, frame: &TimeFrame) -> bool {
        match &mut self.role {
            Role::Leads(leading) if source > leading.number => {
                leading.alone = 0;
                false
            }
            Role::Leads(_) => {
                let mut following = Following::new(&self.terms, local);
                following.heard(&self.terms, source, local, frame);
                self.role = Role::Follows(following);
                true
            }
            Role::Follows(following) => {
                following.heard(&self.terms, source, local, frame);
                false
            }
        }
    }
}

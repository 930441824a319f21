//! A node: it measures its links, chooses the grandmaster, follows its time, and passes it on.
//!
//! # One time
//!
//! A grandmaster announces itself first and sends its time only when it knows it, which is after
//! [`SyncTerms::settle`] without a word of another master, and only while a link works. By then
//! every node has heard it, or prefers another and has let it know. A node that changes its
//! grandmaster forgets the time at once. So if no node loses more frames in a row than the terms
//! say, no two nodes know the times of different grandmasters.

mod hear;

use crate::best::{Path, Rank};
use crate::books::TimeBooks;
use crate::frame::GptpFrame;
use crate::message::{ClockIdentity, GptpMessage, PortIdentity, TimeProperties};
use crate::port::Port;
pub use crate::port::SentEvent;
use crate::{Announce, GptpFault, Grandmaster, PRIORITY_FOLLOWER, SteeredClock, SyncTerms};
use diapason_abi::Nanos;

/// A frame that has to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GptpOutgoing {
    pub port: usize,
    pub frame: GptpFrame,
    /// An event that [`TimeNode::sent`] takes with the stamp of this frame.
    pub event: Option<SentEvent>,
}

/// The node is the grandmaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leading {
    /// Since then it heard of no other master.
    alone: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The node waits for announcements; if none come, it leads from then on.
    Listens(Nanos),
    Leads(Leading),
    /// The node follows what is announced at this port.
    Follows(usize, Rank),
}

/// A change of the time that programs see which was no slewing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStep {
    /// The node's clock at the step.
    pub local: Nanos,
    pub from: Nanos,
    pub to: Nanos,
}

/// A node with some ports. All times that it takes are of its own clock, which nobody steers.
#[derive(Clone, Debug)]
pub struct TimeNode<const PORTS: usize> {
    terms: SyncTerms,
    own: Grandmaster,
    ports: [Port; PORTS],
    role: Role,
    /// When the next Syncs are due.
    next: Nanos,
    clock: SteeredClock,
    /// The node's own time: it was `free.1` when the clock said `free.0`.
    free: (Nanos, Nanos),
    step: Option<TimeStep>,
    books: TimeBooks,
}

impl<const PORTS: usize> TimeNode<PORTS> {
    /// Returns a node that is switched on `now`, with the addresses of its ports. A node whose
    /// first priority is [`PRIORITY_FOLLOWER`] never leads.
    #[must_use]
    pub fn new(
        terms: SyncTerms,
        own: Grandmaster,
        macs: [[u8; 6]; PORTS],
        now: Nanos,
    ) -> TimeNode<PORTS> {
        let mut port = 0;
        let ports = macs.map(|mac| {
            port += 1;
            Port::new(mac, PortIdentity { clock: own.identity, port }, now)
        });
        let role = Role::Listens(now + terms.announced());
        let (clock, free) = (SteeredClock::new(terms), (now, now));
        let books = TimeBooks::default();
        TimeNode { terms, own, ports, role, next: now, clock, free, step: None, books }
    }

    /// Returns the time that programs see; `None` while the node does not know it.
    #[must_use]
    pub fn time(&self, now: Nanos) -> Option<Nanos> {
        match &self.role {
            Role::Listens(_) => None,
            Role::Leads(leading) => self.leads_alone(leading, now).then(|| self.free_at(now)),
            Role::Follows(..) => self.clock.time(now),
        }
    }

    /// Returns the node's clock when the time is `common`, as far as is known now.
    #[must_use]
    pub fn local(&self, common: Nanos) -> Option<Nanos> {
        let (at, free) = self.free;
        match &self.role {
            Role::Listens(_) => None,
            Role::Leads(_) => Some(at + (common - free) - (free - common)),
            Role::Follows(..) => self.clock.local(common),
        }
    }

    /// Returns the grandmaster's name, if there is one.
    #[must_use]
    pub fn grandmaster(&self) -> Option<ClockIdentity> {
        match &self.role {
            Role::Listens(_) => None,
            Role::Leads(_) => Some(self.own.identity),
            Role::Follows(_, rank) => Some(rank.grandmaster.identity),
        }
    }

    /// Returns the delay of a link, if both directions work.
    #[must_use]
    pub fn delay(&self, port: usize) -> Option<Nanos> {
        self.ports.get(port)?.link.delay()
    }

    /// Returns the last step of the time, if there was one.
    #[must_use]
    pub fn last_step(&self) -> Option<TimeStep> {
        self.step
    }

    /// Returns what was heard and refused.
    #[must_use]
    pub fn books(&self) -> &TimeBooks {
        &self.books
    }

    /// Returns when the node has to look at its clock.
    #[must_use]
    pub fn next_look(&self) -> Nanos {
        let rank = self.rank();
        let ports = self.ports.iter().flat_map(|port| {
            let announce = rank.filter(|rank| port.is_master(rank)).map(|_| port.announce);
            let record = port.record.map(|record| record.until + Nanos(1));
            [Some(port.next_event()), announce, record].into_iter().flatten()
        });
        let own = match &self.role {
            Role::Listens(until) if self.may_lead() => *until,
            Role::Listens(_) => Nanos::FOREVER,
            _ => self.next,
        };
        ports.fold(own, Nanos::min)
    }

    /// The node looks at its clock. Returns a frame that it has to send; the caller asks again
    /// until there is none.
    pub fn look(&mut self, now: Nanos) -> Option<GptpOutgoing> {
        self.ports.iter_mut().for_each(|port| port.expire(now));
        self.decide(now);
        self.time_syncs(now);
        (0..PORTS).find_map(|port| self.next_frame(port, now))
    }

    /// A frame passed the plug when the node's clock said `stamp`.
    pub fn sent(&mut self, event: SentEvent, stamp: Nanos) {
        let terms = self.terms;
        if let Some(port) = self.ports.get_mut(event.port()) {
            port.keeps_quiet(&terms, stamp);
        }
        match event {
            SentEvent::Sync { port, sequence } => {
                let time = self.time_to_tell(stamp);
                if let Some(port) = self.ports.get_mut(port) {
                    port.synced(sequence, time);
                }
            }
            SentEvent::Request { port, sequence } => {
                if let Some(port) = self.ports.get_mut(port) {
                    let result = port.link.sent(&self.terms, sequence, stamp);
                    self.books.count_late(result);
                }
            }
            SentEvent::Answer { port, sequence } => {
                if let Some(port) = self.ports.get_mut(port) {
                    port.answered(sequence, stamp);
                }
            }
        }
    }

    /// A frame came. `bytes` are those after its type, the node's clock said `stamp` when it passed
    /// the plug, and says `now`.
    ///
    /// # Errors
    /// Why the frame is not used; it is counted.
    pub fn heard(
        &mut self,
        port: usize,
        stamp: Nanos,
        now: Nanos,
        bytes: &[u8],
    ) -> Result<(), GptpFault> {
        let result = GptpMessage::read(bytes).and_then(|message| {
            if message.header.source.clock == self.own.identity {
                return Err(GptpFault::Own);
            }
            self.take(port, stamp, now, &message)
        });
        self.books.count(&result);
        result
    }

    /// Follows the best announcement, or leads, and forgets the time if that changes.
    fn decide(&mut self, now: Nanos) {
        let records = self.ports.iter().enumerate();
        let best = records.filter_map(|(number, port)| Some((port.record?.rank, number))).min();
        let better = best.filter(|(rank, _)| *rank < self.own_rank() || !self.may_lead());
        let role = match (better, self.role) {
            (Some((rank, port)), _) => Role::Follows(port, rank),
            (None, Role::Listens(until)) if now < until => return,
            (None, Role::Leads(_)) => return,
            (None, _) if !self.may_lead() => Role::Listens(Nanos::FOREVER),
            (None, _) => Role::Leads(Leading { alone: now }),
        };
        if role == self.role {
            return;
        }
        if let Some(time) = self.clock.coasting(now) {
            self.free = (now, time);
        }
        self.clock.forget();
        self.role = role;
        for port in &mut self.ports {
            (port.announce, port.sync, port.arrived) = (now, false, None);
        }
    }

    /// A node that knows the time sends it to the ports that follow, when that is due.
    fn time_syncs(&mut self, now: Nanos) {
        if now < self.next {
            return;
        }
        let interval = self.terms.interval().0;
        let passed = (now - self.next).0 / interval;
        self.next += Nanos((passed + 1).saturating_mul(interval));
        let rank = self.rank().filter(|_| self.time(now).is_some());
        for port in &mut self.ports {
            port.sync = rank.is_some_and(|rank| port.is_master(&rank));
        }
    }

    fn next_frame(&mut self, number: usize, now: Nanos) -> Option<GptpOutgoing> {
        let terms = self.terms;
        let announced = self.announcement();
        let port = self.ports.get_mut(number)?;
        let outgoing = |frame, event| GptpOutgoing { port: number, frame, event };
        if let Some((frame, event)) = port.answer(number, now) {
            event.into_iter().for_each(|_| port.keeps_quiet(&terms, now));
            return Some(outgoing(frame, event));
        }
        if let Some(frame) = port.follow_up(&terms) {
            return Some(outgoing(frame, None));
        }
        if let Some((frame, event)) = port.event(number, &terms, now) {
            port.keeps_quiet(&terms, now);
            return Some(outgoing(frame, Some(event)));
        }
        let (rank, properties, path) = announced.filter(|(rank, ..)| port.is_master(rank))?;
        let Rank { grandmaster, steps, .. } = rank;
        let announce = Announce { grandmaster, steps, properties, path: path.clocks() };
        Some(outgoing(port.announce(now, announce)?, None))
    }

    /// Returns what the node announces.
    fn announcement(&self) -> Option<(Rank, TimeProperties, Path)> {
        let rank = self.rank()?;
        match &self.role {
            Role::Follows(port, _) => {
                let record = self.ports.get(*port)?.record?;
                Some((rank, record.properties, record.path))
            }
            _ => Some((rank, TimeProperties::FREE, Path::own(self.own.identity))),
        }
    }

    /// Returns the grandmaster as the node's neighbours see it, if there is one.
    fn rank(&self) -> Option<Rank> {
        match &self.role {
            Role::Listens(_) => None,
            Role::Leads(_) => Some(self.own_rank()),
            Role::Follows(_, rank) => {
                let steps = rank.steps.saturating_add(1);
                Some(Rank { grandmaster: rank.grandmaster, steps, source: self.source() })
            }
        }
    }

    fn own_rank(&self) -> Rank {
        Rank { grandmaster: self.own, steps: 0, source: self.source() }
    }

    fn source(&self) -> PortIdentity {
        PortIdentity { clock: self.own.identity, port: 0 }
    }

    fn may_lead(&self) -> bool {
        self.own.priority1 != PRIORITY_FOLLOWER
    }

    fn leads_alone(&self, leading: &Leading, now: Nanos) -> bool {
        let linked = self.ports.iter().any(|port| port.link.is_capable());
        linked && now - leading.alone >= self.terms.settle()
    }

    /// Returns the node's own time.
    fn free_at(&self, now: Nanos) -> Nanos {
        let (at, free) = self.free;
        free + (now - at) - (at - now)
    }

    /// Returns the grandmaster's time at a stamp and its rate, if the node may tell it.
    fn time_to_tell(&self, stamp: Nanos) -> Option<(Nanos, (i128, i128))> {
        match &self.role {
            Role::Listens(_) => None,
            Role::Leads(leading) => {
                self.leads_alone(leading, stamp).then(|| (self.free_at(stamp), (1, 1)))
            }
            Role::Follows(..) => self.clock.computed(stamp),
        }
    }
}

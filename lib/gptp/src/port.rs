//! One port of a node: its link, what is announced there, and the messages that it has to send.

use crate::best::{Rank, Record};
use crate::frame::GptpFrame;
use crate::link::{FIRST_SEQUENCE, PeerLink};
use crate::message::{GptpBody, GptpHeader, GptpMessage, PortIdentity};
use crate::terms::SECOND;
use crate::{Announce, GptpFault, SyncTerms};
use diapason_abi::Nanos;

/// The interval in messages for which it means nothing.
const NO_INTERVAL: i8 = 127;

/// A frame whose passage the caller stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentEvent {
    Sync { port: usize, sequence: u16 },
    Request { port: usize, sequence: u16 },
    Answer { port: usize, sequence: u16 },
}

impl SentEvent {
    /// Returns the port that the frame leaves by.
    pub(crate) const fn port(self) -> usize {
        match self {
            SentEvent::Sync { port, .. }
            | SentEvent::Request { port, .. }
            | SentEvent::Answer { port, .. } => port,
        }
    }
}

/// A Sync that came and waits for its Follow_Up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncArrived {
    pub source: PortIdentity,
    pub sequence: u16,
    pub local: Nanos,
    pub correction_ns: i64,
}

/// A request of the neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    requester: PortIdentity,
    sequence: u16,
    received: Nanos,
    /// The first part of the answer was handed out, and when it left.
    handed: bool,
    left: Option<Nanos>,
}

/// The state of one port between two frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    mac: [u8; 6],
    pub own: PortIdentity,
    pub link: PeerLink,
    pub record: Option<Record>,
    pub arrived: Option<SyncArrived>,
    asked: Option<Asked>,
    /// The number of the last Sync, whether one is to be sent, and the time for its Follow_Up.
    sequence: u16,
    pub sync: bool,
    time: Option<(Nanos, (i128, i128))>,
    announced: u16,
    pub announce: Nanos,
    /// No event is sent before.
    quiet: Nanos,
}

fn header(source: PortIdentity, sequence: u16, log_interval: i8) -> GptpHeader {
    GptpHeader { source, sequence, correction_ns: 0, log_interval }
}

impl Port {
    /// Returns a port that begins `now`.
    pub const fn new(mac: [u8; 6], own: PortIdentity, now: Nanos) -> Port {
        Port {
            mac,
            own,
            link: PeerLink::new(own, now),
            record: None,
            arrived: None,
            asked: None,
            sequence: FIRST_SEQUENCE,
            sync: false,
            time: None,
            announced: FIRST_SEQUENCE,
            announce: now,
            quiet: now,
        }
    }

    /// Returns whether an event may be sent.
    fn is_free(&self, now: Nanos) -> bool {
        now >= self.quiet
    }

    /// An event was handed out, or left.
    pub fn keeps_quiet(&mut self, terms: &SyncTerms, from: Nanos) {
        self.quiet = self.quiet.max(from + terms.base().gap);
    }

    /// Returns when the next event is due.
    pub fn next_event(&self) -> Nanos {
        let waits = self.sync || self.asked.is_some_and(|asked| !asked.handed);
        if waits { self.quiet } else { self.link.next().max(self.quiet) }
    }

    /// Returns whether the node announces its grandmaster here: it has a better one than the
    /// neighbour.
    pub fn is_master(&self, rank: &Rank) -> bool {
        self.link.is_capable() && self.record.is_none_or(|record| *rank < record.rank)
    }

    /// Forgets an announcement that is too old.
    pub fn expire(&mut self, now: Nanos) {
        self.record = self.record.filter(|record| now <= record.until);
    }

    /// A neighbour asks for the delay.
    pub fn asks(&mut self, header: &GptpHeader, received: Nanos) {
        let (requester, sequence) = (header.source, header.sequence);
        self.asked = Some(Asked { requester, sequence, received, handed: false, left: None });
    }

    /// Returns the next part of an answer, with its event if it has to be stamped.
    pub fn answer(&mut self, number: usize, now: Nanos) -> Option<(GptpFrame, Option<SentEvent>)> {
        let is_free = self.is_free(now);
        let asked = self.asked.as_mut()?;
        let (requester, sequence) = (asked.requester, asked.sequence);
        let header = header(self.own, sequence, NO_INTERVAL);
        if let Some(sent) = asked.left {
            self.asked = None;
            let body = GptpBody::PdelayRespFollowUp { sent, requester };
            return Some((GptpFrame::new(self.mac, &GptpMessage { header, body }), None));
        }
        if asked.handed || !is_free {
            return None;
        }
        asked.handed = true;
        let body = GptpBody::PdelayResp { received: asked.received, requester };
        let event = SentEvent::Answer { port: number, sequence };
        Some((GptpFrame::new(self.mac, &GptpMessage { header, body }), Some(event)))
    }

    /// The first part of an answer left.
    pub fn answered(&mut self, sequence: u16, stamp: Nanos) {
        if let Some(asked) = self.asked.as_mut().filter(|it| it.handed && it.sequence == sequence) {
            asked.left = Some(stamp);
        }
    }

    /// Returns the Sync or the request that is to be sent, if an event may be.
    pub fn event(
        &mut self,
        number: usize,
        terms: &SyncTerms,
        now: Nanos,
    ) -> Option<(GptpFrame, SentEvent)> {
        if !self.is_free(now) {
            return None;
        }
        self.sync(number, terms).or_else(|| self.request(number, terms, now))
    }

    /// Returns the request that is due.
    fn request(
        &mut self,
        number: usize,
        terms: &SyncTerms,
        now: Nanos,
    ) -> Option<(GptpFrame, SentEvent)> {
        let sequence = self.link.look(terms, now)?;
        let header = header(self.own, sequence, 0);
        let frame = GptpFrame::new(self.mac, &GptpMessage { header, body: GptpBody::PdelayReq });
        Some((frame, SentEvent::Request { port: number, sequence }))
    }

    /// Returns the Sync that is to be sent.
    fn sync(&mut self, number: usize, terms: &SyncTerms) -> Option<(GptpFrame, SentEvent)> {
        if !core::mem::take(&mut self.sync) {
            return None;
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.time = None;
        let header = header(self.own, self.sequence, terms.base().log_interval);
        let frame = GptpFrame::new(self.mac, &GptpMessage { header, body: GptpBody::Sync });
        Some((frame, SentEvent::Sync { port: number, sequence: self.sequence }))
    }

    /// The Sync of this number left at this time of the grandmaster, whose rate is this.
    pub fn synced(&mut self, sequence: u16, time: Option<(Nanos, (i128, i128))>) {
        if sequence == self.sequence {
            self.time = time;
        }
    }

    /// Returns the Follow_Up of the last Sync.
    pub fn follow_up(&mut self, terms: &SyncTerms) -> Option<GptpFrame> {
        let (origin, gain) = self.time.take()?;
        let header = header(self.own, self.sequence, terms.base().log_interval);
        let message = GptpMessage { header, body: GptpBody::FollowUp { origin } };
        Some(GptpFrame::new(self.mac, &message).with_rate(gain))
    }

    /// Returns the announcement that is due.
    pub fn announce(&mut self, now: Nanos, announce: Announce<'_>) -> Option<GptpFrame> {
        if now < self.announce {
            return None;
        }
        let passed = (now - self.announce).0 / SECOND.0;
        self.announce += Nanos((passed + 1).saturating_mul(SECOND.0));
        self.announced = self.announced.wrapping_add(1);
        let header = header(self.own, self.announced, 0);
        Some(GptpFrame::new(self.mac, &GptpMessage { header, body: GptpBody::Announce(announce) }))
    }

    /// Returns when the Sync came to which this Follow_Up belongs, and its correction.
    pub fn followed(&mut self, header: &GptpHeader) -> Result<SyncArrived, GptpFault> {
        let own = |it: &SyncArrived| it.source == header.source && it.sequence == header.sequence;
        let arrived = self.arrived.filter(own).ok_or(GptpFault::Sequence)?;
        self.arrived = None;
        Ok(arrived)
    }
}

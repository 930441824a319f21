//! Hearing: each kind of message changes the node, or is refused by a reason.

use super::{Role, TimeNode, TimeStep};
use crate::best::Record;
use crate::message::{GptpBody, GptpHeader, GptpMessage};
use crate::port::SyncArrived;
use crate::{Announce, GptpFault, TimeSample};
use diapason_abi::Nanos;

impl<const PORTS: usize> TimeNode<PORTS> {
    /// Does what a message asks for, or takes in what it tells.
    pub(super) fn take(
        &mut self,
        number: usize,
        stamp: Nanos,
        now: Nanos,
        message: &GptpMessage<'_>,
    ) -> Result<(), GptpFault> {
        let (header, terms) = (&message.header, self.terms);
        let port = self.ports.get_mut(number).ok_or(GptpFault::Parent)?;
        let (source, sequence) = (header.source, header.sequence);
        match message.body {
            GptpBody::PdelayReq => {
                port.asks(header, stamp);
                Ok(())
            }
            GptpBody::PdelayResp { received, requester } => {
                let answer = (received, header.correction_ns, stamp);
                port.link.answered(source, sequence, requester, answer)
            }
            GptpBody::PdelayRespFollowUp { sent, requester } => {
                let sent = (sent, header.correction_ns);
                port.link.completed(&terms, source, sequence, requester, sent)
            }
            GptpBody::Announce(announce) => self.announced(number, now, header, &announce),
            GptpBody::Sync => self.synced(number, stamp, now, header),
            GptpBody::FollowUp { origin } => self.followed(number, now, header, origin),
        }
    }

    fn announced(
        &mut self,
        number: usize,
        now: Nanos,
        header: &GptpHeader,
        announce: &Announce<'_>,
    ) -> Result<(), GptpFault> {
        self.other_master(now);
        let until = now + self.terms.announced();
        let record = Record::of(header, announce, self.own.identity, until)?;
        let Some(port) = self.ports.get_mut(number).filter(|port| port.link.is_capable()) else {
            return Err(GptpFault::Parent);
        };
        let replaces = |old: Record| old.rank.source == header.source || record.rank < old.rank;
        if port.record.is_none_or(replaces) {
            port.record = Some(record);
        }
        self.decide(now);
        Ok(())
    }

    fn synced(
        &mut self,
        number: usize,
        local: Nanos,
        now: Nanos,
        header: &GptpHeader,
    ) -> Result<(), GptpFault> {
        self.other_master(now);
        self.parent(number, header)?;
        let GptpHeader { source, sequence, correction_ns, .. } = *header;
        if let Some(port) = self.ports.get_mut(number) {
            port.arrived = Some(SyncArrived { source, sequence, local, correction_ns });
        }
        Ok(())
    }

    fn followed(
        &mut self,
        number: usize,
        now: Nanos,
        header: &GptpHeader,
        origin: Nanos,
    ) -> Result<(), GptpFault> {
        self.other_master(now);
        self.parent(number, header)?;
        let port = self.ports.get_mut(number).ok_or(GptpFault::Parent)?;
        let arrived = port.followed(header)?;
        if self.clock.is_over(now) {
            self.clock.forget();
            port.link.measure_anew();
        }
        let delay = port.link.delay().ok_or(GptpFault::Delay)?;
        let correction = arrived.correction_ns + header.correction_ns;
        let master = i128::from(origin.0) + i128::from(correction);
        let master = u64::try_from(master).map(Nanos).map_err(|_| GptpFault::Correction)?;
        let before = self.clock.is_known(now);
        let sample = TimeSample { local: arrived.local, master };
        let known = self.clock.learn(sample, delay, now)?;
        if known && !before {
            let (from, to) = (self.free_at(now), self.clock.time(now).unwrap_or(now));
            self.step = Some(TimeStep { local: now, from, to });
        }
        Ok(())
    }

    /// Returns whether a message at this port comes from the master that the node follows.
    fn parent(&self, number: usize, header: &GptpHeader) -> Result<(), GptpFault> {
        match &self.role {
            Role::Follows(port, rank) if *port == number && rank.source == header.source => Ok(()),
            _ => Err(GptpFault::Parent),
        }
    }

    /// The node hears that there is another master.
    fn other_master(&mut self, now: Nanos) {
        if let Role::Leads(leading) = &mut self.role {
            leading.alone = now;
        }
    }
}

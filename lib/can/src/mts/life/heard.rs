//! The frames of a life as they end: what was late or in the wrong order, and who hears what.

use super::{Act, Life, LifeStream, Waiting};
use crate::bus::EventKind;
use crate::frame::CanFrame;
use crate::mts::{Duty, RENEW_FROM_BITS, RENEW_UNTIL_BITS, Renewing};
use diapason_abi::Nanos;

impl Life<'_> {
    pub(super) fn collect(&mut self) {
        while let Some(event) = self.bus.poll() {
            match event.kind {
                EventKind::Error { .. } => self.doubt(event.node.0),
                EventKind::Dropped { ticket, .. } => drop(self.waiting.remove(&ticket)),
                _ => {}
            }
            let EventKind::Sent { ticket: Some(ticket), frame } = event.kind else { continue };
            let Some(it) = self.waiting.remove(&ticket) else { continue };
            self.outcome.sent += 1;
            if let Some(which) = it.which.filter(|_| event.time > it.due) {
                self.outcome.late.push((it.node, which));
            }
            if let Some(frame) = frame.classic() {
                self.compare(event.time, &it, &frame);
                if it.is_time {
                    self.read_clocks(event.time, it.node, &frame);
                }
            }
            self.ended = event.time;
            if it.marked {
                self.outcome.told += 1;
                self.tell(event.time);
            }
        }
    }

    /// Counts a frame that went before a more urgent message.
    fn compare(&mut self, ended: Nanos, sent: &Waiting, frame: &CanFrame) {
        let length = self.set.rate.time(crate::wire::length(frame).into());
        let space = self.set.rate.time(4);
        let began = ended - length;
        let was_idle = began > self.ended + space;
        // A frame that was under way when its node renewed keeps the identifier of before.
        let epoch = match sent.which {
            Some(LifeStream::High(_)) if frame.id() == sent.frame.id() => sent.epoch,
            Some(LifeStream::High(_)) => sent.epoch - self.set.epochs.epoch(),
            _ => Nanos::ZERO,
        };
        if let Some(LifeStream::High(_)) = sent.which {
            // Since then the node may have changed its idea of the time, by the error of both.
            let patience = self.keepers[sent.node].patience() + Nanos(2 * self.set.clocks.0);
            let over = epoch + self.set.epochs.epoch() + patience;
            self.outcome.stale +=
                u64::from(self.clock(sent.node, began).is_some_and(|at| at > over));
            self.count_unknown(sent, began);
        }
        let own = self.order(sent, epoch);
        let urgent = self.waiting.values().any(|it| {
            let bit = self.set.rate.time(1);
            it.queued + bit < began && self.deaf(it.node) == 0 && self.order(it, epoch) < own
        });
        let may_meet = was_idle || self.renews_by_clock(sent.node, began);
        self.outcome.inverted += u64::from(urgent && !may_meet);
    }

    /// Returns whether identifiers of two epochs may meet because some node renews by its clock.
    fn renews_by_clock(&self, node: usize, now: Nanos) -> bool {
        let (Renewing::ByClock { within, .. }, Some(clock)) =
            (self.set.renewing, self.clock(node, now))
        else {
            return false;
        };
        let apart = Nanos(2 * self.set.clocks.0);
        let since = |at: Nanos| at - self.set.epochs.start(at);
        since(clock) <= within + apart || since(clock + apart) <= apart
    }

    fn deaf(&self, node: usize) -> u64 {
        self.units[node].deaf
    }

    /// Returns the order in which messages go, the most urgent first.
    fn order(&self, it: &Waiting, epoch: Nanos) -> (u8, u64, usize) {
        match it.which {
            Some(LifeStream::High(code)) => {
                let region = it.start_by.max(epoch).0 / self.set.epochs.region().0;
                (0, region, code)
            }
            Some(LifeStream::Low(rank)) => (1, 0, rank),
            _ => (2, 0, 0),
        }
    }

    /// All nodes hear a frame that tells to renew.
    fn tell(&mut self, now: Nanos) {
        for node in 0..self.units.len() {
            let deaf = self.units[node].deaf;
            if !self.is_on(node, now) || (deaf > 0 && (self.draw)(deaf) == 0) {
                continue;
            }
            // A node that does not know the time joins later, when it does.
            let Some(clock) = self.clock(node, now) else { continue };
            if self.keepers[node].heard(clock) == Duty::Renew {
                let room = u64::from(RENEW_UNTIL_BITS - RENEW_FROM_BITS);
                let bits = u64::from(RENEW_FROM_BITS) + (self.draw)(room + 1);
                let at = now + self.set.rate.time(bits);
                self.push(at, Act::Renew(node));
            }
        }
    }
}

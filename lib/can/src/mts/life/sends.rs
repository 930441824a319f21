//! The messages of a node in a life: how they get their identifiers, and how a node renews them.

use super::{Act, Life, LifeMessage, LifeStream, Waiting};
use crate::bus::Ticket;
use crate::frame::CanFrame;
use crate::mts::{Duty, RENEW_FROM_BITS, beacon_id, read_update, signal_update};
use alloc::vec::Vec;
use diapason_abi::Nanos;

impl Life<'_> {
    pub(super) fn look(&mut self, now: Nanos, node: usize) {
        let Some(clock) = self.clock(node, now) else { return };
        if clock < self.keepers[node].next_look(clock) {
            return self.look_again(now, node);
        }
        match self.keepers[node].look(clock) {
            Duty::Tell => {
                let id = beacon_id(u16::try_from(node).unwrap_or(u16::MAX));
                if let Some(frame) = id.ok().and_then(|id| CanFrame::data(id, &[]).ok()) {
                    let beacon = Waiting::new(node, None, frame, now);
                    self.request(now, Waiting { marked: true, ..beacon });
                }
                self.mark(now, node);
            }
            Duty::Repair => self.rename(now, node),
            Duty::Renew => {
                let within = self.keepers[node].patience().0;
                let delay = match (self.draw)(3) {
                    0 => 0,
                    1 => within,
                    _ => (self.draw)(within + 1),
                };
                self.push(now + Nanos(delay), Act::Renew(node));
            }
            Duty::None | Duty::Join => {}
        }
        self.look_again(now, node);
    }

    pub(super) fn look_again(&mut self, now: Nanos, node: usize) {
        let Some(clock) = self.clock(node, now) else { return };
        let next = self.keepers[node].next_look(clock);
        if next < Nanos::FOREVER
            && now <= self.last + Nanos(64 * self.set.epochs.epoch().0)
            && let Some(at) = self.when(node, next)
        {
            self.push(at.max(now + Nanos(1)), Act::Look(node));
        }
    }

    pub(super) fn come(&mut self, now: Nanos, number: usize) {
        let LifeMessage { came, which, node, .. } = self.comings[number];
        if !self.is_on(node, now) {
            return;
        }
        let (frame, deadline) = match which {
            LifeStream::High(code) => (self.frames.high[code], self.set.high[code].deadline),
            LifeStream::Low(rank) => {
                let message = &self.set.low[rank];
                (self.frames.low[rank].with_id(message.id), message.deadline)
            }
            LifeStream::Other(number) => (self.frames.other[number], Nanos::FOREVER),
        };
        let it = Waiting::new(node, Some(which), frame, now);
        self.queue(now, Waiting { came, due: came + deadline, ..it });
    }

    /// A message is in the queue of its node. One of high speed at a node that does not know the
    /// epoch is never sent: later it would come too close to the next one.
    pub(super) fn queue(&mut self, now: Nanos, mut it: Waiting) {
        if let Some(LifeStream::High(code)) = it.which {
            let clock = self.clock(it.node, it.came);
            let (Some(epoch), Some(came)) = (self.keepers[it.node].epoch(), clock) else {
                return self.outcome.late.push((it.node, LifeStream::High(code)));
            };
            let message = &self.set.high[code];
            let distance = message.deadline - self.set.rate.time(message.bits.into());
            it = self.identified(Waiting { start_by: came + distance, ..it }, epoch);
        }
        if self.keepers[it.node].tells() {
            it = marked(it, true);
        }
        self.request(now, it);
    }

    pub(super) fn request(&mut self, now: Nanos, it: Waiting) {
        if let Ok(ticket) = self.bus.send(now, self.nodes[it.node], it.frame) {
            self.waiting.insert(ticket, it);
        }
    }

    /// Returns the message with the identifier of an epoch.
    fn identified(&mut self, it: Waiting, epoch: Nanos) -> Waiting {
        let Some(LifeStream::High(code)) = it.which else { return it };
        let code = u16::try_from(code).unwrap_or(u16::MAX);
        if let Ok(id) = self.set.epochs.id(code, it.start_by, epoch) {
            Waiting { frame: it.frame.with_id(id), epoch, ..it }
        } else {
            self.outcome.beyond += 1;
            it
        }
    }

    /// Returns the tickets of a node, the first requested first.
    pub(super) fn tickets(&self, node: usize) -> Vec<Ticket> {
        let own = self.waiting.iter().filter(|(_, it)| it.node == node);
        own.map(|(ticket, _)| *ticket).collect()
    }

    /// All that waits at a node tells to renew from now on. A message that just takes part in
    /// arbitration is tried again after it.
    pub(super) fn mark(&mut self, now: Nanos, node: usize) {
        if !self.keepers[node].tells() {
            return;
        }
        let mut again = false;
        for ticket in self.tickets(node) {
            let it = self.waiting[&ticket];
            if it.marked {
                continue;
            }
            if self.bus.cancel(now, self.nodes[node], ticket) {
                self.waiting.remove(&ticket);
                self.request(now, marked(it, true));
            } else {
                again = true;
            }
        }
        if again {
            let at = now + self.set.rate.time(RENEW_FROM_BITS.into());
            self.push(at, Act::Mark(node));
        }
    }

    /// All that waits at a node gets the identifiers of its epoch, and tells nothing any more. A
    /// message that just takes part in arbitration is tried again after it.
    pub(super) fn rename(&mut self, now: Nanos, node: usize) {
        let Some(epoch) = self.keepers[node].epoch().filter(|_| !self.keepers[node].tells()) else {
            return;
        };
        let mut again = false;
        for ticket in self.tickets(node) {
            let it = self.identified(self.waiting[&ticket], epoch);
            if !it.marked {
                self.bus.rename(now, self.nodes[node], ticket, it.frame.id());
                self.waiting.insert(ticket, it);
            } else if self.bus.cancel(now, self.nodes[node], ticket) {
                self.waiting.remove(&ticket);
                if it.which.is_some() {
                    self.request(now, marked(it, false));
                }
            } else {
                again = true;
            }
        }
        if again {
            let at = now + self.set.rate.time(RENEW_FROM_BITS.into());
            self.push(at, Act::Rename(node));
        }
    }
}

/// Returns the message, telling to renew or not.
pub(super) fn marked(it: Waiting, marked: bool) -> Waiting {
    let plain = match it.marked {
        true => read_update(&it.frame, usize::from(it.frame.code()).saturating_sub(1)).1,
        false => it.frame,
    };
    let frame = if marked { signal_update(&plain).unwrap_or(plain) } else { plain };
    Waiting { frame, marked, ..it }
}

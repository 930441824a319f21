//! Out of a halt, and transfers off the ring: Stop or Reset Endpoint, Set Dequeue Pointer,
//! `CLEAR_FEATURE`, doorbell.

use super::access::{Dma, Mmio};
use super::command::Command;
use super::controller::Controller;
use super::pipe::{Owner, Phase, Queued};
use super::report::{Cause, Outcome};
use crate::context::{self, EndpointState, WORDS};
use crate::setup::Setup;
use crate::trb::{Completion, Kind, Trb, bit, endpoint_address};
use diapason_abi::Nanos;

/// Commands of a recovery that may fail one after the other before the device is given up.
const ATTEMPTS: u8 = 4;

impl<M: Mmio, D: Dma> Controller<M, D> {
    /// The command that this endpoint needs next; it is taken as issued.
    pub(super) fn pipe_command(&mut self, number: u16) -> Option<Command> {
        let pipe = &mut self.pipes[usize::from(number)];
        let (_, index) = pipe.owner.filter(|_| !pipe.issued)?;
        let command = match pipe.phase {
            Phase::Stop => Command::Stop(index),
            Phase::Reset => Command::Reset(index),
            Phase::Move => {
                // The controller goes on at the first transfer that stays.
                let stays = |queued: &&Queued| goes(queued.cancelled, queued.owner).is_none();
                let first = pipe.queue.iter().find(stays).map(|queued| queued.first);
                let block = first.unwrap_or(pipe.ring.enqueue());
                pipe.target = block;
                let address = self.hw.dma.base() + pipe.ring.offset_of(block);
                Command::SetDequeue(index, address | u64::from(pipe.ring.cycle_at(block)))
            }
            Phase::Running | Phase::Clear => return None,
        };
        pipe.issued = true;
        Some(command)
    }

    /// A command about an endpoint's recovery is over.
    pub(super) fn pipe_command_done(
        &mut self,
        device: u8,
        index: u8,
        code: Completion,
        now: Nanos,
    ) {
        let Some(number) = self.pipe_of(device, index) else { return };
        let pipe = &mut self.pipes[usize::from(number)];
        if !pipe.issued {
            // The endpoint halted in the meantime and needs something else now.
            return;
        }
        pipe.issued = false;
        let fine = code == Completion::Success;
        let state = self.endpoint_state(device, index);
        let pipe = &mut self.pipes[usize::from(number)];
        if !fine {
            pipe.attempts += 1;
            if pipe.attempts > ATTEMPTS {
                return self.lose_device(device, Some(Cause::Endpoint(endpoint_address(index))));
            }
        }
        match (pipe.phase, fine, state) {
            (Phase::Stop, true, _) => self.prune(number, now),
            (Phase::Move, true, _) => self.moved(number, now),
            (_, false, Some(EndpointState::Halted)) => pipe.enter(Phase::Reset),
            (_, false, Some(EndpointState::Running)) => pipe.enter(Phase::Stop),
            (Phase::Reset, ..) | (_, false, _) => {
                self.counters.recovered += u64::from(pipe.phase == Phase::Reset);
                pipe.enter(Phase::Move);
            }
            (Phase::Running | Phase::Clear, ..) => {}
        }
        self.attention = true;
    }

    /// Returns the endpoint's state as the controller wrote it.
    fn endpoint_state(&self, device: u8, index: u8) -> Option<EndpointState> {
        let place = self.layout.devices[usize::from(device)].context;
        let at = place + u64::from(index) * self.capabilities.context;
        let mut words = context::Words([0; WORDS]);
        words.0[0] = self.hw.dma.load(at);
        context::Endpoint(words).state()
    }

    /// The endpoint stands still between two blocks: cancelled transfers in front are passed by a
    /// new place in the ring, others become blocks that do nothing.
    fn prune(&mut self, number: u16, now: Nanos) {
        let pipe = &self.pipes[usize::from(number)];
        let moves = pipe.queue.front().is_none_or(|q| goes(q.cancelled, q.owner).is_some());
        if moves {
            self.pipes[usize::from(number)].enter(Phase::Move);
        } else {
            self.blank(number, now);
            self.resume(number);
        }
    }

    /// The controller took the new place: what was in front of it is free.
    fn moved(&mut self, number: u16, now: Nanos) {
        let index = usize::from(number);
        while let Some(queued) = self.pipes[index].queue.front().copied() {
            if queued.first == self.pipes[index].target {
                break;
            }
            let outcome = goes(queued.cancelled, queued.owner).unwrap_or(Outcome::Cancelled);
            self.pipes[index].queue.pop_front();
            self.report(number, queued, outcome, queued.actual.unwrap_or(0), now);
        }
        let pipe = &mut self.pipes[index];
        pipe.tail = None;
        pipe.release();
        self.blank(number, now);
        if self.pipes[index].tell {
            self.pipes[index].enter(Phase::Clear);
        } else {
            self.resume(number);
        }
    }

    /// Cancelled transfers behind one that stays: their blocks are made to do nothing, and the
    /// last of them reports when the controller has passed.
    fn blank(&mut self, number: u16, now: Nanos) {
        let index = usize::from(number);
        for place in 0..self.pipes[index].queue.len() {
            let queued = self.pipes[index].queue[place];
            let Some(outcome) = queued.cancelled else { continue };
            let ring = &self.pipes[index].ring;
            let mut block = queued.first;
            loop {
                let flags = if block == queued.last { bit::COMPLETION } else { 0 };
                let status = Trb::transfer_status(0, 0, queued.interrupter);
                let nothing = Trb::new(Kind::NoOp, 0, status, flags);
                let nothing = nothing.with_cycle(ring.cycle_at(block));
                self.hw.store_block(ring.offset_of(block), nothing);
                if block == queued.last {
                    break;
                }
                block = ring.after(block);
            }
            let kept = &mut self.pipes[index].queue[place];
            (kept.owner, kept.cancelled) = (Owner::Nobody, None);
            self.report(number, queued, outcome, 0, now);
        }
    }

    /// The endpoint may work again.
    pub(super) fn resume(&mut self, number: u16) {
        let pipe = &mut self.pipes[usize::from(number)];
        pipe.tell = false;
        pipe.enter(Phase::Running);
        self.attention = true;
        let waiting = pipe.queue.iter().any(|queued| queued.cancelled.is_some());
        match pipe.owner {
            // Somebody cancelled while this went on.
            Some(_) if waiting => pipe.enter(Phase::Stop),
            Some((device, index)) if !pipe.queue.is_empty() => {
                let slot = self.devices[usize::from(device)].slot;
                self.hw.ring_doorbell(slot, index);
            }
            _ => {}
        }
    }

    /// The request that an endpoint of this device needs: the device is told that it was reset.
    pub(super) fn pipe_request(&self, device: u8) -> Option<(Setup, u8)> {
        let pipes = self.devices[usize::from(device)].pipes.iter().flatten();
        pipes.map(|number| &self.pipes[usize::from(*number)]).find_map(|pipe| {
            let (_, index) = pipe.owner.filter(|_| pipe.phase == Phase::Clear && !pipe.issued)?;
            Some((Setup::clear_halt(endpoint_address(index)), index))
        })
    }

    /// The device was told, or does not want to know.
    pub(super) fn cleared(&mut self, device: u8, index: u8) {
        if let Some(number) = self.pipe_of(device, index) {
            let pipe = &self.pipes[usize::from(number)];
            if pipe.phase == Phase::Clear {
                self.resume(number);
            }
        }
    }
}

/// Whether a transfer leaves the ring when the controller gets a new place, and how.
const fn goes(cancelled: Option<Outcome>, owner: Owner) -> Option<Outcome> {
    match (cancelled, owner) {
        (Some(outcome), _) => Some(outcome),
        (None, Owner::Nobody) => Some(Outcome::Cancelled),
        (None, _) => None,
    }
}

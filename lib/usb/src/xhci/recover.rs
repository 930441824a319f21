//! Out of a halt, and transfers off the ring: Stop or Reset Endpoint, Set Dequeue Pointer,
//! `CLEAR_FEATURE`, doorbell.

use super::access::{Dma, Mmio};
use super::command::Command;
use super::configure::bits;
use super::controller::Controller;
use super::device::Device;
use super::lane::{Lane, Lanes};
use super::pipe::{Owner, Phase, Pipe, Queued};
use super::report::{DeviceFailure, TransferOutcome};
use crate::context::{self, EndpointState, WORDS};
use crate::setup::Setup;
use crate::trb::{Completion, Kind, Trb, bit, endpoint_address};
use diapason_abi::Nanos;

/// Commands of a recovery that may fail one after the other before the device is given up.
const ATTEMPTS: u8 = 4;

impl<M: Mmio, D: Dma, L: Lanes<M, D>> Controller<M, D, L> {
    /// Learns which endpoints of a lane need a command, and issues what can be issued.
    pub fn look(&mut self, lane: u16) {
        let devices = &mut self.devices;
        let found = match lane {
            0 => gather(&mut self.own, devices),
            _ => self.lanes.with(lane, |lane| gather(lane, devices)),
        };
        self.attention |= found;
    }

    /// Returns the command that this endpoint needs next; it is taken as issued.
    pub(super) fn pipe_command(&mut self, device: u8, context: u8) -> Option<Command> {
        let lane = self.lane_of(device, context);
        let (command, rests) = self.on(lane, |lane| lane.command((device, context)));
        if rests {
            self.devices[usize::from(device)].wants &= !(1 << context);
        }
        command
    }

    /// A command about an endpoint's recovery is over.
    pub(super) fn pipe_command_done(
        &mut self,
        device: u8,
        index: u8,
        code: Completion,
        now: Nanos,
    ) {
        let state = self.endpoint_state(device, index);
        let lane = self.lane_of(device, index);
        let works = self.on(lane, |lane| lane.commanded((device, index), (code, state), now));
        self.settle_answers();
        self.look(lane);
        if !works {
            return self
                .lose_device(device, Some(DeviceFailure::Endpoint(endpoint_address(index))));
        }
        self.attention = true;
    }

    /// Returns the endpoint's state as the controller wrote it.
    fn endpoint_state(&self, device: u8, index: u8) -> Option<EndpointState> {
        let place = self.layout.devices[usize::from(device)].context;
        let at = place + u64::from(index) * self.capabilities.context;
        let mut words = context::Words([0; WORDS]);
        words.0[0] = self.hw.dma.load(at);
        context::EndpointContext(words).state()
    }

    /// Returns the request that an endpoint of this device needs: the device is told that it was
    /// reset.
    pub(super) fn pipe_request(&mut self, device: u8) -> Option<(Setup, u8)> {
        let wants = self.devices[usize::from(device)].wants;
        bits(wants).find_map(|context| {
            let clears = |pipe: &mut Pipe| pipe.phase == Phase::Clear && !pipe.issued;
            let wanted = self.endpoint(device, context, clears) == Some(true);
            wanted.then(|| (Setup::clear_halt(endpoint_address(context)), context))
        })
    }

    /// The device was told, or does not want to know.
    pub(super) fn cleared(&mut self, device: u8, index: u8) {
        let lane = self.lane_of(device, index);
        self.on(lane, |lane| lane.cleared((device, index)));
        self.look(lane);
    }
}

impl<M: Mmio, D: Dma> Lane<M, D> {
    /// Returns the command that an endpoint needs next, taken as issued; and whether it needs
    /// nothing.
    fn command(&mut self, owner: (u8, u8)) -> (Option<Command>, bool) {
        let Some(number) = self.find(owner) else { return (None, true) };
        let pipe = &mut self.pipes[number];
        if pipe.issued {
            return (None, false);
        }
        let (_, index) = owner;
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
            Phase::Running => return (None, true),
            Phase::Clear => return (None, false),
        };
        pipe.issued = true;
        (Some(command), false)
    }

    /// A command about an endpoint is over; false if the endpoint would not recover.
    fn commanded(
        &mut self,
        owner: (u8, u8),
        (code, state): (Completion, Option<EndpointState>),
        now: Nanos,
    ) -> bool {
        let Some(number) = self.find(owner) else { return true };
        let pipe = &mut self.pipes[number];
        if !pipe.issued {
            // The endpoint halted in the meantime and needs something else now.
            return true;
        }
        pipe.issued = false;
        self.attention = true;
        let fine = code == Completion::Success;
        if !fine {
            pipe.attempts += 1;
            if pipe.attempts > ATTEMPTS {
                return false;
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
        true
    }

    /// The device was told that an endpoint was reset.
    fn cleared(&mut self, owner: (u8, u8)) {
        if let Some(number) = self.find(owner)
            && self.pipes[number].phase == Phase::Clear
        {
            self.resume(number);
        }
    }

    /// The endpoint stands still between two blocks: cancelled transfers in front are passed by a
    /// new place in the ring, others become blocks that do nothing.
    fn prune(&mut self, number: usize, now: Nanos) {
        let pipe = &self.pipes[number];
        let moves = pipe.queue.front().is_none_or(|q| goes(q.cancelled, q.owner).is_some());
        if moves {
            self.pipes[number].enter(Phase::Move);
        } else {
            self.blank(number, now);
            self.resume(number);
        }
    }

    /// The controller took the new place: what was in front of it is free.
    fn moved(&mut self, number: usize, now: Nanos) {
        while let Some(queued) = self.pipes[number].queue.front().copied() {
            if queued.first == self.pipes[number].target {
                break;
            }
            let outcome =
                goes(queued.cancelled, queued.owner).unwrap_or(TransferOutcome::Cancelled);
            self.pipes[number].queue.pop_front();
            self.report(number, queued, outcome, queued.actual.unwrap_or(0), now);
        }
        let pipe = &mut self.pipes[number];
        pipe.tail = None;
        pipe.release();
        self.blank(number, now);
        if self.pipes[number].tell {
            self.pipes[number].enter(Phase::Clear);
        } else {
            self.resume(number);
        }
    }

    /// Cancelled transfers behind one that stays: their blocks are made to do nothing, and the
    /// last of them reports when the controller has passed.
    fn blank(&mut self, number: usize, now: Nanos) {
        // A block that is held back would be written once more.
        self.pipes[number].ring.commit(&mut self.hw);
        for place in 0..self.pipes[number].queue.len() {
            let queued = self.pipes[number].queue[place];
            let Some(outcome) = queued.cancelled else { continue };
            let ring = &self.pipes[number].ring;
            let mut block = queued.first;
            loop {
                let flags = if block == queued.last { bit::COMPLETION } else { 0 };
                let status = Trb::transfer_status(0, 0, self.number);
                let nothing = Trb::new(Kind::NoOp, 0, status, flags);
                let nothing = nothing.with_cycle(ring.cycle_at(block));
                self.hw.dma.store_block(ring.offset_of(block), nothing);
                if block == queued.last {
                    break;
                }
                block = ring.after(block);
            }
            let kept = &mut self.pipes[number].queue[place];
            (kept.owner, kept.cancelled) = (Owner::Nobody, None);
            self.report(number, queued, outcome, 0, now);
        }
    }

    /// The endpoint may work again.
    pub(super) fn resume(&mut self, number: usize) {
        let pipe = &mut self.pipes[number];
        pipe.tell = false;
        pipe.enter(Phase::Running);
        self.attention = true;
        let waiting = pipe.queue.iter().any(|queued| queued.cancelled.is_some());
        match pipe.owner {
            // Somebody cancelled while this went on.
            Some(_) if waiting => pipe.enter(Phase::Stop),
            Some((_, index)) if !pipe.queue.is_empty() => {
                self.hw.ring_doorbell(pipe.slot, index);
            }
            _ => {}
        }
    }
}

/// Notes which devices have endpoints in a lane that need something; false if there is nothing new.
fn gather<M, D>(lane: &mut Lane<M, D>, devices: &mut [Device]) -> bool {
    let found = core::mem::take(&mut lane.attention);
    for pipe in lane.pipes.iter().filter(|pipe| found && pipe.phase != Phase::Running) {
        if let Some((device, context)) = pipe.owner {
            devices[usize::from(device)].wants |= 1 << context;
        }
    }
    found
}

/// Returns whether a transfer leaves the ring when the controller gets a new place, and how.
const fn goes(cancelled: Option<TransferOutcome>, owner: Owner) -> Option<TransferOutcome> {
    match (cancelled, owner) {
        (Some(outcome), _) => Some(outcome),
        (None, Owner::Nobody) => Some(TransferOutcome::Cancelled),
        (None, _) => None,
    }
}

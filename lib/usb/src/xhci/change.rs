//! How the endpoints of a device change: one Configure Endpoint drops and adds them, then the
//! device is told. If either says no, everything is as before or the device is given up.

use super::access::{Dma, Mmio};
use super::budget::{EndpointPlan, owner};
use super::command::Command;
use super::configure::bits;
use super::controller::Controller;
use super::device::Step;
use super::lane::Lanes;
use super::pipe::{Pipe, Wish};
use super::report::{DeviceFailure, Notice, TransferOutcome};
use crate::Speed;
use crate::context::{Control, Slot};
use crate::trb::{Completion, endpoint_address};
use diapason_abi::Nanos;
use diapason_bus::ScheduleChange;

impl<M: Mmio, D: Dma, L: Lanes<M, D>> Controller<M, D, L> {
    /// Calls `act` with an endpoint of a device, if it has it.
    pub(super) fn endpoint<R>(
        &mut self,
        device: u8,
        context: u8,
        act: impl FnOnce(&mut Pipe) -> R,
    ) -> Option<R> {
        if self.devices[usize::from(device)].contexts >> context & 1 == 0 {
            return None;
        }
        let lane = self.lane_of(device, context);
        self.on(lane, |lane| lane.find((device, context)).map(|at| act(&mut lane.pipes[at])))
    }

    /// An endpoint that the controller is to learn of: a new one, or one that changes. The pool
    /// was looked at before.
    pub(super) fn add_pipe(&mut self, index: u8, plan: EndpointPlan) {
        let context = plan.endpoint.index();
        let known = self.endpoint(index, context, |pipe| {
            pipe.set_plan(plan);
            pipe.wish = Wish::Run;
        });
        if known.is_some() {
            return;
        }
        let Some(mut pipe) = self.free.pop() else { return };
        let (id, device) = (self.id(index), &mut self.devices[usize::from(index)]);
        device.contexts |= 1 << context;
        let (slot, lane) = (device.slot, device.lane);
        pipe.adopt((id, slot), context, plan.endpoint.kind(), Some(plan));
        self.on(lane, |lane| lane.take_on(pipe));
    }

    /// Endpoints of a device that the schedule has no place for rest from the beginning.
    pub(super) fn place_own(&mut self, index: u8) {
        let speed = self.devices[usize::from(index)].speed;
        for context in 2..32 {
            if let Err(refusal) = self.budget.place(speed, index, context) {
                self.endpoint(index, context, |pipe| {
                    if pipe.wish == Wish::Run {
                        pipe.wish = Wish::Rest(refusal);
                    }
                });
            }
        }
    }

    /// The schedule changed: endpoints of other devices stop, or start again.
    pub(super) fn apply(&mut self, change: &ScheduleChange) {
        for (device, context) in change.stopped.iter().map(|id| owner(*id)) {
            let refusal = change.refused.iter().find(|r| owner(r.id) == (device, context));
            let is_here = self.devices[usize::from(device)].contexts >> context & 1 != 0;
            if let (true, Some(refusal)) = (is_here, refusal) {
                let lane = self.lane_of(device, context);
                self.on(lane, |lane| {
                    if let Some(number) = lane.find((device, context)) {
                        lane.pipes[number].wish = Wish::Rest(*refusal);
                        lane.cancel_pipe(number, TransferOutcome::Unscheduled);
                    }
                });
                self.look(lane);
                self.devices[usize::from(device)].replan = true;
                let (device, endpoint) = (self.id(device), endpoint_address(context));
                self.notice(Notice::Stopped { device, endpoint });
            }
        }
        for (device, context) in change.started.iter().map(|placed| owner(placed.id)) {
            self.endpoint(device, context, |pipe| {
                if matches!(pipe.wish, Wish::Rest(_)) {
                    pipe.wish = Wish::Run;
                }
            });
            self.devices[usize::from(device)].replan = true;
        }
        self.attention = true;
    }

    /// Begins to tell the controller what the schedule decided about a device at rest, if that is
    /// news.
    pub(super) fn reschedule(&mut self, index: u8) {
        let device = &self.devices[usize::from(index)];
        if device.step != Step::Idle || !device.replan {
            return;
        }
        let (masks, unsettled) = self.masks(index);
        let device = &mut self.devices[usize::from(index)];
        device.replan = unsettled;
        if masks != (0, 0) {
            device.quiet = true;
            device.enter(Step::Configure(None));
        }
    }

    /// Contexts to drop and to add so that the controller has what is wished, and whether an
    /// endpoint has to come to rest before it can be dropped.
    fn masks(&mut self, index: u8) -> ((u32, u32), bool) {
        let (mut drop, mut add, mut unsettled) = (0, 0, false);
        for context in bits(self.present(index)) {
            self.endpoint(index, context, |pipe| {
                let (run, changed) = (pipe.wish == Wish::Run, pipe.old.is_some());
                let leaves = pipe.configured && !run;
                if pipe.configured && changed || leaves && pipe.is_quiet() {
                    drop |= 1 << context;
                }
                unsettled |= leaves && !pipe.is_quiet();
                if run && (changed || !pipe.configured) {
                    add |= 1 << context;
                }
            });
        }
        ((drop, add), unsettled)
    }

    /// Configure Endpoint with all that is wished.
    pub(super) fn configure_command(&mut self, index: u8) -> Option<Command> {
        let ((drop, add), unsettled) = self.masks(index);
        let device = &mut self.devices[usize::from(index)];
        (device.masks, device.replan) = ((drop, add), unsettled);
        self.write_input(0, Control::new(drop, add | 1).0);
        let mut entries = 1;
        for context in bits(self.present(index)) {
            let configured = self.endpoint(index, context, |pipe| pipe.configured);
            let stays = configured == Some(true) && drop >> context & 1 == 0;
            if stays || add >> context & 1 != 0 {
                entries = context.into();
            }
            if add >> context & 1 != 0 {
                self.write_endpoint(index, context);
            }
        }
        let Slot(words) = self.devices[usize::from(index)].slot_context(entries);
        self.write_input(1, words);
        Some(Command::Configure)
    }

    fn write_endpoint(&mut self, index: u8, context: u8) {
        let begins = self.endpoint(index, context, |pipe| {
            let head = pipe.ring.enqueue();
            (pipe.plan, pipe.ring.offset_of(head), pipe.ring.cycle_at(head))
        });
        let Some((Some(plan), offset, cycle)) = begins else { return };
        let speed = self.devices[usize::from(index)].speed;
        let mut endpoint = plan.endpoint.context();
        if let Ok(period @ 1..) = self.budget.place(speed, index, context) {
            let frames = if matches!(speed, Speed::Low | Speed::Full) { 3 } else { 0 };
            endpoint.set_interval(period.ilog2() + frames);
        }
        endpoint.set_dequeue(self.hw.address(offset), cycle);
        self.write_input(u64::from(context) + 1, endpoint.0);
    }

    /// Configure Endpoint is over.
    pub(super) fn configured(&mut self, index: u8, code: Completion, now: Nanos) {
        let device = &self.devices[usize::from(index)];
        let Step::Configure(request) = device.step else { return };
        if code != Completion::Success {
            return self.roll_back(index, code, now);
        }
        let (drop, add) = self.devices[usize::from(index)].masks;
        for context in bits(drop | add) {
            let wish = self.endpoint(index, context, |pipe| {
                pipe.old = None;
                pipe.configured = add >> context & 1 != 0;
                pipe.wish
            });
            if wish == Some(Wish::Remove) {
                self.remove_pipe(index, context, TransferOutcome::Gone, now);
            }
        }
        match request {
            Some(setup) => self.devices[usize::from(index)].enter(Step::Request(setup)),
            None => self.change_done(index),
        }
    }

    /// Ends every transfer of an endpoint, and takes it back from its lane.
    pub(super) fn remove_pipe(
        &mut self,
        index: u8,
        context: u8,
        outcome: TransferOutcome,
        now: Nanos,
    ) {
        let lane = self.lane_of(index, context);
        let freed = self.on(lane, |lane| {
            let number = lane.find((index, context))?;
            lane.flush(number, outcome, now);
            // Control endpoints stay: each device has its own.
            (context > 1).then(|| lane.pipes.swap_remove(number))
        });
        let device = &mut self.devices[usize::from(index)];
        device.contexts &= !(1 << context);
        device.wants &= !(1 << context);
        self.free.extend(freed);
        self.settle_answers();
    }

    /// The controller said no and kept what it had; so does the driver.
    fn roll_back(&mut self, index: u8, code: Completion, now: Nanos) {
        let (speed, quiet) = {
            let device = &self.devices[usize::from(index)];
            (device.speed, device.quiet)
        };
        let (mut came, mut back) = (0, alloc::vec::Vec::new());
        for context in bits(self.present(index)) {
            let fresh = self.endpoint(index, context, |pipe| {
                let Some(old) = pipe.old.take() else { return !pipe.configured };
                if pipe.wish != Wish::Remove {
                    came |= 1 << context;
                }
                pipe.set_plan(old);
                pipe.wish = Wish::Run;
                back.push(old);
                false
            });
            if fresh == Some(true) {
                came |= 1 << context;
                self.remove_pipe(index, context, TransferOutcome::Gone, now);
            }
        }
        match self.budget.exchange(speed, index, came, &back) {
            Ok(changes) if !quiet => {
                for change in &changes {
                    self.apply(change);
                }
                self.place_own(index);
                let id = self.id(index);
                self.devices[usize::from(index)].enter(Step::Idle);
                self.notice(Notice::Refused(id, DeviceFailure::Command(code)));
            }
            _ => self.lose_device(index, Some(DeviceFailure::Command(code))),
        }
    }

    /// Controller and device agree on what the client asked for.
    pub(super) fn change_done(&mut self, index: u8) {
        let id = self.id(index);
        let device = &mut self.devices[usize::from(index)];
        device.enter(Step::Idle);
        let (quiet, port) = (device.quiet, device.place.port);
        if !quiet {
            if let Some(port) = self.ports.get_mut(usize::from(port).wrapping_sub(1)) {
                port.attempts = 0;
            }
            self.notice(Notice::Configured(id));
        }
        self.attention = true;
    }
}

//! How the endpoints of a device change: one Configure Endpoint drops and adds them, then the
//! device is told. If either says no, everything is as before or the device is given up.

use super::access::{Dma, Mmio};
use super::budget::{EndpointPlan, owner};
use super::command::Command;
use super::configure::bits;
use super::controller::Controller;
use super::device::Step;
use super::pipe::{Pipe, Wish};
use super::report::{Cause, Notice, Outcome};
use crate::Speed;
use crate::context::{Control, Slot};
use crate::trb::{Completion, endpoint_address};
use diapason_abi::Nanos;
use diapason_bus::Change;

impl<M: Mmio, D: Dma> Controller<M, D> {
    pub(super) fn pipe_mut(&mut self, device: u8, index: u8) -> Option<&mut Pipe> {
        let number = self.pipe_of(device, index)?;
        self.pipes.get_mut(usize::from(number))
    }

    /// An endpoint that the controller is to learn of: a new one, or one that changes. The pool
    /// was looked at before.
    pub(super) fn add_pipe(&mut self, index: u8, plan: EndpointPlan) {
        let context = plan.endpoint.index();
        if let Some(pipe) = self.pipe_mut(index, context) {
            pipe.set_plan(plan);
            pipe.wish = Wish::Run;
            return;
        }
        let controls = self.devices.len();
        let free = self.pipes[controls..].iter().position(|pipe| pipe.owner.is_none());
        let Some(number) = free.map(|free| free + controls) else { return };
        let pipe = &mut self.pipes[number];
        pipe.adopt((index, context), plan.endpoint.kind(), Some(plan));
        pipe.ring.clear(&mut self.hw);
        self.devices[usize::from(index)].pipes[usize::from(context)] = Some(number as u16);
    }

    /// Endpoints of a device that the schedule has no place for rest from the beginning.
    pub(super) fn place_own(&mut self, index: u8) {
        let speed = self.devices[usize::from(index)].speed;
        for context in 2..32 {
            let place = self.budget.place(speed, index, context);
            if let (Some(pipe), Err(refusal)) = (self.pipe_mut(index, context), place)
                && pipe.wish == Wish::Run
            {
                pipe.wish = Wish::Rest(refusal);
            }
        }
    }

    /// The schedule changed: endpoints of other devices stop, or start again.
    pub(super) fn apply(&mut self, change: &Change) {
        for (device, context) in change.stopped.iter().map(|id| owner(*id)) {
            let refusal = change.refused.iter().find(|r| owner(r.id) == (device, context));
            let number = self.pipe_of(device, context);
            if let (Some(number), Some(refusal)) = (number, refusal) {
                self.pipes[usize::from(number)].wish = Wish::Rest(*refusal);
                self.cancel_pipe(number, Outcome::Unscheduled);
                let (device, endpoint) = (self.id(device), endpoint_address(context));
                self.notice(Notice::Stopped { device, endpoint });
            }
        }
        for (device, context) in change.started.iter().map(|placed| owner(placed.id)) {
            if let Some(pipe) = self.pipe_mut(device, context)
                && matches!(pipe.wish, Wish::Rest(_))
            {
                pipe.wish = Wish::Run;
            }
        }
        self.attention = true;
    }

    /// Begins to tell the controller what the schedule decided about a device at rest, if that is
    /// news.
    pub(super) fn reschedule(&mut self, index: u8) {
        let device = &self.devices[usize::from(index)];
        if device.step == Step::Idle && self.masks(index) != (0, 0) {
            let device = &mut self.devices[usize::from(index)];
            device.quiet = true;
            device.enter(Step::Configure(None));
        }
    }

    /// Contexts to drop and to add so that the controller has what is wished.
    fn masks(&self, index: u8) -> (u32, u32) {
        let (mut drop, mut add) = (0, 0);
        for context in 2..32 {
            let Some(number) = self.pipe_of(index, context) else { continue };
            let pipe = &self.pipes[usize::from(number)];
            let (run, changed) = (pipe.wish == Wish::Run, pipe.old.is_some());
            if pipe.configured && (changed || !run && pipe.is_quiet()) {
                drop |= 1 << context;
            }
            if run && (changed || !pipe.configured) {
                add |= 1 << context;
            }
        }
        (drop, add)
    }

    /// Configure Endpoint with all that is wished.
    pub(super) fn configure_command(&mut self, index: u8) -> Option<Command> {
        let (drop, add) = self.masks(index);
        self.devices[usize::from(index)].masks = (drop, add);
        self.write_input(0, Control::new(drop, add | 1).0);
        let mut entries = 1;
        for context in 2..32 {
            let Some(number) = self.pipe_of(index, context) else { continue };
            let pipe = &self.pipes[usize::from(number)];
            let stays = pipe.configured && drop >> context & 1 == 0;
            if stays || add >> context & 1 != 0 {
                entries = context.into();
            }
            if add >> context & 1 != 0 {
                self.write_endpoint(index, context, number);
            }
        }
        let Slot(words) = self.devices[usize::from(index)].slot_context(entries);
        self.write_input(1, words);
        Some(Command::Configure)
    }

    fn write_endpoint(&mut self, index: u8, context: u8, number: u16) {
        let pipe = &self.pipes[usize::from(number)];
        let Some(plan) = pipe.plan else { return };
        let speed = self.devices[usize::from(index)].speed;
        let mut endpoint = plan.endpoint.context();
        if let Ok(period @ 1..) = self.budget.place(speed, index, context) {
            let frames = if matches!(speed, Speed::Low | Speed::Full) { 3 } else { 0 };
            endpoint.set_interval(period.ilog2() + frames);
        }
        let head = pipe.ring.enqueue();
        endpoint.set_dequeue(self.hw.address(pipe.ring.offset_of(head)), pipe.ring.cycle_at(head));
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
            let Some(number) = self.pipe_of(index, context) else { continue };
            let pipe = &mut self.pipes[usize::from(number)];
            pipe.old = None;
            pipe.configured = add >> context & 1 != 0;
            if pipe.wish == Wish::Remove {
                self.remove_pipe(index, context, now);
            }
        }
        match request {
            Some(setup) => self.devices[usize::from(index)].enter(Step::Request(setup)),
            None => self.change_done(index),
        }
    }

    fn remove_pipe(&mut self, index: u8, context: u8, now: Nanos) {
        let place = &mut self.devices[usize::from(index)].pipes[usize::from(context)];
        if let Some(number) = place.take() {
            self.flush(number, Outcome::Gone, now);
        }
    }

    /// The controller said no and kept what it had; so does the driver.
    fn roll_back(&mut self, index: u8, code: Completion, now: Nanos) {
        let (speed, quiet) = {
            let device = &self.devices[usize::from(index)];
            (device.speed, device.quiet)
        };
        let (mut came, mut back) = (0, alloc::vec::Vec::new());
        for context in 2..32 {
            let Some(pipe) = self.pipe_mut(index, context) else { continue };
            if let Some(old) = pipe.old.take() {
                if pipe.wish != Wish::Remove {
                    came |= 1 << context;
                }
                pipe.set_plan(old);
                pipe.wish = Wish::Run;
                back.push(old);
            } else if !pipe.configured {
                came |= 1 << context;
                self.remove_pipe(index, context, now);
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
                self.notice(Notice::Refused(id, Cause::Command(code)));
            }
            _ => self.lose_device(index, Some(Cause::Command(code))),
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

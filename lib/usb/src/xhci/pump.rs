//! Chooses the next action: one command at a time for all, one request at a time for each device.

use super::access::{Dma, Mmio};
use super::command::{Command, PATIENCE};
use super::configure::bits;
use super::controller::Controller;
use super::device::{DEVICE_BYTES, Step};
use super::lane::Lanes;
use super::report::{Death, DeviceFailure, TransferOutcome};
use crate::register::{command_ring, operational};
use crate::trb::{Completion, Trb};
use diapason_abi::Nanos;

impl<M: Mmio, D: Dma, L: Lanes<M, D>> Controller<M, D, L> {
    /// Issues whatever can be issued.
    pub(super) fn pump(&mut self, now: Nanos) {
        // Each round that does something ends a step of a device or of an endpoint.
        while self.has_attention() {
            for index in 0..self.limits.devices {
                self.leave_at_once(index, now);
                self.reschedule(index);
                self.pump_request(index, now);
            }
            if self.commands.under_way.is_none() {
                self.pump_command(now);
            }
        }
    }

    /// Takes the sign that something may be to be done.
    fn has_attention(&mut self) -> bool {
        self.look(0);
        core::mem::take(&mut self.attention)
    }

    /// Takes up the answers to the driver's own requests.
    pub(super) fn settle_answers(&mut self) {
        while let Some((device, outcome, actual)) = self.own.answered.pop_front() {
            self.request_done(device, outcome, actual);
        }
    }

    fn pump_command(&mut self, now: Nanos) {
        let count = self.devices.len();
        for step in 0..count {
            let turn = (self.turn + step) % count;
            let Some((command, slot)) = self.device_command(turn) else { continue };
            self.turn = turn + 1;
            let owner = (turn as u8, slot);
            self.commands.issue(&mut self.hw, command, owner, self.layout.input, now);
            return;
        }
    }

    /// Returns the next command that a device or one of its endpoints needs.
    fn device_command(&mut self, index: usize) -> Option<(Command, u8)> {
        let slot = self.devices[index].slot;
        if !self.devices[index].issued
            && let Some(command) = self.step_command(index as u8)
        {
            self.devices[index].issued = true;
            return Some((command, slot));
        }
        if !self.devices[index].is_here() {
            return None;
        }
        let wants = self.devices[index].wants;
        let mut wanted = bits(wants);
        wanted.find_map(|context| {
            self.pipe_command(index as u8, context).map(|command| (command, slot))
        })
    }

    fn pump_request(&mut self, index: u8, now: Nanos) {
        let device = &self.devices[usize::from(index)];
        if !device.is_here() || device.request.is_some() {
            return;
        }
        let own = device.wants_request().filter(|_| !device.issued);
        let (setup, clears) = match (own, self.pipe_request(index)) {
            (Some(setup), _) => (setup, None),
            (None, Some((setup, context))) => (setup, Some(context)),
            (None, None) => return,
        };
        let place = self.layout.devices[usize::from(index)].buffer;
        if !self.own.submit_request(index, setup, place) {
            // The control endpoint is busy with the client's requests, or recovers.
            return;
        }
        let device = &mut self.devices[usize::from(index)];
        device.request = Some((setup, clears));
        device.deadline = now + PATIENCE;
        let told =
            clears.and_then(|context| self.endpoint(index, context, |pipe| pipe.issued = true));
        if told.is_none() {
            self.devices[usize::from(index)].issued = true;
        }
    }

    /// The driver's own request on a control endpoint is over.
    pub(super) fn request_done(&mut self, index: u8, outcome: TransferOutcome, actual: u32) {
        let device = &mut self.devices[usize::from(index)];
        let Some((setup, clears)) = device.request.take() else { return };
        device.deadline = Nanos::FOREVER;
        self.attention = true;
        if !device.is_here() {
            return;
        }
        match (clears, outcome) {
            (Some(context), _) => self.cleared(index, context),
            (None, TransferOutcome::Done | TransferOutcome::Short) => {
                self.step_answered(index, actual)
            }
            // A device that has no such text says so.
            (None, TransferOutcome::Stalled) if setup.is_of_text() => self.text_read(index, 0),
            (None, _) => self.lose_device(index, Some(DeviceFailure::Request(setup, outcome))),
        }
    }

    /// Requests that no device answers end with the device.
    pub(super) fn requests_late(&mut self, now: Nanos) {
        for index in 0..self.limits.devices {
            if now >= self.devices[usize::from(index)].deadline {
                self.devices[usize::from(index)].deadline = Nanos::FOREVER;
                self.lose_device(index, Some(DeviceFailure::Timeout));
            }
        }
    }

    /// A command that takes too long is aborted; if that takes too long, the controller is dead.
    pub(super) fn command_late(&mut self, now: Nanos) {
        let Some(command) = &mut self.commands.under_way else { return };
        if now < command.deadline {
            return;
        }
        if command.aborting {
            return self.die(Death::Command, now);
        }
        (command.aborting, command.deadline) = (true, now + PATIENCE);
        self.counters.aborted += 1;
        // A ring that stands still would take the pointer in this register for its own.
        let ring = self.hw.operational(operational::COMMAND_RING);
        if ring & command_ring::RUNNING == 0 {
            return self.die(Death::Command, now);
        }
        self.hw.set_operational_64(operational::COMMAND_RING, command_ring::ABORT.into());
    }

    pub(super) fn command_event(&mut self, event: Trb, now: Nanos) {
        let Some(code) = event.completion() else {
            self.counters.unknown += 1;
            return;
        };
        if code == Completion::CommandRingStopped {
            // The end of an abort: the command has been reported, or never will be. The next
            // command's doorbell starts the ring again.
            if self.commands.under_way.is_some_and(|command| command.aborting) {
                self.die(Death::Command, now);
            }
            return;
        }
        let Some(done) = self.commands.take(self.hw.dma.base(), event.parameter) else {
            self.counters.spurious += 1;
            return;
        };
        self.attention = true;
        let device = &mut self.devices[usize::from(done.device)];
        match done.command {
            Command::Stop(context) | Command::Reset(context) | Command::SetDequeue(context, _) => {
                if device.is_here() {
                    self.pipe_command_done(done.device, context, code, now);
                }
            }
            Command::EnableSlot => self.slot_enabled(done.device, event.slot(), code),
            Command::DisableSlot => {
                self.free_device(done.device, TransferOutcome::Gone, now);
            }
            // It was lost while the command was under way.
            _ if !device.is_here() => {}
            Command::Configure => self.configured(done.device, code, now),
            command => self.step_commanded(done.device, command, code),
        }
    }

    /// A device's answer to the request of its step lies in its buffer.
    fn step_answered(&mut self, index: u8, actual: u32) {
        let mut bytes = [0; DEVICE_BYTES as usize];
        self.hw.dma.read(self.layout.devices[usize::from(index)].buffer, &mut bytes);
        let have = (actual as usize).min(bytes.len());
        match self.devices[usize::from(index)].step {
            Step::Request(_) => self.change_done(index),
            Step::Configuration => self.configuration_read(index, &bytes, actual),
            Step::Language(number) => self.language_read(index, number, &bytes[..have]),
            Step::Text(..) => self.text_read(index, actual),
            _ => self.head_read(index, &bytes[..have]),
        }
    }
}

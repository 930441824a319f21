//! From a plug to a device whose descriptors are known, and back.

use super::access::{Dma, Mmio};
use super::budget::name;
use super::command::Command;
use super::configure::bits;
use super::controller::Controller;
use super::device::{CONFIGURATIONS_AT, DEVICE_BYTES, HEADER_BYTES, Place, Step, TEXT_BYTES};
use super::lane::Lanes;
use super::report::{DeviceFailure, DeviceId, Notice, Refused, TransferOutcome};
use crate::Speed;
use crate::context::{Control, EndpointKind, Slot, Words};
use crate::descriptor::{self, control_asynchronous, control_context};
use crate::setup::descriptor_type::{CONFIGURATION, STRING};
use crate::trb::Completion;
use diapason_abi::Nanos;

impl<M: Mmio, D: Dma, L: Lanes<M, D>> Controller<M, D, L> {
    /// A device that was just reset gets a place. `blocked`: its address is held back at first.
    pub(super) fn new_device(
        &mut self,
        place: Place,
        speed: Speed,
        blocked: bool,
    ) -> Result<u8, Refused> {
        let free = self.devices.iter().position(super::device::Device::is_free);
        let index = free.ok_or(Refused::Busy)? as u8;
        let device = &mut self.devices[usize::from(index)];
        device.begin(place, speed, blocked);
        device.contexts = 1 << 1;
        let packet = device.packet;
        let id = self.id(index);
        let pipe = &mut self.own.pipes[usize::from(index)];
        pipe.adopt((id, 0), 1, EndpointKind::Control, None);
        pipe.packet = packet;
        pipe.ring.clear(&mut self.hw);
        let endpoint = control_asynchronous(name(index, 1), packet);
        match self.budget.attach_control(speed, endpoint) {
            Ok(change) => self.apply(&change),
            Err(_) => self.lose_device(index, Some(DeviceFailure::Bandwidth)),
        }
        self.attention = true;
        Ok(index)
    }

    /// Returns the command of a device's step, with its input context written.
    pub(super) fn step_command(&mut self, index: u8) -> Option<Command> {
        match self.devices[usize::from(index)].step {
            Step::Enable => Some(Command::EnableSlot),
            Step::Block => {
                self.write_address_input(index);
                Some(Command::Address { blocked: true })
            }
            Step::Address => {
                self.write_address_input(index);
                Some(Command::Address { blocked: false })
            }
            Step::Evaluate { .. } => {
                self.write_input(0, Control::new(0, 2).0);
                self.write_control_endpoint(index);
                Some(Command::Evaluate)
            }
            Step::Configure(_) => self.configure_command(index),
            Step::Leave if self.devices[usize::from(index)].slot != 0 => Some(Command::DisableSlot),
            _ => None,
        }
    }

    fn write_address_input(&mut self, index: u8) {
        self.write_input(0, Control::new(0, 3).0);
        let Slot(words) = self.devices[usize::from(index)].slot_context(1);
        self.write_input(1, words);
        self.write_control_endpoint(index);
    }

    fn write_control_endpoint(&mut self, index: u8) {
        let mut endpoint = control_context(self.devices[usize::from(index)].packet);
        let ring = &self.own.pipes[usize::from(index)].ring;
        let head = ring.enqueue();
        endpoint.set_dequeue(self.hw.address(ring.offset_of(head)), ring.cycle_at(head));
        self.write_input(2, endpoint.0);
    }

    /// Writes a context of the input context: 0 is the control, 1 the slot, n + 1 endpoint n.
    pub(super) fn write_input(&mut self, context: u64, words: Words) {
        let at = self.layout.input + context * self.capabilities.context;
        self.hw.zero(at, self.capabilities.context);
        for (offset, word) in (at..).step_by(4).zip(words.0) {
            self.hw.dma.store(offset, word);
        }
    }

    pub(super) fn slot_enabled(&mut self, index: u8, slot: u8, code: Completion) {
        self.devices[usize::from(index)].issued = false;
        let possible = slot != 0 && slot <= self.capabilities.slots;
        if code != Completion::Success || !possible || self.slots[usize::from(slot)].is_some() {
            return self.lose_device(index, Some(DeviceFailure::Command(code)));
        }
        let context = self.layout.devices[usize::from(index)].context;
        self.hw.zero(context, 2048);
        let address = self.hw.address(context);
        self.hw.dma.store_64(self.layout.contexts + 8 * u64::from(slot), address);
        self.slots[usize::from(slot)] = Some(index);
        let device = &mut self.devices[usize::from(index)];
        device.slot = slot;
        self.own.pipes[usize::from(index)].slot = slot;
        // A device that was lost while the command was under way gives its slot back at once.
        if device.is_here() {
            device.enter(if device.blocked { Step::Block } else { Step::Address });
        }
    }

    /// A command of the enumeration is over.
    pub(super) fn step_commanded(&mut self, index: u8, command: Command, code: Completion) {
        if code != Completion::Success {
            return self.lose_device(index, Some(DeviceFailure::Command(code)));
        }
        let device = &mut self.devices[usize::from(index)];
        let next = match (command, device.step) {
            (Command::Address { blocked: true }, _) => Step::Eight { early: true },
            (Command::Address { blocked: false }, _) if device.blocked => Step::Descriptor,
            (Command::Address { blocked: false }, _) => Step::Eight { early: false },
            (_, Step::Evaluate { early: true }) => Step::Address,
            _ => Step::Descriptor,
        };
        device.enter(next);
    }

    /// The beginning of a descriptor was read.
    pub(super) fn head_read(&mut self, index: u8, bytes: &[u8]) {
        let device = &mut self.devices[usize::from(index)];
        let next = match device.step {
            Step::Eight { early } => {
                match descriptor::DeviceDescriptor::packet(bytes, device.speed) {
                    Ok(packet) if packet != device.packet => {
                        device.packet = packet;
                        self.own.pipes[usize::from(index)].packet = packet;
                        Some(Step::Evaluate { early })
                    }
                    Ok(_) if early => Some(Step::Address),
                    Ok(_) => Some(Step::Descriptor),
                    Err(_) => None,
                }
            }
            Step::Descriptor if bytes.len() == usize::from(DEVICE_BYTES) => {
                device.descriptor.copy_from_slice(bytes);
                let known = descriptor::DeviceDescriptor::parse(bytes, device.speed).is_ok();
                known.then_some(Step::Header)
            }
            Step::Header if bytes.len() == usize::from(HEADER_BYTES) => {
                device.total = u16::from_le_bytes([bytes[2], bytes[3]]);
                let sane = bytes[1] == CONFIGURATION && device.total >= HEADER_BYTES;
                if sane && device.total > self.limits.configuration {
                    let cause = DeviceFailure::TooLong(device.total);
                    return self.lose_device(index, Some(cause));
                }
                sane.then_some(Step::Configuration)
            }
            _ => None,
        };
        match next {
            Some(step) => self.devices[usize::from(index)].enter(step),
            None => self.lose_device(index, Some(DeviceFailure::Descriptor)),
        }
    }

    /// All of the configuration was read; it must be as long as it said the first time.
    pub(super) fn configuration_read(&mut self, index: u8, bytes: &[u8], actual: u32) {
        let id = self.id(index);
        let device = &mut self.devices[usize::from(index)];
        let total = u16::from_le_bytes([bytes[2], bytes[3]]);
        if total != device.total || actual != u32::from(total) || bytes[1] != CONFIGURATION {
            return self.lose_device(index, Some(DeviceFailure::Descriptor));
        }
        device.enter(Step::Idle);
        if core::mem::replace(&mut device.announced, true) {
            return self.notice(Notice::Read(id));
        }
        let (speed, place) = (device.speed, device.place);
        self.notice(Notice::Found { device: id, speed, port: place.port, route: place.route });
    }

    /// The list of languages was read: the text is asked for in the first. A device without
    /// languages has no text.
    pub(super) fn language_read(&mut self, index: u8, number: u8, bytes: &[u8]) {
        // The list may be longer than what is read of it.
        match *bytes {
            [length, STRING, low, high] if length >= 4 => {
                let language = u16::from_le_bytes([low, high]);
                self.devices[usize::from(index)].enter(Step::Text(number, language));
            }
            _ => self.text_read(index, 0),
        }
    }

    /// A text was read, or the device has none: then it has no bytes.
    pub(super) fn text_read(&mut self, index: u8, actual: u32) {
        let id = self.id(index);
        let device = &mut self.devices[usize::from(index)];
        device.total = actual.min(TEXT_BYTES.into()) as u16;
        device.enter(Step::Idle);
        self.notice(Notice::Read(id));
    }

    /// A device is of no use any more, nor is what is plugged into it.
    pub(super) fn lose_device(&mut self, index: u8, cause: Option<DeviceFailure>) {
        let device = &mut self.devices[usize::from(index)];
        if !device.is_here() {
            return;
        }
        device.cause = cause;
        let waiting_for_slot = device.step == Step::Enable && device.issued;
        device.enter(Step::Leave);
        // The slot number is still to come.
        device.issued = waiting_for_slot;
        device.deadline = Nanos::FOREVER;
        let contexts = device.contexts;
        for context in bits(contexts) {
            self.endpoint(index, context, |pipe| pipe.leaves = true);
        }
        self.attention = true;
        for child in 0..self.limits.devices {
            let parent = self.devices[usize::from(child)].place.parent;
            if parent.is_some_and(|(hub, _)| hub == index) {
                self.lose_device(child, None);
            }
        }
    }

    /// Devices without a slot have nothing to wait for.
    pub(super) fn leave_at_once(&mut self, index: u8, now: Nanos) {
        let device = &self.devices[usize::from(index)];
        if device.step == Step::Leave && device.slot == 0 && !device.issued {
            self.free_device(index, TransferOutcome::Gone, now);
        }
    }

    /// The controller does not know the device any more: everything it had is free again.
    pub(super) fn free_device(&mut self, index: u8, outcome: TransferOutcome, now: Nanos) {
        let id = self.id(index);
        let device = &self.devices[usize::from(index)];
        let (contexts, slot, speed) = (device.contexts, device.slot, device.speed);
        let (place, cause, announced) = (device.place, device.cause, device.announced);
        let device = &mut self.devices[usize::from(index)];
        device.enter(Step::Leave);
        device.request = None;
        for context in bits(contexts) {
            self.remove_pipe(index, context, outcome, now);
        }
        if slot != 0 {
            self.hw.dma.store_64(self.layout.contexts + 8 * u64::from(slot), 0);
            self.slots[usize::from(slot)] = None;
        }
        let device = &mut self.devices[usize::from(index)];
        device.generation = device.generation.wrapping_add(1);
        device.enter(Step::Free);
        (device.slot, device.place) = (0, Place::default());
        device.deadline = Nanos::FOREVER;
        if outcome == TransferOutcome::Died {
            return;
        }
        let change = self.budget.detach(speed, index, u32::MAX);
        self.apply(&change);
        if announced {
            self.notice(Notice::Gone(id));
        }
        self.port_freed(index, place, cause, now);
    }

    fn port_freed(&mut self, index: u8, place: Place, cause: Option<DeviceFailure>, now: Nanos) {
        let Place { port, route, .. } = place;
        match self.ports.get_mut(usize::from(port).wrapping_sub(1)) {
            Some(root) if root.device == Some(index) => {
                root.device = None;
                let phase = root.phase;
                self.stir(port);
                if let (Some(cause), super::state::Phase::InUse) = (cause, phase) {
                    self.retry_port(port, cause, now);
                }
            }
            _ => {
                if let Some(cause) = cause {
                    self.notice(Notice::Failed { port, route, cause });
                }
            }
        }
    }

    /// Returns the device descriptor of a device.
    ///
    /// # Errors
    /// There is no such device.
    pub fn device_descriptor(&self, id: DeviceId) -> Result<[u8; DEVICE_BYTES as usize], Refused> {
        Ok(self.devices[usize::from(self.device(id)?)].descriptor)
    }

    /// Reads another configuration of a device that has none chosen yet, by its place among them
    /// from 0; [`Notice::Read`] says when it is there. One that cannot be read costs the device.
    ///
    /// # Errors
    /// Why not; there is no such configuration, for example.
    pub fn read_configuration(&mut self, id: DeviceId, number: u8) -> Result<(), Refused> {
        let index = self.settled(id)?;
        let chosen = self.present(index) != 0;
        let device = &mut self.devices[usize::from(index)];
        if chosen || number >= device.descriptor[CONFIGURATIONS_AT] {
            return Err(Refused::Nonsense);
        }
        device.number = number;
        device.enter(Step::Header);
        self.attention = true;
        Ok(())
    }

    /// Reads a text of a device that has no configuration chosen yet; [`Notice::Read`] says when it
    /// is there, in place of the configuration. A device that refuses has a text of no bytes.
    ///
    /// # Errors
    /// Returns an error if the device is busy, configured or gone, if 0 is asked for, or if there
    /// is no room for a text.
    pub fn read_text(&mut self, id: DeviceId, number: u8) -> Result<(), Refused> {
        let index = self.settled(id)?;
        let room = self.limits.configuration >= TEXT_BYTES;
        if self.present(index) != 0 || number == 0 || !room {
            return Err(Refused::Nonsense);
        }
        self.devices[usize::from(index)].enter(Step::Language(number));
        self.attention = true;
        Ok(())
    }

    /// Copies the configuration or the text that was read last, as far as there is room, and
    /// returns its length.
    ///
    /// # Errors
    /// There is no such device.
    pub fn configuration(&self, id: DeviceId, bytes: &mut [u8]) -> Result<usize, Refused> {
        let index = usize::from(self.device(id)?);
        let total = usize::from(self.devices[index].total);
        let room = total.min(bytes.len());
        self.hw.dma.read(self.layout.devices[index].buffer, &mut bytes[..room]);
        Ok(total)
    }
}

//! The command ring: when it runs, what each command answers.

use crate::ring::{Cursor, Found};
use crate::schedule::Flight;
use crate::{Memory, Xhc};
use diapason_abi::Nanos;
use diapason_usb::register::command_ring;
use diapason_usb::trb::{Completion, Kind, Trb};

#[derive(Debug)]
pub(crate) struct CommandRing {
    cursor: Cursor,
    running: bool,
    /// The command in progress and where it stands.
    current: Option<(Cursor, Trb)>,
    pub due: Nanos,
}

/// The answer of a command: its completion, and the slot it is about.
pub(crate) type Reply = (Completion, u8);

impl CommandRing {
    /// Returns a ring that has stopped.
    pub fn new() -> CommandRing {
        CommandRing {
            cursor: Cursor::default(),
            running: false,
            current: None,
            due: Nanos::FOREVER,
        }
    }

    /// Returns the bits of the register that software can read.
    pub fn read(&self) -> u32 {
        if self.running { command_ring::RUNNING } else { 0 }
    }

    /// Notes that the controller halted.
    pub fn halt(&mut self) {
        (self.running, self.current, self.due) = (false, None, Nanos::FOREVER);
    }
}

impl Xhc {
    pub(crate) fn write_command_ring(&mut self, memory: &mut dyn Memory, high: bool, value: u32) {
        let ring = &mut self.command;
        if ring.running {
            if !high && value & (command_ring::STOP | command_ring::ABORT) != 0 {
                self.stop_commands(memory, value & command_ring::ABORT != 0);
            }
            return;
        }
        let pointer = ring.cursor.pointer;
        if high {
            ring.cursor.pointer = pointer & 0xffff_ffff | u64::from(value) << 32;
        } else {
            ring.cursor.pointer = pointer & !0xffff_ffff | u64::from(value & !0x3f);
            ring.cursor.cycle = value & command_ring::CYCLE != 0;
        }
    }

    /// Stops now: the command in progress is done or, if aborted, is not.
    fn stop_commands(&mut self, memory: &mut dyn Memory, abort: bool) {
        if let Some((at, block)) = self.command.current.take() {
            let reply = match abort {
                true => (Completion::CommandAborted, block.slot()),
                false => self.execute(memory, block),
            };
            self.answer(memory, at, reply);
        }
        let at = self.command.cursor;
        self.command.halt();
        self.answer(memory, at, (Completion::CommandRingStopped, 0));
    }

    fn answer(&mut self, memory: &mut dyn Memory, at: Cursor, (completion, slot): Reply) {
        let status = Trb::event_status(completion, 0);
        let event = Trb::new(Kind::CommandCompletion, at.pointer, status, Trb::place(slot, 0));
        self.post(memory, 0, event, false);
    }

    /// The doorbell of the command ring.
    pub(crate) fn ring_command(&mut self, memory: &mut dyn Memory) {
        self.command.running = true;
        self.next_command(memory);
    }

    /// Begins the next command, if there is one and nothing waits for room.
    pub(crate) fn next_command(&mut self, memory: &mut dyn Memory) {
        if !self.command.running || self.command.current.is_some() || self.is_blocked() {
            return;
        }
        let mut cursor = self.command.cursor;
        match self.next_block(memory, &mut cursor) {
            Found::Block(at, block) => {
                self.command.cursor = cursor;
                self.command.current = Some((at, block));
                self.command.due = self.now + self.config.times.command;
            }
            Found::Nothing => {}
            Found::Broken => {
                let at = self.command.cursor;
                self.command.halt();
                self.answer(memory, at, (Completion::Trb, 0));
            }
        }
    }

    /// The command in progress ends.
    pub(crate) fn end_command(&mut self, memory: &mut dyn Memory) {
        self.command.due = self.packet_to_wait_for();
        if self.command.due != Nanos::FOREVER {
            return;
        }
        if let Some((at, block)) = self.command.current.take() {
            let reply = self.execute(memory, block);
            self.answer(memory, at, reply);
        }
        self.next_command(memory);
    }

    /// Stop Endpoint lets the packet under way come to its end.
    fn packet_to_wait_for(&mut self) -> Nanos {
        let Some((_, block)) = self.command.current else { return Nanos::FOREVER };
        if block.kind() != Some(Kind::StopEndpoint) {
            return Nanos::FOREVER;
        }
        let place = (block.slot(), block.endpoint());
        let under_way = |flight: &&Flight| flight.place == place;
        let flights = self.buses.iter().filter_map(|bus| bus.flight.as_ref());
        let Some(end) = flights.into_iter().find(under_way).map(|flight| flight.end) else {
            return Nanos::FOREVER;
        };
        if let Some(endpoint) = self.endpoint(place.0, place.1) {
            endpoint.stopping = true;
        }
        end.nanos()
    }

    fn execute(&mut self, memory: &mut dyn Memory, block: Trb) -> Reply {
        let slot = block.slot();
        let completion = match block.kind() {
            Some(Kind::EnableSlot) => return self.enable_slot(),
            Some(Kind::NoOpCommand) => return (Completion::Success, 0),
            Some(Kind::GetPortBandwidth) => self.port_bandwidth(memory, block),
            Some(kind) if is_about_a_slot(kind) => match self.slots.get(usize::from(slot)) {
                Some(known) if known.enabled => self.execute_slot(memory, kind, slot, block),
                _ => Completion::SlotNotEnabled,
            },
            _ => Completion::Trb,
        };
        (completion, slot)
    }

    fn execute_slot(
        &mut self,
        memory: &mut dyn Memory,
        kind: Kind,
        slot: u8,
        block: Trb,
    ) -> Completion {
        let endpoint = block.endpoint();
        match kind {
            Kind::DisableSlot => self.disable_slot(memory, slot),
            Kind::AddressDevice => self.address_device(memory, slot, block),
            Kind::ConfigureEndpoint => self.configure_endpoint(memory, slot, block),
            Kind::EvaluateContext => self.evaluate_context(memory, slot, block),
            Kind::ResetDevice => self.reset_device(memory, slot),
            _ if endpoint == 0 => Completion::Trb,
            Kind::ResetEndpoint => self.reset_endpoint(memory, slot, endpoint, block),
            Kind::StopEndpoint => self.stop_endpoint(memory, slot, endpoint),
            _ => self.set_dequeue(memory, slot, endpoint, block),
        }
    }
}

fn is_about_a_slot(kind: Kind) -> bool {
    use Kind::{
        AddressDevice, ConfigureEndpoint, DisableSlot, EvaluateContext, ResetDevice, ResetEndpoint,
        SetDequeue, StopEndpoint,
    };
    matches!(
        kind,
        DisableSlot
            | AddressDevice
            | ConfigureEndpoint
            | EvaluateContext
            | ResetDevice
            | ResetEndpoint
            | StopEndpoint
            | SetDequeue
    )
}

//! Device slots: addressing, contexts in memory, and the commands that move a slot's state.

use crate::command::Reply;
use crate::endpoint::Endpoint;
use crate::{Memory, Xhc, port};
use diapason_devices::UsbDevice;
use diapason_usb::Speed;
use diapason_usb::context::{self, EndpointState, SlotState};
use diapason_usb::register::speed;
use diapason_usb::trb::{Completion, Trb, bit};

#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub enabled: bool,
    pub state: SlotState,
    /// The slot's context, as last written to memory.
    pub words: context::Slot,
    /// Where the device context is.
    pub contexts: u64,
    /// The life of the device at the root port that it belongs to.
    pub generation: u32,
    /// By context index; 0 stays empty.
    pub endpoints: Vec<Option<Box<Endpoint>>>,
}

impl Slot {
    /// Returns a slot that is disabled.
    pub fn new() -> Slot {
        Slot {
            enabled: false,
            state: SlotState::Disabled,
            words: context::Slot::default(),
            contexts: 0,
            generation: 0,
            endpoints: vec![None; 32],
        }
    }

    /// Returns the number of its root port.
    pub fn port(&self) -> u8 {
        self.words.root_port() as u8
    }

    /// Returns the endpoint with this index, if it is set up.
    pub fn endpoint(&mut self, index: u8) -> Option<&mut Endpoint> {
        self.endpoints.get_mut(usize::from(index))?.as_deref_mut()
    }
}

/// Returns the meaning of a speed number.
pub(crate) fn speed_of(number: u32) -> Option<Speed> {
    match number {
        speed::FULL => Some(Speed::Full),
        speed::LOW => Some(Speed::Low),
        speed::HIGH => Some(Speed::High),
        speed::SUPER => Some(Speed::Super),
        _ => None,
    }
}

impl Xhc {
    /// An endpoint by its place.
    pub(crate) fn endpoint(&mut self, slot: u8, index: u8) -> Option<&mut Endpoint> {
        self.slots.get_mut(usize::from(slot))?.endpoint(index)
    }

    pub(crate) fn enable_slot(&mut self) -> Reply {
        let enabled = (self.operational.configure & 0xff).min(u32::from(self.config.slots));
        let free = |&slot: &u32| !self.slots[slot as usize].enabled;
        match (1..=enabled).find(free) {
            None => (Completion::NoSlots, 0),
            Some(slot) => {
                self.slots[slot as usize] = Slot { enabled: true, ..Slot::new() };
                (Completion::Success, slot as u8)
            }
        }
    }

    pub(crate) fn disable_slot(&mut self, memory: &mut dyn Memory, slot: u8) -> Completion {
        self.remove_endpoints(slot, 1);
        let known = &mut self.slots[usize::from(slot)];
        let addressed = known.state != SlotState::Disabled;
        known.state = SlotState::Disabled;
        if addressed {
            self.write_slot(memory, slot);
        }
        self.slots[usize::from(slot)] = Slot::new();
        Completion::Success
    }

    /// Removes endpoints from an index on, with what is in flight.
    pub(crate) fn remove_endpoints(&mut self, slot: u8, from: u8) {
        for index in from..32 {
            self.leave(slot, index);
            self.slots[usize::from(slot)].endpoints[usize::from(index)] = None;
        }
    }

    pub(crate) fn address_device(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        block: Trb,
    ) -> Completion {
        self.try_address(memory, slot, block).unwrap_or_else(|completion| completion)
    }

    fn try_address(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        block: Trb,
    ) -> Result<Completion, Completion> {
        let held_back = block.has(bit::BLOCK_ADDRESS);
        let allowed = match self.slots[usize::from(slot)].state {
            SlotState::Disabled => true,
            SlotState::Default => !held_back,
            _ => false,
        };
        if !allowed {
            return Err(Completion::ContextState);
        }
        let (control, words) = self.input(memory, block)?;
        if control.added() & 3 != 3 {
            return Err(Completion::Parameter);
        }
        let endpoint = self.input_endpoint(memory, block, 1)?;
        let speed = speed_of(words.speed()).ok_or(Completion::Parameter)?;
        let mut ep0 = Endpoint::new(1, &endpoint, speed).ok_or(Completion::Parameter)?;
        self.check_place(slot, &words)?;
        ep0.bus = self.bus_of(&words, speed).ok_or(Completion::Parameter)?;
        self.take_address(memory, slot, words, held_back)?;
        self.leave(slot, 1);
        self.slots[usize::from(slot)].endpoints[1] = Some(Box::new(ep0));
        self.write_endpoint(memory, slot, 1, Some(endpoint)).ok_or(Completion::Trb)?;
        Ok(Completion::Success)
    }

    /// A port that exists, and no other slot for the same device.
    fn check_place(&self, slot: u8, words: &context::Slot) -> Result<(), Completion> {
        let port = words.root_port();
        if port == 0 || port as usize > self.ports.len() {
            return Err(Completion::Parameter);
        }
        let same = |other: &Slot| {
            other.state != SlotState::Disabled
                && (other.words.root_port(), other.words.route()) == (port, words.route())
        };
        let taken = (1..).zip(&self.slots[1..]).any(|(index, other)| index != slot && same(other));
        if taken { Err(Completion::Trb) } else { Ok(()) }
    }

    fn take_address(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        words: context::Slot,
        held_back: bool,
    ) -> Result<(), Completion> {
        let array = self.operational.contexts.wrapping_add(8 * u64::from(slot));
        let [low, high] = self.load_words(memory, array).ok_or(Completion::Trb)?;
        let port = &mut self.ports[words.root_port() as usize - 1];
        let device = port.partner().and_then(|root| follow(root, words.route()));
        let answers = device.is_some_and(|device| port::number(device.speed()) == words.speed());
        if !held_back && !answers {
            return Err(Completion::Transaction);
        }
        let generation = port.generation;
        let known = &mut self.slots[usize::from(slot)];
        known.contexts = u64::from(high) << 32 | u64::from(low & !0x3f);
        known.words = words;
        known.words.set_entries(1);
        known.words.set_address(if held_back { 0 } else { u32::from(slot) });
        known.state = if held_back { SlotState::Default } else { SlotState::Addressed };
        known.generation = generation;
        self.write_slot(memory, slot).ok_or(Completion::Trb)
    }

    pub(crate) fn evaluate_context(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        block: Trb,
    ) -> Completion {
        self.try_evaluate(memory, slot, block).unwrap_or_else(|completion| completion)
    }

    fn try_evaluate(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        block: Trb,
    ) -> Result<Completion, Completion> {
        if self.slots[usize::from(slot)].state == SlotState::Disabled {
            return Err(Completion::ContextState);
        }
        let (control, words) = self.input(memory, block)?;
        if control.added() & !3 != 0 || control.dropped() != 0 {
            return Err(Completion::Parameter);
        }
        if control.added() & 2 != 0 {
            let packet = self.input_endpoint(memory, block, 1)?.packet();
            if !(1..=512).contains(&packet) {
                return Err(Completion::Parameter);
            }
            self.change_packet(memory, slot, packet).ok_or(Completion::Trb)?;
        }
        if control.added() & 1 != 0 {
            let known = &mut self.slots[usize::from(slot)];
            known.words.set_interrupter(words.interrupter());
            known.words.0.set(1, 0, 16, words.0.field(1, 0, 16));
            self.write_slot(memory, slot).ok_or(Completion::Trb)?;
        }
        Ok(Completion::Success)
    }

    /// The control endpoint's packets have this size from now on.
    fn change_packet(&mut self, memory: &mut dyn Memory, slot: u8, packet: u32) -> Option<()> {
        self.endpoint(slot, 1)?.packet = packet;
        let base = self.slots[usize::from(slot)].contexts;
        let mut words = context::EndpointContext(self.load_context(memory, base, 1)?);
        words.set_packet(packet);
        self.write_endpoint(memory, slot, 1, Some(words))
    }

    pub(crate) fn reset_device(&mut self, memory: &mut dyn Memory, slot: u8) -> Completion {
        let state = self.slots[usize::from(slot)].state;
        if !matches!(state, SlotState::Addressed | SlotState::Configured) {
            return Completion::ContextState;
        }
        for index in 2..32 {
            self.clear_endpoint(memory, slot, index);
        }
        let known = &mut self.slots[usize::from(slot)];
        known.state = SlotState::Default;
        known.words.set_entries(1);
        known.words.set_address(0);
        let port = usize::from(known.port());
        known.generation = self.ports[port - 1].generation;
        self.write_slot(memory, slot).map_or(Completion::Trb, |()| Completion::Success)
    }

    /// Removes an endpoint and shows that.
    pub(crate) fn clear_endpoint(&mut self, memory: &mut dyn Memory, slot: u8, index: u8) {
        self.leave(slot, index);
        if self.slots[usize::from(slot)].endpoints[usize::from(index)].take().is_some() {
            self.write_endpoint(memory, slot, index, None);
        }
    }

    pub(crate) fn reset_endpoint(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        index: u8,
        block: Trb,
    ) -> Completion {
        let Some(endpoint) = self.endpoint(slot, index) else {
            return Completion::EndpointNotEnabled;
        };
        if endpoint.state != EndpointState::Halted {
            return Completion::ContextState;
        }
        endpoint.state = EndpointState::Stopped;
        endpoint.errors = 0;
        if !block.has(bit::PRESERVE) {
            endpoint.resume = None;
        }
        self.update_endpoint(memory, slot, index);
        Completion::Success
    }

    pub(crate) fn set_dequeue(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        index: u8,
        block: Trb,
    ) -> Completion {
        let Some(endpoint) = self.endpoint(slot, index) else {
            return Completion::EndpointNotEnabled;
        };
        if !matches!(endpoint.state, EndpointState::Stopped | EndpointState::Error) {
            return Completion::ContextState;
        }
        if block.parameter & 0xe != 0 {
            return Completion::Trb;
        }
        endpoint.drop_td();
        endpoint.resume = None;
        endpoint.state = EndpointState::Stopped;
        endpoint.cursor.pointer = block.parameter & !0xf;
        endpoint.cursor.cycle = block.parameter & 1 != 0;
        self.update_endpoint(memory, slot, index);
        Completion::Success
    }
}

/// Returns the device behind hubs, from the root's on.
pub(crate) fn follow(root: &mut dyn UsbDevice, route: u32) -> Option<&mut dyn UsbDevice> {
    match route & 0xf {
        0 => Some(root),
        port => follow(root.child(port as u8)?, route >> 4),
    }
}

//! A tiny driver and a tiny device, for tests that touch the controller register by register.

mod gadget;
mod ram;

pub use gadget::Shared;
pub use ram::Ram;

use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_usb::context::{self, EndpointKind};
use diapason_usb::register::{
    capability, command, interrupter, operational, port, runtime, status,
};
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_xhc::{Config, InterruptMessage, Xhc};

/// A ring that a driver fills; its last block links to the first.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    pub base: u64,
    pub blocks: u64,
    pub index: u64,
    pub cycle: bool,
}

/// An event ring that a driver reads.
#[derive(Clone, Debug)]
pub struct Events {
    pub segments: Vec<(u64, u64)>,
    pub segment: usize,
    pub index: u64,
    pub cycle: bool,
}

/// The configuration of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub index: u8,
    pub kind: EndpointKind,
    pub packet: u32,
    pub burst: u32,
    pub mult: u32,
    pub interval: u32,
    pub payload: u32,
}

/// A bulk endpoint of full packets.
pub fn bulk(index: u8, packet: u32, burst: u32) -> Plan {
    let kind = if index & 1 == 1 { EndpointKind::BulkIn } else { EndpointKind::BulkOut };
    Plan { index, kind, packet, burst, mult: 0, interval: 0, payload: 0 }
}

/// The driver: memory, controller, time.
pub struct Driver {
    pub xhc: Xhc,
    pub ram: Ram,
    pub now: Nanos,
    pub commands: Ring,
    pub events: Vec<Events>,
    pub interrupts: Vec<InterruptMessage>,
    pub array: u64,
    pub rings: std::collections::BTreeMap<(u8, u8), Ring>,
    pub stride: u64,
}

pub fn op(offset: u64) -> u64 {
    diapason_xhc::OPERATIONAL + offset
}

pub fn rt(which: u64, offset: u64) -> u64 {
    diapason_xhc::RUNTIME + runtime::INTERRUPTERS + which * runtime::INTERRUPTER_STRIDE + offset
}

pub fn portsc(number: u8) -> u64 {
    op(operational::PORTS + u64::from(number - 1) * operational::PORT_STRIDE)
}

impl Driver {
    /// Switched on and ready, nothing else.
    pub fn cold(config: Config) -> Driver {
        let (ready, stride) = (config.times.reset, if config.large_contexts { 64 } else { 32 });
        let mut driver = Driver {
            xhc: Xhc::new(config),
            ram: Ram::new(),
            now: Nanos::ZERO,
            commands: Ring { base: 0, blocks: 0, index: 0, cycle: true },
            events: Vec::new(),
            interrupts: Vec::new(),
            array: 0,
            rings: Default::default(),
            stride,
        };
        driver.run_to(ready);
        driver
    }

    /// Running, with an event ring of one segment of 256 for each of two interrupters.
    pub fn running(config: Config) -> Driver {
        let mut driver = Driver::cold(config);
        driver.start(&[256]);
        driver
    }

    pub fn start(&mut self, segments: &[u64]) {
        assert_eq!(self.read(op(operational::STATUS)) & status::NOT_READY, 0);
        let slots = self.read(capability::PARAMETERS_1) & 0xff;
        self.write(op(operational::CONFIGURE), slots);
        self.array = self.ram.take(2048, 64);
        self.write64(op(operational::CONTEXTS), self.array);
        self.commands = self.ring(64);
        self.write64(op(operational::COMMAND_RING), self.commands.base | 1);
        let interrupters = u64::from(self.read(capability::PARAMETERS_1) >> 8 & 0x7ff).min(2);
        for which in 0..interrupters {
            let events = self.event_ring(which, segments);
            self.events.push(events);
        }
        self.write(op(operational::COMMAND), command::RUN | command::INTERRUPTS);
        assert_eq!(self.read(op(operational::STATUS)) & status::HALTED, 0);
    }

    pub fn event_ring(&mut self, which: u64, sizes: &[u64]) -> Events {
        let table = self.ram.take(16 * sizes.len() as u64, 64);
        let mut segments = Vec::new();
        for (i, &blocks) in (0..).zip(sizes) {
            let base = self.ram.take(16 * blocks, 64);
            self.ram
                .put_words(table + 16 * i, &[base as u32, (base >> 32) as u32, blocks as u32, 0]);
            segments.push((base, blocks));
        }
        self.write(rt(which, interrupter::TABLE_SIZE), sizes.len() as u32);
        self.write64(rt(which, interrupter::DEQUEUE), segments[0].0);
        self.write64(rt(which, interrupter::TABLE), table);
        self.write(rt(which, interrupter::MODERATION), 0);
        self.write(rt(which, interrupter::MANAGEMENT), interrupter::ENABLE);
        Events { segments, segment: 0, index: 0, cycle: true }
    }

    pub fn ring(&mut self, blocks: u64) -> Ring {
        let base = self.ram.take(16 * blocks, 64);
        Ring { base, blocks, index: 0, cycle: true }
    }

    pub fn read(&self, offset: u64) -> u32 {
        self.xhc.read(offset, self.now)
    }

    pub fn write(&mut self, offset: u64, value: u32) {
        self.xhc.write(offset, value, self.now, &mut self.ram);
        self.interrupts.extend(self.xhc.take_interrupts());
    }

    pub fn write64(&mut self, offset: u64, value: u64) {
        self.write(offset, value as u32);
        self.write(offset + 4, (value >> 32) as u32);
    }

    pub fn run_to(&mut self, time: Nanos) {
        self.now = time;
        self.xhc.advance(time, &mut self.ram);
        self.interrupts.extend(self.xhc.take_interrupts());
    }

    pub fn run_for(&mut self, time: Nanos) {
        self.run_to(self.now + time);
    }

    /// Puts a block on a ring; the address it has.
    pub fn push(&mut self, ring: &mut Ring, block: Trb) -> u64 {
        let at = ring.base + 16 * ring.index;
        self.ram.put_words(at, &block.with_cycle(ring.cycle).words());
        ring.index += 1;
        if ring.index == ring.blocks - 1 {
            let flags = bit::TOGGLE | if block.has(bit::CHAIN) { bit::CHAIN } else { 0 };
            let link = Trb::new(Kind::Link, ring.base, 0, flags).with_cycle(ring.cycle);
            self.ram.put_words(ring.base + 16 * ring.index, &link.words());
            ring.index = 0;
            ring.cycle = !ring.cycle;
        }
        at
    }

    /// Events that are there, with the dequeue pointer moved past them.
    pub fn take(&mut self, which: usize) -> Vec<Trb> {
        let mut found = Vec::new();
        loop {
            let events = &mut self.events[which];
            let (base, blocks) = events.segments[events.segment];
            let event = Trb::from_words(self.ram.words(base + 16 * events.index));
            if event.cycle() != events.cycle {
                break;
            }
            found.push(event);
            events.index += 1;
            if events.index == blocks {
                events.index = 0;
                events.segment += 1;
                if events.segment == events.segments.len() {
                    events.segment = 0;
                    events.cycle = !events.cycle;
                }
            }
        }
        let events = &self.events[which];
        let at = events.segments[events.segment].0 + 16 * events.index;
        self.write64(rt(which as u64, interrupter::DEQUEUE), at | u64::from(interrupter::BUSY));
        found
    }

    /// Transfer events of interrupter 0: endpoint, code, residual.
    pub fn transfers(&mut self) -> Vec<(u8, Completion, u32)> {
        let events = self.take(0);
        let transfers = events.iter().filter(|e| e.kind() == Some(Kind::TransferEvent));
        transfers.map(|e| (e.endpoint(), e.completion().unwrap(), e.residual())).collect()
    }

    /// Runs a command; how it ended and the slot. Events before it are kept in the answer.
    pub fn command_with(&mut self, block: Trb) -> (Vec<Trb>, Completion, u8) {
        let mut ring = self.commands;
        let at = self.push(&mut ring, block);
        self.commands = ring;
        self.write(diapason_xhc::DOORBELLS, 0);
        for _ in 0..1000 {
            self.run_for(Nanos::from_micros(1));
            let mut events = self.take(0);
            let own = |e: &Trb| e.kind() == Some(Kind::CommandCompletion) && e.parameter == at;
            if let Some(end) = events.iter().position(own) {
                let event = events.remove(end);
                return (events, event.completion().unwrap(), event.slot());
            }
            assert!(events.iter().all(|e| e.kind() != Some(Kind::CommandCompletion)));
        }
        panic!("no answer to {block:?}");
    }

    pub fn command(&mut self, block: Trb) -> Completion {
        self.command_with(block).1
    }

    pub fn slot_command(&mut self, kind: Kind, slot: u8, endpoint: u8, flags: u32) -> Completion {
        self.command(Trb::new(kind, 0, 0, Trb::place(slot, endpoint) | flags))
    }

    /// Plugs in and brings the port to "enabled".
    pub fn plug(&mut self, number: u8, device: Box<dyn UsbDevice>) {
        self.xhc.attach(number, device, self.now, &mut self.ram);
        self.run_for(Nanos::from_millis(30));
        if self.read(portsc(number)) & port::ENABLED == 0 {
            self.write(portsc(number), port::RESET | port::POWER);
            self.run_for(Nanos::from_millis(60));
        }
        let now = self.read(portsc(number));
        assert_ne!(now & port::ENABLED, 0, "{now:08x}");
        self.write(portsc(number), port::CHANGES | port::POWER);
        self.take(0);
    }

    /// The input context for addressing a device at a root port.
    pub fn address_input(&mut self, number: u8) -> (u64, Ring) {
        let speed = self.read(portsc(number)) >> port::SPEED_SHIFT & 0xf;
        let input = self.ram.take(33 * self.stride, 64);
        let ring = self.ring(64);
        let mut slot = context::Slot::default();
        slot.set_speed(speed);
        slot.set_entries(1);
        slot.set_root_port(u32::from(number));
        let mut ep0 = context::EndpointContext::default();
        ep0.set_kind_number(EndpointKind::Control.number());
        ep0.set_packet(if speed == 4 { 512 } else { 64 });
        ep0.set_attempts(3);
        ep0.set_dequeue(ring.base, true);
        self.ram.put_words(input, &context::Control::new(0, 3).0.0);
        self.ram.put_words(input + self.stride, &slot.0.0);
        self.ram.put_words(input + 2 * self.stride, &ep0.0.0);
        (input, ring)
    }

    /// Plugs in, enables a slot, and addresses it; returns the slot.
    pub fn connect(&mut self, number: u8, device: Box<dyn UsbDevice>) -> u8 {
        self.plug(number, device);
        let (_, code, slot) = self.command_with(Trb::new(Kind::EnableSlot, 0, 0, 0));
        assert_eq!(code, Completion::Success);
        let output = self.ram.take(32 * self.stride, 64);
        self.ram
            .put_words(self.array + 8 * u64::from(slot), &[output as u32, (output >> 32) as u32]);
        let (input, ring) = self.address_input(number);
        let address = Trb::new(Kind::AddressDevice, input, 0, Trb::place(slot, 0));
        assert_eq!(self.command(address), Completion::Success);
        self.rings.insert((slot, 1), ring);
        slot
    }

    /// Configure Endpoint with these added, each with a new ring of 64 blocks.
    pub fn configure(&mut self, slot: u8, plans: &[Plan]) -> Completion {
        let input = self.ram.take(33 * self.stride, 64);
        let mut added = 1;
        let mut rings = Vec::new();
        for plan in plans {
            added |= 1 << plan.index;
            let ring = self.ring(64);
            let mut words = context::EndpointContext::default();
            words.set_kind_number(plan.kind.number());
            words.set_packet(plan.packet);
            words.set_burst(plan.burst);
            words.set_mult(plan.mult);
            words.set_interval(plan.interval);
            words.set_payload(plan.payload);
            words.set_attempts(if plan.kind.is_isochronous() { 0 } else { 3 });
            words.set_dequeue(ring.base, true);
            let at = input + self.stride * (u64::from(plan.index) + 1);
            self.ram.put_words(at, &words.0.0);
            rings.push(((slot, plan.index), ring));
        }
        let mut own = self.slot_context(slot);
        own.set_entries(31);
        self.ram.put_words(input, &context::Control::new(0, added).0.0);
        self.ram.put_words(input + self.stride, &own.0.0);
        let block = Trb::new(Kind::ConfigureEndpoint, input, 0, Trb::place(slot, 0));
        let code = self.command(block);
        if code == Completion::Success {
            self.rings.extend(rings);
        }
        code
    }

    fn output(&self, slot: u8) -> u64 {
        let [low, high] = self.ram.words(self.array + 8 * u64::from(slot));
        u64::from(high) << 32 | u64::from(low)
    }

    pub fn slot_context(&self, slot: u8) -> context::Slot {
        context::Slot(context::Words(self.ram.words(self.output(slot))))
    }

    pub fn endpoint_context(&self, slot: u8, index: u8) -> context::EndpointContext {
        let at = self.output(slot) + self.stride * u64::from(index);
        context::EndpointContext(context::Words(self.ram.words(at)))
    }

    /// Queues a block on an endpoint's ring.
    pub fn queue(&mut self, slot: u8, index: u8, block: Trb) -> u64 {
        let mut ring = self.rings[&(slot, index)];
        let at = self.push(&mut ring, block);
        self.rings.insert((slot, index), ring);
        at
    }

    /// Queues a Normal block over new memory; the address of the buffer.
    pub fn queue_normal(&mut self, slot: u8, index: u8, length: u32, flags: u32) -> u64 {
        let buffer = self.ram.buffer(length);
        let status = Trb::transfer_status(length, 0, 0);
        self.queue(slot, index, Trb::new(Kind::Normal, buffer, status, flags));
        buffer
    }

    pub fn doorbell(&mut self, slot: u8, index: u8) {
        self.write(diapason_xhc::DOORBELLS + 4 * u64::from(slot), u32::from(index));
    }
}

//! A small controller on command: registers, rings and contexts in plain memory, no bus and no
//! time. The test decides the result of each transfer.

use diapason_usb::context::EndpointKind;
use diapason_usb::register::{capability, command, command_ring, operational, port, status};
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_usb::xhci::{Dma, Mmio, Window};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bus address of the memory, all of which both sides see.
pub const BASE: u64 = 0x4000_0000;
pub const BYTES: u64 = 4 << 20;
/// Where the test's own buffers begin.
pub const CLIENT: u64 = 3 << 20;
const OPERATIONAL: u64 = 0x40;
const RUNTIME: u64 = 0x1000;
const DOORBELLS: u64 = 0x2000;
/// USB 2 ports come first, then USB 3 ports.
pub const PORTS: u8 = 4;

/// An endpoint as the fake controller knows it.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    pub at: u64,
    pub cycle: bool,
    /// The last block taken belongs to the same transfer as the next.
    pub chain: bool,
    /// The exponent of its interval.
    pub interval: u32,
}

#[derive(Default)]
pub struct Fake {
    memory: Vec<u8>,
    words: BTreeMap<u64, u32>,
    pub reads: u64,
    pub writes: u64,
    /// Every register reads as ones.
    pub removed: bool,
    /// The firmware holds on, or reset never ends.
    pub stuck: bool,
    pub large: bool,
    /// Bytes of the registers.
    pub bar: u64,
    pub scratchpads: u32,
    /// Commands are not looked at.
    pub deaf: bool,
    /// The controller reported transfers that it had only begun: what it finds on a ring may be
    /// another's.
    pub lies: bool,
    /// Devices do not answer requests.
    pub mute: bool,
    /// A descriptor that is another one when it is read again, by type.
    pub second: BTreeMap<u8, Vec<u8>>,
    /// The results of commands, in order; then they succeed.
    pub verdicts: Vec<Completion>,
    /// The results of requests to devices, in order; then they succeed.
    pub answers: Vec<Completion>,
    /// Bytes a device answers `GET_DESCRIPTOR` with, by type.
    pub descriptors: BTreeMap<u8, Vec<u8>>,
    /// Configurations behind the first.
    pub others: Vec<Vec<u8>>,
    command: (u64, bool),
    events: [(u64, bool); 4],
    pub rings: BTreeMap<(u8, u8), Ring>,
    pub commands: Vec<Kind>,
    /// The first words of the last slot context the driver wrote.
    pub slot: [u32; 3],
}

/// Both sides of it, for the driver and for the test.
#[derive(Clone)]
pub struct Handle(pub Rc<RefCell<Fake>>);

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle")
    }
}

impl Handle {
    pub fn new() -> Handle {
        let fake = Fake { memory: vec![0; BYTES as usize], bar: 0x4000, ..Fake::default() };
        Handle(Rc::new(RefCell::new(fake)))
    }
}

impl Mmio for Handle {
    fn length(&self) -> u64 {
        self.0.borrow().bar
    }

    fn read32(&mut self, offset: u64) -> u32 {
        let mut fake = self.0.borrow_mut();
        fake.reads += 1;
        if fake.removed { u32::MAX } else { fake.register(offset) }
    }

    fn write32(&mut self, offset: u64, value: u32) {
        let mut fake = self.0.borrow_mut();
        fake.writes += 1;
        fake.set_register(offset, value);
    }
}

impl Dma for Handle {
    fn base(&self) -> u64 {
        BASE
    }
    fn length(&self) -> u64 {
        BYTES
    }
    fn load(&self, offset: u64) -> u32 {
        self.0.borrow().word(BASE + offset)
    }
    fn store(&mut self, offset: u64, value: u32) {
        self.0.borrow_mut().set_word(BASE + offset, value);
    }
    fn read(&self, offset: u64, bytes: &mut [u8]) {
        let at = offset as usize;
        bytes.copy_from_slice(&self.0.borrow().memory[at..at + bytes.len()]);
    }
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let at = offset as usize;
        self.0.borrow_mut().memory[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

impl Fake {
    pub fn word(&self, address: u64) -> u32 {
        let at = (address - BASE) as usize;
        u32::from_le_bytes(self.memory[at..at + 4].try_into().unwrap())
    }

    pub fn set_word(&mut self, address: u64, value: u32) {
        let at = (address - BASE) as usize;
        self.memory[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn block(&self, at: u64) -> Trb {
        Trb::from_words([0, 4, 8, 12].map(|offset| self.word(at + offset)))
    }

    fn stored(&self, offset: u64) -> u32 {
        self.words.get(&offset).copied().unwrap_or(0)
    }

    fn stored_64(&self, offset: u64) -> u64 {
        u64::from(self.stored(offset + 4)) << 32 | u64::from(self.stored(offset))
    }

    fn register(&self, offset: u64) -> u32 {
        const COMMAND: u64 = OPERATIONAL + operational::COMMAND;
        const STATUS: u64 = OPERATIONAL + operational::STATUS;
        const RING: u64 = OPERATIONAL + operational::COMMAND_RING;
        const PAGES: u64 = OPERATIONAL + operational::PAGE_SIZE;
        match offset {
            capability::LENGTH => 0x0110_0000 | OPERATIONAL as u32,
            capability::PARAMETERS_1 => 16 | 4 << 8 | u32::from(PORTS) << 24,
            capability::PARAMETERS_2 => self.scratchpads << 27,
            capability::CAPABILITIES_1 => 1 | u32::from(self.large) << 2 | (0x800 / 4) << 16,
            capability::DOORBELLS => DOORBELLS as u32,
            capability::RUNTIME => RUNTIME as u32,
            // The hand-over, two protocols.
            0x800 => 1 | 4 << 8 | u32::from(self.stuck) << 16 | self.stored(0x800) & 1 << 24,
            0x810 => 2 | 4 << 8 | 2 << 24,
            0x818 => 1 | 2 << 8,
            0x820 => 2 | 3 << 24,
            0x828 => 3 | 2 << 8,
            PAGES => 1,
            RING => command_ring::RUNNING,
            STATUS => {
                let runs = self.stored(COMMAND) & command::RUN != 0;
                self.stored(STATUS) | if runs { 0 } else { status::HALTED }
            }
            _ => self.stored(offset),
        }
    }

    fn set_register(&mut self, offset: u64, value: u32) {
        const COMMAND: u64 = OPERATIONAL + operational::COMMAND;
        const RING: u64 = OPERATIONAL + operational::COMMAND_RING;
        const PORT_1: u64 = OPERATIONAL + operational::PORTS;
        match offset {
            COMMAND if value & command::RESET != 0 => {
                self.rings.clear();
                self.words.insert(COMMAND, if self.stuck { value } else { 0 });
                self.words.remove(&(OPERATIONAL + operational::STATUS));
            }
            RING if value & 6 == 0 => {
                self.words.insert(offset, value);
                self.command = (u64::from(value & !0x3f), value & 1 != 0);
            }
            RING => self.abort(),
            PORT_1..0x1000 if (offset - PORT_1).is_multiple_of(16) => {
                self.set_port(((offset - PORT_1) / 16) as u8 + 1, value);
            }
            DOORBELLS..=0x2fff => self.doorbell(((offset - DOORBELLS) / 4) as u8, value as u8),
            _ => {
                self.words.insert(offset, value);
                self.latch_event_ring(offset);
            }
        }
    }

    fn latch_event_ring(&mut self, offset: u64) {
        for number in 0..4 {
            let base = RUNTIME + 0x20 + 0x20 * number;
            if offset == base + 0x14 {
                let table = self.stored_64(base + 0x10) & !0x3f;
                self.events[number as usize] = (u64::from(self.word(table)), true);
            }
        }
    }

    /// Posts an event as a controller does.
    pub fn post(&mut self, interrupter: usize, event: Trb) {
        let (at, cycle) = self.events[interrupter];
        for (offset, word) in (0..).step_by(4).zip(event.with_cycle(cycle).words()) {
            self.set_word(at + offset, word);
        }
        let table = self.stored_64(RUNTIME + 0x20 + 0x20 * interrupter as u64 + 0x10) & !0x3f;
        let (base, blocks) = (u64::from(self.word(table)), u64::from(self.word(table + 8)));
        let next = at + 16;
        let wraps = next == base + 16 * blocks;
        self.events[interrupter] = if wraps { (base, !cycle) } else { (next, cycle) };
    }

    fn port_register(number: u8) -> u64 {
        OPERATIONAL + operational::PORTS + 16 * (u64::from(number) - 1)
    }

    fn port_event(&mut self, number: u8) {
        let event = Trb::new(
            Kind::PortStatusChange,
            u64::from(number) << 24,
            Trb::event_status(Completion::Success, 0),
            0,
        );
        if self.stored(OPERATIONAL) & command::RUN != 0 {
            self.post(0, event);
        }
    }

    /// Plugs something of this speed in.
    pub fn plug(&mut self, number: u8, speed: u32) {
        let up = if number > 2 { port::ENABLED } else { 0 };
        let word = port::CONNECTED | port::CONNECT_CHANGE | port::POWER | up;
        self.words.insert(Self::port_register(number), word | speed << port::SPEED_SHIFT);
        self.port_event(number);
    }

    pub fn unplug(&mut self, number: u8) {
        self.words.insert(Self::port_register(number), port::POWER | port::CONNECT_CHANGE);
        self.port_event(number);
    }

    /// Sets and clears bits of a port.
    pub fn poke_port(&mut self, number: u8, set: u32, clear: u32) {
        let at = Self::port_register(number);
        let word = self.stored(at) & !clear | set;
        self.words.insert(at, word);
        self.port_event(number);
    }

    fn set_port(&mut self, number: u8, value: u32) {
        let at = Self::port_register(number);
        let mut word = self.stored(at) & !(value & port::CHANGES);
        assert_eq!(value & port::ENABLED, 0, "the driver switches a port off");
        let resets = value & (port::RESET | port::WARM_RESET) != 0 && !self.stuck;
        if resets && word & port::CONNECTED != 0 {
            word |= port::ENABLED | port::RESET_CHANGE;
        }
        self.words.insert(at, word);
        if resets {
            self.port_event(number);
        }
    }

    fn abort(&mut self) {
        if self.deaf {
            return;
        }
        self.run_commands();
    }

    /// Does the commands that are on the ring, though deaf.
    pub fn listen_once(&mut self) {
        self.deaf = false;
        self.run_commands();
        self.deaf = true;
    }

    fn run_commands(&mut self) {
        while !self.deaf {
            let (at, cycle) = self.command;
            let block = self.block(at);
            if block.cycle() != cycle {
                return;
            }
            if block.kind() == Some(Kind::Link) {
                self.command = (block.parameter, cycle != block.has(bit::TOGGLE));
                continue;
            }
            self.command.0 += 16;
            self.run_command(at, block);
        }
    }

    fn run_command(&mut self, at: u64, block: Trb) {
        let kind = block.kind().unwrap();
        self.commands.push(kind);
        let verdict =
            if self.verdicts.is_empty() { Completion::Success } else { self.verdicts.remove(0) };
        let mut slot = block.slot();
        if verdict == Completion::Success {
            match kind {
                Kind::EnableSlot => {
                    let used = |slot: &u8| self.rings.contains_key(&(*slot, 0));
                    slot = (1..).find(|slot| !used(slot)).unwrap();
                    let nothing = Ring { at: 0, cycle: false, chain: false, interval: 0 };
                    self.rings.insert((slot, 0), nothing);
                }
                Kind::DisableSlot => self.rings.retain(|(s, _), _| *s != slot),
                Kind::AddressDevice => self.take_contexts(slot, block.parameter, 2),
                Kind::ConfigureEndpoint => {
                    let (drop, add) = (self.word(block.parameter), self.word(block.parameter + 4));
                    self.rings.retain(|(s, i), _| *s != slot || *i == 0 || drop >> i & 1 == 0);
                    self.take_contexts(slot, block.parameter, add & !1);
                }
                Kind::SetDequeue => {
                    let ring = self.rings.get_mut(&(slot, block.endpoint())).unwrap();
                    (ring.at, ring.cycle) = (block.parameter & !0xf, block.parameter & 1 != 0);
                    ring.chain = false;
                }
                _ => {}
            }
        }
        let event = Trb::new(
            Kind::CommandCompletion,
            at,
            Trb::event_status(verdict, 0),
            Trb::place(slot, 0),
        );
        self.post(0, event);
    }

    fn take_contexts(&mut self, slot: u8, input: u64, add: u32) {
        let size = if self.large { 64 } else { 32 };
        self.slot = [0, 4, 8].map(|word| self.word(input + size + word));
        for index in (1..32u8).filter(|index| add >> index & 1 != 0) {
            let at = input + (u64::from(index) + 1) * size;
            let pointer = u64::from(self.word(at + 12)) << 32 | u64::from(self.word(at + 8));
            assert!(EndpointKind::decode(self.word(at + 4) >> 3 & 7).is_some());
            let interval = self.word(at) >> 16 & 0xff;
            let ring = Ring { at: pointer & !0xf, cycle: pointer & 1 != 0, chain: false, interval };
            self.rings.insert((slot, index), ring);
        }
    }

    /// The state of an endpoint, written where the driver looks for it.
    pub fn set_endpoint_state(&mut self, slot: u8, index: u8, state: u32) {
        let array = self.stored_64(OPERATIONAL + operational::CONTEXTS);
        let size = if self.large { 64 } else { 32 };
        let context = u64::from(self.word(array + 8 * u64::from(slot)));
        self.set_word(context + u64::from(index) * size, state);
    }

    /// Rung by the driver, or by the test.
    pub fn doorbell(&mut self, slot: u8, index: u8) {
        if slot == 0 {
            return self.run_commands();
        }
        if index == 1 && !self.mute {
            while let Some((at, block)) = self.next_block(slot, 1) {
                self.control_block(slot, at, block);
            }
        }
    }

    /// Returns the next block of an endpoint's ring, which is taken. Its memory must be allowed.
    pub fn next_block(&mut self, slot: u8, index: u8) -> Option<(u64, Trb)> {
        loop {
            let ring = *self.rings.get(&(slot, index))?;
            let block = self.block(ring.at);
            if ring.at == 0 || block.cycle() != ring.cycle {
                return None;
            }
            let lies = self.lies;
            let ring = self.rings.get_mut(&(slot, index))?;
            if block.kind() == Some(Kind::Link) {
                let cut = ring.chain && !block.has(bit::CHAIN) && !lies;
                assert!(!cut, "a link cuts a transfer in two");
                (ring.at, ring.cycle) = (block.parameter, ring.cycle != block.has(bit::TOGGLE));
                continue;
            }
            let at = ring.at;
            (ring.at, ring.chain) = (at + 16, block.has(bit::CHAIN));
            let memory = Window { base: block.parameter, length: block.length().into() };
            let has_memory = !block.has(bit::IMMEDIATE) && memory.length > 0;
            let client = Window { base: BASE + CLIENT, length: BYTES - CLIENT };
            let driver = Window { base: BASE, length: CLIENT };
            let allowed = client.contains(memory) || index == 1 && driver.contains(memory);
            assert!(!has_memory || allowed, "a block names {memory:?}, which nobody granted");
            return Some((at, block));
        }
    }

    fn control_block(&mut self, slot: u8, at: u64, block: Trb) {
        let setup = block.parameter.to_le_bytes();
        match block.kind().unwrap() {
            Kind::Setup => {
                let [.., index, kind, _, _, _, _] = setup;
                self.words.insert(0x9000, u32::from(kind) | u32::from(index) << 8);
            }
            Kind::Data => {
                let [kind, index, ..] = self.stored(0x9000).to_le_bytes();
                let others = usize::from(index).checked_sub(1).filter(|_| kind == 2);
                let bytes = match others {
                    Some(other) => self.others.get(other),
                    None => self.descriptors.get(&kind),
                };
                let bytes = bytes.cloned().unwrap_or_default();
                if let Some(second) = self.second.remove(&kind) {
                    self.descriptors.insert(kind, second);
                }
                let length = bytes.len().min(block.length() as usize);
                let place = (block.parameter - BASE) as usize;
                self.memory[place..place + length].copy_from_slice(&bytes[..length]);
                let left = block.length() - length as u32;
                if left > 0 {
                    self.transfer_event(slot, 1, at, Completion::ShortPacket, left);
                }
            }
            _ => {
                let empty = self.answers.is_empty();
                let code = if empty { Completion::Success } else { self.answers.remove(0) };
                self.transfer_event(slot, 1, at, code, 0);
            }
        }
    }

    /// Reports the end of a block.
    pub fn transfer_event(&mut self, slot: u8, index: u8, at: u64, code: Completion, left: u32) {
        let target = usize::from(self.block(at).interrupter()).min(3);
        let status = Trb::event_status(code, left);
        self.post(target, Trb::new(Kind::TransferEvent, at, status, Trb::place(slot, index)));
    }
}

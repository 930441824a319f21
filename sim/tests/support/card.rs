//! An adapter with its memory, and the driver of the 82574L on it.

#![allow(dead_code, reason = "each test uses its part")]

use diapason_abi::Nanos;
use diapason_ether::adapter::{self, AdapterRegisters, BUFFER_BYTES, FrameReceiver, FrameSender};
use diapason_ether::adapter::{RING, RING_BYTES, RingMemory, register};
use diapason_sim::{Card, EthernetWire, FunctionModel};
use diapason_xhc::{Denied, Memory};
use std::cell::{Cell, RefCell};

/// Where the adapter finds the rings, and the buffers.
const RINGS_AT: u64 = 0x10_0000;
const BUFFERS_AT: u64 = 0x20_0000;

/// An adapter with its memory, as a driver reaches both.
pub struct Host {
    pub card: RefCell<Card>,
    memory: RefCell<Vec<u8>>,
    pub now: Cell<Nanos>,
    pub rang: Cell<u32>,
}

struct Reach<'a>(&'a mut [u8]);

impl Reach<'_> {
    fn place(&mut self, address: u64, bytes: usize) -> Result<&mut [u8], Denied> {
        let at = address.checked_sub(RINGS_AT).ok_or(Denied)? as usize;
        self.0.get_mut(at..at + bytes).ok_or(Denied)
    }
}

impl Memory for Reach<'_> {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Denied> {
        bytes.copy_from_slice(self.place(address, bytes.len())?);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Denied> {
        self.place(address, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }
}

impl Host {
    pub fn of(card: Card) -> Host {
        let mut memory = vec![0; 0x20_0000];
        // Another driver was here before.
        memory[..RING_BYTES].fill(0xef);
        let (card, memory) = (RefCell::new(card), RefCell::new(memory));
        Host { card, memory, now: Cell::default(), rang: Cell::new(0) }
    }

    pub fn new(wire: &EthernetWire) -> Host {
        Host::of(Card::new(wire))
    }

    pub fn alone(keeps: bool) -> Host {
        let card = Card::new(&EthernetWire::new(1_000));
        Host::of(if keeps { card.keeping() } else { card })
    }

    pub fn pass(&self, until: Nanos) {
        self.now.set(until);
        self.card.borrow_mut().advance(until, &mut Reach(&mut self.memory.borrow_mut()));
    }

    pub fn rang(&self) -> bool {
        let rings = self.card.borrow_mut().take_interrupts(self.now.get()).len() as u32;
        self.rang.set(self.rang.get() + rings);
        rings > 0
    }

    pub fn put(&self, buffer: u16, frame: &[u8]) {
        let at = (address(buffer) - RINGS_AT) as usize;
        self.memory.borrow_mut()[at..at + frame.len()].copy_from_slice(frame);
    }

    pub fn bytes(&self, buffer: u16, length: usize) -> Vec<u8> {
        let at = (address(buffer) - RINGS_AT) as usize;
        self.memory.borrow()[at..at + length].to_vec()
    }

    /// Returns how many descriptors the adapter has.
    pub fn free(&self) -> usize {
        let [head, tail] = [register::RDH, register::RDT].map(|it| self.get(it) as usize);
        (tail + RING - head) % RING
    }

    pub fn get(&self, register: usize) -> u32 {
        AdapterRegisters::read(&self, register)
    }
}

impl AdapterRegisters for &Host {
    fn read(&self, register: usize) -> u32 {
        self.card.borrow_mut().read(self.now.get(), register as u64, 4) as u32
    }

    fn write(&self, register: usize, value: u32) {
        let mut memory = self.memory.borrow_mut();
        let (now, register) = (self.now.get(), register as u64);
        self.card.borrow_mut().write(now, register, 4, value.into(), &mut Reach(&mut memory));
    }
}

impl RingMemory for &Host {
    fn read(&self, offset: usize) -> u32 {
        u32::from_le_bytes(*self.memory.borrow()[offset..].first_chunk().unwrap())
    }

    fn write(&self, offset: usize, value: u32) {
        self.memory.borrow_mut()[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn bus_address(&self, offset: usize) -> u64 {
        RINGS_AT + offset as u64
    }
}

pub type Halves<'a> = (FrameReceiver<&'a Host, &'a Host>, FrameSender<&'a Host, &'a Host>);

pub fn started(host: &Host, number: u8) -> Halves<'_> {
    let set = |register, value| AdapterRegisters::write(&host, register, value);
    for register in [register::RDT, register::RCTL, register::IMS, register::MTA, register::TDH] {
        set(register, 0x1f);
    }
    set(register::RDLEN, 4_096);
    set(register::TDLEN, 4_096);
    adapter::quiesce(&host);
    assert!(adapter::is_quiet(&host));
    adapter::reset(&host);
    assert!(adapter::is_reset(&host));
    adapter::start(host, [host; 2], [2, 0, 0, 0, 0, number])
}

pub fn address(buffer: u16) -> u64 {
    BUFFERS_AT + u64::from(buffer) * BUFFER_BYTES as u64
}

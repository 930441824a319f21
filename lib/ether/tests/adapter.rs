//! The driver of the 82574L on a small model of its registers and rings: one that clears what a
//! reset should clear, and one that keeps everything, as an emulator does.

use diapason_ether::adapter::{self, AdapterRegisters, BUFFER_BYTES, FrameReceiver, FrameSender};
use diapason_ether::adapter::{RING, RING_BYTES, RingMemory, Taken, register};
use diapason_ether::{Demux, Discard, FrameInbox, InboxReader};
use diapason_random::Random;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Where the adapter finds the rings, and the buffers.
const RINGS_AT: u64 = 0x10_0000;
const BUFFERS_AT: u64 = 0x20_0000;

#[derive(Default)]
struct Model {
    registers: RefCell<BTreeMap<usize, u32>>,
    memory: RefCell<Vec<u32>>,
    buffers: RefCell<Vec<u8>>,
    keeps: bool,
    sent: RefCell<Vec<(u64, usize)>>,
    interrupts: Cell<u32>,
}

impl Model {
    fn new(keeps: bool) -> Model {
        let model = Model { keeps, ..Model::default() };
        model.memory.replace(vec![0xdead_beef; RING_BYTES / 4]);
        model.buffers.replace(vec![0; 256 * BUFFER_BYTES]);
        model
    }

    fn get(&self, register: usize) -> u32 {
        self.registers.borrow().get(&register).copied().unwrap_or(0)
    }

    fn set(&self, register: usize, value: u32) {
        self.registers.borrow_mut().insert(register, value);
    }

    fn descriptor(&self, base: usize, index: u32) -> usize {
        let base = u64::from(self.get(base)) - RINGS_AT;
        (base as usize + 16 * index as usize) / 4
    }

    /// A frame comes over the wire; false: the adapter lost it.
    fn arrive(&self, frame: &[u8], error: bool) -> bool {
        assert_eq!(self.get(register::RCTL) & 2, 2, "receiving is off");
        let length = self.get(register::RDLEN) / 16;
        let free = |head: u32| (self.get(register::RDT) + length - head) % length;
        let head = self.get(register::RDH);
        let pieces = frame.chunks(BUFFER_BYTES).count().max(1) as u32;
        if free(head) < pieces {
            self.set(register::MPC, self.get(register::MPC) + 1);
            return false;
        }
        let mut head = head;
        for (number, piece) in frame.chunks(BUFFER_BYTES).enumerate() {
            let at = self.descriptor(register::RDBAL, head);
            let mut memory = self.memory.borrow_mut();
            let address = u64::from(memory[at]) | u64::from(memory[at + 1]) << 32;
            let place = (address - BUFFERS_AT) as usize;
            self.buffers.borrow_mut()[place..place + piece.len()].copy_from_slice(piece);
            let last = number as u32 + 1 == pieces;
            memory[at + 2] = piece.len() as u32;
            memory[at + 3] = 1 | u32::from(last) << 1 | u32::from(error && last) << 8;
            head = (head + 1) % length;
        }
        self.set(register::RDH, head);
        self.set(register::ICR, self.get(register::ICR) | 1 << 20);
        self.interrupt();
        true
    }

    fn interrupt(&self) {
        let both = self.get(register::ICR) & self.get(register::IMS);
        if both & 1 << 20 != 0 && self.get(register::IVAR) & 8 != 0 {
            assert_eq!(self.get(register::EIAC) & 1 << 20, 1 << 20);
            self.interrupts.set(self.interrupts.get() + 1);
            self.set(register::ICR, self.get(register::ICR) & !(1 << 20));
            self.set(register::IMS, self.get(register::IMS) & !(1 << 20));
        }
    }
}

impl AdapterRegisters for &Model {
    fn read(&self, register: usize) -> u32 {
        match register {
            register::EECD => 1 << 9,
            register::STATUS => !(self.get(register::CTRL) << 17) & 1 << 19,
            register::MPC | register::ICR => {
                let value = self.get(register);
                self.set(register, 0);
                value
            }
            _ => self.get(register),
        }
    }

    fn write(&self, register: usize, value: u32) {
        match register {
            register::CTRL if value & 1 << 26 != 0 => {
                if !self.keeps {
                    self.registers.borrow_mut().clear();
                }
                self.set(register::CTRL, value & !(1 << 26));
            }
            register::IMS => {
                self.set(register, self.get(register) | value);
                self.interrupt();
            }
            register::IMC => self.set(register::IMS, self.get(register::IMS) & !value),
            register::TDT => {
                let length = self.get(register::TDLEN) / 16;
                let mut head = self.get(register::TDH);
                while head != value {
                    let at = self.descriptor(register::TDBAL, head);
                    let mut memory = self.memory.borrow_mut();
                    assert_eq!(memory[at + 2] >> 24, 0b1011, "last, checksum, report");
                    let address = u64::from(memory[at]) | u64::from(memory[at + 1]) << 32;
                    let bytes = (memory[at + 2] & 0xffff) as usize;
                    self.sent.borrow_mut().push((address, bytes));
                    memory[at + 3] |= 1;
                    head = (head + 1) % length;
                }
                self.set(register::TDH, head);
                self.set(register, value);
            }
            _ => self.set(register, value),
        }
    }
}

impl RingMemory for &Model {
    fn read(&self, offset: usize) -> u32 {
        self.memory.borrow()[offset / 4]
    }

    fn write(&self, offset: usize, value: u32) {
        self.memory.borrow_mut()[offset / 4] = value;
    }

    fn bus_address(&self, offset: usize) -> u64 {
        RINGS_AT + offset as u64
    }
}

type Halves<'a> = (FrameReceiver<&'a Model, &'a Model>, FrameSender<&'a Model, &'a Model>);

fn started(model: &Model) -> Halves<'_> {
    // Another driver was here before.
    for register in [register::RDT, register::TDT, register::RCTL, register::IMS, register::MTA] {
        model.set(register, 0x1f);
    }
    model.set(register::RDLEN, 4_096);
    model.set(register::TDH, 0x1f);
    model.set(register::TDLEN, 4_096);
    adapter::quiesce(&model);
    assert!(adapter::is_quiet(&model));
    adapter::reset(&model);
    assert!(adapter::is_reset(&model));
    adapter::start(model, [model; 2], MAC)
}

fn address(buffer: u16) -> u64 {
    BUFFERS_AT + u64::from(buffer) * BUFFER_BYTES as u64
}

fn random_run(seed: u64, keeps: bool) -> (u64, u64) {
    let model = Model::new(keeps);
    let (mut nic, _) = started(&model);
    let mut random = Random::new(seed);
    let inbox = FrameInbox::default();
    let mut demux = Demux::<1, 256>::new(100);
    demux.listen_to_rest(&inbox, 30).unwrap();
    let mut reader = InboxReader::new(&inbox);
    let (mut offered, mut lost, mut delivered, mut refused) = (0, 0, 0, 0);
    let mut expected = 0_u32;
    for number in 0..3_000_u32 {
        if random.below(3) > 0 {
            let length = if random.one_in(20) {
                random.between(2_049, 9_018) as usize
            } else {
                random.between(60, 1_518) as usize
            };
            let mut frame = vec![0; length];
            frame[..4].copy_from_slice(&number.to_le_bytes());
            offered += 1;
            lost += u64::from(!model.arrive(&frame, random.one_in(30)));
        }
        if random.one_in(4) {
            while let Some(Taken { buffer, length, fault }) = nic.take() {
                let bytes = model.buffers.borrow();
                let frame = &bytes[(address(buffer) - BUFFERS_AT) as usize..][..length];
                match fault {
                    Some(reason) => drop(demux.refuse(buffer, reason)),
                    None => drop(demux.arrive(buffer, frame)),
                }
            }
            while nic.has_room() {
                let buffer = demux.refill().expect("a quota and a ring are fewer than all");
                nic.offer(buffer, address(buffer));
            }
            nic.publish();
            nic.arm();
        }
        if random.one_in(2)
            && let Some(post) = reader.peek()
        {
            let bytes = model.buffers.borrow();
            let frame = &bytes[(address(post.buffer) - BUFFERS_AT) as usize..];
            let came = u32::from_le_bytes(*frame.first_chunk().unwrap());
            assert!(came >= expected, "a frame came twice, or was overwritten");
            expected = came + 1;
            delivered += 1;
            reader.done();
        }
    }
    while let Some(Taken { buffer, fault, .. }) = nic.take() {
        refused += u64::from(fault == Some(Discard::Long));
        demux.refuse(buffer, fault.unwrap_or(Discard::Short));
    }
    assert_eq!(u64::from(nic.lost()), lost);
    assert_eq!(nic.lost(), 0);
    let counts = demux.counts();
    let long = counts.discarded(Discard::Long);
    assert!(long > 0 && counts.discarded(Discard::Damaged) > 0 && refused <= long);
    // Each frame is counted once, but a long one once for each of its two to five pieces.
    assert!(counts.offered - long <= offered - lost && offered - lost < counts.offered);
    assert!(delivered > 300);
    (offered, lost)
}

#[test]
fn frames_are_taken_in_order_or_counted() {
    let mut lost = 0;
    for seed in 0..20 {
        let both = [random_run(seed, false), random_run(seed, true)];
        assert_eq!(both[0], both[1]);
        lost += both[0].1;
    }
    assert!(lost > 0, "the ring was never empty");
}

#[test]
fn an_armed_adapter_interrupts_once_and_at_once_if_a_frame_waits() {
    let model = Model::new(true);
    let (mut nic, _) = started(&model);
    for buffer in 0..8 {
        nic.offer(buffer, address(buffer));
    }
    nic.publish();
    let came = || model.interrupts.get();
    assert!(model.arrive(&[0; 60], false));
    assert_eq!(came(), 0, "it is not armed");
    nic.arm();
    assert_eq!(came(), 1, "a frame waits");
    assert!(model.arrive(&[0; 60], false));
    assert_eq!(came(), 1, "one interrupt until it is armed again");
    assert!(nic.take().is_some() && nic.take().is_some() && nic.take().is_none());
    nic.arm();
    assert_eq!(came(), 2, "the second frame came since the first interrupt");
    nic.arm();
    assert_eq!(came(), 2);
}

#[test]
fn the_ring_takes_all_buffers_but_one_and_its_address_is_set() {
    let model = Model::new(false);
    let (mut nic, _) = started(&model);
    let mut count = 0;
    while nic.has_room() {
        nic.offer(count, address(count));
        count += 1;
    }
    nic.offer(200, address(200));
    nic.publish();
    assert_eq!(usize::from(count), RING - 1);
    assert_eq!(model.get(register::RDT), RING as u32 - 1);
    assert_eq!((model.get(register::RAL), model.get(register::RAH)), (2, 0x8000_0200));
    (0..RING - 1).for_each(|_| assert!(model.arrive(&[0; 60], false)));
    assert!(!model.arrive(&[0; 60], false));
    let buffers: Vec<u16> = core::iter::from_fn(|| nic.take()).map(|taken| taken.buffer).collect();
    assert_eq!(buffers, (0..count).collect::<Vec<u16>>());
}

#[test]
fn frames_are_sent_in_order_and_a_full_ring_says_so() {
    let model = Model::new(true);
    let (_, mut nic) = started(&model);
    for number in 0..200 {
        assert!(nic.send(address(number), 60 + number));
        assert_eq!(nic.settle(), 0);
    }
    let expected: Vec<(u64, usize)> = (0..200).map(|n| (address(n), 60 + usize::from(n))).collect();
    assert_eq!(*model.sent.borrow(), expected);
    // An adapter that sends nothing, because its link is down.
    let still = Still(Model::new(true));
    let (_, mut nic) = adapter::start(&still, [&still.0; 2], MAC);
    (1..RING).for_each(|_| assert!(nic.send(address(0), 60)));
    assert!(!nic.send(address(0), 60));
    assert_eq!(nic.settle(), RING - 1);
}

struct Still(Model);

impl AdapterRegisters for &Still {
    fn read(&self, register: usize) -> u32 {
        AdapterRegisters::read(&&self.0, register)
    }

    fn write(&self, register: usize, value: u32) {
        if register != register::TDT {
            AdapterRegisters::write(&&self.0, register, value);
        }
    }
}

//! The driver of the debug capability: on the model of a controller, with another computer at the
//! cable, and on registers and memory that say anything.

use diapason_abi::Nanos;
use diapason_devices::{Answer, Handshake, UsbDevice};
use diapason_random::Random;
use diapason_usb::class::link::Link;
use diapason_usb::debug_target::{
    Absent, BYTES, DebugTarget, LinkDirection, TargetEvent, TargetIdentity,
};
use diapason_usb::descriptor::Configuration;
use diapason_usb::setup::descriptor_type::{CONFIGURATION, STRING};
use diapason_usb::trb::{Completion, Kind, Trb};
use diapason_usb::xhci::{Buffer, Dma, Mmio};
use diapason_usb::{Setup, Speed};
use diapason_xhc::{Config, DebugConfig, Denied, Memory, Xhc};
use std::cell::RefCell;
use std::rc::Rc;

const BASE: u64 = 0x1_0000;
const ROOM: usize = 0x8_0000;
const DATA: u64 = 0x1_0000;
const IDENTITY: TargetIdentity = TargetIdentity {
    vendor: 0x1d6b,
    product: 0x0010,
    version: 0x0010,
    protocol: 0,
    texts: ["Diapason", "Debug target", "0001"],
};

struct Ram(Vec<u8>);

impl Ram {
    fn range(address: u64, length: usize) -> Result<std::ops::Range<usize>, Denied> {
        let start = address.checked_sub(BASE).ok_or(Denied)? as usize;
        let end = start.checked_add(length).filter(|end| *end <= ROOM).ok_or(Denied)?;
        Ok(start..end)
    }
}

impl Memory for Ram {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Denied> {
        bytes.copy_from_slice(&self.0[Ram::range(address, bytes.len())?]);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Denied> {
        self.0[Ram::range(address, bytes.len())?].copy_from_slice(bytes);
        Ok(())
    }
}

/// A controller and its memory, seen by the driver.
#[derive(Clone)]
struct Hardware(Rc<RefCell<(Xhc, Ram, Nanos)>>);

impl Mmio for Hardware {
    fn length(&self) -> u64 {
        diapason_xhc::WINDOW
    }

    fn read32(&mut self, offset: u64) -> u32 {
        let (xhc, _, now) = &*self.0.borrow();
        xhc.read(offset, *now)
    }

    fn write32(&mut self, offset: u64, value: u32) {
        let (xhc, ram, now) = &mut *self.0.borrow_mut();
        xhc.write(offset, value, *now, ram);
    }
}

impl Dma for Hardware {
    fn base(&self) -> u64 {
        BASE
    }

    fn length(&self) -> u64 {
        ROOM as u64
    }

    fn load(&self, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        self.read(offset, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn store(&mut self, offset: u64, value: u32) {
        self.write(offset, &value.to_le_bytes());
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        let at = offset as usize;
        bytes.copy_from_slice(&self.0.borrow().1.0[at..at + bytes.len()]);
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let at = offset as usize;
        self.0.borrow_mut().1.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// The target, and what the other computer has at its end of the cable.
struct Pair {
    hardware: Hardware,
    target: DebugTarget<Hardware, Hardware>,
    partner: Box<dyn UsbDevice>,
    told: Vec<TargetEvent>,
}

impl Pair {
    fn new() -> Pair {
        let debug = DebugConfig { port: 4, burst: 0, first_endpoint: 2, survives_reset: false };
        let mut xhc = Xhc::new(Config { debug: Some(debug), ..Config::default() });
        let partner = xhc.debug_partner(Nanos::from_micros(1), &Default::default()).unwrap();
        let hardware = Hardware(Rc::new(RefCell::new((xhc, Ram(vec![0; ROOM]), Nanos::ZERO))));
        let target = DebugTarget::new(hardware.clone(), hardware.clone(), IDENTITY).unwrap();
        let mut pair = Pair { hardware, target, partner, told: Vec::new() };
        pair.look();
        pair
    }

    /// Time passes, and the target looks.
    fn look(&mut self) {
        let now = self.now() + Nanos::from_micros(10);
        {
            let (xhc, ram, time) = &mut *self.hardware.0.borrow_mut();
            xhc.advance(now, ram);
            *time = now;
        }
        self.partner.advance(now);
        self.target.poll(&mut |told| self.told.push(told));
    }

    fn now(&self) -> Nanos {
        self.hardware.0.borrow().2
    }

    fn take(&mut self) -> Vec<TargetEvent> {
        std::mem::take(&mut self.told)
    }

    /// Does what the other computer does when it finds a device.
    fn configure(&mut self) {
        let now = self.now();
        self.partner.reset(now);
        // A reset of a target that is known takes its time.
        (0..200).for_each(|_| self.look());
        let now = self.now();
        self.partner.control(now, Setup::set_configuration(1), &[]).unwrap();
        (0..3).for_each(|_| self.look());
        assert!(self.target.is_configured());
    }

    fn give(&mut self, number: u64, bytes: &[u8]) -> bool {
        let at = DATA + number * 0x1_0000;
        self.hardware.write(at, bytes);
        let buffer = Buffer { address: BASE + at, length: bytes.len() as u32 };
        self.target.submit(LinkDirection::Out, buffer, number)
    }

    fn lend(&mut self, number: u64, length: u32) -> bool {
        let address = BASE + DATA + number * 0x1_0000;
        self.target.submit(LinkDirection::In, Buffer { address, length }, number)
    }

    /// Packets that the other computer reads.
    fn fetch(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let mut buffer = [0; 1024];
        while let Answer::Data(count) = self.partner.send(self.now(), 0x81, &mut buffer) {
            packets.push(buffer[..count].to_vec());
        }
        packets
    }
}

#[test]
fn a_controller_without_it_is_refused() {
    let xhc = Xhc::new(Config::default());
    let hardware = Hardware(Rc::new(RefCell::new((xhc, Ram(vec![0; ROOM]), Nanos::ZERO))));
    assert_eq!(DebugTarget::new(hardware.clone(), hardware, IDENTITY).err(), Some(Absent));
}

#[test]
fn the_other_computer_finds_a_debug_device() {
    let mut pair = Pair::new();
    assert!(!pair.partner.is_there());
    pair.look();
    assert!(pair.partner.is_there());
    let now = pair.now();
    let mut get = |kind, index| {
        pair.partner.control(now, Setup::get_descriptor(kind, index, 0, 255), &[]).unwrap()
    };
    assert_eq!(get(STRING, 0), [4, 3, 9, 4]);
    let name: Vec<u8> = "Debug target".bytes().flat_map(|byte| [byte, 0]).collect();
    assert_eq!(get(STRING, 2)[2..], name);
    let bytes = get(CONFIGURATION, 0);
    assert!(Link::find(&Configuration::parse_once(&bytes, Speed::Super).unwrap()).is_some());
    pair.configure();
    assert_eq!(pair.take(), [TargetEvent::Configured]);
}

#[test]
fn messages_go_both_ways() {
    let mut pair = Pair::new();
    pair.configure();
    pair.take();
    let message: Vec<u8> = (0..3_000).map(|at| at as u8).collect();
    assert!(pair.give(0, &message) && pair.lend(1, 2_048));
    (0..3).for_each(|_| pair.look());
    let packets = pair.fetch();
    assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [1_024, 1_024, 952]);
    assert_eq!(packets.concat(), message);
    assert_eq!(pair.partner.receive(pair.now(), 1, &[7; 100]), Handshake::Ack);
    (0..3).for_each(|_| pair.look());
    let done = |way, cookie, moved| TargetEvent::Done { way, cookie, moved: Some(moved) };
    assert_eq!(pair.take(), [done(LinkDirection::Out, 0, 3_000), done(LinkDirection::In, 1, 100)]);
    let mut came = [0; 101];
    pair.hardware.read(DATA + 0x1_0000, &mut came);
    assert_eq!((&came[..100], came[100]), (&[7; 100][..], 0));
}

#[test]
fn rings_go_round_and_are_never_overfull() {
    let mut pair = Pair::new();
    pair.configure();
    pair.take();
    let mut done = 0;
    for round in 0..10 {
        let given = (0..200).take_while(|_| pair.give(0, &[round; 10])).count();
        assert_eq!(given, 62);
        for _ in 0..20 {
            pair.look();
            pair.look();
            assert!(pair.fetch().iter().all(|packet| packet[..] == [round; 10]));
        }
        done += given;
        assert_eq!(pair.take().len(), given);
    }
    assert_eq!(done, 620);
}

#[test]
fn memory_that_one_block_cannot_describe_is_refused() {
    let mut pair = Pair::new();
    let mut submit = |address, length| {
        pair.target.submit(LinkDirection::In, Buffer { address: BASE + address, length }, 0)
    };
    assert!(!submit(0x1_8000, 0x8001) && !submit(0x1_0000, 0));
    assert!(submit(0x1_8000, 0x8000));
}

#[test]
fn what_is_queued_goes_on_when_the_other_computer_begins_anew() {
    let mut pair = Pair::new();
    pair.configure();
    assert!(pair.give(0, &[1; 10]) && pair.give(1, &[2; 10]));
    pair.configure();
    let states: Vec<TargetEvent> = pair.take().into_iter().collect();
    assert_eq!(states, [TargetEvent::Configured, TargetEvent::Left, TargetEvent::Configured]);
    (0..3).for_each(|_| pair.look());
    assert_eq!(pair.fetch(), [[1; 10], [2; 10]]);
}

#[test]
fn a_reset_of_the_controller_is_survived() {
    let mut pair = Pair::new();
    pair.configure();
    assert!(pair.give(0, &[1; 10]));
    // Reset: what the driver of the controller's other half does.
    let operational = u64::from(pair.hardware.read32(0) & 0xff);
    pair.hardware.write32(operational, 2);
    (0..300).for_each(|_| pair.look());
    assert!(!pair.target.is_configured() && pair.partner.is_there());
    pair.configure();
    (0..3).for_each(|_| pair.look());
    assert_eq!(pair.fetch(), [[1; 10]]);
}

/// Registers and memory without a controller behind them.
#[derive(Clone)]
struct Chaos(Rc<RefCell<(Vec<u32>, Random)>>);

impl Mmio for Chaos {
    fn length(&self) -> u64 {
        0x1000
    }

    fn read32(&mut self, offset: u64) -> u32 {
        let random = &mut self.0.borrow_mut().1;
        match offset {
            0x10 => 0x20 << 16,
            0x80 => 10,
            _ if random.one_in(50) => u32::MAX,
            // Enabled and running, mostly.
            _ => random.bits() as u32 | if random.one_in(10) { 0 } else { 1 << 31 | 1 },
        }
    }

    fn write32(&mut self, _: u64, _: u32) {}
}

impl Dma for Chaos {
    fn base(&self) -> u64 {
        BASE
    }

    fn length(&self) -> u64 {
        BYTES
    }

    fn load(&self, offset: u64) -> u32 {
        self.0.borrow().0[offset as usize / 4]
    }

    fn store(&mut self, offset: u64, value: u32) {
        self.0.borrow_mut().0[offset as usize / 4] = value;
    }

    fn read(&self, _: u64, _: &mut [u8]) {}

    fn write(&mut self, _: u64, _: &[u8]) {}
}

/// Returns an event about a block of a ring, or about nothing.
fn event(random: &mut Random) -> Trb {
    let code = random.pick(&[
        Completion::Success,
        Completion::ShortPacket,
        Completion::Transaction,
        Completion::Stall,
    ]);
    let at = if random.one_in(10) { random.bits() } else { BASE + 0x400 + 16 * random.below(140) };
    let kind = random.pick(&[Kind::TransferEvent, Kind::TransferEvent, Kind::PortStatusChange]);
    Trb::new(kind, at, Trb::event_status(code, random.below(3_000) as u32), 0)
}

#[test]
fn whatever_the_hardware_says() {
    let mut random = Random::new(9);
    let mut done = 0;
    for seed in 0..200 {
        let memory = vec![0; BYTES as usize / 4];
        let chaos = Chaos(Rc::new(RefCell::new((memory, Random::new(seed)))));
        let mut target = DebugTarget::new(chaos.clone(), chaos.clone(), IDENTITY).unwrap();
        let mut waiting = std::collections::BTreeMap::new();
        for cookie in 0..500 {
            let way = random.pick(&[LinkDirection::Out, LinkDirection::In]);
            let length = 1 + random.below(2_000) as u32;
            if target.submit(way, Buffer { address: 0, length }, cookie) {
                waiting.insert(cookie, (way, length));
            }
            let cycle = random.one_in(2);
            let (place, event) = (0x400 + 4 * random.index(256), event(&mut random));
            for (at, word) in (place..).zip(event.with_cycle(cycle).words()) {
                chaos.0.borrow_mut().0[at] = word;
            }
            target.poll(&mut |told| {
                let TargetEvent::Done { way, cookie, moved } = told else { return };
                let (as_given, length) = waiting.remove(&cookie).expect("told twice");
                assert!(as_given == way && moved.is_none_or(|moved| moved <= length));
                done += 1;
            });
        }
    }
    assert!(done > 1_000, "{done}");
}

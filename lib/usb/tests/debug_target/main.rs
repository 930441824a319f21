//! The driver of the debug capability: on the model of a controller, with another computer at the
//! cable, and on registers and memory that say anything.

mod faults;
mod pair;

use diapason_abi::Nanos;
use diapason_devices::Handshake;
use diapason_random::Random;
use diapason_usb::Setup;
use diapason_usb::Speed;
use diapason_usb::class::link::Link;
use diapason_usb::debug_target::{Absent, BYTES, DebugTarget, LinkDirection, TargetEvent};
use diapason_usb::descriptor::Configuration;
use diapason_usb::setup::descriptor_type::{CONFIGURATION, STRING};
use diapason_usb::trb::{Completion, Kind, Trb};
use diapason_usb::xhci::{Buffer, Dma, Mmio};
use diapason_xhc::{Config, Xhc};
use pair::{BASE, DATA, Hardware, IDENTITY, Pair, ROOM, Ram};
use std::cell::RefCell;
use std::rc::Rc;

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
fn a_target_that_looks_away_while_it_is_configured_anew_goes_on() {
    let mut pair = Pair::new();
    pair.configure();
    assert!(pair.give(0, &[1; 10]) && pair.lend(1, 1_024));
    pair.look();
    for configuration in [0, 1] {
        let now = pair.now();
        pair.partner.control(now, Setup::set_configuration(configuration), &[]).unwrap();
        pair.pass();
    }
    (0..3).for_each(|_| pair.look());
    let states: Vec<TargetEvent> = pair.take();
    assert_eq!(states, [TargetEvent::Configured, TargetEvent::Left, TargetEvent::Configured]);
    assert_eq!(pair.fetch(), [[1; 10]]);
    assert_eq!(pair.partner.receive(pair.now(), 1, &[7; 100]), Handshake::Ack);
}

#[test]
fn a_configuration_that_is_chosen_twice_loses_nothing() {
    let mut pair = Pair::new();
    pair.configure();
    assert!(pair.give(0, &[1; 10]) && pair.lend(1, 1_024));
    (0..3).for_each(|_| pair.look());
    let now = pair.now();
    pair.partner.control(now, Setup::set_configuration(1), &[]).unwrap();
    (0..3).for_each(|_| pair.look());
    assert_eq!(pair.fetch(), [[1; 10]]);
    assert_eq!(pair.partner.receive(pair.now(), 1, &[7; 100]), Handshake::Ack);
}

/// The host clears the halt before the target looks again.
#[test]
fn a_ring_that_was_halted_between_two_looks_goes_on() {
    let mut pair = Pair::new();
    pair.configure();
    assert!(pair.give(0, &[1; 10]) && pair.lend(1, 1_024));
    (0..3).for_each(|_| pair.look());
    pair.take();
    let control = diapason_xhc::EXTENDED + 0x30 + 0x20;
    pair.hardware.write32(control, 1 << 31 | 3 << 2);
    pair.pass();
    let now = pair.now();
    assert_eq!(pair.partner.receive(now, 1, &[7; 100]), Handshake::Stall);
    for endpoint in [0x81, 1] {
        pair.partner.control(now, Setup::clear_halt(endpoint), &[]).unwrap();
    }
    pair.pass();
    (0..3).for_each(|_| pair.look());
    assert_eq!(pair.fetch(), [[1; 10]]);
    assert_eq!(pair.partner.receive(pair.now(), 1, &[7; 100]), Handshake::Ack);
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

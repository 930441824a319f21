//! Drivers that do anything: random registers, random rings. No panic, no work without time.

use crate::support::{Driver, Plan, Shared, bulk, portsc};
use diapason_abi::Nanos;
use diapason_devices::{Answer, Handshake};
use diapason_random::Random;
use diapason_usb::context::EndpointKind;
use diapason_usb::trb::{Completion, Kind, Trb};
use diapason_usb::{Setup, Speed};
use diapason_xhc::{Config, DebugConfig, Disturbance};

const DEBUG: DebugConfig =
    DebugConfig { port: 5, burst: 0, first_endpoint: 0, survives_reset: true };

fn chaos(random: &mut Random) -> Shared {
    let speeds = [Speed::Low, Speed::Full, Speed::High, Speed::Super];
    let gadget = Shared::new(random.pick(&speeds));
    let answers = [Answer::Nak, Answer::Stall, Answer::Error, Answer::Data(3), Answer::Data(9999)];
    let says = [Handshake::Ack, Handshake::Nak, Handshake::Stall, Handshake::Error];
    {
        let mut inner = gadget.0.borrow_mut();
        for endpoint in 1..16 {
            let list = (0..random.below(20)).map(|_| random.pick(&answers)).collect();
            inner.answers.insert(0x80 | endpoint, list);
            inner.says.insert(endpoint, random.pick(&says));
        }
        inner.endless.extend([0x81, 0x83]);
    }
    gadget
}

/// Offsets that mean something more often than not.
fn offset(random: &mut Random) -> u64 {
    match random.below(7) {
        6 => diapason_xhc::EXTENDED + 4 * random.below(30),
        0 => 0x80 + 4 * random.below(16),
        1 => portsc(1 + random.below(9) as u8) + 4 * random.below(4),
        2 => diapason_xhc::RUNTIME + 4 * random.below(80),
        3 | 4 => diapason_xhc::DOORBELLS + 4 * random.below(6),
        _ => random.below(0x1_0100),
    }
}

fn value(random: &mut Random) -> u32 {
    match random.below(5) {
        4 => !(random.below(16) as u32 * 16),
        0 => random.below(32) as u32,
        1 => 1 << random.below(32),
        2 => 0x10_0000 + 64 * random.below(0x1000) as u32,
        _ => random.bits() as u32,
    }
}

#[test]
fn random_registers_never_hang_it() {
    let mut steps = 0u64;
    for case in 0..60 {
        let mut random = Random::stream(1, case);
        let mut driver =
            Driver::running(Config { firmware: true, debug: Some(DEBUG), ..Config::default() });
        for _ in 0..700 {
            match random.below(40) {
                0 => {
                    let (port, device) = (random.below(10) as u8, chaos(&mut random));
                    driver.xhc.attach(port, device.boxed(), driver.now, &mut driver.ram);
                }
                1 => drop(driver.xhc.detach(random.below(10) as u8, driver.now, &mut driver.ram)),
                2 => driver.xhc.disturb(Disturbance::Delayed(Nanos(random.below(1000)))),
                3 => driver.xhc.lose_link(driver.now, &mut driver.ram, random.below(10) as u8),
                4 => driver.run_for(Nanos(random.below(3_000_000))),
                // A controller that resets all the time does nothing else.
                5 => driver.write(0x80, 5),
                _ => {
                    let (at, mut value) = (offset(&mut random), value(&mut random));
                    value &= if at == 0x80 { !2 } else { !0 };
                    driver.write(at, value);
                    let _ = driver.read(at);
                    steps += 1;
                }
            }
        }
    }
    assert!(steps > 30_000);
}

/// A block of a ring: the right kinds with wrong contents, links into the same memory.
fn block(random: &mut Random, base: u64, index: u8) -> Trb {
    let kind = match random.below(10) {
        0..6 if index == 1 => 2 + random.below(3) as u32,
        0..4 if index >= 6 => Kind::Isoch as u32,
        0..6 => Kind::Normal as u32,
        6 => 1 + random.below(8) as u32,
        7 => Kind::Link as u32,
        _ => random.below(64) as u32,
    };
    let near = base + 16 * random.below(64);
    let parameter = if random.one_in(20) { random.bits() } else { near };
    let length = if random.one_in(10) { random.bits() as u32 } else { random.below(5000) as u32 };
    let flags = random.bits() as u32 & !(0x3f << 10);
    Trb { parameter, status: length, control: flags | kind << 10 }
}

const PLANS: [EndpointKind; 6] = [
    EndpointKind::BulkOut,
    EndpointKind::BulkIn,
    EndpointKind::InterruptOut,
    EndpointKind::InterruptIn,
    EndpointKind::IsochOut,
    EndpointKind::IsochIn,
];

fn plans() -> Vec<Plan> {
    let plan = |(i, kind): (u8, &EndpointKind)| Plan {
        kind: *kind,
        interval: u32::from(i % 3),
        payload: 1024,
        ..bulk(2 + i, 1024, 0)
    };
    (0..).zip(&PLANS).map(plan).collect()
}

#[test]
fn random_rings_never_hang_it() {
    let mut ends = [0u32; 64];
    for case in 0..120 {
        let mut random = Random::stream(2, case);
        let mut driver = Driver::running(Config::default());
        let gadget = chaos(&mut random);
        gadget.0.borrow_mut().speed = Speed::Super;
        let slot = driver.connect(5, gadget.boxed());
        assert_eq!(driver.configure(slot, &plans()), Completion::Success);
        for _ in 0..60 {
            let index = 1 + random.below(7) as u8;
            let ring = driver.rings[&(slot, index)];
            for i in 0..64 {
                let words = block(&mut random, ring.base, index).words();
                driver.ram.put_words(ring.base + 16 * i, &words);
            }
            driver.doorbell(slot, index);
            driver.run_for(Nanos(random.below(400_000)));
            for event in driver.take(0) {
                ends[(event.status >> 24) as usize & 63] += 1;
            }
            if !recover(&mut driver, &mut random, slot, index) {
                break;
            }
        }
    }
    let seen = ends.iter().filter(|&&count| count > 0).count();
    assert!(seen >= 12, "only {seen} ways to end: {ends:?}");
}

/// Brings an endpoint back by the book; false if the controller halted on the way.
fn recover(driver: &mut Driver, random: &mut Random, slot: u8, index: u8) -> bool {
    let ring = driver.rings[&(slot, index)].base;
    let place = Trb::place(slot, index);
    let set = Trb::new(Kind::SetDequeue, (ring + 16 * random.below(64)) | 1, 0, place);
    let blocks = [
        Trb::new(Kind::ResetEndpoint, 0, 0, place),
        Trb::new(Kind::StopEndpoint, 0, 0, place),
        set,
    ];
    for block in blocks {
        if driver.read(0x84) & 1 == 1 {
            return false;
        }
        let mut commands = driver.commands;
        driver.push(&mut commands, block);
        driver.commands = commands;
        driver.write(diapason_xhc::DOORBELLS, 0);
        driver.run_for(Nanos::from_micros(10));
    }
    true
}

const BASE: u64 = diapason_xhc::EXTENDED + 0x30;

/// A debug capability that is on, its rings in random memory; where its events go.
fn debug_target(random: &mut Random) -> (Driver, u64) {
    let mut target = Driver::cold(Config { debug: Some(DEBUG), ..Config::default() });
    let area = target.ram.take(0x1_0000, 0x1_0000);
    for i in 0..0x200 {
        let words = block(random, area, 3).words();
        target.ram.put_words(area + 16 * i, &words);
    }
    let (events, table) = (target.ram.take(16 * 64, 64), target.ram.take(16, 64));
    target.ram.put_words(table, &[events as u32, 0, 64, 0]);
    let context = target.ram.take(192, 64);
    for ring in [0x48, 0x88] {
        let at = area + 16 * random.below(0x200);
        target.ram.put_words(context + ring, &[at as u32 | 1, 0]);
    }
    target.write(BASE + 0x08, 1);
    for (register, value) in [(0x18, events), (0x10, table), (0x30, context)] {
        target.write64(BASE + register, value);
    }
    target.write(BASE + 0x20, 1 << 31);
    (target, events)
}

/// The debug capability on random memory, with a host that reads and writes all the time.
#[test]
fn random_debug_rings_never_hang_it() {
    let mut seen = 0;
    for case in 0..80 {
        let mut random = Random::stream(3, case);
        let (mut target, events) = debug_target(&mut random);
        let mut partner = target.xhc.debug_partner(Nanos::ZERO, &Default::default()).unwrap();
        partner.reset(target.now);
        let _ = partner.control(target.now, Setup::set_configuration(1), &[]);
        for _ in 0..200 {
            let (now, mut packet) = (target.now, [0; 1024]);
            match random.below(6) {
                0 => drop(partner.control(now, Setup::clear_halt(random.pick(&[1, 0x81])), &[])),
                1 => drop(partner.receive(now, 1, &packet[..random.index(1025)])),
                2 => drop(partner.send(now, 0x81, &mut packet)),
                3 if random.one_in(20) => partner.reset(now),
                3 => drop(partner.control(now, Setup::set_configuration(1), &[])),
                4 => target.write(BASE + 4, random.below(2) as u32 * 256),
                _ => target.write(BASE + 0x18, events as u32 + 16 * random.below(64) as u32),
            }
            if random.one_in(30) {
                target.write(BASE + 0x20, value(&mut random) | 1 << 31);
            }
            target.write(BASE + 0x1c, 0);
            target.run_for(Nanos(random.below(2000)));
        }
        let first: [u32; 4] = target.ram.words(events);
        seen += usize::from(first != [0; 4]);
    }
    assert!(seen > 50, "only {seen} cases made an event");
}

//! Hostile devices: each known trick is refused by its name, and whatever bytes come, reading ends
//! without a panic; what is accepted is sound.

use diapason_bus::{BusInstance, Criticality, EndpointId};
use diapason_random::Random;
use diapason_usb::Speed;
use diapason_usb::descriptor::build::{
    Configuration as Make, Interface, bos, bulk, interrupt, isochronous, languages, text,
};
use diapason_usb::descriptor::{
    Bos, Configuration, ConfigurationHeader, DescriptorFlaw, DescriptorRefusal, DeviceDescriptor,
    Hid, HubDescriptor, Items, Languages, Text, Walk,
};

const SPEEDS: [Speed; 4] = [Speed::Low, Speed::Full, Speed::High, Speed::Super];

fn pair(number: u8) -> Interface {
    Interface::new(number)
        .class(0xff, 0, 0)
        .endpoint(bulk(0x81 + number, 512))
        .endpoint(bulk(1 + number, 512))
}

fn refused(bytes: &[u8], speed: Speed) -> DescriptorFlaw {
    Configuration::parse_once(bytes, speed).map(|_| ()).unwrap_err().reason
}

/// A set with one byte changed; the bytes of `pair(0)` alone: configuration 0, interface 9,
/// endpoints 18 and 25, 32 in all.
fn with(at: usize, value: u8) -> DescriptorFlaw {
    let mut bytes = Make::new(1).with(pair(0)).bytes(Speed::High);
    bytes[at] = value;
    refused(&bytes, Speed::High)
}

#[test]
fn lengths_that_lie() {
    assert_eq!(with(0, 0), DescriptorFlaw::Short { length: 0, needed: 2 });
    assert_eq!(with(0, 255), DescriptorFlaw::PastEnd { length: 255, left: 32 });
    assert_eq!(with(0, 8), DescriptorFlaw::Short { length: 8, needed: 9 });
    for total in [0, 9] {
        assert_eq!(with(2, total), DescriptorFlaw::Short { length: total.into(), needed: 18 });
    }
    assert_eq!(with(3, 0xff), DescriptorFlaw::PastEnd { length: 0xff20, left: 32 });
    assert_eq!(with(2, 31), DescriptorFlaw::PastEnd { length: 7, left: 6 });
    assert_eq!(with(9, 0), DescriptorFlaw::Short { length: 0, needed: 2 });
    assert_eq!(with(9, 1), DescriptorFlaw::Short { length: 1, needed: 2 });
    assert_eq!(with(18, 6), DescriptorFlaw::Short { length: 6, needed: 7 });
    assert_eq!(with(25, 8), DescriptorFlaw::PastEnd { length: 8, left: 7 });
}

#[test]
fn interfaces_that_lie() {
    assert_eq!(with(4, 0), DescriptorFlaw::InterfaceCount(0));
    assert_eq!(with(4, 255), DescriptorFlaw::InterfaceCount(255));
    assert_eq!(with(4, 2), DescriptorFlaw::InterfacesMissing { said: 2, found: 1 });
    assert_eq!(with(11, 1), DescriptorFlaw::InterfaceNumber(1));
    assert_eq!(with(12, 1), DescriptorFlaw::AlternatesMissing(0));
    assert_eq!(with(12, 64), DescriptorFlaw::Alternate(64));
    assert_eq!(with(13, 3), DescriptorFlaw::EndpointCount { said: 3, found: 2 });
    assert_eq!(with(10, 0x24), DescriptorFlaw::Orphan);
    let refuse = |make: Make| refused(&make.bytes(Speed::High), Speed::High);
    assert_eq!(refuse(Make::new(1).with(pair(0)).with(pair(0))), DescriptorFlaw::Alternate(0));
    let gap = Make::new(1).with(pair(0)).with(pair(0).alternate(2));
    assert_eq!(refuse(gap), DescriptorFlaw::AlternatesMissing(0));
    let shared = Interface::new(1).endpoint(bulk(1, 512));
    assert_eq!(refuse(Make::new(1).with(pair(0)).with(shared)), DescriptorFlaw::EndpointTwice(1));
    let twice = Interface::new(0).endpoint(bulk(1, 512)).endpoint(bulk(1, 512));
    assert_eq!(refuse(Make::new(1).with(twice)), DescriptorFlaw::EndpointTwice(1));
    for (first, count) in [(0, 0), (0, 2), (1, 1), (255, 255)] {
        let make = Make::new(1).association(first, count, [0; 3]).with(pair(0));
        assert_eq!(refuse(make), DescriptorFlaw::Association(first));
    }
    let overlap = Make::new(1).association(0, 2, [0; 3]).with(pair(0));
    let overlap = overlap.association(1, 1, [0; 3]).with(pair(1));
    assert_eq!(refuse(overlap), DescriptorFlaw::Association(1));
}

#[test]
fn endpoints_that_lie() {
    assert_eq!(with(20, 0), DescriptorFlaw::EndpointAddress(0));
    assert_eq!(with(20, 0x80), DescriptorFlaw::EndpointAddress(0x80));
    assert_eq!(with(20, 0x91), DescriptorFlaw::EndpointAddress(0x91));
    assert_eq!(with(21, 0), DescriptorFlaw::EndpointType(0));
    assert_eq!(with(21, 3), DescriptorFlaw::Interval(0));
    assert_eq!(with(23, 0), DescriptorFlaw::PacketSize(0));
    assert_eq!(with(23, 0x0a), DescriptorFlaw::PacketSize(0x0a00));
    assert_eq!(with(23, 0x42), DescriptorFlaw::PacketSize(0x4200));
    let make = |endpoint| Make::new(1).with(Interface::new(0).endpoint(endpoint));
    let high = |endpoint| refused(&make(endpoint).bytes(Speed::High), Speed::High);
    assert_eq!(high(isochronous(0x81, 1024, 1).bursts(3, 0)), DescriptorFlaw::PacketSize(0x1c00));
    for interval in [0, 17, 255] {
        assert_eq!(high(isochronous(0x81, 1024, interval)), DescriptorFlaw::Interval(interval));
    }
    let zero = Make::new(1)
        .with(Interface::new(0))
        .with(Interface::new(0).alternate(1).endpoint(isochronous(0x81, 0, 1)));
    assert_eq!(refused(&zero.bytes(Speed::High), Speed::High), DescriptorFlaw::PacketSize(0));
}

#[test]
fn companions_that_lie() {
    let make = |endpoint| Make::new(1).with(Interface::new(0).endpoint(endpoint));
    let refuse = |endpoint| refused(&make(endpoint).bytes(Speed::Super), Speed::Super);
    let video = isochronous(0x81, 1024, 1);
    let missing = make(bulk(1, 1024)).bytes(Speed::High);
    assert_eq!(refused(&missing, Speed::Super), DescriptorFlaw::Companion);
    let present = make(isochronous(1, 1024, 1)).bytes(Speed::Super);
    assert_eq!(refused(&present, Speed::High), DescriptorFlaw::Companion);
    let mut twice = present.clone();
    twice.extend_from_within(25..);
    twice[2] += 6;
    assert_eq!(refused(&twice, Speed::Super), DescriptorFlaw::Companion);
    assert_eq!(refuse(bulk(1, 1024).bursts(255, 0)), DescriptorFlaw::Burst(255));
    assert_eq!(refuse(interrupt(1, 1024, 1).bursts(3, 0)), DescriptorFlaw::Burst(3));
    assert_eq!(refuse(video.bursts(1, 3)), DescriptorFlaw::Burst(3));
    assert_eq!(refuse(video.bursts(0, 1)), DescriptorFlaw::Burst(1));
    let mut streams = bulk(1, 1024);
    streams.streams = 0x83;
    assert_eq!(refuse(streams), DescriptorFlaw::Burst(0x83));
    for bytes in [0, 1025] {
        let mut wrong = video;
        wrong.interval_bytes = Some(bytes);
        assert_eq!(refuse(wrong), DescriptorFlaw::IntervalBytes(bytes.into()));
    }
}

/// Sets of all speeds to be damaged.
fn samples() -> Vec<(Vec<u8>, Speed)> {
    let composite = |speed: Speed, packet| {
        let control = Interface::new(0).class(2, 2, 1).extra(0x24, &[0, 0x10, 1]);
        let data = Interface::new(1).class(10, 0, 0);
        Make::new(1)
            .association(0, 2, [2, 2, 1])
            .with(control.endpoint(interrupt(0x83, 16, 9)))
            .with(data.endpoint(bulk(2, packet)).endpoint(bulk(0x82, packet)))
            .with(Interface::new(2).class(14, 2, 0))
            .with(Interface::new(2).alternate(1).endpoint(isochronous(0x84, 512, 1)))
            .with(Interface::new(2).alternate(2).endpoint(isochronous(0x84, 1023, 1)))
            .with(
                Interface::new(3).class(3, 1, 1).hid(0x111, 0, 63).endpoint(interrupt(0x85, 8, 8)),
            )
            .bytes(speed)
    };
    let keyboard = Make::new(1)
        .with(Interface::new(0).class(3, 1, 1).hid(0x111, 0, 63).endpoint(interrupt(0x81, 8, 10)));
    vec![
        (keyboard.bytes(Speed::Low), Speed::Low),
        (composite(Speed::Full, 64), Speed::Full),
        (composite(Speed::High, 512), Speed::High),
        (composite(Speed::Super, 1024), Speed::Super),
    ]
}

/// Changes, cuts, doubles and moves bytes; keeps the total right now and then, to get further.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..random.within(1, 4) {
        let at = random.index(bytes.len());
        match random.below(8) {
            0..=3 => bytes[at] = random.pick(&[0, 1, 2, 4, 5, 7, 9, 0x30, 0x80, 0xff]),
            4 => bytes[at] = random.bits() as u8,
            5 => bytes.truncate(at.max(1)),
            6 => bytes.extend_from_within(at..),
            _ => {
                let end = (at + random.within(1, 16) as usize).min(bytes.len());
                bytes.drain(at..end);
                bytes.resize(bytes.len().max(1), 0);
            }
        }
    }
    if random.one_in(2) && bytes.len() > 4 {
        let total = (bytes.len() as u16).to_le_bytes();
        bytes[2..4].copy_from_slice(&total);
    }
}

/// Checks the promises of an accepted set.
fn sound(set: &Configuration<'_>) {
    let bus = BusInstance::new(set.speed());
    let mut owners = [None; 256];
    let mut numbers = [false; 256];
    for interface in set.interfaces() {
        numbers[usize::from(interface.number)] = true;
        let mut here = [false; 256];
        for endpoint in interface.endpoints() {
            let address = usize::from(endpoint.address);
            assert!(!std::mem::replace(&mut here[address], true));
            assert_eq!(*owners[address].get_or_insert(interface.number), interface.number);
            let context = endpoint.context();
            assert_eq!(context.kind(), Some(endpoint.kind()));
            assert!(context.interval() <= 18 && context.payload() <= 49_152);
            assert!(endpoint.index() >= 2 && endpoint.index() <= 31);
            if let Some(share) = endpoint.periodic(EndpointId(0), Criticality::High, 1) {
                assert_eq!(share.check(&bus), Ok(()), "{endpoint:?}");
            }
            if let Some(share) = endpoint.asynchronous(EndpointId(0), None) {
                assert_eq!(share.check(&bus), Ok(()), "{endpoint:?}");
            }
        }
        for raw in interface.extras() {
            let _ = Hid::parse(raw);
        }
    }
    let count = numbers.iter().filter(|seen| **seen).count();
    assert_eq!(count, usize::from(set.header().interfaces));
    assert!(set.associations().all(|a| u16::from(a.first) + u16::from(a.count) <= count as u16));
}

#[test]
fn damaged_sets_are_refused_or_sound() {
    let samples = samples();
    let mut random = Random::new(17);
    let (mut accepted, mut reasons) = (0, std::collections::BTreeSet::new());
    for round in 0..200_000 {
        let (mut bytes, speed) = samples[random.index(samples.len())].clone();
        mutate(&mut random, &mut bytes);
        let speed = if random.one_in(8) { random.pick(&SPEEDS) } else { speed };
        match Configuration::parse_once(&bytes, speed) {
            Ok(set) => {
                accepted += 1;
                sound(&set);
            }
            Err(DescriptorRefusal { offset, reason }) => {
                assert!(offset <= bytes.len(), "round {round}");
                let said = format!("{reason:?}");
                reasons.insert(said.split(['(', ' ']).next().unwrap_or("").to_owned());
            }
        }
    }
    // The attack reaches what it means to reach.
    assert!(accepted > 10_000, "{accepted}");
    assert!(reasons.len() >= 15, "{reasons:?}");
}

#[test]
fn any_bytes_end() {
    let mut random = Random::new(18);
    let device = DeviceDescriptor {
        usb: 0x200,
        class: 0,
        subclass: 0,
        protocol: 0,
        packet: 64,
        vendor: 1,
        product: 2,
        version: 3,
        texts: [0; 3],
        configurations: 1,
    };
    let hub = HubDescriptor {
        superspeed: false,
        ports: 15,
        characteristics: 0,
        power_good: diapason_abi::Nanos::ZERO,
        fixed: 0,
    };
    let seeds = [
        device.bytes(Speed::High),
        hub.bytes(),
        bos(&[(2, &[0; 4]), (3, &[0; 7])]),
        text("a name"),
        languages(&[0x409]),
        vec![0xa1, 1, 0x75, 8, 0x95, 6, 0x81, 0, 0xc0],
    ];
    for _ in 0..100_000 {
        let mut bytes = seeds[random.index(seeds.len())].clone();
        mutate(&mut random, &mut bytes);
        let _ = DeviceDescriptor::parse(&bytes, random.pick(&SPEEDS));
        let _ = ConfigurationHeader::parse(&bytes);
        if let Ok(hub) = HubDescriptor::parse(&bytes) {
            assert!((1..=15).contains(&hub.ports));
        }
        if let Ok(bos) = Bos::parse(&bytes) {
            assert_eq!(bos.capabilities().count(), usize::from(bytes[4]));
        }
        if let Ok(text) = Text::parse(&bytes) {
            assert!(text.chars().count() <= 126);
        }
        if let Ok(languages) = Languages::parse(&bytes) {
            assert!(languages.iter().count() > 0);
        }
        if let Ok((items, bits)) = Items::parse(&bytes) {
            assert!(items.count() <= bytes.len() && bits.iter().all(|bits| *bits <= 8 << 16));
        }
        let steps = Walk::new(&bytes).count();
        assert!(steps <= bytes.len() / 2 + 1);
    }
}

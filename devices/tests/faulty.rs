//! Faults on command, and lies that no parser of ours may believe or die of.

use crate::support::{Random, configure, hostile};
use diapason_abi::Nanos;
use diapason_devices::bridge::bridge;
use diapason_devices::camera::CameraModel;
use diapason_devices::faulty::{DescriptorChange, Faulty, Lie, PacketFault, Rule, lies::catalogue};
use diapason_devices::gs_usb::GsUsbModel;
use diapason_devices::hub::HubModel;
use diapason_devices::keyboard::KeyboardModel;
use diapason_devices::kvaser::{Hydra, Identity};
use diapason_devices::sensor::{self, PERIOD, Sensor};
use diapason_devices::{Answer, Handshake, Stall, UsbDevice};
use diapason_usb::Setup;
use diapason_usb::descriptor::{Bos, Configuration, DeviceDescriptor as About, Items, Languages};
use diapason_usb::setup::descriptor_type as kind;

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

/// An open sensor with this rule.
fn open(rule: Rule) -> Faulty<Sensor> {
    let mut device = Faulty::new(Sensor::default(), 3).rule(rule);
    configure(&mut device, Nanos::ZERO);
    let ready = Setup { kind: 0x21, request: 0x22, value: 1, index: 0, length: 0 };
    device.control(Nanos::ZERO, ready, &[]).unwrap();
    device
}

#[test]
fn each_fault_is_what_it_says() {
    let send = |device: &mut Faulty<Sensor>, now| device.send(now, sensor::IN, &mut [0; 512]);
    let cases = [
        (PacketFault::Stall, Answer::Stall),
        (PacketFault::Nak, Answer::Nak),
        (PacketFault::Error, Answer::Error),
        (PacketFault::Babble, Answer::Data(513)),
        (PacketFault::Empty, Answer::Data(0)),
        (PacketFault::Cut(100), Answer::Data(100)),
        (PacketFault::Garble(1), Answer::Data(512)),
    ];
    for (fault, answer) in cases {
        let rule = Rule { from: ms(10), until: ms(20), ..Rule::always(fault).on(sensor::IN) };
        let mut device = open(rule);
        assert_eq!(send(&mut device, ms(5)), Answer::Data(512));
        assert_eq!(send(&mut device, ms(10)), answer);
        assert_eq!(send(&mut device, ms(20)), Answer::Data(512));
        assert_eq!(device.injected(), 1);
    }
    let mut device = open(Rule::always(PacketFault::Garble(1)).on(sensor::IN));
    let mut packet = [0; 512];
    device.send(PERIOD, sensor::IN, &mut packet);
    let good = sensor::packet(0, PERIOD);
    let wrong: u32 = packet.iter().zip(good).map(|(a, b)| (a ^ b).count_ones()).sum();
    assert_eq!(wrong, 1);
    let mut device = open(Rule::always(PacketFault::Error).on(sensor::OUT));
    assert_eq!(device.receive(ms(1), sensor::OUT, b"x"), Handshake::Error);
    assert_eq!(device.device().written(), 0, "it never saw the packet");
    let mut device = open(Rule { from: ms(1), ..Rule::always(PacketFault::Stall).on(0) });
    assert_eq!(device.control(ms(1), Setup::set_configuration(1), &[]), Err(Stall));
}

#[test]
fn a_seed_is_a_run() {
    let run = |seed| {
        let rule = Rule { one_in: 3, ..Rule::always(PacketFault::Error) };
        let mut device = Faulty::new(Sensor::default(), seed).rule(rule);
        configure(&mut device, Nanos::ZERO);
        (0..64).map(|_| device.send(ms(1), sensor::IN, &mut [0; 8])).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// Every device once, with nothing behind it that needs time.
fn all() -> Vec<Box<dyn UsbDevice>> {
    vec![
        Box::new(Hydra::new(Identity::default(), &[None])),
        Box::new(GsUsbModel::new(1, &[None])),
        Box::new(Sensor::default()),
        Box::new(CameraModel::default()),
        Box::new(KeyboardModel::new(Vec::new())),
        Box::new(HubModel::new(false, 4)),
        Box::new(HubModel::new(true, 4)),
        Box::new(bridge(4_096).0),
    ]
}

/// Reads and parses everything twice; how many parsers refused.
fn enumerate(device: &mut dyn UsbDevice) -> usize {
    let speed = device.speed();
    let mut refused = 0;
    for _ in 0..2 {
        let mut get = |kind| device.control(ms(1), Setup::get_descriptor(kind, 0, 0, 4_096), &[]);
        refused += usize::from(!get(kind::DEVICE).is_ok_and(|b| About::parse(&b, speed).is_ok()));
        let bytes = get(kind::CONFIGURATION).unwrap_or_default();
        refused += usize::from(Configuration::parse_once(&bytes, speed).is_err());
        let bytes = get(kind::STRING).unwrap_or_default();
        refused += usize::from(Languages::parse(&bytes).is_err());
        refused += get(kind::BOS).map_or(0, |bytes| usize::from(Bos::parse(&bytes).is_err()));
        let report = get(kind::HID_REPORT);
        refused += report.map_or(0, |bytes| usize::from(Items::parse(&bytes).is_err()));
        for hub in [kind::HUB, kind::SUPERSPEED_HUB] {
            let value = u16::from(hub) << 8;
            let setup = Setup { kind: 0xa0, request: 6, value, index: 0, length: 71 };
            if let Ok(bytes) = device.control(ms(1), setup, &[]) {
                refused +=
                    usize::from(diapason_usb::descriptor::HubDescriptor::parse(&bytes).is_err());
            }
        }
        device.reset(ms(2));
    }
    refused
}

#[test]
fn the_catalogue_is_told_and_our_parsers_survive_it() {
    let (lies, mut told_at_all, mut refused) = (catalogue(), 0, 0);
    assert!(lies.len() >= 50, "{}", lies.len());
    for (index, (_, lie)) in lies.iter().enumerate() {
        let mut told = 0;
        for device in all() {
            let mut device = Faulty::new(device, index as u64).lie(lie.clone());
            refused += usize::from(enumerate(&mut device) > 0);
            told += device.injected();
        }
        told_at_all += usize::from(told > 0);
    }
    assert!(all().iter_mut().all(|device| enumerate(&mut **device) == 0), "the truth is accepted");
    // The one that comes after the second reset is not reached here.
    assert_eq!(told_at_all, lies.len() - 1);
    assert!(refused > 200, "{refused}");
}

#[test]
fn a_lie_may_come_at_the_second_read_or_after_a_reset() {
    let second = Lie { from_read: 1, ..Lie::new(kind::DEVICE, DescriptorChange::Byte(8, 0xaa)) };
    let later = Lie { from_reset: 1, ..Lie::new(kind::DEVICE, DescriptorChange::Byte(10, 0xbb)) };
    let mut device = Faulty::new(Sensor::default(), 0).lie(second).lie(later);
    let mut read = |reset: bool| {
        if reset {
            device.reset(ms(1));
        }
        let bytes = device.control(ms(1), Setup::get_descriptor(kind::DEVICE, 0, 0, 18), &[]);
        bytes.map(|bytes| (bytes[8], bytes[10])).unwrap()
    };
    assert_eq!([read(false), read(false), read(true)], [(0xc0, 0x83), (0xaa, 0x83), (0xaa, 0xbb)]);
}

#[test]
fn hostile_hosts_of_hostile_devices() {
    let mut random = Random::new(17);
    for (_, lie) in catalogue() {
        for device in all() {
            let rule = Rule { one_in: 4, ..Rule::always(PacketFault::Garble(3)) };
            let device = Faulty::new(device, random.bits()).rule(rule).lie(lie.clone());
            let stalls = Rule { one_in: 9, ..Rule::always(PacketFault::Stall).on(0) };
            hostile(&mut device.rule(stalls), &mut random, 60);
        }
    }
}

//! Hostile devices: any of those there are models of, with lies about its descriptors and with
//! packets that go wrong.

use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_devices::bridge::bridge;
use diapason_devices::camera::CameraModel;
use diapason_devices::can::CanBus;
use diapason_devices::disk::Disk;
use diapason_devices::faulty::lies::{DescriptorChange, Lie, catalogue};
use diapason_devices::faulty::{FaultTally, Faulty, PacketFault, Rule};
use diapason_devices::gs_usb::GsUsbModel;
use diapason_devices::hub::HubModel;
use diapason_devices::keyboard::KeyboardModel;
use diapason_devices::kvaser::{CHANNELS, Hydra, Identity};
use diapason_devices::network::Adapter;
use diapason_devices::sensor::Sensor;
use diapason_random::Random;
use diapason_usb::setup::descriptor_type;
use std::rc::Rc;

fn sound(random: &mut Random) -> Box<dyn UsbDevice> {
    match random.below(9) {
        0 => Box::new(KeyboardModel::typing(Nanos::from_millis(10), 10_000)),
        1 => Box::new(Disk::new(4096)),
        2 => Box::new(HubModel::new(random.one_in(2), 4)),
        3 => Box::new(Sensor::default()),
        4 => Box::new(CameraModel::default()),
        5 => {
            let buses: Vec<_> = (0..CHANNELS).map(CanBus::busy).collect();
            Box::new(Hydra::new(Identity::default(), &buses))
        }
        6 => Box::new(Adapter::default()),
        7 => {
            let mut buses: Vec<_> = (0..CHANNELS).map(CanBus::busy).collect();
            buses[0] = CanBus::busy_fd();
            Box::new(GsUsbModel::new(1, &buses))
        }
        _ => Box::new(bridge(4096).0),
    }
}

/// Returns a known lie, or noise in what every host reads; mostly from the first read on.
fn lie(random: &mut Random) -> Lie {
    if random.one_in(3) {
        let known = catalogue();
        return known[random.index(known.len())].1.clone();
    }
    let kinds = [
        descriptor_type::DEVICE,
        descriptor_type::CONFIGURATION,
        descriptor_type::CONFIGURATION,
        descriptor_type::CONFIGURATION,
        descriptor_type::HUB,
        descriptor_type::HID_REPORT,
    ];
    let (about, count) = (random.pick(&kinds), 1 + random.below(4) as u32);
    let from_read = if random.one_in(3) { random.below(3) as u32 } else { 0 };
    Lie { from_read, ..Lie::new(about, DescriptorChange::Noise(count)) }
}

/// Now and then all the time, or often for a while.
fn rule(random: &mut Random, now: Nanos) -> Rule {
    let rule = Rule::always(fault(random));
    if random.one_in(3) {
        return Rule { one_in: 4 << random.below(6), ..rule };
    }
    let from = now + Nanos::from_micros(100_000 + random.below(200_000));
    let until = from + Nanos::from_micros(random.below(60_000));
    Rule { from, until, one_in: 1 << random.below(6), ..rule }
}

fn fault(random: &mut Random) -> PacketFault {
    match random.below(7) {
        0 => PacketFault::Stall,
        1 => PacketFault::Error,
        2 => PacketFault::Babble,
        3 => PacketFault::Empty,
        4 => PacketFault::Nak,
        5 => PacketFault::Cut(random.below(40) as usize),
        _ => PacketFault::Garble(1 + random.below(8) as u32),
    }
}

/// Returns a device that is not sound; `tally` counts what it does.
pub fn hostile(random: &mut Random, now: Nanos, tally: &Rc<FaultTally>) -> Box<dyn UsbDevice> {
    let device = sound(random);
    let mut device = Faulty::new(device, random.bits()).counted(Rc::clone(tally));
    for _ in 0..random.pick(&[0, 1, 1, 1, 2, 2, 3]) {
        device = device.lie(lie(random));
    }
    for _ in 0..random.below(6) {
        device = device.rule(rule(random, now));
    }
    if random.one_in(2) {
        let one_in = 8 << random.below(6);
        device = device.rule(Rule { one_in, ..Rule::always(PacketFault::Stall) }.on(0));
    }
    Box::new(device)
}

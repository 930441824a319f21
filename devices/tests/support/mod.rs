//! The host's side of devices in these tests.

pub mod can_host;
pub mod desk;

use diapason_abi::Nanos;
use diapason_devices::{Answer, Handshake, UsbDevice};
use diapason_usb::Setup;
use diapason_usb::setup::descriptor_type::{BOS, CONFIGURATION, DEVICE};

pub use diapason_random::Random;

/// Reads all descriptors, checks them with the parsers of drivers, and configures the device.
pub fn configure(device: &mut dyn UsbDevice, now: Nanos) {
    let speed = device.speed();
    let mut get = |kind| device.control(now, Setup::get_descriptor(kind, 0, 0, 4_096), &[]);
    let (about, configuration, bos) = (get(DEVICE), get(CONFIGURATION), get(BOS));
    let about = diapason_usb::descriptor::DeviceDescriptor::parse(&about.unwrap(), speed).unwrap();
    let parsed =
        diapason_usb::descriptor::Configuration::parse_once(configuration.as_ref().unwrap(), speed);
    parsed.unwrap();
    if let Ok(bos) = bos {
        diapason_usb::descriptor::Bos::parse(&bos).unwrap();
    }
    for text in about.texts.into_iter().filter(|text| *text > 0) {
        let text = device.control(now, Setup::get_descriptor(3, text, 0x409, 255), &[]).unwrap();
        assert_eq!((usize::from(text[0]), text[1]), (text.len(), 3));
    }
    let value = configuration.unwrap()[5];
    assert_eq!(device.control(now, Setup::set_configuration(value), &[]), Ok(Vec::new()));
}

/// A transfer from the device, as long as `bytes`, that ends as transfers do; `None` if there is
/// nothing yet.
pub fn read(
    device: &mut dyn UsbDevice,
    now: Nanos,
    endpoint: u8,
    packet: usize,
) -> Option<Vec<u8>> {
    let mut buffer = vec![0; packet];
    match device.send(now, endpoint, &mut buffer) {
        Answer::Data(length) => {
            buffer.truncate(length);
            Some(buffer)
        }
        Answer::Nak => None,
        other => panic!("{other:?}"),
    }
}

/// A packet to the device.
pub fn write(device: &mut dyn UsbDevice, now: Nanos, endpoint: u8, packet: &[u8]) {
    assert_eq!(device.receive(now, endpoint, packet), Handshake::Ack);
}

/// A host without manners: random requests, packets and times. Half of the requests are almost
/// right.
pub fn hostile(device: &mut dyn UsbDevice, random: &mut Random, steps: usize) {
    let (mut now, mut buffer) = (Nanos::ZERO, [0u8; 2_048]);
    for _ in 0..steps {
        now += Nanos(random.below(300_000));
        match random.below(12) {
            0..=4 => {
                let setup = request(random);
                let mut data = vec![0; setup.length.min(64).into()];
                data.iter_mut().for_each(|byte| *byte = random.bits() as u8);
                if let Ok(answer) = device.control(now, setup, &data) {
                    assert!(answer.len() <= setup.length.into(), "{setup:?}");
                    assert!(answer.is_empty() || setup.is_in(), "{setup:?}");
                }
            }
            5..=7 => {
                let length = random.pick(&[0, 1, 4, 8, 31, 32, 64, 512, 1_024]);
                let part = &mut buffer[..length];
                part.iter_mut().for_each(|byte| *byte = random.bits() as u8);
                device.receive(now, address(random) & 0x7f, part);
            }
            8..=9 => {
                let length = random.pick(&[0, 1, 8, 32, 512, 1_024]);
                let answer = device.send(now, address(random) | 0x80, &mut buffer[..length]);
                assert!(!matches!(answer, Answer::Data(bytes) if bytes > 1_024));
            }
            10 if random.one_in(50) => device.reset(now),
            10 => drop(device.control(now, Setup::set_configuration(1), &[])),
            _ => device.advance(now),
        }
        if let Some(child) = device.child(random.below(6) as u8) {
            child.advance(now);
        }
    }
}

fn address(random: &mut Random) -> u8 {
    let any = random.bits() as u8;
    random.pick(&[0, 1, 2, 3, 4, any])
}

fn request(random: &mut Random) -> Setup {
    let setup = Setup {
        kind: random.bits() as u8,
        request: random.bits() as u8,
        value: random.bits() as u16,
        index: random.bits() as u16,
        length: random.bits() as u16,
    };
    if random.one_in(2) {
        return setup;
    }
    Setup {
        kind: random.pick(&[0, 1, 2, 0x80, 0x81, 0x82, 0x20, 0x21, 0x23, 0xa0, 0xa1, 0xa3, 0x40]),
        request: random.pick(&[0, 1, 3, 6, 8, 9, 10, 11, 0x20, 0x21, 0x22, 0x81, 0x87, 0xfe, 0xff]),
        value: random.pick(&[0, 1, 2, 3, 4, 8, 0x100, 0x200, 0x300, 0x1600, setup.value]),
        index: random.pick(&[0, 1, 2, 3, 0x81, 0x82, setup.index]),
        length: random.pick(&[0, 1, 2, 4, 7, 8, 9, 26, 34, 255, setup.length]),
    }
}

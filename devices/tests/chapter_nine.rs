//! The requirements of USB 2.0 §9 and HID 1.11 §7 for every device, tested on each model.

use crate::support::configure;
use diapason_abi::Nanos;
use diapason_devices::bridge::bridge;
use diapason_devices::camera::CameraModel;
use diapason_devices::disk::Disk;
use diapason_devices::gs_usb::GsUsbModel;
use diapason_devices::hub::HubModel;
use diapason_devices::instrument::Instrument;
use diapason_devices::keyboard::KeyboardModel;
use diapason_devices::kvaser::{Hydra, Identity};
use diapason_devices::network::Adapter;
use diapason_devices::sensor::Sensor;
use diapason_devices::{Stall, UsbDevice};
use diapason_usb::descriptor::Configuration;
use diapason_usb::setup::{IN, descriptor_type as kind, request};
use diapason_usb::{Setup, Speed};

const NOW: Nanos = Nanos::from_millis(1);

fn models() -> Vec<Box<dyn UsbDevice>> {
    vec![
        Box::new(Hydra::busy(Identity::default()).0),
        Box::new(GsUsbModel::new(1, &[None])),
        Box::new(Sensor::default()),
        Box::new(Instrument::default()),
        Box::new(Disk::new(64)),
        Box::new(Adapter::default()),
        Box::new(HubModel::new(false, 4)),
        Box::new(HubModel::new(true, 4)),
        Box::new(KeyboardModel::new(Vec::new())),
        Box::new(CameraModel::busy()),
        Box::new(bridge(4_096).0),
    ]
}

fn get(device: &mut dyn UsbDevice, kind: u8) -> Result<Vec<u8>, Stall> {
    device.control(NOW, Setup::get_descriptor(kind, 0, 0, 4_096), &[])
}

/// A high-speed device says what it would be at full speed; no other has a qualifier (§9.6.2).
#[test]
fn exactly_high_speed_devices_have_a_qualifier_and_a_configuration_for_it() {
    for mut device in models() {
        let device = &mut *device;
        configure(device, NOW);
        let (qualifier, other) =
            (get(device, kind::DEVICE_QUALIFIER), get(device, kind::OTHER_SPEED_CONFIGURATION));
        if device.speed() != Speed::High {
            assert_eq!((qualifier, other), (Err(Stall), Err(Stall)));
            continue;
        }
        let (own, qualifier) = (get(device, kind::DEVICE).unwrap(), qualifier.unwrap());
        assert_eq!((qualifier.len(), qualifier[..2].to_vec()), (10, vec![10, 6]));
        assert_eq!(qualifier[2..6], own[2..6], "version, class and subclass");
        assert_eq!((qualifier[8], qualifier[9]), (own[17], 0));
        let mut other = other.unwrap();
        assert_eq!(other[1], kind::OTHER_SPEED_CONFIGURATION);
        // A host at full speed would accept it as its configuration.
        other[1] = kind::CONFIGURATION;
        let slow = Configuration::parse_once(&other, Speed::Full).unwrap();
        let fast = get(device, kind::CONFIGURATION).unwrap();
        assert_eq!(fast.len(), other.len());
        let fast = Configuration::parse_once(&fast, Speed::High).unwrap();
        assert_eq!(slow.interfaces().count(), fast.interfaces().count());
    }
}

/// The status says what the active configuration says (§9.4.5).
#[test]
fn the_status_tells_who_gives_the_power() {
    let mut seen = [false; 2];
    for mut device in models() {
        let device = &mut *device;
        configure(device, NOW);
        let setup = Setup { kind: IN, request: request::GET_STATUS, length: 2, ..Setup::default() };
        let status = device.control(NOW, setup, &[]).unwrap();
        let is_own = get(device, kind::CONFIGURATION).unwrap()[7] & 0x40 != 0;
        assert_eq!(status, [u8::from(is_own), 0]);
        seen[usize::from(is_own)] = true;
    }
    assert_eq!(seen, [true; 2], "there are devices of both kinds");
}

/// The HID descriptor can be asked for by itself, of its interface only (HID 1.11 §7.1.1).
#[test]
fn a_keyboard_answers_for_its_hid_descriptor() {
    let mut device = KeyboardModel::new(Vec::new());
    configure(&mut device, NOW);
    let ask = |device: &mut KeyboardModel, interface| {
        let setup = Setup::get_descriptor(kind::HID, 0, interface, 255);
        device.control(NOW, Setup { kind: 0x81, ..setup }, &[])
    };
    let bytes = ask(&mut device, 0).unwrap();
    assert_eq!((bytes.len(), bytes[0], bytes[1]), (9, 9, kind::HID));
    let report = get(&mut device, kind::HID_REPORT).unwrap();
    assert_eq!(
        (bytes[6], bytes[7..9].to_vec()),
        (0x22, (report.len() as u16).to_le_bytes().into())
    );
    assert_eq!(ask(&mut device, 1), Err(Stall));
    assert_eq!(get(&mut Sensor::default(), kind::HID), Err(Stall));
}

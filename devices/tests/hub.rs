//! Hubs of both kinds, and what is plugged in and out of them.

use crate::support::{Random, configure, hostile, read};
use diapason_abi::Nanos;
use diapason_devices::bridge::bridge;
use diapason_devices::hub::{HubModel, NEWS, NotPlugged};
use diapason_devices::keyboard::{IN, KeyboardModel, Keys};
use diapason_devices::sensor::Sensor;
use diapason_devices::{Answer, Stall, UsbDevice};
use diapason_usb::Setup;

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

fn set(hub: &mut HubModel, now: Nanos, feature: u16, port: u16) -> Result<Vec<u8>, Stall> {
    hub.control(now, Setup { kind: 0x23, request: 3, value: feature, index: port, length: 0 }, &[])
}

fn clear(hub: &mut HubModel, now: Nanos, feature: u16, port: u16) {
    let setup = Setup { kind: 0x23, request: 1, value: feature, index: port, length: 0 };
    assert_eq!(hub.control(now, setup, &[]), Ok(Vec::new()));
}

/// Status and change of a port.
fn status(hub: &mut HubModel, now: Nanos, port: u16) -> (u16, u16) {
    let setup = Setup { kind: 0xa3, request: 0, value: 0, index: port, length: 4 };
    let bytes = hub.control(now, setup, &[]).unwrap();
    (u16::from_le_bytes([bytes[0], bytes[1]]), u16::from_le_bytes([bytes[2], bytes[3]]))
}

fn keyboard() -> Box<KeyboardModel> {
    let keys = Keys { time: ms(90), modifiers: 0, keys: [4, 0, 0, 0, 0, 0] };
    Box::new(KeyboardModel::new(vec![keys]))
}

#[test]
fn a_keyboard_behind_a_usb_2_hub() {
    let mut hub = HubModel::new(false, 4);
    configure(&mut hub, Nanos::ZERO);
    let about = Setup { kind: 0xa0, request: 6, value: 0x2900, index: 0, length: 71 };
    let about = hub.control(Nanos::ZERO, about, &[]).unwrap();
    assert_eq!(diapason_usb::descriptor::HubDescriptor::parse(&about).unwrap().ports, 4);
    assert!(hub.plug(ms(1), 2, keyboard()).is_ok());
    assert_eq!((status(&mut hub, ms(1), 2), read(&mut hub, ms(1), NEWS, 1)), ((0, 0), None));
    set(&mut hub, ms(2), 8, 2).unwrap();
    assert_eq!(status(&mut hub, ms(2), 2), (0x101, 1), "full speed has no bit");
    assert_eq!(read(&mut hub, ms(2), NEWS, 1), Some(vec![1 << 2]));
    clear(&mut hub, ms(2), 16, 2);
    assert_eq!(read(&mut hub, ms(2), NEWS, 1), None);
    set(&mut hub, ms(30), 4, 2).unwrap();
    assert_eq!((status(&mut hub, ms(30), 2), hub.next_change()), ((0x111, 0), ms(40)));
    assert!(hub.child(2).is_none());
    assert_eq!(status(&mut hub, ms(40), 2), (0x103, 0x10));
    configure(hub.child(2).unwrap(), ms(50));
    assert_eq!(hub.next_change(), ms(90), "the child's change is the hub's");
    hub.advance(ms(90));
    assert_eq!(hub.child(2).unwrap().send(ms(90), IN, &mut [0; 8]), Answer::Data(8));
    assert!(hub.unplug(ms(100), 2).is_some() && hub.child(2).is_none());
    assert_eq!(status(&mut hub, ms(100), 2), (0x100, 0x11));
    assert!(hub.plug(ms(110), 2, keyboard()).is_ok());
    assert_eq!(status(&mut hub, ms(110), 2), (0x101, 0x11));
    assert!(matches!(hub.plug(ms(110), 2, keyboard()), Err(NotPlugged::Occupied(_))));
    assert!(matches!(hub.plug(ms(110), 5, keyboard()), Err(NotPlugged::NoSuchPort(_))));
    assert_eq!(set(&mut hub, ms(110), 8, 5), Err(Stall));
}

#[test]
fn a_superspeed_link_trains_by_itself_and_other_speeds_do_not_fit() {
    let mut hub = HubModel::new(true, 2);
    configure(&mut hub, Nanos::ZERO);
    let (end, _other) = bridge(4_096);
    assert!(matches!(hub.plug(ms(1), 1, keyboard()), Err(NotPlugged::Speed(_))));
    assert!(hub.plug(ms(1), 1, Box::new(end)).is_ok());
    set(&mut hub, ms(2), 8, 1).unwrap();
    assert_eq!(status(&mut hub, ms(2), 1), (0x203, 1));
    configure(hub.child(1).unwrap(), ms(3));
    set(&mut hub, ms(4), 8, 2).unwrap();
    assert_eq!(status(&mut hub, ms(4), 2), (0x2a0, 0), "looks for somebody");
}

#[test]
fn faults_of_ports() {
    let mut hub = HubModel::new(false, 2);
    configure(&mut hub, Nanos::ZERO);
    hub.plug(ms(1), 1, keyboard()).ok().unwrap();
    set(&mut hub, ms(1), 8, 1).unwrap();
    set(&mut hub, ms(1), 4, 1).unwrap();
    hub.advance(ms(20));
    hub.feign_unplug(ms(20), 1);
    assert_eq!(status(&mut hub, ms(20), 1).0, 0x100, "says that nothing is there");
    assert!(hub.child(1).is_some(), "and still answers");
    hub.over_current(ms(21), 1);
    assert_eq!(status(&mut hub, ms(21), 1), (0, 8));
    assert!(hub.child(1).is_none());
}

#[test]
fn a_device_is_pulled_out_in_time_and_comes_back() {
    let mut hub = HubModel::new(false, 2);
    configure(&mut hub, Nanos::ZERO);
    hub.plug(ms(1), 1, keyboard()).ok().unwrap();
    set(&mut hub, ms(1), 8, 1).unwrap();
    hub.pull(ms(30), 1, ms(10));
    hub.pull(ms(30), 3, ms(10));
    assert_eq!(status(&mut hub, ms(29), 1).0, 0x101);
    assert_eq!(hub.next_change(), ms(30));
    assert_eq!(status(&mut hub, ms(30), 1).0, 0x100);
    assert_eq!(hub.next_change(), ms(40));
    assert_eq!(status(&mut hub, ms(40), 1).0, 0x101, "it is back, and waits for a reset");
    assert_eq!(hub.next_change(), ms(90), "the device's own");
}

#[test]
fn hubs_behind_hubs_and_hostile_hosts() {
    let mut random = Random::new(11);
    for superspeed in [false, true] {
        for round in 0..10 {
            let mut inner = HubModel::new(superspeed, 3);
            let mut hub = HubModel::new(superspeed, 4);
            if !superspeed {
                inner.plug(Nanos::ZERO, 1, keyboard()).ok().unwrap();
                hub.plug(Nanos::ZERO, 2, Box::new(Sensor::default())).ok().unwrap();
            }
            hub.plug(Nanos::ZERO, 1, Box::new(inner)).ok().unwrap();
            hostile(&mut hub, &mut random, 2_500 + round);
        }
    }
}

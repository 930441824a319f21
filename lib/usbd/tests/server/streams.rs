//! Streams: each has the camera of its own place, whichever comes first.

use crate::ground::{attach, detach, take_lines};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_bus::Coding;
use diapason_contract::settings::{BUSES, Counted, DEVICES, Expected, STREAMS};
use diapason_contract::threads::ServiceKind;
use diapason_devices::UsbDevice;
use diapason_devices::camera::CameraModel;
use diapason_xhc::Config;

/// The connectors of the cameras, and the ports of super speed there.
const CONNECTORS: [u8; 2] = [2, 1];
const PORTS: [u8; 2] = [6, 5];

fn expected(seat: usize) -> [u64; 2] {
    let connector = CONNECTORS[seat];
    let (interface, route, identity, serial) = (seat as u8, 0, (0, 0), 0);
    let service = ServiceKind::Cameras;
    Expected { service, interface, connector, route, identity, serial }.words()
}

/// A server with two streams, whose cameras are described. All of a microframe may be periodic.
fn server(devices: &[[u64; 2]]) -> Machine {
    let bus = Counted { speed: 3, coded: false, periodic_percent: 100, control: false };
    let settings = [(STREAMS, &[1, 8][..]), (DEVICES, devices.as_flattened())];
    let config =
        Config { coding: Coding::Ignored, periodic_percent: Some(100), ..Config::default() };
    Machine::on(config, &[settings[0], settings[1], (BUSES, &[bus.word()])])
}

/// Plugs a camera in: that of stream 0 is a busy one.
fn plug(seat: usize) {
    let camera = if seat == 0 { CameraModel::busy() } else { CameraModel::default() };
    attach(PORTS[seat], Box::new(camera) as Box<dyn UsbDevice>);
}

/// Returns the intervals of a second that each stream said last.
fn intervals() -> [Option<u64>; 2] {
    let mut last = [None; 2];
    for line in take_lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["STREAM", stream, intervals, ..] = words[..] {
            last[stream.parse::<usize>().unwrap()] = intervals.parse().ok();
        }
    }
    last
}

#[test]
fn each_stream_has_the_camera_of_its_place_whichever_comes_first() {
    for order in [[0, 1], [1, 0]] {
        let mut machine = server(&[expected(0), expected(1)]);
        for seat in order {
            plug(seat);
            machine.run(Nanos::from_millis(400));
        }
        machine.run(Nanos::from_secs(3));
        // Only a busy camera fills every interval; stream 1 has one in eight microframes.
        let [first, second] = intervals();
        assert_eq!(first, Some(8_000), "{order:?}");
        assert!((800..950).contains(&second.unwrap()), "{order:?}: {second:?}");
    }
}

#[test]
fn a_camera_does_not_take_the_seat_of_one_that_is_gone() {
    let mut machine = server(&[expected(0), expected(1)]);
    (0..2).for_each(plug);
    machine.run(Nanos::from_secs(2));
    detach(PORTS[0]);
    machine.run(Nanos::from_millis(300));
    take_lines();
    // The other one comes anew.
    detach(PORTS[1]);
    machine.run(Nanos::from_millis(300));
    plug(1);
    machine.run(Nanos::from_secs(3));
    assert!(matches!(intervals(), [None, Some(800..950)]));
    plug(0);
    machine.run(Nanos::from_secs(3));
    assert!(matches!(intervals(), [Some(8_000), Some(800..950)]));
}

#[test]
fn a_third_camera_has_no_seat() {
    let devices = [expected(0), expected(1), {
        let third = Expected::all(&expected(0)).next().unwrap();
        Expected { interface: 2, connector: 3, ..third }.words()
    }];
    let mut machine = server(&devices);
    attach(7, Box::new(CameraModel::default()));
    machine.run(Nanos::from_secs(3));
    assert_eq!(intervals(), [None, None]);
    attach(8, Box::new(CameraModel::default()));
    machine.run(Nanos::from_secs(3));
    assert_eq!(intervals(), [None, None], "nor has one that nobody described");
}

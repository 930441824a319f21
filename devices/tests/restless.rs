//! Devices come and go in their rhythm, and new ones each time.

use diapason_abi::Nanos;
use diapason_devices::keyboard::KeyboardModel;
use diapason_devices::restless::{Restless, Rhythm};
use diapason_devices::{Answer, UsbDevice};
use diapason_usb::Setup;

const MS: u64 = 1_000_000;

#[test]
fn devices_come_and_go() {
    let rhythm =
        Rhythm { from: Nanos(50 * MS), stay: Nanos(30 * MS), away: Nanos(20 * MS), times: 3 };
    let make = Box::new(|_| Box::new(KeyboardModel::new(Vec::new())) as Box<dyn UsbDevice>);
    let mut hub = Restless::new(2, rhythm, make);
    hub.reset(Nanos::ZERO);
    hub.control(Nanos::ZERO, Setup::set_configuration(1), &[]).unwrap();
    for port in 1..=2 {
        let power = Setup { kind: 0x23, request: 3, value: 8, index: port, length: 0 };
        hub.control(Nanos::ZERO, power, &[]).unwrap();
    }
    let status = Setup { kind: 0xa3, request: 0, value: 0, index: 1, length: 4 };
    let (mut there, mut changes) = (false, Vec::new());
    for ms in 1..300 {
        let now = Nanos(ms * MS);
        hub.advance(now);
        let connected = hub.control(now, status, &[]).unwrap()[0] & 1 != 0;
        if connected != there {
            changes.push(ms);
            there = connected;
        }
    }
    assert_eq!(changes, [50, 80, 100, 130, 150, 180]);
    assert_eq!((hub.made(), hub.next_change()), (6, Nanos::FOREVER));
    assert!(
        matches!(hub.send(Nanos(300 * MS), 0x81, &mut [0; 2]), Answer::Data(1)),
        "news of ports"
    );
}

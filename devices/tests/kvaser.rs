//! The USB-CAN interface byte for byte, as its tables say.

use crate::support::can_host::{ask, bit_rate, command, extended_transmit, open, reply};
use crate::support::configure;
use diapason_abi::Nanos;
use diapason_can::BitRate;
use diapason_devices::can::CanBus;
use diapason_devices::kvaser::{ControllerKind, Hydra, Identity};

const MS: Nanos = Nanos::from_millis(1);
const LATER: Nanos = Nanos::from_millis(3);

fn bus() -> CanBus {
    CanBus::new(BitRate::new(500_000).unwrap())
}

/// An interface at these buses, configured, with the first channel's entity at 0x13.
fn interface(personality: ControllerKind, buses: &[&CanBus]) -> Hydra {
    let buses: Vec<Option<CanBus>> = buses.iter().map(|bus| Some((*bus).clone())).collect();
    let mut device = Hydra::new(Identity { personality, ..Identity::default() }, &buses);
    configure(&mut device, Nanos::ZERO);
    device
}

#[test]
fn probing_as_linux_does() {
    let (mut device, _) = Hydra::busy(Identity { serial: 77, ..Identity::default() });
    configure(&mut device, Nanos::ZERO);
    for channel in 0..5u8 {
        let mut body = *b"CAN\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        body[16] = channel;
        let transaction = 0x40 + u16::from(channel);
        let mapped = ask(&mut device, MS, &command(200, 0, transaction, &body));
        assert_eq!(mapped, [command(201, 0, transaction, &[0x13 + channel, channel])]);
    }
    let debugger = ask(&mut device, MS, &command(200, 0, 0x61, b"SYSDBG\0\0\0\0\0\0\0\0\0\0\0"));
    assert_eq!(debugger, [command(201, 0, 0x61, &[0x2a, 0])]);
    let nobody = ask(&mut device, MS, &command(200, 0, 0x45, b"LIN\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
    assert_eq!(nobody, [command(201, 0, 0x45, &[0x3e, 0])]);
    let info = ask(&mut device, MS, &command(38, 0x3e, 2, &[]));
    assert_eq!(info, [command(39, 0, 2, &[0, 0, 0, 0, 0, 0, 0, 0, 128, 0])]);
    let card = &ask(&mut device, MS, &command(34, 0x3e, 4, &[]))[0];
    assert_eq!((card[..4].to_vec(), card[4], card[28]), (reply(35, 0, 4).to_vec(), 77, 5));
    for (asked, status, mask) in [(2u8, 0, 31), (5, 0, 31), (6, 0, 31), (3, 1, 0)] {
        let answer = ask(&mut device, MS, &command(95, 0x2a, 5, &[asked]));
        let mut expected = command(96, 0, 5, &[asked, 0, status, 0, mask, 0, 0, 0, mask]);
        expected[..4].copy_from_slice(&reply(96, 0x2a, 5));
        assert_eq!(answer, [expected]);
    }
    assert_eq!(ask(&mut device, MS, &command(101, 0x13, 6, &[9]))[0][..5], [102, 0x40, 6, 0x30, 9]);
}

#[test]
fn three_personalities_and_a_host_without_extended_commands() {
    let all =
        [(ControllerKind::Kcan, 0x20u32), (ControllerKind::Rt, 0x2000), (ControllerKind::Flexc, 0)];
    for (personality, own) in all {
        let mut device = interface(personality, &[&bus()]);
        for host in [1, 0] {
            let details = &ask(&mut device, MS, &command(202, 0x3e, 3, &[host]))[0];
            let extended =
                if host == 1 && personality != ControllerKind::Flexc { 0x200 } else { 0 };
            assert_eq!(details[4..8], (own | extended | 0x1000).to_le_bytes());
            assert_eq!((details[0], details[24..28].to_vec()), (203, vec![0x40, 0x42, 0x0f, 0]));
        }
    }
}

#[test]
fn opening_and_closing() {
    let bus = bus();
    let mut device = interface(ControllerKind::Kcan, &[&bus]);
    let state = &ask(&mut device, MS, &command(19, 0x13, 1, &[]))[0];
    assert_eq!((state[0], state[12]), (20, 0x40), "a stopped chip is off the bus");
    open(&mut device, MS, 0x13, 500_000, 1);
    let state = &ask(&mut device, MS + MS, &command(19, 0x13, 7, &[]))[0];
    let mut expected = reply(20, 0x13, 7).to_vec();
    expected.extend((2 * 80_000u64).to_le_bytes());
    expected.resize(32, 0);
    assert_eq!(*state, expected);
    assert_eq!(ask(&mut device, LATER, &command(48, 0x13, 8, &[]))[0][..4], reply(66, 0x13, 8));
    assert_eq!(ask(&mut device, LATER, &command(28, 0x13, 9, &[]))[0][..4], reply(29, 0x13, 9));
    let wrong = ask(&mut device, LATER, &command(16, 0x13, 10, &[0; 8]));
    assert_eq!((wrong[0][0], wrong[0][11], wrong[0][12]), (45, 9, 16));
    let stored = ask(&mut device, LATER, &command(17, 0x13, 3, &[0]));
    assert_eq!(stored[0][4..12], bit_rate(500_000), "a refused setting changes nothing");
    let unknown = ask(&mut device, LATER, &command(77, 0x13, 11, &[]));
    assert_eq!((unknown[0][0], unknown[0][11], unknown[0][12]), (45, 5, 77));
}

/// At a wrong bit rate no frame ever gets through, so all of them stay in the controller.
#[test]
fn as_many_frames_are_taken_as_the_controller_says() {
    for rate in [500_000, 250_000] {
        let identity = Identity { outstanding: 5, ..Identity::default() };
        let mut device = Hydra::new(identity, &[Some(bus())]);
        configure(&mut device, Nanos::ZERO);
        open(&mut device, MS, 0x13, rate, 1);
        let info = &ask(&mut device, MS, &command(38, 0x3e, 2, &[]))[0];
        let most = u16::from_le_bytes([info[12], info[13]]);
        assert_eq!(most, 5);
        let mut refused = |number| {
            let frame = extended_transmit(0x13, number, 1, 0, b"12345678");
            ask(&mut device, LATER, &frame).iter().any(|answer| answer[0] == 45)
        };
        assert!((0..most).all(|number| !refused(number)), "at {rate}");
        assert!(refused(most), "at {rate}");
    }
}

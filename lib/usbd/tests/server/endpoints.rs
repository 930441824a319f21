//! The endpoint of any device is read packet by packet from one moment on, in order, and a device
//! that is another is not served.

use crate::ground::{attach, detach, take_reports};
use crate::machine::{Machine, PORT};
use diapason_abi::Nanos;
use diapason_contract::carried::{CONTRACTS, Contract, Contracts};
use diapason_contract::endpoint::{NUMBER, PACKETS};
use diapason_contract::sensor::{OUTSIDE, Packet, RECORDS};
use diapason_contract::source::{MessageShape, PipeSource, SHAPES};
use diapason_contract::threads::ServiceKind;
use diapason_devices::UsbDevice;
use diapason_devices::instrument::{Instrument, PERIOD};
use diapason_devices::keyboard::KeyboardModel;
use diapason_pipe::Reader;
use diapason_pipe::measured::{DeviceReport, Fate, Measurement};
use diapason_usbd::Platform as _;

/// The interrupt endpoint of an instrument, and the bytes of its packets.
const ENDPOINT: (u64, usize) = (1, 64);

/// Returns a server that reads an endpoint of the device with this identity, and the end of its
/// pipe.
fn reading(
    (number, bytes): (u64, usize),
    identity: (u16, u16),
) -> (Machine, Reader<'static, Packet, RECORDS>) {
    let (source, _) = PipeSource::of(ServiceKind::Endpoints).unwrap();
    let mut contracts = Contracts::default();
    let jitter = Nanos::ZERO;
    contracts.0[source] = Some(Contract { messages: 1, per: PERIOD, burst: 1, jitter });
    let shape = MessageShape { bytes, stamp: Some(16) }.word();
    let machine = Machine::serving(
        ServiceKind::Endpoints,
        identity,
        &[(CONTRACTS, &contracts.words()), (SHAPES, &[0, shape]), (NUMBER, &[number])],
    );
    let packets = machine.ground.reader(PACKETS).unwrap();
    (machine, packets)
}

/// Returns the numbers of the packets that came, all of this session and within their contract.
fn numbers(packets: &mut Reader<'static, Packet, RECORDS>, session: u32) -> Vec<u64> {
    let all = std::iter::from_fn(|| packets.pop());
    let number = |packet: Packet| {
        assert_eq!((packet.session, packet.flags & OUTSIDE), (session, 0), "{packet:?}");
        assert!(packet.length == 64 && packet.data.starts_with(b"DIAPASON"), "{packet:?}");
        u64::from_le_bytes(*packet.data[8..].first_chunk().unwrap())
    };
    all.map(number).collect()
}

#[test]
fn packets_come_in_order_from_one_moment_on_and_again_after_the_device_was_away() {
    let (mut machine, mut packets) = reading(ENDPOINT, (0x1209, 2));
    for session in 1..3 {
        attach(PORT, Box::new(Instrument::default()));
        let mut came = Vec::new();
        for _ in 0..20 {
            machine.run(Nanos::from_millis(100));
            came.extend(numbers(&mut packets, session));
        }
        assert!(came.len() > 500, "{}", came.len());
        assert!(came[0] > 30, "those that were kept until the server read are old: {}", came[0]);
        assert!(came.is_sorted_by(|before, after| before + 1 == *after), "none is missing");
        detach(PORT);
        machine.run(Nanos::from_millis(300));
        numbers(&mut packets, session);
    }
}

#[test]
fn a_device_that_is_another_or_lacks_the_endpoint_is_not_served() {
    let keyboard = || Box::new(KeyboardModel::typing(Nanos::from_millis(10), 100));
    let devices: [Box<dyn UsbDevice>; 3] =
        [keyboard(), Box::new(Instrument::default()), keyboard()];
    let cases = [
        (ENDPOINT, (0x1209, 2), Fate::Stranger),
        ((3, 64), (0x1209, 2), Fate::Unserved),
        ((2, 8), (0x1209, 1), Fate::Unserved),
    ];
    for ((endpoint, identity, fate), device) in cases.into_iter().zip(devices) {
        let (mut machine, mut packets) = reading(endpoint, identity);
        attach(PORT, device);
        machine.run(Nanos::from_secs(1));
        let told = |said: &Measurement| match said {
            Measurement::Device(DeviceReport { fate, .. }) => Some(*fate),
            _ => None,
        };
        let fates: Vec<Fate> = take_reports().iter().filter_map(told).collect();
        assert_eq!(fates, [fate]);
        assert!(packets.pop().is_none());
    }
}

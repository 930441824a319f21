//! Several CAN interfaces: each has its channels, its branch and its device.

use crate::ground::{attach, detach, take_lines};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_can::BitRate;
use diapason_can::exchange::ReceivedFrame;
use diapason_contract::can::{CHANNELS, CanInterface, INTERFACES, RECORDS, names};
use diapason_contract::settings::{BIT_RATES, DEVICES, Expected, OPENS};
use diapason_contract::threads::ServiceKind;
use diapason_devices::can::{BusLoad, CanBus};
use diapason_devices::gs_usb::GsUsbModel;
use diapason_devices::kvaser::{Hydra, Identity};
use diapason_pipe::Reader;
use diapason_usbd::Platform;

/// Channels of the first interface and of the second.
const COUNTS: [u8; 2] = [3, 2];
const PORTS: [u8; 2] = [2, 1];
const RATE: u32 = 400;
/// The bit rate of all channels but the last.
const BITS: u32 = 500_000;
const LAST_BITS: u32 = 250_000;

/// A server with two interfaces, both open on all channels.
struct Rig {
    machine: Machine,
    readers: Vec<Reader<'static, ReceivedFrame, RECORDS>>,
}

fn settings(first: u8, second: u8) -> [(&'static str, Vec<u64>); 4] {
    let word = |first, channels| CanInterface { first, channels }.word();
    let expected = |interface: usize| Expected {
        service: ServiceKind::Can,
        interface: interface as u8,
        connector: PORTS[interface],
        route: 0,
        identity: (0, 0),
        serial: 0,
    };
    let all = u64::from(first + second);
    let mut rates = vec![u64::from(BITS); all as usize];
    *rates.last_mut().expect("there is one") = LAST_BITS.into();
    [
        (INTERFACES, vec![word(0, first), word(first, second)]),
        (OPENS, (0..all).collect()),
        (BIT_RATES, rates),
        (DEVICES, [expected(0).words(), expected(1).words()].concat()),
    ]
}

/// Plugs in an interface whose buses are busy.
fn plug(interface: usize) {
    let (first, count) = if interface == 0 { (0, COUNTS[0]) } else { (COUNTS[0], COUNTS[1]) };
    let last = COUNTS[0] + COUNTS[1] - 1;
    let bus = |number: u8| {
        let bits = if number == last { LAST_BITS } else { BITS };
        let load = BusLoad { per_second: RATE, extended: false };
        Some(CanBus::loaded(number.into(), BitRate::new(bits).expect("it is one"), load))
    };
    let buses: Vec<_> = (first..first + count).map(bus).collect();
    // They are of different families.
    match interface {
        0 => attach(PORTS[0], Box::new(Hydra::new(Identity::default(), &buses))),
        _ => attach(PORTS[interface], Box::new(GsUsbModel::new(1, &buses))),
    }
}

impl Rig {
    fn new() -> Rig {
        let settings = settings(COUNTS[0], COUNTS[1]);
        let settings: Vec<(&str, &[u64])> =
            settings.iter().map(|(n, all)| (*n, &all[..])).collect();
        let machine = Machine::with(&settings);
        let reader = |number: u8| {
            let names = names(number.into()).expect("it is one");
            machine.ground.reader(names.arrivals).expect("it is there")
        };
        let readers = (0..COUNTS[0] + COUNTS[1]).map(reader).collect();
        Rig { machine, readers }
    }

    /// Runs for so long; returns how many frames came on each channel.
    fn run(&mut self, time: Nanos) -> Vec<usize> {
        let mut came = vec![0; self.readers.len()];
        for _ in 0..time.0 / 10_000_000 {
            self.machine.run(Nanos::from_millis(10));
            for (came, reader) in came.iter_mut().zip(&mut self.readers) {
                *came += std::iter::from_fn(|| reader.pop()).count();
                assert_eq!(reader.lost(), 0, "a frame was lost");
            }
        }
        came
    }
}

#[test]
fn the_device_at_each_place_has_the_channels_of_its_interface() {
    for order in [[0, 1], [1, 0]] {
        let mut rig = Rig::new();
        order.into_iter().for_each(plug);
        rig.run(Nanos::from_secs(1));
        let came = rig.run(Nanos::from_millis(200));
        // A bus of another bit rate than its channel is told carries nothing.
        assert!(came.iter().all(|came| (78..=82).contains(came)), "{order:?}: {came:?}");
        assert!(rig.machine.was_given(names(4).expect("it is one").ready));
    }
}

#[test]
fn an_interface_that_goes_and_comes_leaves_the_other_alone() {
    let mut rig = Rig::new();
    [0, 1].into_iter().for_each(plug);
    rig.run(Nanos::from_secs(1));
    for step in 0..8 {
        let (gone, stays) = (step % 2, 1 - step % 2);
        let own = [0..3, 3..5];
        rig.machine.is_steady(stays as u16 + 1);
        detach(PORTS[gone]);
        let came = rig.run(Nanos::from_millis(200 + 10 * step as u64));
        let least = (200 + 10 * step) * RATE as usize / 1_000 - 2;
        assert!(came[own[stays].clone()].iter().all(|came| *came >= least), "{step}: {came:?}");
        assert!(came[own[gone].clone()].iter().all(|came| *came < 10), "{step}: {came:?}");
        plug(gone);
        let came = rig.run(Nanos::from_secs(1));
        assert!(came[own[stays].clone()].iter().all(|came| *came >= 398), "{step}: {came:?}");
        assert!(came[own[gone].clone()].iter().all(|came| *came > 200), "{step}: {came:?}");
        assert_eq!(rig.machine.visits, 0, "{step}: something was due in the other branch");
    }
    let lines = take_lines();
    let gone = lines.iter().filter(|line| line.contains("a CAN interface is gone")).count();
    assert_eq!(gone, 8, "{lines:?}");
}

/// As many interfaces as there can be, each with one channel, find memory and slots.
#[test]
fn ten_interfaces_work() {
    let word = |first| CanInterface { first, channels: 1 }.word();
    let count = CHANNELS as u8;
    let expected = |interface| Expected {
        service: ServiceKind::Can,
        interface,
        connector: interface % 4 + 1,
        route: 0,
        identity: (0, 0),
        serial: 0,
    };
    // The model has four connectors for them.
    let told: Vec<u64> = (0..4).flat_map(|interface| expected(interface).words()).collect();
    let words: Vec<u64> = (0..count).map(word).collect();
    let opens: Vec<u64> = (0..count.into()).collect();
    let mut machine = Machine::with(&[(INTERFACES, &words), (DEVICES, &told), (OPENS, &opens)]);
    for port in 1..=4 {
        attach(port, Box::new(Hydra::new(Identity::default(), &[None])));
    }
    machine.run(Nanos::from_secs(1));
    let lines = take_lines();
    let mut open: Vec<&String> = lines.iter().filter(|line| line.ends_with(": open")).collect();
    open.sort_unstable();
    assert_eq!(open, ["can0: open", "can1: open", "can2: open", "can3: open"], "{lines:?}");
}

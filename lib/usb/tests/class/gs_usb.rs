//! The host side of `gs_usb` interfaces, against a far side written from the protocol's tables.

use super::shell::{Asked, Shell, hostile, never};
use diapason_abi::Nanos;
use diapason_can::bus::Health;
use diapason_can::frame::{extended, standard};
use diapason_can::{BitRate, CanFrame};
use diapason_random::Random;
use diapason_usb::Speed;
use diapason_usb::class::can::{CloseCause, InterfaceEvent, InterfaceFailure, Mode, Refused};
use diapason_usb::class::gs_usb::{CHANNELS_MAX, DEVICES, GsUsb, SLOTS};
use diapason_usb::class::{Class, Completion, Request, TransferFault};
use diapason_usb::descriptor::{Configuration, DeviceDescriptor, build};

pub const IN: u8 = 0x82;
pub const OUT: u8 = 0x01;
/// The device's answer about a channel: all features that are used, 48 MHz, and limits.
const LIMITS: [u32; 10] = [0x2011, 48_000_000, 1, 16, 1, 8, 4, 1, 1024, 1];

pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns a class for a device with these two endpoints, with CAN FD or without.
pub fn class(vendor: u16, product: u16, fd: bool) -> Option<GsUsb> {
    let about = DeviceDescriptor {
        usb: 0x0200,
        class: 0,
        subclass: 0,
        protocol: 0,
        packet: 64,
        vendor,
        product,
        version: 1,
        texts: [0; 3],
        configurations: 1,
    };
    let pipes = build::Interface::new(0).class(0xff, 0xff, 0xff);
    let pipes = pipes.endpoint(build::bulk(IN, 512)).endpoint(build::bulk(OUT, 512));
    let set = build::Configuration::new(1).with(pipes).bytes(Speed::High);
    GsUsb::find(&about, &Configuration::parse_once(&set, Speed::High).unwrap(), fd)
}

fn known() -> GsUsb {
    let (vendor, product) = DEVICES[0];
    class(vendor, product, false).unwrap()
}

pub type Events = Vec<InterfaceEvent>;

/// Answers the next request with this; returns its number, its value and its data.
pub fn answer(
    shell: &mut Shell<GsUsb>,
    result: Result<&[u8], TransferFault>,
    events: &mut Events,
) -> (u8, u16, Vec<u8>) {
    shell.settle(&mut |event| events.push(event));
    let Some(Asked::Control(setup, data)) = shell.next(0).cloned() else { panic!("no request") };
    shell.end(0, result, &mut |event| events.push(event));
    (setup.request, setup.value, data)
}

fn say(shell: &mut Shell<GsUsb>, words: &[u32], data: [u8; 8], micros: u32) -> Events {
    let mut events = Vec::new();
    let all = [bytes(words), data.to_vec(), bytes(&[micros])].concat();
    shell.end(IN, Ok(&all), &mut |event| events.push(event));
    events
}

/// Returns an interface of two channels that is probed.
fn probed() -> Shell<GsUsb> {
    let (mut shell, mut events) = (Shell::new(known()), Vec::new());
    let asked = answer(&mut shell, Ok(&[]), &mut events);
    assert_eq!(asked, (0, 1, bytes(&[0xbeef])));
    let config = bytes(&[1 << 24, 2, 1]);
    assert_eq!(answer(&mut shell, Ok(&config), &mut events), (5, 1, vec![]));
    for channel in [0, 1] {
        assert_eq!(answer(&mut shell, Ok(&bytes(&LIMITS)), &mut events), (4, channel, vec![]));
    }
    assert_eq!(events, [InterfaceEvent::Ready { channels: 2, serial: None }]);
    shell
}

/// Returns a class that these answers probed, and that has asked for nothing since.
pub fn ready(mut class: GsUsb, answers: &[Vec<u8>]) -> GsUsb {
    for answer in answers {
        assert!(matches!(class.request(Nanos::ZERO), Some(Request::Control { .. })));
        let done = Completion { endpoint: 0, result: Ok(answer) };
        class.complete(Nanos::ZERO, done, &mut |_| {});
    }
    assert!(class.is_ready());
    class
}

fn opened(mode: Mode) -> Shell<GsUsb> {
    let (mut shell, mut events) = (probed(), Vec::new());
    shell.class.open(0, (BitRate::new(500_000).unwrap(), 875), mode).unwrap();
    let timing = answer(&mut shell, Ok(&[]), &mut events);
    assert_eq!((timing.0, timing.1), (1, 0));
    let word = |at: usize| u32::from_le_bytes(timing.2[4 * at..][..4].try_into().unwrap());
    assert_eq!((1 + word(0) + word(1) + word(2)) * word(4), 96, "500 kbit/s of 48 MHz");
    let flags = if mode == Mode::ListenOnly { 0x11 } else { 0x10 };
    assert_eq!(answer(&mut shell, Ok(&[]), &mut events), (2, 0, bytes(&[1, flags])));
    assert_eq!(events, [InterfaceEvent::Opened { channel: 0 }]);
    assert_eq!(answer(&mut shell, Ok(&bytes(&[5_000])), &mut events).0, 6, "the clock is read");
    shell
}

#[test]
fn the_devices_of_the_table_are_known_and_no_others() {
    assert!(DEVICES.iter().all(|(vendor, product)| class(*vendor, *product, false).is_some()));
    assert!(class(0x1d50, 0x6070, true).is_none());
}

#[test]
fn a_device_that_cannot_be_served_is_told_with_its_reason() {
    let ready = bytes(&[1 << 24, 2, 1]);
    let channels = |last: u32| bytes(&[last << 24, 2, 1]);
    let limits = |at: usize, value| {
        let mut words = LIMITS;
        words[at] = value;
        bytes(&words)
    };
    let cases: [(&[Vec<u8>], InterfaceFailure); 4] = [
        (&[vec![], channels(5)], InterfaceFailure::Channels(6)),
        (&[vec![], channels(255)], InterfaceFailure::Channels(255)),
        (&[vec![], ready.clone(), limits(0, 0x2001)], InterfaceFailure::Limits(0)),
        (&[vec![], ready, limits(1, 0)], InterfaceFailure::Limits(0)),
    ];
    for (answers, reason) in cases {
        let (mut shell, mut events) = (Shell::new(known()), Vec::new());
        for bytes in answers {
            answer(&mut shell, Ok(bytes), &mut events);
        }
        assert_eq!(events, [InterfaceEvent::Failed { channel: None, reason }]);
        assert!(shell.class.request(shell.now).is_none());
    }
    let (mut shell, mut events) = (Shell::new(known()), Vec::new());
    answer(&mut shell, Err(TransferFault::Stall), &mut events);
    assert!(matches!(events[..], [InterfaceEvent::Failed { channel: None, .. }]), "{events:?}");
}

#[test]
fn frames_have_their_bytes_in_both_directions() {
    let mut shell = opened(Mode::Normal);
    let frame = CanFrame::data(standard(0x123).unwrap(), &[0xde, 0xad, 0xbe, 0xef]).unwrap();
    let slot = shell.class.send(0, &frame).unwrap();
    shell.settle(&mut |event| panic!("{event:?}"));
    let Some(Asked::Out(sent)) = shell.next(OUT).cloned() else { panic!("nothing was sent") };
    let echo = u32::from_le_bytes(sent[..4].try_into().unwrap());
    assert_eq!(sent[4..], [0x23, 1, 0, 0, 4, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0]);
    shell.end(OUT, Ok(&sent), &mut |event| panic!("{event:?}"));
    assert!(say(&mut shell, &[echo ^ 0x100, 0x123, 4], [0; 8], 6_000).is_empty(), "not its echo");
    let told = say(&mut shell, &[echo, 0x123, 4], [0; 8], 6_000);
    let [InterfaceEvent::Acknowledged { channel: 0, slot: freed, time, .. }] = told[..] else {
        panic!("{told:?}")
    };
    assert_eq!((freed, time), (slot, Nanos::from_millis(6)));
    assert!(say(&mut shell, &[echo, 0x123, 4], [0; 8], 6_000).is_empty(), "it was freed");
    assert_eq!(shell.class.counts().stray_acknowledgements, 2);
    let told = say(&mut shell, &[u32::MAX, 0x9234_5678, 1 << 16 | 2], [7; 8], 7_000);
    let frame = CanFrame::data(extended(0x1234_5678).unwrap(), &[7, 7]).unwrap();
    let arrived = InterfaceEvent::Frame { channel: 0, time: Nanos::from_millis(7), frame };
    assert_eq!(told, [InterfaceEvent::Overrun { channel: 0 }, arrived]);
    let wrong: [&[u32]; 4] = [
        &[u32::MAX, 0x800, 2],
        &[u32::MAX, 1, 2 << 16 | 2],
        &[u32::MAX, 1, 4 << 16 | 2],
        &[u32::MAX, 1, 0x902],
    ];
    for wrong in wrong {
        assert!(say(&mut shell, wrong, [0; 8], 8_000).is_empty(), "{wrong:x?}");
    }
    let counts = shell.class.counts();
    assert_eq!((counts.malformed, counts.strangers), (3, 1));
}

#[test]
fn errors_are_told_and_bus_off_stops_the_channel() {
    let mut shell = opened(Mode::ListenOnly);
    let told = say(&mut shell, &[u32::MAX, 0x2000_0004, 8], [0, 8, 0, 0, 0, 0, 96, 3], 6_000);
    let counters = (96, 3);
    let time = Nanos::from_millis(6);
    let warning = InterfaceEvent::ChipState { channel: 0, time, counters, health: Health::Warning };
    assert_eq!(told, [warning]);
    let told = say(&mut shell, &[u32::MAX, 0x2000_00a0, 8], [0, 0, 0, 0, 0, 0, 97, 3], 6_000);
    assert_eq!(told, [InterfaceEvent::BusError { channel: 0, time, counters: (97, 3) }]);
    let told = say(&mut shell, &[u32::MAX, 0x2000_0040, 8], [0; 8], 6_000);
    assert!(matches!(told[..], [InterfaceEvent::ChipState { health: Health::BusOff, .. }]));
    let mut events = Vec::new();
    assert_eq!(answer(&mut shell, Ok(&[]), &mut events), (2, 0, bytes(&[0, 0])));
    let closed = InterfaceEvent::Closed { channel: 0, cause: CloseCause::BusOff };
    assert_eq!(events, [closed]);
}

#[test]
fn a_device_that_refuses_an_order_or_says_nothing_leaves_the_channel_closed() {
    let rate = (BitRate::new(500_000).unwrap(), 875);
    for step in 0..2 {
        let (mut shell, mut events) = (probed(), Vec::new());
        shell.class.open(0, rate, Mode::Normal).unwrap();
        assert_eq!(shell.class.open(0, rate, Mode::Normal), Err(Refused::WrongPhase));
        (0..step).for_each(|_| drop(answer(&mut shell, Ok(&[]), &mut events)));
        answer(&mut shell, Err(TransferFault::Stall), &mut events);
        if step == 1 {
            assert_eq!(answer(&mut shell, Ok(&[]), &mut events).2, bytes(&[0, 0]));
        }
        let closed = InterfaceEvent::Closed { channel: 0, cause: CloseCause::NotOpened };
        let [InterfaceEvent::Failed { channel: Some(0), .. }, last] = events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(last, closed);
        assert_eq!(shell.class.open(0, rate, Mode::Normal), Ok(()));
    }
    let (mut shell, mut events) = (probed(), Vec::new());
    shell.class.open(1, rate, Mode::Normal).unwrap();
    shell.settle(&mut |_| {});
    shell.wake(&mut |event| events.push(event));
    shell.settle(&mut |event| events.push(event));
    let reason = InterfaceFailure::Late;
    assert_eq!(events[0], InterfaceEvent::Failed { channel: Some(1), reason });
}

/// A hundred thousand answers of a device that says anything.
#[test]
fn hostile_devices_break_nothing() {
    let seeds = [
        bytes(&[1 << 24, 2, 1]),
        bytes(&LIMITS),
        [bytes(&[u32::MAX, 0x123, 8]), vec![1; 8], bytes(&[77])].concat(),
        [bytes(&[u32::MAX, 0x2000_0040, 8]), vec![0; 8], bytes(&[78])].concat(),
        [bytes(&[u32::MAX, 0x2000_0104, 0x108]), vec![1; 8], bytes(&[79])].concat(),
        [bytes(&[0x100, 0x123, 8]), vec![1; 8], bytes(&[80])].concat(),
    ];
    let frame = CanFrame::data(standard(1).unwrap(), &[3; 8]).unwrap();
    let ready = ready(known(), &[vec![], seeds[0].clone(), bytes(&LIMITS), bytes(&LIMITS)]);
    let (mut frames, mut opened) = (0, 0);
    hostile(
        (7, false),
        100_000,
        &seeds,
        &never,
        |random: &mut Random| if random.one_in(3) { known() } else { ready.clone() },
        |class, _, random| {
            let channel = random.below(6) as u8;
            match random.below(8) {
                0 | 1 => {
                    let rate = BitRate::new(random.pick(&[500_000, 83_333])).unwrap();
                    let _ = class.open(channel, (rate, 875), Mode::Normal);
                }
                2 if random.one_in(8) => drop(class.close(channel)),
                3 => drop(class.ask_chip_state(channel)),
                _ => drop(class.send(channel, &frame)),
            }
            for channel in 0..CHANNELS_MAX as u8 {
                assert!(class.outstanding(channel) <= SLOTS.into());
            }
        },
        &mut |event| match event {
            InterfaceEvent::Frame { .. } => frames += 1,
            InterfaceEvent::Opened { .. } => opened += 1,
            _ => {}
        },
    );
    assert!(frames > 100 && opened > 100, "{frames} {opened}");
}

//! CAN FD on the host side of `gs_usb` interfaces, against a far side written from the protocol's
//! tables.

use super::gs_usb::{Events, IN, OUT, answer, bytes, class, ready};
use super::shell::{Asked, Shell, hostile, never};
use diapason_abi::Nanos;
use diapason_can::frame::{extended, standard};
use diapason_can::{BitRate, CanFrame, FdFrame};
use diapason_random::Random;
use diapason_usb::class::TransferFault;
use diapason_usb::class::can::{
    BusRates, CloseCause, InterfaceEvent, InterfaceFailure, Mode, ProbeStep, Refused,
};
use diapason_usb::class::gs_usb::{DEVICES, GsUsb, LONG_SENT, LONG_TRANSFER};

/// The device's answer about a channel: classic CAN only, or CAN FD with limits of its own for the
/// bits of data, or CAN FD without.
const CLASSIC: [u32; 10] = [0x2011, 80_000_000, 1, 256, 1, 128, 128, 1, 512, 1];
const FEATURES: [u32; 3] = [0x2011, 0x2511, 0x2111];
/// The limits of the bits of data.
const DATA: [u32; 8] = [1, 32, 1, 16, 16, 1, 32, 1];

fn known() -> GsUsb {
    let (vendor, product) = DEVICES[0];
    class(vendor, product, true).unwrap()
}

fn limits(features: u32) -> Vec<u8> {
    bytes(&[&[features], &CLASSIC[1..]].concat())
}

/// Returns an interface of three channels that is probed: classic, with CAN FD, and with CAN FD
/// whose bits have the limits of all.
fn probed() -> Shell<GsUsb> {
    let (mut shell, mut events) = (Shell::new(known()), Vec::new());
    answer(&mut shell, Ok(&[]), &mut events);
    answer(&mut shell, Ok(&bytes(&[2 << 24, 2, 1])), &mut events);
    for (channel, features) in (0..).zip(FEATURES) {
        assert_eq!(answer(&mut shell, Ok(&limits(features)), &mut events), (4, channel, vec![]));
        if channel == 1 {
            let all = [limits(features), bytes(&DATA)].concat();
            assert_eq!(answer(&mut shell, Ok(&all), &mut events), (11, 1, vec![]));
        }
    }
    assert_eq!(events, [InterfaceEvent::Ready { channels: 3, serial: None }]);
    shell
}

fn rates(data: u32) -> BusRates {
    let data = BitRate::of_data(data).ok();
    BusRates { rate: BitRate::new(500_000).unwrap(), sample_point: 800, data }
}

/// Returns the bit rate that an order of a timing means.
fn hertz(order: &[u8]) -> u32 {
    let word = |at: usize| u32::from_le_bytes(order[4 * at..][..4].try_into().unwrap());
    80_000_000 / ((1 + word(0) + word(1) + word(2)) * word(4))
}

/// Returns an interface whose second channel is open with CAN FD.
fn opened() -> Shell<GsUsb> {
    let (mut shell, mut events) = (probed(), Vec::new());
    shell.class.open(1, rates(2_000_000), Mode::Normal).unwrap();
    let timing = answer(&mut shell, Ok(&[]), &mut events);
    assert_eq!((timing.0, timing.1, hertz(&timing.2)), (1, 1, 500_000));
    let timing = answer(&mut shell, Ok(&[]), &mut events);
    assert_eq!((timing.0, timing.1, hertz(&timing.2)), (10, 1, 2_000_000));
    assert_eq!(answer(&mut shell, Ok(&[]), &mut events), (2, 1, bytes(&[1, 0x110])));
    assert_eq!(events, [InterfaceEvent::Opened { channel: 1 }]);
    assert_eq!(answer(&mut shell, Ok(&bytes(&[5_000])), &mut events).0, 6, "the clock is read");
    shell
}

fn say(shell: &mut Shell<GsUsb>, transfer: &[u8]) -> Events {
    let mut events = Vec::new();
    shell.end(IN, Ok(transfer), &mut |event| events.push(event));
    events
}

/// Returns a transfer with a frame of CAN FD.
fn long(words: [u32; 2], [code, flags]: [u8; 2], data: &[u8]) -> Vec<u8> {
    let mut all = bytes(&words);
    all.extend([code, 1, flags, 0]);
    all.extend(data);
    all.resize(LONG_SENT, 0);
    all.extend(bytes(&[7_000]));
    assert_eq!(all.len(), LONG_TRANSFER);
    all
}

#[test]
fn frames_of_can_fd_have_their_bytes_in_both_directions() {
    let mut shell = opened();
    let data: Vec<u8> = (1..=64).collect();
    let frame = FdFrame::new(standard(0x123).unwrap(), &data[..12]).unwrap().with_fast(true);
    let slot = shell.class.send_fd(1, &frame).unwrap();
    shell.settle(&mut |event| panic!("{event:?}"));
    let Some(Asked::Out(sent)) = shell.next(OUT).cloned() else { panic!("nothing was sent") };
    assert_eq!((sent.len(), &sent[4..12]), (LONG_SENT, &[0x23, 1, 0, 0, 9, 1, 6, 0][..]));
    assert_eq!((&sent[12..24], &sent[24..]), (&data[..12], &[0; 52][..]));
    shell.end(OUT, Ok(&sent), &mut |event| panic!("{event:?}"));
    let echo = u32::from_le_bytes(sent[..4].try_into().unwrap());
    let told = say(&mut shell, &long([echo, 0x123], [9, 6], &data[..12]));
    let [InterfaceEvent::Acknowledged { channel: 1, slot: freed, time, .. }] = told[..] else {
        panic!("{told:?}")
    };
    assert_eq!((freed, time), (slot, Nanos::from_millis(7)));
    let told = say(&mut shell, &long([u32::MAX, 0x9234_5678], [15, 0xf], &data));
    let frame = FdFrame::new(extended(0x1234_5678).unwrap(), &data).unwrap();
    let frame = frame.with_fast(true).with_passive(true);
    let arrived = InterfaceEvent::FdFrame { channel: 1, time: Nanos::from_millis(7), frame };
    assert_eq!(told, [InterfaceEvent::Overrun { channel: 1 }, arrived]);
}

/// Classic frames go and come on the same channel. Each to the device is as long as the longest.
#[test]
fn classic_frames_pass_a_channel_with_can_fd() {
    let mut shell = opened();
    let frame = CanFrame::remote(extended(5).unwrap(), 3).unwrap();
    shell.class.send(1, &frame).unwrap();
    shell.settle(&mut |event| panic!("{event:?}"));
    let Some(Asked::Out(sent)) = shell.next(OUT).cloned() else { panic!("nothing was sent") };
    assert_eq!((sent.len(), &sent[4..12]), (LONG_SENT, &[5, 0, 0, 0xc0, 3, 1, 0, 0][..]));
    let told =
        say(&mut shell, &[bytes(&[u32::MAX, 0x7f, 0x102]), vec![9; 8], bytes(&[8_000])].concat());
    let frame = CanFrame::data(standard(0x7f).unwrap(), &[9, 9]).unwrap();
    let time = Nanos::from_millis(8);
    assert_eq!(told, [InterfaceEvent::Frame { channel: 1, time, frame }]);
}

#[test]
fn what_is_no_frame_of_can_fd_is_counted() {
    let mut shell = opened();
    let good = long([u32::MAX, 0x123], [15, 6], &[1; 64]);
    assert_eq!(say(&mut shell, &good).len(), 1);
    let wrong = [
        long([u32::MAX, 0x123], [16, 6], &[1; 64]),
        long([u32::MAX, 0x800], [1, 6], &[1; 64]),
        long([u32::MAX, 0x4000_0001], [1, 6], &[1; 64]),
        long([u32::MAX, 1], [1, 0x12], &[1; 64]),
        good[..LONG_TRANSFER - 1].to_vec(),
        good[..24].to_vec(),
    ];
    for (number, transfer) in (1..).zip(&wrong) {
        assert!(say(&mut shell, transfer).is_empty(), "{transfer:x?}");
        assert_eq!(shell.class.counts().malformed, number);
    }
    shell.class.close(1).unwrap();
    let mut events = Vec::new();
    answer(&mut shell, Ok(&[]), &mut events);
    let closed = InterfaceEvent::Closed { channel: 1, cause: CloseCause::Asked };
    assert_eq!(events, [closed]);
    shell.class.open(1, rates(0), Mode::Normal).unwrap();
    (0..2).for_each(|_| drop(answer(&mut shell, Ok(&[]), &mut events)));
    answer(&mut shell, Ok(&bytes(&[5_000])), &mut events);
    assert!(say(&mut shell, &good).is_empty(), "it was opened without CAN FD");
    let frame = FdFrame::new(standard(1).unwrap(), &[]).unwrap();
    assert_eq!(shell.class.send_fd(1, &frame), Err(Refused::NoFd));
}

#[test]
fn channels_and_rates_that_cannot_be_are_refused() {
    let mut shell = probed();
    let fd = rates(2_000_000);
    assert_eq!(shell.class.open(0, fd, Mode::Normal), Err(Refused::NoFd), "a classic channel");
    // 20 MHz has five quanta, too few for a bit of the standard.
    assert_eq!(shell.class.open(1, rates(7_000_000), Mode::Normal), Err(Refused::Parameters));
    assert_eq!(shell.class.open(2, fd, Mode::ListenOnly), Ok(()), "the limits of all bits");
    let mut events = Vec::new();
    let orders: Vec<u8> = (0..3).map(|_| answer(&mut shell, Ok(&[]), &mut events).0).collect();
    assert_eq!((orders, events), (vec![1, 10, 2], vec![InterfaceEvent::Opened { channel: 2 }]));
    let (vendor, product) = DEVICES[0];
    let (mut shell, mut events) = (Shell::new(class(vendor, product, false).unwrap()), Vec::new());
    for bytes in [vec![], bytes(&[0, 2, 1]), limits(FEATURES[1])] {
        answer(&mut shell, Ok(&bytes), &mut events);
    }
    assert_eq!(shell.class.open(0, fd, Mode::Normal), Err(Refused::NoFd), "nobody asked for it");
}

#[test]
fn a_device_that_has_no_answer_about_data_is_told_with_its_reason() {
    for (step, result) in [
        (InterfaceFailure::NoAnswer(ProbeStep::DataLimits(0)), Err(TransferFault::Stall)),
        (InterfaceFailure::NoAnswer(ProbeStep::DataLimits(0)), Ok(&[0; 71][..])),
        (InterfaceFailure::Limits(0), Ok(&[0; 72][..])),
    ] {
        let (mut shell, mut events) = (Shell::new(known()), Vec::new());
        for bytes in [vec![], bytes(&[0, 2, 1]), limits(FEATURES[1])] {
            answer(&mut shell, Ok(&bytes), &mut events);
        }
        answer(&mut shell, result, &mut events);
        assert_eq!(events, [InterfaceEvent::Failed { channel: None, reason: step }]);
    }
    let (mut shell, mut events) = (probed(), Vec::new());
    shell.class.open(1, rates(2_000_000), Mode::Normal).unwrap();
    answer(&mut shell, Ok(&[]), &mut events);
    answer(&mut shell, Err(TransferFault::Stall), &mut events);
    let failed =
        InterfaceEvent::Failed { channel: Some(1), reason: InterfaceFailure::ParametersDiffer };
    let closed = InterfaceEvent::Closed { channel: 1, cause: CloseCause::NotOpened };
    assert_eq!(events, [failed, closed]);
}

/// A hundred thousand answers of a device that says anything.
#[test]
fn hostile_devices_break_nothing() {
    let mut seeds = vec![
        bytes(&[2 << 24, 2, 1]),
        [limits(FEATURES[1]), bytes(&DATA)].concat(),
        limits(FEATURES[2]),
        long([u32::MAX, 0x123], [15, 6], &[1; 64]),
        long([0x100, 0x123], [9, 2], &[1; 12]),
        [bytes(&[u32::MAX, 0x2000_0040, 0x108]), vec![0; 8], bytes(&[78])].concat(),
    ];
    seeds.push([bytes(&[u32::MAX, 0x123, 0x108]), vec![1; 8], bytes(&[77])].concat());
    let frame = FdFrame::new(standard(1).unwrap(), &[3; 64]).unwrap();
    let answers = [
        vec![],
        seeds[0].clone(),
        limits(FEATURES[0]),
        limits(FEATURES[1]),
        seeds[1].clone(),
        limits(FEATURES[2]),
    ];
    let ready = ready(known(), &answers);
    let (mut frames, mut opened) = (0, 0);
    hostile(
        (9, false),
        100_000,
        &seeds,
        &never,
        |random: &mut Random| if random.one_in(3) { known() } else { ready.clone() },
        |class, _, random| {
            let channel = random.below(6) as u8;
            match random.below(8) {
                0 | 1 => {
                    let data = random.pick(&[2_000_000, 8_000_000, 0]);
                    let _ = class.open(channel, rates(data), Mode::Normal);
                }
                2 if random.one_in(8) => drop(class.close(channel)),
                3 if random.one_in(40) => drop(class.ask_chip_state(channel)),
                _ => drop(class.send_fd(channel, &frame)),
            }
        },
        &mut |event| match event {
            InterfaceEvent::FdFrame { .. } => frames += 1,
            InterfaceEvent::Opened { .. } => opened += 1,
            _ => {}
        },
    );
    assert!(frames > 100 && opened > 100, "{frames} {opened}");
}

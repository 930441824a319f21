//! The USB-CAN interface with frames on its buses: both forms, errors, and what is shared.

use crate::support::can_host::{ask, command, drain, extended_transmit, open, reply};
use crate::support::{configure, write};
use diapason_abi::Nanos;
use diapason_can::bus::WireFault;
use diapason_can::frame::{extended, standard};
use diapason_can::{AnyFrame, BitRate, CanFrame, wire};
use diapason_devices::UsbDevice;
use diapason_devices::can::{BusMishap, CanBus, FrameContent, Passing, PeriodicMessage, replay};
use diapason_devices::kvaser::{CommandStream, ControllerKind, Hydra, Identity, OUT, passing};

const MS: Nanos = Nanos::from_millis(1);
const START: Nanos = Nanos::from_millis(10);

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

fn bus() -> CanBus {
    CanBus::new(BitRate::new(500_000).unwrap())
}

/// An opened interface, configured, whose first channel has entity 0x13.
fn interface(personality: ControllerKind, buses: &[&CanBus]) -> Hydra {
    let plugged: Vec<Option<CanBus>> = buses.iter().map(|bus| Some((*bus).clone())).collect();
    let mut device = Hydra::new(Identity { personality, ..Identity::default() }, &plugged);
    configure(&mut device, Nanos::ZERO);
    for entity in (0x13..).take(buses.len()) {
        // 13 and 2 quanta suit every controller.
        let hertz = 500_000u32.to_le_bytes();
        ask(&mut device, MS, &command(16, entity, 2, &[&hertz[..], &[13, 2, 1, 1]].concat()));
        assert_eq!(ask(&mut device, MS, &command(26, entity, 5, &[]))[0][0], 27);
    }
    device
}

fn log_of(frames: &[(u64, CanFrame)]) -> std::collections::VecDeque<(Nanos, CanFrame)> {
    frames.iter().map(|(micros, frame)| (Nanos::from_micros(*micros), *frame)).collect()
}

/// Returns how long `frame` is on the bus.
fn length(frame: &CanFrame) -> Nanos {
    Nanos(2_000 * u64::from(wire::encode(frame).bits.len()))
}

#[test]
fn frames_arrive_as_extended_commands() {
    let (bus, mut frames) = (bus(), Vec::new());
    frames.push((20_000, CanFrame::data(standard(0x123).unwrap(), b"\x01\x02\x03").unwrap()));
    frames.push((30_000, CanFrame::data(extended(0x18db_33f1).unwrap(), b"12345678").unwrap()));
    frames.push((40_000, CanFrame::remote(standard(0x7ff).unwrap(), 4).unwrap()));
    bus.add_replay(log_of(&frames));
    let mut device = interface(ControllerKind::Kcan, &[&bus]);
    device.advance(Nanos::from_millis(100));
    let got = drain(&mut device, Nanos::from_millis(100));
    let heads = [(40u8, 0u8, 3u8), (40, 0x20, 8), (32, 0x10, 4)];
    let words = [0x123u32, 0xd8db_33f1, 0x2000_07ff];
    for (at, bytes) in got.iter().enumerate() {
        let (micros, frame) = frames[at];
        // A receiver accepts one bit before the end.
        let time = Nanos::from_micros(micros) + length(&frame) - Nanos(2_000);
        let (long, flags, code) = heads[at];
        let mut expected = reply(255, 0x13, 0).to_vec();
        expected.extend([long, 0, 226, 0, flags, 0, 0, 0]);
        expected.extend(frame.raw_id().to_le_bytes());
        expected.extend(words[at].to_le_bytes());
        expected.extend([0, code, 0, 0]);
        expected.extend((time.0 * 80 / 1_000).to_le_bytes());
        expected.extend(frame.bytes());
        expected.resize(long.into(), 0);
        assert_eq!(*bytes, expected, "{at}");
    }
    assert_eq!(got.len(), 3);
}

#[test]
fn frames_arrive_as_normal_commands() {
    let bus = bus();
    let frame = CanFrame::data(extended(0x1234_5678).unwrap(), b"12345678").unwrap();
    let second = CanFrame::data(standard(0x2aa).unwrap(), b"ab").unwrap();
    bus.add_replay(log_of(&[(20_000, frame), (30_000, second)]));
    let mut device = interface(ControllerKind::Flexc, &[&bus]);
    let got = drain(&mut device, Nanos::from_millis(100));
    let micros = (20_000_000 + length(&frame).0 - 2_000) / 1_000;
    let mut expected = reply(106, 0x13, 0).to_vec();
    expected.extend([24, 106, 0, 0x20]);
    expected.extend(&micros.to_le_bytes()[..6]);
    expected.extend([8, 0]);
    expected.extend(0x9234_5678u32.to_le_bytes());
    expected.extend(b"12345678");
    expected.resize(32, 0);
    assert_eq!(got[0], expected);
    assert_eq!((&got[1][7..8], &got[1][14..24]), (&[0u8][..], &b"\x02\0\xaa\x02\0\0ab\0\0"[..]));
}

#[test]
fn frames_are_sent_and_acknowledged_when_they_are_through() {
    let bus = bus();
    bus.add_unit(Vec::new());
    bus.record(10);
    let mut device = interface(ControllerKind::Kcan, &[&bus]);
    let frame = CanFrame::data(extended(0x1234).unwrap(), b"abcdefgh").unwrap();
    write(&mut device, START, OUT, &extended_transmit(0x13, 9, 0x1234, 0x20, b"abcdefgh"));
    let through = START + length(&frame);
    assert!(drain(&mut device, through - Nanos(1)).is_empty(), "not through yet");
    let mut expected = reply(255, 0x13, 9).to_vec();
    expected.extend([32, 0, 225, 0, 0x20, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend((through.0 * 80 / 1_000).to_le_bytes());
    expected.resize(32, 0);
    assert_eq!(drain(&mut device, through), [expected]);
    let mut normal = vec![0x21, 1, 0, 0x80];
    normal.extend(b"hi\0\0\0\0\0\0\x02");
    let start = START + START;
    write(&mut device, start, OUT, &command(33, 0x13, 127, &normal));
    let second = CanFrame::data(extended(0x121).unwrap(), b"hi").unwrap();
    let ack = &drain(&mut device, start + MS)[0];
    assert_eq!((&ack[..4], &ack[16..18]), (&reply(50, 0x13, 127)[..], &[2, 0x20][..]));
    let sent = bus.take_record();
    assert_eq!((sent[0].frame, sent[0].time), (frame.into(), through));
    assert_eq!(sent[1].frame, second.into());
    assert_eq!((sent.len(), sent[0].node), (2, sent[1].node));
}

#[test]
fn what_no_frame_can_be_is_refused() {
    let bus = bus();
    let mut device = interface(ControllerKind::Kcan, &[&bus]);
    let mut long = extended_transmit(0x13, 1, 1, 0, b"12345678");
    long[24] = 9;
    let too_large = extended_transmit(0x13, 1, 0x800, 0, b"");
    let mut normal = command(33, 0x13, 1, &[0; 13]);
    normal[16] = 16;
    for bytes in [long, too_large, normal] {
        let answer = ask(&mut device, START, &bytes);
        assert_eq!((answer.len(), answer[0][0], answer[0][11]), (1, 45, 9));
    }
    ask(&mut device, START, &command(28, 0x13, 9, &[]));
    let stopped = ask(&mut device, START, &extended_transmit(0x13, 1, 1, 0, b""));
    assert_eq!((stopped[0][0], stopped[0][11], stopped[0][12]), (45, 1, 224));
}

#[test]
fn a_single_attempt_reports_how_it_failed() {
    let bus = bus();
    bus.add_unit(Vec::new());
    let mut device = interface(ControllerKind::Kcan, &[&bus]);
    bus.with_bus(|bus| bus.arm(START, WireFault::DropAck));
    write(&mut device, START, OUT, &extended_transmit(0x13, 3, 0x10, 1 << 16, b"x"));
    let got = drain(&mut device, START + MS);
    let failed = got.iter().find(|bytes| bytes[6] == 225).unwrap();
    assert_eq!(failed[8..12], (1u32 << 12).to_le_bytes());
    assert!(got.iter().any(|bytes| bytes[6] == 226 && bytes[8] & 1 != 0), "a bus error frame");
}

#[test]
fn alone_on_the_bus_the_controller_turns_passive_and_a_broken_one_goes_off() {
    let bus = bus();
    let mut device = interface(ControllerKind::Kcan, &[&bus]);
    write(&mut device, START, OUT, &extended_transmit(0x13, 3, 0x10, 0, b"x"));
    device.advance(START + ms(100));
    let state = ask(&mut device, START + ms(100), &command(19, 0x13, 7, &[]));
    let state = state.iter().rfind(|bytes| bytes[0] == 20).unwrap();
    assert_eq!((state[10], state[12]), (128, 0x20), "nobody acknowledges");
    bus.with_bus(|bus| bus.jam(START + ms(101), 2_000));
    let got = drain(&mut device, START + ms(104));
    let off = got.iter().rfind(|bytes| bytes[0] == 20).unwrap();
    assert_eq!((off[12], &off[..4]), (0x40, &reply(20, 0x13, 0)[..]));
    drain(&mut device, START + ms(300));
    open(&mut device, START + ms(300), 0x13, 500_000, 1);
    let state = &ask(&mut device, START + ms(301), &command(19, 0x13, 7, &[]))[0];
    assert_eq!((state[10], state[12]), (0, 0), "started again");
}

/// As ISO 11898-1 says it, and as Linux relies on: its `restart-ms` sends the interface nothing.
#[test]
fn a_controller_leaves_bus_off_by_itself_after_128_times_11_recessive_bits() {
    let bus = bus();
    bus.add_unit(Vec::new());
    let mut device = interface(ControllerKind::Kcan, &[&bus]);
    device.advance(START);
    bus.suffer(START, BusMishap::BusOff);
    let off = START + Nanos::from_micros(1);
    let state = |got: &[Vec<u8>]| got.iter().rfind(|bytes| bytes[0] == 20).map(|b| (b[10], b[12]));
    assert_eq!(state(&drain(&mut device, off)), Some((255, 0x40)));
    // The host's requests meanwhile are sent afterwards.
    write(&mut device, off, OUT, &extended_transmit(0x13, 7, 0x10, 0, b"later"));
    let back = START + Nanos(128 * 11 * 2_000);
    assert!(drain(&mut device, back - Nanos(2_000)).is_empty(), "still off");
    let got = drain(&mut device, back + MS);
    assert_eq!(state(&got), Some((0, 0)), "error-active, and said");
    assert!(got.iter().any(|bytes| bytes[6] == 225 && bytes[2] == 7), "acknowledged: {got:?}");
}

/// It is a receiver, so it never goes off: it turns error-passive at the 128th frame.
#[test]
fn at_a_wrong_bit_rate_every_frame_is_an_error_and_none_gets_through() {
    let bus = bus();
    let id = standard(0x100).unwrap();
    bus.add_unit(vec![PeriodicMessage { id, length: 1, period: MS, offset: ms(20) }]);
    bus.add_unit(Vec::new());
    bus.record(1_000);
    let mut device = Hydra::new(Identity::default(), &[Some(bus.clone())]);
    configure(&mut device, Nanos::ZERO);
    open(&mut device, MS, 0x13, 250_000, 1);
    let state = |device: &mut Hydra, now| {
        let all = ask(device, now, &command(19, 0x13, 7, &[]));
        let last = all.iter().rfind(|bytes| bytes[0] == 20).unwrap();
        (last[10], last[11], last[12])
    };
    assert_eq!(state(&mut device, ms(19)), (0, 0, 0), "a silent bus tells nothing");
    write(&mut device, ms(19), OUT, &extended_transmit(0x13, 7, 0x10, 0, b"never"));
    let got = drain(&mut device, ms(50));
    assert!(got.len() > 25 && got.iter().all(|bytes| bytes[6] == 226 && bytes[8] & 1 != 0));
    let (mut told, mut now) = (Vec::new(), ms(50));
    while now < ms(300) {
        told.extend(drain(&mut device, now).into_iter().filter(|bytes| bytes[0] == 20));
        now += ms(10);
    }
    assert_eq!(told.iter().map(|b| (b[10], b[11], b[12])).collect::<Vec<_>>(), [(0, 128, 0x20)]);
    assert_eq!(state(&mut device, ms(301)), (0, 128, 0x20));
    assert!(bus.take_record().iter().all(|sent| sent.frame.raw_id() == 0x100), "nobody heard it");
    drain(&mut device, ms(302));
    open(&mut device, ms(302), 0x13, 500_000, 1);
    assert_eq!(state(&mut device, ms(303)), (0, 0, 0));
}

#[test]
fn two_channels_and_two_interfaces_share_a_bus() {
    let bus = bus();
    let mut one = interface(ControllerKind::Kcan, &[&bus, &bus]);
    let mut two = interface(ControllerKind::Rt, &[&bus]);
    write(&mut one, START, OUT, &extended_transmit(0x14, 7, 0x55, 0, b"shared"));
    while one.next_change().min(two.next_change()) < START + MS {
        let time = one.next_change().min(two.next_change());
        one.advance(time);
        two.advance(time);
    }
    let (mine, other) = (drain(&mut one, START + MS), drain(&mut two, START + MS));
    let heads = |all: &[Vec<u8>]| all.iter().map(|b| (b[1], b[3], b[6])).collect::<Vec<_>>();
    assert_eq!(heads(&mine), [(0x40, 0x30, 226), (0x40, 0x40, 225)]);
    assert_eq!((heads(&other), &other[0][32..38]), (vec![(0x40, 0x30, 226)], &b"shared"[..]));
}

#[test]
fn what_another_interface_let_happen_comes_in_order_of_time() {
    let buses = [bus(), bus()];
    let frame = |id| CanFrame::data(standard(id).unwrap(), b"").unwrap();
    buses[0].add_replay(log_of(&[(21_000, frame(2)), (23_000, frame(4))]));
    buses[1].add_replay(log_of(&[(20_000, frame(1)), (22_000, frame(3))]));
    let mut one = interface(ControllerKind::Kcan, &[&buses[0], &buses[1]]);
    let mut two = interface(ControllerKind::Kcan, &[&buses[0], &buses[1]]);
    two.advance(ms(30));
    for device in [&mut one, &mut two] {
        let ids: Vec<u8> = drain(device, ms(30)).iter().map(|bytes| bytes[12]).collect();
        assert_eq!(ids, [1, 2, 3, 4]);
    }
}

#[test]
fn listening_only_leaves_no_trace_and_neither_does_another_bit_rate() {
    let bus = bus();
    let id = standard(0x100).unwrap();
    bus.add_unit(vec![PeriodicMessage { id, length: 1, period: ms(10), offset: ms(5) }]);
    bus.record(100);
    let mut device = Hydra::new(Identity::default(), &[Some(bus.clone()), None]);
    configure(&mut device, Nanos::ZERO);
    open(&mut device, MS, 0x13, 500_000, 2);
    device.advance(ms(50));
    assert_eq!(bus.take_record().len(), 0, "nobody acknowledges");
    drain(&mut device, ms(50));
    open(&mut device, ms(50), 0x13, 250_000, 1);
    drain(&mut device, ms(50));
    let heard = drain(&mut device, ms(90));
    let mut frames = heard.iter().filter(|bytes| bytes[0] == 255);
    assert!(frames.all(|bytes| bytes[8] & 1 != 0), "errors only");
    assert_eq!(bus.take_record().len(), 0, "nobody acknowledges");
    open(&mut device, ms(90), 0x14, 500_000, 1);
    open(&mut device, ms(90), 0x13, 500_000, 1);
    device.advance(ms(120));
    assert!(!bus.take_record().is_empty());
}

#[test]
fn a_log_is_replayed_and_a_bad_one_is_refused_with_its_line() {
    let log = "(100.000000) can0 123#11\n\n(100.000500) can1 123#22\n(100.020000) can0 124#33\n";
    let frames = replay(log, "can0").unwrap();
    let times: Vec<u64> = frames.iter().map(|(time, _)| time.0).collect();
    assert_eq!(times, [0, 20_000_000]);
    let bus = bus();
    bus.add_replay(frames);
    let mut device = interface(ControllerKind::Kcan, &[&bus]);
    let got = drain(&mut device, ms(40));
    assert_eq!(got.iter().map(|bytes| bytes[32]).collect::<Vec<_>>(), [0x11, 0x33]);
    assert_eq!(replay("(1.0) can0 123#1\n", "can0").unwrap_err().line, 1);
}

fn passes(commands: &[Vec<u8>]) -> Vec<Passing> {
    let mut stream = CommandStream::default();
    commands.iter().for_each(|command| stream.push(command));
    let commands = std::iter::from_fn(|| stream.pop()).map(Result::unwrap);
    commands.filter_map(|command| passing(&command)).collect()
}

/// An observer of the wire sees the frames to be sent, in both forms, and when they are through.
#[test]
fn what_passes_on_the_wire_is_what_the_interface_sends() {
    let bus = bus();
    bus.add_unit(Vec::new());
    bus.listen();
    let mut device = interface(ControllerKind::Kcan, &[&bus]);
    let mut normal = vec![0x21, 1, 0, 0x80];
    normal.extend(b"hi\0\0\0\0\0\0\x02");
    let orders = [
        extended_transmit(0x13, 9, 0x1234, 0x20, b"abcdefgh"),
        command(33, 0x13, 127, &normal),
        command(28, 0x13, 9, &[]),
    ];
    let frames = [(0x1234, &b"abcdefgh"[..]), (0x121, b"hi")]
        .map(|(id, bytes)| CanFrame::data(extended(id).unwrap(), bytes).unwrap());
    let told = |load, transaction| Passing { channel: 0, load, transaction };
    let departures = [
        told(FrameContent::Departure(frames[0].into()), 9),
        told(FrameContent::Departure(frames[1].into()), 127),
    ];
    assert_eq!(passes(&orders), departures);
    orders[..2].iter().for_each(|order| write(&mut device, START, OUT, order));
    let back = passes(&drain(&mut device, START + MS));
    assert_eq!(
        back,
        [told(FrameContent::Acknowledgement, 9), told(FrameContent::Acknowledgement, 127)]
    );
    let heard = bus.take_heard();
    assert_eq!(
        heard.iter().map(|it| (it.frame, it.own)).collect::<Vec<_>>(),
        frames.map(|it| (it.into(), true))
    );
    assert_eq!(heard[0].time, START + length(&frames[0]));
}

/// An observer of the wire sees the frames that the bus gave to the interface, in both forms.
#[test]
fn what_passes_on_the_wire_is_what_the_interface_heard() {
    let frames = [
        CanFrame::data(standard(0x123).unwrap(), b"eight by").unwrap(),
        CanFrame::remote(standard(0x124).unwrap(), 3).unwrap(),
        CanFrame::data(extended(0x1234_5678).unwrap(), &[]).unwrap(),
    ];
    for personality in [ControllerKind::Kcan, ControllerKind::Rt, ControllerKind::Flexc] {
        let bus = bus();
        bus.add_replay((0..).zip(frames).map(|(n, frame)| (ms(20 + n), frame)).collect());
        bus.add_unit(Vec::new());
        bus.listen();
        let mut device = interface(personality, &[&bus]);
        device.advance(ms(30));
        let passed = passes(&drain(&mut device, ms(30)));
        let passed: Vec<_> = passed.iter().map(|it| (it.channel, it.load)).collect();
        assert_eq!(passed, frames.map(|frame| (0, FrameContent::Arrival(frame.into()))));
        let heard = bus.take_heard();
        assert_eq!(
            heard.iter().map(|heard| heard.frame).collect::<Vec<_>>(),
            frames.map(AnyFrame::from)
        );
        let bit = Nanos(2_000);
        let ends = (0..).zip(&frames).map(|(n, frame)| ms(20 + n) + length(frame) - bit);
        assert!(heard.iter().map(|heard| heard.time).eq(ends));
        assert!(bus.take_heard().is_empty());
    }
}

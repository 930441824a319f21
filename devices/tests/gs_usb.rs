//! The interface that speaks `gs_usb`, byte for byte as an unmodified Linux driver exchanged them,
//! and with hosts without manners.

use crate::support::{Random, configure, hostile, read, write};
use diapason_abi::Nanos;
use diapason_can::frame::{extended, standard};
use diapason_can::{BitRate, CanFrame, FdFrame, wire};
use diapason_devices::can::{BUSY, BusMishap, CanBus};
use diapason_devices::gs_usb::{CHANNELS, GsUsbModel, HostFrame, IN, OUT, POOL, feature, request};
use diapason_devices::{Handshake, Stall, UsbDevice};
use diapason_usb::Setup;

const MS: Nanos = Nanos::from_millis(1);
const LISTEN_AND_STAMP: u32 = feature::LISTEN_ONLY | feature::TIMESTAMP;

fn order(device: &mut GsUsbModel, now: Nanos, what: u8, channel: u16, words: &[u32]) -> bool {
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let length = data.len() as u16;
    let setup = Setup { kind: 0x41, request: what, value: channel, index: 0, length };
    device.control(now, setup, &data) == Ok(Vec::new())
}

fn ask(device: &mut GsUsbModel, now: Nanos, what: u8, channel: u16, length: u16) -> Vec<u32> {
    let setup = Setup { kind: 0xc1, request: what, value: channel, index: 0, length };
    let bytes = device.control(now, setup, &[]).unwrap();
    assert_eq!(bytes.len(), usize::from(length));
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// The segments that Linux sets for this rate: 16 quanta, or 12 where 16 do not divide.
fn timing(hertz: u32) -> [u32; 5] {
    if 48_000_000 % (16 * hertz) == 0 {
        return [6, 7, 2, 1, 3_000_000 / hertz];
    }
    [5, 4, 2, 1, 4_000_000 / hertz]
}

fn start(device: &mut GsUsbModel, now: Nanos, channel: u16, hertz: u32, flags: u32) {
    assert!(order(device, now, request::BIT_TIMING, channel, &timing(hertz)));
    assert!(order(device, now, request::MODE, channel, &[1, flags]));
}

fn interface(buses: &[&CanBus]) -> GsUsbModel {
    let buses: Vec<Option<CanBus>> = buses.iter().map(|bus| Some((*bus).clone())).collect();
    let mut device = GsUsbModel::new(1, &buses);
    configure(&mut device, Nanos::ZERO);
    device
}

fn bus() -> CanBus {
    let bus = CanBus::new(BitRate::new(500_000).unwrap());
    bus.add_unit(Vec::new());
    bus
}

/// All transfers that the device has for its host now.
fn drain(device: &mut GsUsbModel, now: Nanos) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| read(device, now, IN, 512)).collect()
}

#[test]
fn linux_finds_what_it_asks_for() {
    let mut device = interface(&[&bus(), &bus()]);
    assert!(order(&mut device, MS, request::HOST_FORMAT, 1, &[0xbeef]));
    assert!(!order(&mut device, MS, request::HOST_FORMAT, 1, &[0xefbe_0000]));
    assert_eq!(ask(&mut device, MS, request::DEVICE_CONFIG, 1, 12), [1 << 24, 2, 1]);
    let limits = [feature::ALL, 48_000_000, 1, 16, 1, 8, 4, 1, 1024, 1];
    for channel in [0, 1] {
        assert_eq!(ask(&mut device, MS, request::TIMING_LIMITS, channel, 40), limits);
    }
    assert_eq!(ask(&mut device, Nanos(7_654_321), request::TIMESTAMP, 0, 4), [7_654]);
    let setup = |kind, number, value| Setup { kind, request: number, value, index: 0, length: 40 };
    assert_eq!(device.control(MS, setup(0xc1, request::TIMING_LIMITS, 2), &[]), Err(Stall));
    assert_eq!(device.control(MS, setup(0xc1, 12, 0), &[]), Err(Stall));
    assert!(!order(&mut device, MS, request::MODE, 0, &[1, 0]), "no bit timing");
    for wrong in
        [[0, 0, 2, 1, 6], [9, 8, 2, 1, 6], [6, 7, 9, 1, 6], [6, 7, 2, 5, 6], [6, 7, 2, 1, 0]]
    {
        assert!(!order(&mut device, MS, request::BIT_TIMING, 0, &wrong), "{wrong:?}");
    }
    assert!(order(&mut device, MS, request::BIT_TIMING, 0, &timing(500_000)));
    assert!(!order(&mut device, MS, request::MODE, 0, &[1, 2]), "no loopback");
    assert!(order(&mut device, MS, request::MODE, 0, &[1, 0]));
}

#[test]
fn frames_go_out_and_come_back_as_echoes_and_others_arrive() {
    let bus = bus();
    bus.record(10);
    let mut device = interface(&[&bus]);
    start(&mut device, MS, 0, 500_000, 0);
    let sent = [0, 0, 0, 0, 0x23, 1, 0, 0, 4, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0];
    let begun = Nanos::from_millis(2);
    write(&mut device, begun, OUT, &sent);
    let frame = CanFrame::data(standard(0x123).unwrap(), &[0xde, 0xad, 0xbe, 0xef]).unwrap();
    let through = begun + Nanos(2_000 * u64::from(wire::encode(&frame).bits.len()));
    assert!(drain(&mut device, through - Nanos(1)).is_empty(), "not through yet");
    assert_eq!(drain(&mut device, through), [sent.to_vec()]);
    assert_eq!(bus.take_record()[0].frame, frame.into());
    let other = CanFrame::data(extended(0x1234_5678).unwrap(), b"12345678").unwrap();
    bus.add_replay([(Nanos::from_millis(5), other)].into());
    let got = drain(&mut device, Nanos::from_millis(10));
    assert_eq!(got, [HostFrame::received(0, &other.into()).bytes(None)]);
    assert_eq!(got[0].len(), 20);
}

/// A bus at 500 kbit/s with data at 2 Mbit/s.
fn flexible() -> CanBus {
    let (rate, data) = (BitRate::new(500_000).unwrap(), BitRate::of_data(2_000_000).unwrap());
    let bus = CanBus::with_data_rate(rate, data);
    bus.add_unit(Vec::new());
    bus
}

/// The segments that Linux sets on such a bus for frames and for data.
const SEGMENTS: [u32; 5] = [69, 70, 20, 1, 1];
const DATA_SEGMENTS: [u32; 5] = [14, 15, 10, 1, 1];
const FD_AND_STAMP: u32 = feature::FD | feature::TIMESTAMP;

#[test]
fn a_channel_on_a_bus_with_can_fd_has_its_features_and_others_have_not() {
    let mut device = interface(&[&bus(), &flexible()]);
    let nominal = [feature::ALL_FD, 80_000_000, 1, 256, 1, 128, 128, 1, 512, 1];
    assert_eq!(ask(&mut device, MS, request::TIMING_LIMITS, 1, 40), nominal);
    let all = [&nominal[..], &[1, 32, 1, 16, 16, 1, 32, 1]].concat();
    assert_eq!(ask(&mut device, MS, request::ALL_TIMING_LIMITS, 1, 72), all);
    assert_eq!(ask(&mut device, MS, request::TIMING_LIMITS, 0, 40)[0], feature::ALL);
    let setup = Setup { kind: 0xc1, request: 11, value: 0, index: 0, length: 72 };
    assert_eq!(device.control(MS, setup, &[]), Err(Stall));
    assert!(!order(&mut device, MS, request::DATA_BIT_TIMING, 0, &DATA_SEGMENTS));
    assert!(order(&mut device, MS, request::BIT_TIMING, 1, &SEGMENTS));
    assert!(!order(&mut device, MS, request::MODE, 1, &[1, feature::FD]), "no data timing");
    assert!(!order(&mut device, MS, request::DATA_BIT_TIMING, 1, &SEGMENTS));
    assert!(order(&mut device, MS, request::DATA_BIT_TIMING, 1, &DATA_SEGMENTS));
    let limits = [1, feature::ALL_TIMING_LIMITS];
    assert!(!order(&mut device, MS, request::MODE, 1, &limits), "no mode");
    assert!(order(&mut device, MS, request::MODE, 1, &[1, feature::FD]));
}

#[test]
fn frames_of_can_fd_go_out_and_come_as_linux_sends_and_reads_them() {
    let bus = flexible();
    bus.record(10);
    let mut device = interface(&[&bus]);
    assert!(order(&mut device, MS, request::BIT_TIMING, 0, &SEGMENTS));
    assert!(order(&mut device, MS, request::DATA_BIT_TIMING, 0, &DATA_SEGMENTS));
    assert!(order(&mut device, MS, request::MODE, 0, &[1, FD_AND_STAMP]));
    let data = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc];
    let mut sent = vec![0, 0, 0, 0, 0x23, 1, 0, 0, 9, 0, 6, 0];
    sent.extend(data);
    sent.resize(76, 0);
    write(&mut device, Nanos::from_millis(2), OUT, &sent);
    // A classic frame has as many bytes on its way to such a channel.
    let mut classic = vec![1, 0, 0, 0, 0x24, 1, 0, 0, 1, 0, 0, 0, 7];
    classic.resize(76, 0);
    write(&mut device, Nanos::from_millis(2), OUT, &classic);
    let got = drain(&mut device, Nanos::from_millis(4));
    assert_eq!((got[0].len(), &got[0][..76]), (80, &sent[..]));
    assert_eq!((got[1].len(), &got[1][..20]), (24, &classic[..20]));
    let frame = FdFrame::new(standard(0x123).unwrap(), &data).unwrap().with_fast(true);
    let wire = frame.encode();
    let fast = u64::from(wire.fast_bits());
    let time = (u64::from(wire.bits.len()) - fast) * 2_000 + fast * 500;
    let record = bus.take_record();
    assert_eq!(record[0].frame, frame.into());
    assert_eq!(record[0].time, Nanos(2_000_000 + time));
    let stamp = u32::from_le_bytes(got[0][76..].try_into().unwrap());
    assert_eq!(u64::from(stamp), (2_000_000 + time) / 1_000);
    let other = FdFrame::new(extended(0x234).unwrap(), &[9; 64]).unwrap();
    bus.add_replay([(Nanos::from_millis(5), other)].into());
    let got = drain(&mut device, Nanos::from_millis(10));
    assert_eq!(HostFrame::read(&got[0]).unwrap().frame(), Some(other.into()));
}

#[test]
fn a_channel_without_can_fd_destroys_such_frames_and_sends_none() {
    let bus = flexible();
    let mut device = interface(&[&bus]);
    assert!(order(&mut device, MS, request::BIT_TIMING, 0, &SEGMENTS));
    assert!(order(&mut device, MS, request::MODE, 0, &[1, 0]));
    let long = FdFrame::new(standard(0x555).unwrap(), &[9; 12]).unwrap();
    bus.add_replay([(Nanos::from_millis(5), long)].into());
    let got = drain(&mut device, Nanos::from_millis(6));
    assert!(!got.is_empty() && got.iter().all(|frame| frame[7] & 0x20 != 0), "errors only");
    let frame = HostFrame::received(0, &long.into()).bytes(None);
    write(&mut device, Nanos::from_millis(60), OUT, &frame);
    bus.record(10);
    drain(&mut device, Nanos::from_millis(70));
    assert!(bus.take_record().is_empty(), "dropped without a word");
}

#[test]
fn at_another_rate_of_data_a_channel_understands_nothing() {
    let bus = flexible();
    bus.record(10);
    let mut device = interface(&[&bus]);
    assert!(order(&mut device, MS, request::BIT_TIMING, 0, &SEGMENTS));
    assert!(order(&mut device, MS, request::DATA_BIT_TIMING, 0, &[7, 7, 5, 1, 1]));
    assert!(order(&mut device, MS, request::MODE, 0, &[1, feature::FD]));
    let long = FdFrame::new(standard(0x555).unwrap(), &[9; 12]).unwrap().with_fast(true);
    bus.add_replay([(Nanos::from_millis(5), long)].into());
    let got = drain(&mut device, Nanos::from_millis(6));
    assert!(got.len() == 1 && got[0][7] & 0x20 != 0, "an error");
    assert_eq!(bus.take_record().len(), 1, "it does not disturb others in this model");
}

#[test]
fn times_are_those_of_the_bus_in_microseconds() {
    let bus = bus();
    let mut device = interface(&[&bus]);
    start(&mut device, MS, 0, 500_000, LISTEN_AND_STAMP);
    let frame = CanFrame::data(standard(7).unwrap(), &[1]).unwrap();
    bus.add_replay([(Nanos::from_millis(5), frame)].into());
    let got = drain(&mut device, Nanos::from_millis(10));
    // A receiver accepts one bit before the end.
    let bits = u64::from(wire::encode(&frame).bits.len()) - 1;
    let micros = 5_000 + 2 * bits as u32;
    assert_eq!(got, [HostFrame::received(0, &frame.into()).bytes(Some(micros))]);
}

#[test]
fn more_frames_than_it_holds_are_held_off_and_those_of_the_bus_are_lost_with_a_word() {
    let slow = CanBus::new(BitRate::new(500_000).unwrap());
    let mut device = interface(&[&slow]);
    start(&mut device, MS, 0, 500_000, 0);
    let frame = HostFrame {
        echo: 1,
        ..HostFrame::received(0, &CanFrame::data(standard(9).unwrap(), &[]).unwrap().into())
    };
    for _ in 0..POOL {
        write(&mut device, MS, OUT, &frame.bytes(None));
    }
    assert_eq!(device.receive(MS, OUT, &frame.bytes(None)), Handshake::Nak);
    let (hertz, _) = BUSY[0];
    let busy = CanBus::busy(0).unwrap();
    let mut device = interface(&[&busy]);
    start(&mut device, MS, 0, hertz, 0);
    device.advance(Nanos::from_secs(1));
    assert!(device.overruns(0) > 0 && device.buffered() == POOL);
    let flags: Vec<u8> =
        drain(&mut device, Nanos::from_secs(1)).iter().map(|bytes| bytes[10]).collect();
    assert_eq!(flags, [0; POOL]);
    let later = Nanos::from_millis(1_020);
    device.advance(later);
    assert_eq!(drain(&mut device, later)[0][10], 1, "something is missing before it");
}

/// Bus-off is told, the controller comes back by itself and says so, and goes on with what waits.
#[test]
fn bus_off_is_over_by_itself() {
    let bus = bus();
    bus.suffer(Nanos::from_millis(5), BusMishap::BusOff);
    let mut device = interface(&[&bus]);
    start(&mut device, MS, 0, 500_000, 0);
    assert_eq!(ask(&mut device, MS, request::GET_STATE, 0, 12), [0, 0, 0]);
    let got = drain(&mut device, Nanos::from_millis(6));
    let off = HostFrame::read(got.last().unwrap()).unwrap();
    assert_eq!((off.echo, off.id & !0x200, off.code), (u32::MAX, 0x2000_0040, 8));
    assert_eq!(ask(&mut device, Nanos::from_millis(6), request::GET_STATE, 0, 12)[0], 3);
    let frame = HostFrame {
        echo: 7,
        ..HostFrame::received(0, &CanFrame::data(standard(9).unwrap(), &[]).unwrap().into())
    };
    write(&mut device, Nanos::from_millis(6), OUT, &frame.bytes(None));
    let got: Vec<HostFrame> = drain(&mut device, Nanos::from_millis(20))
        .iter()
        .map(|bytes| HostFrame::read(bytes).unwrap())
        .collect();
    assert_eq!(got.iter().map(|it| it.id & !0x200).collect::<Vec<_>>(), [0x2000_0100, 9]);
    assert_eq!(got[1].echo, 7);
}

#[test]
fn a_wrong_bit_rate_hears_errors_and_a_stopped_channel_nothing() {
    let (hertz, _) = BUSY[0];
    let mut device = interface(&[&CanBus::busy(0).unwrap()]);
    start(&mut device, MS, 0, hertz / 2, 0);
    let got = drain(&mut device, Nanos::from_millis(50));
    let ids = got.iter().map(|bytes| HostFrame::read(bytes).unwrap().id);
    assert!(got.len() > 10 && ids.into_iter().all(|id| id == 0x2000_0288));
    assert_eq!(ask(&mut device, Nanos::from_millis(50), request::GET_STATE, 0, 12)[0], 0);
    assert!(order(&mut device, Nanos::from_millis(50), request::MODE, 0, &[0, 0]));
    assert!(drain(&mut device, Nanos::from_millis(90)).is_empty());
    assert_eq!(ask(&mut device, Nanos::from_millis(90), request::GET_STATE, 0, 12)[0], 4);
}

#[test]
fn hostile_hosts_break_nothing_and_fill_nothing() {
    let mut random = Random::new(43);
    for _ in 0..20 {
        let buses: Vec<_> = (0..CHANNELS).map(CanBus::busy).collect();
        let mut device = GsUsbModel::new(1, &buses);
        hostile(&mut device, &mut random, 2_500);
        let now = Nanos::from_secs(2);
        configure(&mut device, now);
        for _ in 0..2_500 {
            let channel = random.below(6) as u16;
            let rate = BUSY[usize::from(channel).min(4)].0;
            match random.below(8) {
                0 => _ = order(&mut device, now, request::BIT_TIMING, channel, &timing(rate)),
                1 => _ = order(&mut device, now, request::MODE, channel, &[1, 0x10]),
                2 if random.one_in(8) => {
                    order(&mut device, now, request::MODE, channel, &[0, 0]);
                }
                _ => {
                    let mut bytes: Vec<u8> = (0..24).map(|_| random.bits() as u8).collect();
                    (bytes[6], bytes[7], bytes[9], bytes[10]) = (0, 0, channel as u8, 0);
                    bytes.truncate(random.pick(&[24, 20, 20, 20, 19, 0]));
                    device.receive(now, OUT, &bytes);
                }
            }
        }
        let later = now + now;
        device.advance(later);
        assert!(drain(&mut device, later).len() <= 2 * POOL + CHANNELS);
    }
}

//! The USB-CAN driver against the model of the interface, on buses that are right to the bit.

use super::host::{Host, enumerate};
use diapason_abi::Nanos;
use diapason_can::bus::Health;
use diapason_can::frame::standard;
use diapason_can::{BitRate, CanFrame};
use diapason_devices::can::{BUSY, CanBus};
use diapason_devices::kvaser::{ControllerKind as Kind, Hydra, Identity};
use diapason_usb::Speed;
use diapason_usb::class::can::{CloseCause, FrameOutcome, InterfaceEvent, Mode};
use diapason_usb::class::kvaser::{Kvaser, Personality};
use diapason_usb::descriptor::Configuration;

const KINDS: [(Kind, Personality); 3] = [
    (Kind::Kcan, Personality::Kcan),
    (Kind::Rt, Personality::Rt),
    (Kind::Flexc, Personality::Flexc),
];

type Interface = Host<Hydra, Kvaser>;

/// Returns an interface that is probed.
fn ready(mut device: Hydra, extended: bool) -> Interface {
    let (about, bytes) = enumerate(&mut device, 0);
    let set = Configuration::parse_once(&bytes, Speed::High).unwrap();
    assert!(Kvaser::fits(&about, &set));
    let mut host = Host::new(device, &bytes, Kvaser::new(Nanos::ZERO, extended));
    let mut told = Vec::new();
    host.run(Nanos::from_micros(500), &mut |event| told.push(event));
    assert!(matches!(told[..], [InterfaceEvent::Ready { .. }]), "{told:?}");
    host
}

/// Frames of all kinds of interfaces, and what they say of themselves, in the second in which their
/// stamps of 48 bits wrap: times go on.
#[test]
fn times_go_on_when_stamps_wrap() {
    for (kind, personality) in KINDS {
        let wrap = personality.time(1 << 48);
        let identity = Identity { personality: kind, serial: 77, outstanding: 64 };
        let (device, _) = Hydra::busy(identity);
        let begins = wrap - Nanos::from_millis(50);
        let mut host = ready(device.clock_begins(begins), false);
        open(&mut host, 0, BUSY[0].0, Mode::Normal);
        let (mut frames, mut last) = ([0, 0], begins);
        let mut judge = |time: Nanos| {
            assert!(time >= last && time - last < Nanos::from_millis(30), "{time:?} {last:?}");
            last = time;
            frames[usize::from(time >= wrap)] += 1;
        };
        for step in 1..20 {
            let until = Nanos::from_millis(5 * step);
            host.run(until, &mut |event| match event {
                InterfaceEvent::Frame { time, .. } | InterfaceEvent::ChipState { time, .. } => {
                    judge(time);
                }
                _ => {}
            });
            host.class.ask_chip_state(0).unwrap();
        }
        assert!(frames[0] > 20 && frames[1] > 20, "{frames:?}");
    }
}

fn open(host: &mut Interface, channel: u8, hertz: u32, mode: Mode) {
    let personality = host.class.identity().unwrap().personality;
    let rate = BitRate::new(hertz).unwrap();
    let setting = personality.parameters(rate, 800).unwrap();
    host.class.open(host.now, channel, setting, mode).unwrap();
}

/// Five channels with 7,000 frames a second for a quarter of a second: every frame of every bus
/// arrives, in order, with its time.
#[test]
fn all_frames_of_busy_buses_arrive() {
    for (kind, personality) in KINDS {
        let identity = Identity { personality: kind, serial: 77, outstanding: 64 };
        let (device, buses) = Hydra::busy(identity);
        buses.iter().for_each(|bus| bus.record(10_000));
        let mut host = ready(device, true);
        let known = host.class.identity().unwrap();
        assert_eq!((known.personality, known.channels, known.slots), (personality, 5, 64));
        assert_eq!((known.serial, known.extended), (77, kind.extended()));
        for (channel, (hertz, _)) in (0..).zip(BUSY) {
            open(&mut host, channel, hertz, Mode::Normal);
        }
        let mut got: [Vec<(Nanos, CanFrame)>; 5] = Default::default();
        let mut opened = 0;
        let until = Nanos::from_millis(250);
        host.run(until, &mut |event| match event {
            InterfaceEvent::Opened { .. } => opened += 1,
            InterfaceEvent::Frame { channel, time, frame } => {
                got[usize::from(channel)].push((time, frame))
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(opened, 5);
        assert!(got.iter().map(Vec::len).sum::<usize>() > 7_000 / 4 - 60);
        for (channel, bus) in buses.iter().enumerate() {
            bus.advance(until);
            let sent = bus.take_record();
            assert!(sent.len() - got[channel].len() <= 1, "one may be in its last bit");
            let bit = BitRate::new(BUSY[channel].0).unwrap().time(1);
            for (sent, (time, frame)) in sent.iter().zip(&got[channel]) {
                assert_eq!(sent.frame, (*frame).into());
                // A receiver has a frame one bit before its end; a time stamp is rounded down.
                let early = sent.time - *time;
                assert!(early >= bit && early <= bit + Nanos(1_000), "{early:?}");
            }
        }
        assert_eq!(host.class.counts(), Default::default());
    }
}

#[test]
fn frames_sent_are_acknowledged_when_they_are_through() {
    for (kind, _) in KINDS {
        for extended in [false, true] {
            let bus = CanBus::new(BitRate::new(500_000).unwrap());
            bus.add_unit(Vec::new());
            bus.record(1_000);
            let identity = Identity { personality: kind, serial: 1, outstanding: 16 };
            let mut host = ready(Hydra::new(identity, &[Some(bus.clone()), None]), extended);
            open(&mut host, 0, 500_000, Mode::Normal);
            host.run(host.now + Nanos::from_millis(1), &mut |_| {});
            let (mut sent, mut through) = (0u32, Vec::new());
            while through.len() < 200 {
                while sent < 200 {
                    let frame =
                        CanFrame::data(standard(sent).unwrap(), &sent.to_be_bytes()).unwrap();
                    if host.class.send(0, &frame, false).is_err() {
                        break;
                    }
                    sent += 1;
                }
                host.run(host.now + Nanos::from_micros(100), &mut |event| match event {
                    InterfaceEvent::Acknowledged { time, outcome, .. } => {
                        assert_eq!(outcome, FrameOutcome::Sent);
                        through.push(time);
                    }
                    other => panic!("{other:?}"),
                });
            }
            let record = bus.take_record();
            let ids: Vec<u32> = record.iter().map(|sent| sent.frame.raw_id()).collect();
            assert_eq!(ids, (0..200).collect::<Vec<_>>());
            for (sent, time) in record.iter().zip(&through) {
                assert!(sent.time - *time <= Nanos(1_000), "{:?} {time:?}", sent.time);
            }
            assert_eq!(host.class.outstanding(0), 0);
        }
    }
}

/// A host that does not fetch for a while loses frames, and is told so.
#[test]
fn an_overrun_is_seen() {
    let (device, _) = Hydra::busy(Identity::default());
    let mut host = ready(device, true);
    open(&mut host, 4, BUSY[4].0, Mode::Normal);
    host.run(Nanos::from_millis(10), &mut |_| {});
    // Nobody looks for 50 ms: about 160 frames, and the buffer holds 64.
    host.now = Nanos::from_millis(60);
    let (mut overruns, mut frames) = (0, 0);
    host.run(Nanos::from_micros(60_100), &mut |event| match event {
        InterfaceEvent::Overrun { channel: 4 } => overruns += 1,
        InterfaceEvent::Frame { channel: 4, .. } => frames += 1,
        other => panic!("{other:?}"),
    });
    assert_eq!(overruns, 1);
    assert!((60..=66).contains(&frames), "{frames}");
    assert!(host.device.overruns(4) > 80);
}

/// Nobody acknowledges, then the wire is cut: warnings, bus-off, and the channel is closed.
#[test]
fn a_broken_bus_closes_its_channel() {
    let bus = CanBus::new(BitRate::new(500_000).unwrap());
    bus.add_unit(Vec::new());
    let mut host = ready(Hydra::new(Identity::default(), &[Some(bus.clone())]), true);
    open(&mut host, 0, 500_000, Mode::Normal);
    host.run(Nanos::from_millis(1), &mut |_| {});
    bus.with_bus(|bus| bus.jam(Nanos::from_millis(1), 25_000));
    let frame = CanFrame::data(standard(1).unwrap(), &[1]).unwrap();
    host.class.send(0, &frame, false).unwrap();
    let (mut health, mut closed) = (Vec::new(), None);
    host.run(Nanos::from_millis(100), &mut |event| match event {
        InterfaceEvent::ChipState { health: now, .. } => health.push(now),
        InterfaceEvent::Closed { channel: 0, cause } => closed = Some(cause),
        _ => {}
    });
    assert_eq!((closed, health.last()), (Some(CloseCause::BusOff), Some(&Health::BusOff)));
    assert_eq!(host.class.outstanding(0), 0);
}

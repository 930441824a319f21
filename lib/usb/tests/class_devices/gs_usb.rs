//! The driver of `gs_usb` interfaces against their model, on buses that are right to the bit.

use super::host::{Host, enumerate};
use diapason_abi::Nanos;
use diapason_can::bus::Health;
use diapason_can::frame::standard;
use diapason_can::{BitRate, CanFrame};
use diapason_devices::can::{BUSY, BusMishap, CanBus};
use diapason_devices::gs_usb::GsUsbModel;
use diapason_usb::Speed;
use diapason_usb::class::can::{CloseCause, FrameOutcome, InterfaceEvent, Mode, Refused};
use diapason_usb::class::gs_usb::{GsUsb, SLOTS};
use diapason_usb::descriptor::Configuration;

pub type Interface = Host<GsUsbModel, GsUsb>;

/// Returns an interface that is probed.
fn ready(buses: &[&CanBus]) -> Interface {
    ready_for(buses, false)
}

/// Returns an interface that is probed, with CAN FD or without.
pub fn ready_for(buses: &[&CanBus], fd: bool) -> Interface {
    let plugged: Vec<Option<CanBus>> = buses.iter().map(|bus| Some((*bus).clone())).collect();
    let mut device = GsUsbModel::new(1, &plugged);
    let (about, bytes) = enumerate(&mut device, 0);
    let set = Configuration::parse_once(&bytes, Speed::High).unwrap();
    let class = GsUsb::find(&about, &set, fd).unwrap();
    let mut host = Host::new(device, &bytes, class);
    let mut told = Vec::new();
    host.run(Nanos::from_micros(500), &mut |event| told.push(event));
    let channels = buses.len() as u8;
    assert_eq!(told, [InterfaceEvent::Ready { channels, serial: None }]);
    assert!(host.class.is_ready());
    host
}

fn open(host: &mut Interface, channel: u8, hertz: u32) {
    let rate = BitRate::new(hertz).unwrap();
    host.class.open(channel, (rate, 800), Mode::Normal).unwrap();
}

fn bus() -> CanBus {
    let bus = CanBus::new(BitRate::new(500_000).unwrap());
    bus.add_unit(Vec::new());
    bus.record(1_000);
    bus
}

fn frame(number: u32) -> CanFrame {
    CanFrame::data(standard(number).unwrap(), &number.to_be_bytes()).unwrap()
}

/// Five channels with 7,000 frames a second for a quarter of a second: every frame of every bus
/// arrives, in order, with its time.
#[test]
fn all_frames_of_busy_buses_arrive() {
    let buses: Vec<CanBus> = (0..5).filter_map(CanBus::busy).collect();
    buses.iter().for_each(|bus| bus.record(10_000));
    let mut host = ready(&buses.iter().collect::<Vec<_>>());
    for (channel, (hertz, _)) in (0..).zip(BUSY) {
        open(&mut host, channel, hertz);
    }
    let mut got: [Vec<(Nanos, CanFrame)>; 5] = Default::default();
    let (mut opened, until) = (0, Nanos::from_millis(250));
    host.run(until, &mut |event| match event {
        InterfaceEvent::Opened { .. } => opened += 1,
        InterfaceEvent::Frame { channel, time, frame } => {
            got[usize::from(channel)].push((time, frame));
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(opened, 5);
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

#[test]
fn frames_sent_are_acknowledged_when_they_are_through() {
    let bus = bus();
    let mut host = ready(&[&bus]);
    open(&mut host, 0, 500_000);
    host.run(host.now + Nanos::from_millis(1), &mut |_| {});
    let (mut sent, mut through) = (0u32, Vec::new());
    while through.len() < 200 {
        while sent < 200 && host.class.takes(0) {
            host.class.send(0, &frame(sent)).unwrap();
            sent += 1;
        }
        assert!(host.class.outstanding(0) == u32::from(SLOTS) || sent == 200);
        assert!(sent == 200 || host.class.send(0, &frame(0)) == Err(Refused::Busy));
        host.run(host.now + Nanos::from_micros(100), &mut |event| match event {
            InterfaceEvent::Acknowledged { time, outcome, .. } => {
                assert_eq!(outcome, FrameOutcome::Sent);
                through.push(time);
            }
            other => panic!("{other:?}"),
        });
    }
    let record = bus.take_record();
    assert_eq!(
        record.iter().map(|sent| sent.frame.classic()).collect::<Vec<_>>(),
        (0..200).map(|number| Some(frame(number))).collect::<Vec<_>>()
    );
    for (sent, time) in record.iter().zip(&through) {
        assert!(sent.time - *time <= Nanos(1_000), "{:?} {time:?}", sent.time);
    }
    assert_eq!(host.class.outstanding(0), 0);
}

/// A channel that is closed with frames under way and opened again frees no slot by an old echo.
#[test]
fn an_old_echo_belongs_to_an_old_life() {
    let silent = CanBus::new(BitRate::new(500_000).unwrap());
    let mut host = ready(&[&silent, &bus()]);
    for channel in [0, 1] {
        open(&mut host, channel, 500_000);
    }
    host.run(host.now + Nanos::from_millis(1), &mut |_| {});
    host.class.send(0, &frame(1)).unwrap();
    host.run(host.now + Nanos::from_millis(1), &mut |_| {});
    host.class.close(0).unwrap();
    assert_eq!(host.class.close(0), Err(Refused::WrongPhase));
    let mut events = Vec::new();
    host.run(host.now + Nanos::from_millis(1), &mut |event| events.push(event));
    let closed = InterfaceEvent::Closed { channel: 0, cause: CloseCause::Asked };
    assert_eq!(events.pop(), Some(closed));
    assert_eq!(host.class.outstanding(0), 0);
    assert_eq!(
        host.class.open(0, (BitRate::new(83_333).unwrap(), 800), Mode::Normal),
        Err(Refused::Parameters)
    );
    silent.add_unit(Vec::new());
    open(&mut host, 0, 500_000);
    host.run(host.now + Nanos::from_millis(1), &mut |_| {});
    host.class.send(0, &frame(2)).unwrap();
    let mut through = 0;
    host.run(host.now + Nanos::from_millis(5), &mut |event| {
        through += u32::from(matches!(event, InterfaceEvent::Acknowledged { .. }));
    });
    assert_eq!((through, host.class.counts().stray_acknowledgements), (1, 0));
}

/// The clock has 32 bits of microseconds: a run of three hours has two wraps.
#[test]
fn times_go_on_beyond_the_wraps_of_the_clock() {
    let quiet = bus();
    let mut host = ready(&[&quiet]);
    open(&mut host, 0, 500_000);
    host.run(Nanos::from_secs(10_800), &mut |_| {});
    host.class.send(0, &frame(1)).unwrap();
    let mut time = None;
    host.run(Nanos::from_secs(10_801), &mut |event| match event {
        InterfaceEvent::Acknowledged { time: through, .. } => time = Some(through),
        other => panic!("{other:?}"),
    });
    let sent = quiet.take_record()[0].time;
    assert!(sent - time.unwrap() <= Nanos(1_000), "{sent:?} {time:?}");
}

/// Bus-off closes the channel. It can be opened again, and works.
#[test]
fn bus_off_closes_the_channel_and_it_can_be_opened_again() {
    let wire = bus();
    wire.suffer(Nanos::from_millis(5), BusMishap::BusOff);
    let mut host = ready(&[&wire]);
    open(&mut host, 0, 500_000);
    let (mut health, mut closed) = (Vec::new(), None);
    host.run(Nanos::from_millis(6), &mut |event| match event {
        InterfaceEvent::ChipState { health: now, .. } => health.push(now),
        InterfaceEvent::Closed { channel: 0, cause } => closed = Some(cause),
        _ => {}
    });
    assert_eq!((closed, health.last()), (Some(CloseCause::BusOff), Some(&Health::BusOff)));
    open(&mut host, 0, 500_000);
    host.run(Nanos::from_millis(7), &mut |_| {});
    host.class.ask_chip_state(0).unwrap();
    host.class.send(0, &frame(3)).unwrap();
    let mut events = Vec::new();
    host.run(Nanos::from_millis(20), &mut |event| events.push(event));
    let healthy = |event: &InterfaceEvent| {
        matches!(event, InterfaceEvent::ChipState { health: Health::ErrorActive, .. })
    };
    assert!(events.iter().any(healthy), "{events:?}");
    assert!(events.iter().any(|event| matches!(event, InterfaceEvent::Acknowledged { .. })));
}

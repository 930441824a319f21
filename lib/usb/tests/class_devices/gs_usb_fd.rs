//! The driver of `gs_usb` interfaces with CAN FD against their model, on buses that are right to
//! the bit at both rates.

use super::gs_usb::{Interface, ready_for};
use diapason_abi::Nanos;
use diapason_can::frame::standard;
use diapason_can::{AnyFrame, BitRate, CanFrame, FdFrame};
use diapason_devices::can::{BUSY, BUSY_FD, BusMishap, CanBus};
use diapason_usb::class::can::{BusRates, CloseCause, InterfaceEvent, Mode, Refused};
use diapason_usb::class::gs_usb::SLOTS;

fn rates() -> BusRates {
    let (hertz, data, _) = BUSY_FD;
    let data = BitRate::of_data(data).ok();
    BusRates { rate: BitRate::new(hertz).unwrap(), sample_point: 800, data }
}

fn open(host: &mut Interface, channel: u8) {
    host.class.open(channel, rates(), Mode::Normal).unwrap();
}

/// Returns a bus with CAN FD and a unit that acknowledges.
fn bus() -> CanBus {
    let rates = rates();
    let bus = CanBus::with_data_rate(rates.rate, rates.data.unwrap());
    bus.add_unit(Vec::new());
    bus.record(10_000);
    bus
}

/// Returns a frame of any kind, by its number.
fn frame(number: u32) -> AnyFrame {
    let id = standard(number % 0x700).unwrap();
    let long = |bytes: usize| FdFrame::new(id, &[number as u8; 64][..bytes]).unwrap();
    match number % 4 {
        0 => CanFrame::data(id, &number.to_be_bytes()).unwrap().into(),
        1 => long(64).with_fast(true).into(),
        2 => long(12).into(),
        _ => long(0).with_fast(true).into(),
    }
}

fn send(host: &mut Interface, frame: &AnyFrame) -> Result<u8, Refused> {
    match frame {
        AnyFrame::Classic(frame) => host.class.send(0, frame),
        AnyFrame::Fd(frame) => host.class.send_fd(0, frame),
    }
}

/// A bus with frames of both formats beside a busy classic one, each on a channel of its own: every
/// frame arrives, in order, with its data and its time.
#[test]
fn all_frames_of_a_mixed_and_of_a_classic_bus_arrive() {
    let buses = [CanBus::busy_fd().unwrap(), CanBus::busy(4).unwrap()];
    buses.iter().for_each(|bus| bus.record(10_000));
    let mut host = ready_for(&buses.each_ref(), true);
    open(&mut host, 0);
    host.class.open(1, (BitRate::new(BUSY[4].0).unwrap(), 800), Mode::Normal).unwrap();
    let mut got: [Vec<(Nanos, AnyFrame)>; 2] = Default::default();
    let until = Nanos::from_millis(250);
    host.run(until, &mut |event| match event {
        InterfaceEvent::Opened { .. } => {}
        InterfaceEvent::Frame { channel, time, frame } => {
            got[usize::from(channel)].push((time, frame.into()));
        }
        InterfaceEvent::FdFrame { channel: 0, time, frame } => got[0].push((time, frame.into())),
        other => panic!("{other:?}"),
    });
    let long = got[0].iter().filter(|(_, frame)| frame.is_fd()).count();
    assert!(long > 200 && got[0].len() > long + 200, "{long} of {}", got[0].len());
    for (bus, got) in buses.iter().zip(&got) {
        bus.advance(until);
        let sent = bus.take_record();
        assert!(sent.len() - got.len() <= 1, "one may be in its last bit");
        for (sent, (time, frame)) in sent.iter().zip(got) {
            assert_eq!(sent.frame, *frame);
            let early = sent.time - *time;
            assert!(early >= Nanos(2_000) && early <= Nanos(3_000), "{early:?}");
        }
    }
    assert_eq!(host.class.counts(), Default::default());
}

/// Frames of both formats go out in their order, and each is acknowledged.
#[test]
fn frames_of_both_formats_go_out_in_order() {
    let bus = bus();
    let mut host = ready_for(&[&bus], true);
    open(&mut host, 0);
    host.run(host.now + Nanos::from_millis(1), &mut |_| {});
    let (mut sent, mut through) = (0u32, 0);
    while through < 400 {
        while sent < 400 && host.class.takes(0) {
            send(&mut host, &frame(sent)).unwrap();
            sent += 1;
        }
        assert!(host.class.outstanding(0) == u32::from(SLOTS) || sent == 400);
        host.run(host.now + Nanos::from_micros(100), &mut |event| match event {
            InterfaceEvent::Acknowledged { .. } => through += 1,
            other => panic!("{other:?}"),
        });
    }
    let record: Vec<AnyFrame> = bus.take_record().iter().map(|sent| sent.frame).collect();
    assert_eq!(record, (0..400).map(frame).collect::<Vec<_>>());
}

/// A channel at another rate of data hears errors only. At the right one it works again.
#[test]
fn another_rate_of_data_is_another_bus() {
    let bus = CanBus::busy_fd().unwrap();
    let mut host = ready_for(&[&bus], true);
    let wrong = BusRates { data: BitRate::of_data(4_000_000).ok(), ..rates() };
    host.class.open(0, wrong, Mode::ListenOnly).unwrap();
    let (mut errors, mut frames) = (0, 0);
    let mut count = |event| match event {
        InterfaceEvent::BusError { .. } => errors += 1,
        InterfaceEvent::Frame { .. } | InterfaceEvent::FdFrame { .. } => frames += 1,
        _ => {}
    };
    host.run(Nanos::from_millis(50), &mut count);
    host.class.close(0).unwrap();
    host.run(Nanos::from_millis(51), &mut count);
    assert!(errors > 20 && frames == 0, "{errors} {frames}");
    open(&mut host, 0);
    host.run(Nanos::from_millis(100), &mut |event| {
        frames += u32::from(matches!(event, InterfaceEvent::FdFrame { .. }));
    });
    assert!(frames > 20, "{frames}");
}

/// Bus-off closes a channel with CAN FD, and it can be opened again.
#[test]
fn bus_off_closes_the_channel_and_it_can_be_opened_again() {
    let wire = bus();
    wire.suffer(Nanos::from_millis(5), BusMishap::BusOff);
    let mut host = ready_for(&[&wire], true);
    open(&mut host, 0);
    let mut closed = None;
    host.run(Nanos::from_millis(6), &mut |event| {
        if let InterfaceEvent::Closed { channel: 0, cause } = event {
            closed = Some(cause);
        }
    });
    assert_eq!(closed, Some(CloseCause::BusOff));
    assert_eq!(send(&mut host, &frame(1)), Err(Refused::WrongPhase));
    open(&mut host, 0);
    host.run(Nanos::from_millis(7), &mut |_| {});
    send(&mut host, &frame(1)).unwrap();
    let mut through = 0;
    host.run(Nanos::from_millis(20), &mut |event| {
        through += u32::from(matches!(event, InterfaceEvent::Acknowledged { .. }));
    });
    assert_eq!(through, 1);
}

//! The receiver that is slower than its bus: it sets the pace, loses nothing, and says what it
//! read.

use diapason_abi::Nanos;
use diapason_can::bus::EventKind;
use diapason_can::frame::standard;
use diapason_can::{BitRate, CanFrame};
use diapason_devices::can::{CanBus, CanPlug, RECEIPT_ID};

const SECONDS: u64 = 10;
/// The time of a turn, shortest and longest, and the frames a second that follow from it.
const TURN: (Nanos, Nanos) = (Nanos(325_400), Nanos(327_500));
const PACE: std::ops::RangeInclusive<usize> = 3_053..=3_073;

fn receiving(number: usize) -> CanBus {
    CanBus::receiving(number, BitRate::new(500_000).unwrap(), TURN)
}

fn numbered(number: u64) -> CanFrame {
    CanFrame::data(standard(0x104).unwrap(), &number.to_le_bytes()).unwrap()
}

/// Returns the content of a receipt: frames read, and those that were wrong.
fn receipt(frame: &CanFrame) -> Option<(u32, u32)> {
    let (count, wrong) = frame.bytes().split_at_checked(4)?;
    let word = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?));
    (frame.raw_id() == RECEIPT_ID).then_some((word(count)?, word(wrong)?))
}

/// A sender whose queue is always full until `end`: when its frames were through, and the last
/// receipt, once nothing happens any more. `number` says what the n-th frame has.
fn send(plug: &mut CanPlug, end: Nanos, number: impl Fn(u64) -> u64) -> (Vec<Nanos>, (u32, u32)) {
    let (mut through, mut last, mut next) = (Vec::new(), (0, 0), 0);
    plug.switch_on(Nanos::ZERO, false);
    let mut now = Nanos::ZERO;
    loop {
        while now < end && plug.send(now, numbered(number(next)), false).is_ok() {
            next += 1;
        }
        now = plug.next_change();
        if now == Nanos::FOREVER {
            return (through, last);
        }
        plug.advance(now);
        while let Some(event) = plug.poll(now) {
            match event.kind {
                EventKind::Sent { .. } => through.push(event.time),
                EventKind::Received { frame } => last = receipt(&frame.classic().unwrap()).unwrap(),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn the_receiver_sets_the_pace_and_every_frame_is_read_in_order() {
    let bus = receiving(4);
    let (through, last) = send(&mut bus.plug(128), Nanos::from_secs(SECONDS), |n| n);
    for second in 0..SECONDS {
        let within = |time: &&Nanos| time.0 / 1_000_000_000 == second;
        let frames = through.iter().filter(within).count();
        assert!(PACE.contains(&frames), "second {second}: {frames} frames");
    }
    assert_eq!(last, (through.len() as u32, 0));
}

#[test]
fn a_number_that_is_missing_is_counted() {
    let bus = receiving(3);
    let skipping = |n: u64| if n < 500 { n } else { n + 1 };
    let (through, last) = send(&mut bus.plug(16), Nanos::from_millis(400), skipping);
    assert!(through.len() > 1_000);
    assert_eq!(last, (through.len() as u32, 1));
}

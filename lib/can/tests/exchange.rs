//! Messages between server and clients come back as they were, and no bytes do harm.

use diapason_abi::Nanos;
use diapason_can::bus::Health;
use diapason_can::exchange::{
    ChannelCommand, ChannelParameters, ChannelReport, ChannelRequest, Departure, FLEXIBLE,
    FdDeparture, FdReceivedFrame, Ledger, Phase, REQUEST_BYTES, ReceivedFrame, RequestReply,
};
use diapason_can::fd::LENGTHS;
use diapason_can::frame::{extended, standard};
use diapason_can::{AnyFrame, CanFrame, FdFrame, Id};
use diapason_random::Random;

const CASES: u64 = 20_000;

fn id(random: &mut Random) -> Id {
    match random.between(0, 1) {
        0 => standard(random.between(0, 0x7ff) as u32).unwrap(),
        _ => extended(random.between(0, 0x1fff_ffff) as u32).unwrap(),
    }
}

fn random_frame(random: &mut Random) -> CanFrame {
    let (id, code) = (id(random), random.between(0, 15) as u8);
    if random.between(0, 3) == 0 {
        return CanFrame::remote(id, code.into()).unwrap();
    }
    let bytes: Vec<u8> = (0..code.min(8)).map(|_| random.between(0, 255) as u8).collect();
    CanFrame::data(id, &bytes).unwrap().with_code(code).unwrap()
}

#[test]
fn frames_come_back_out_of_their_records() {
    let random = &mut Random::new(1);
    for _ in 0..CASES {
        let frame = random_frame(random);
        assert_eq!(Departure::new(&frame).frame(), Some(frame));
        assert_eq!(ReceivedFrame::new(&frame, Nanos(3), Nanos(4)).frame(), Some(frame));
    }
}

#[test]
fn a_record_of_any_content_is_a_frame_that_can_or_none() {
    let random = &mut Random::new(2);
    let mut frames = 0;
    for _ in 0..CASES {
        let mut byte = || random.between(0, 255) as u8;
        let record = Departure {
            data: [0; 8].map(|_: u8| byte()),
            id: u32::from_le_bytes([byte(), byte(), byte(), byte()]) >> (byte() % 32),
            code: byte() % 20,
            flags: byte(),
            spare: 0,
            written: 0,
        };
        let Some(frame) = record.frame() else { continue };
        frames += 1;
        assert_eq!((frame.raw_id(), frame.code()), (record.id, record.code));
        assert_eq!(Departure::new(&frame).frame(), Some(frame));
    }
    assert!((1..CASES).contains(&frames), "{frames}");
}

#[test]
fn requests_come_back_and_nothing_else_is_one() {
    let parameters =
        ChannelParameters { bit_rate: 250_000, sample_point: 875, silent: true, data_rate: 0 };
    for wanted in [
        ChannelCommand::Wake,
        ChannelCommand::Open(parameters),
        ChannelCommand::Close,
        ChannelCommand::Status,
    ] {
        let request = ChannelRequest { wanted, token: 0x1234_5678 };
        assert_eq!(ChannelRequest::parse(&request.bytes()), Some(request));
    }
    let random = &mut Random::new(3);
    for _ in 0..CASES {
        let length = random.between(0, 16) as usize;
        let bytes: Vec<u8> = (0..length).map(|_| random.between(0, 255) as u8).collect();
        let parsed = ChannelRequest::parse(&bytes);
        let possible = length == REQUEST_BYTES && bytes[0] < 4;
        assert_eq!(parsed.is_some(), possible, "{bytes:?}");
    }
}

#[test]
fn a_report_of_zeros_is_that_of_a_channel_without_an_interface() {
    let report = ChannelReport::default();
    let all = (report.phase(), report.answer(), report.health());
    assert_eq!(all, (Phase::Absent, RequestReply::Heard, Health::ErrorActive));
    let healths = [0, 95, 96, 127, 128, 255].map(|transmit_errors| {
        ChannelReport { transmit_errors, phase: Phase::Open as u8, ..report }.health()
    });
    use Health::{ErrorActive, ErrorPassive, Warning};
    let expected = [ErrorActive, ErrorActive, Warning, Warning, ErrorPassive, ErrorPassive];
    assert_eq!(healths, expected);
    let off = ChannelReport { phase: Phase::BusOff as u8, ..report };
    assert_eq!((off.phase(), off.health()), (Phase::BusOff, Health::BusOff));
    let strange = ChannelReport { phase: 77, answer: 77, ..report };
    assert_eq!((strange.phase(), strange.answer()), (Phase::Absent, RequestReply::Nonsense));
}

#[test]
fn what_is_written_is_through_or_given_up_or_pending() {
    let random = &mut Random::new(4);
    let mut report =
        ChannelReport { through: u64::MAX - 50, given_up: 7, ..ChannelReport::default() };
    let mut books = Ledger::default();
    books.note(report);
    books.restart();
    let (mut written, mut through, mut given_up) = (0, 0, 0);
    for _ in 0..CASES {
        match random.between(0, 3) {
            0 | 1 => {
                books.wrote();
                written += 1;
            }
            2 if through + given_up < written => {
                report.through = report.through.wrapping_add(1);
                through += 1;
            }
            3 if through + given_up < written => {
                report.given_up += 1;
                given_up += 1;
            }
            _ => books.note(report),
        }
        let (known_written, known, lost) = books.counts();
        assert!(known <= through && lost <= given_up && known_written == written);
        assert_eq!(books.pending(), written - known - lost);
    }
    books.note(report);
    assert_eq!(books.counts(), (written, through, given_up));
    // A server that lies makes nothing negative.
    books.note(ChannelReport { through: 1 << 40, given_up: u64::MAX, ..report });
    let (written, through, given_up) = books.counts();
    assert_eq!(written, through + given_up + books.pending());
    books.restart();
    assert_eq!(books.counts(), (0, 0, 0));
}

/// Frames of both formats come back out of the records of channels with CAN FD, and no classic
/// record has a frame of CAN FD.
#[test]
fn frames_of_both_formats_come_back_out_of_their_records() {
    let random = &mut Random::new(3);
    for _ in 0..CASES {
        let frame: AnyFrame = match random.one_in(2) {
            true => random_frame(random).into(),
            false => {
                let (length, _) = random.pick(&LENGTHS);
                let bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
                let frame = FdFrame::new(id(random), &bytes).unwrap();
                frame.with_fast(random.one_in(2)).with_passive(random.one_in(2)).into()
            }
        };
        let departure = FdDeparture::at(&frame, Nanos(9));
        assert_eq!((departure.frame(), departure.head.written), (Some(frame), 9));
        let arrival = FdReceivedFrame::new(&frame, Nanos(3), Nanos(4));
        assert_eq!((arrival.frame(), arrival.head.time, arrival.head.taken), (Some(frame), 3, 4));
        assert_eq!(departure.head.frame().is_some(), !frame.is_fd());
        assert_eq!(arrival.head.frame().is_some(), !frame.is_fd());
    }
}

#[test]
fn a_record_with_can_fd_of_any_content_is_a_frame_that_can_have_or_none() {
    let random = &mut Random::new(4);
    let mut frames = 0;
    for _ in 0..CASES {
        let mut byte = || random.between(0, 255) as u8;
        let head = Departure {
            data: [0; 8].map(|_: u8| byte()),
            id: u32::from_le_bytes([byte(), byte(), byte(), byte()]) >> (byte() % 32),
            code: byte() % 20,
            flags: byte() | FLEXIBLE,
            spare: 0,
            written: 0,
        };
        let record = FdDeparture { head, more: [0; 56].map(|_: u8| byte()) };
        let Some(frame) = record.frame() else { continue };
        frames += 1;
        assert!(frame.is_fd() && frame.raw_id() == head.id && frame.code() == head.code);
        assert_eq!(FdDeparture::at(&frame, Nanos::ZERO).frame(), Some(frame));
    }
    assert!((1..CASES).contains(&frames), "{frames}");
}

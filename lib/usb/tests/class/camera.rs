//! A camera: negotiation, the choice of a setting, frames with their losses.

use super::shell::{Asked, Shell, hostile, never};
use diapason_usb::class::uvc::{Camera, CameraEvent, Mode, Piece, modes};
use diapason_usb::class::{Class, TransferFault};
use diapason_usb::descriptor::Configuration;
use diapason_usb::descriptor::build::{Configuration as Make, Interface, isochronous};
use diapason_usb::{Setup, Speed};

const FRAME_BYTES: u32 = 64;

/// Returns a frame descriptor's body: number, size, usual interval.
fn frame(subtype: u8, number: u8, width: u16, height: u16) -> Vec<u8> {
    let mut body = vec![subtype, number, 0];
    body.extend(width.to_le_bytes());
    body.extend(height.to_le_bytes());
    body.extend([0; 12]);
    body.extend(333_333u32.to_le_bytes());
    body.extend([0, 0]);
    body
}

fn bytes() -> Vec<u8> {
    let video = Interface::new(1).class(14, 2, 0);
    let with = |alternate, packet, burst| {
        video.clone().alternate(alternate).endpoint(isochronous(0x81, packet, 1).bursts(burst, 0))
    };
    Make::new(1)
        .association(0, 2, [14, 3, 0])
        .with(Interface::new(0).class(14, 1, 0).extra(0x24, &[1, 0x10, 1, 0]))
        .with(
            video
                .clone()
                .extra(0x24, &[4, 1, 2, 0])
                .extra(0x24, &frame(5, 1, 640, 480))
                .extra(0x24, &frame(5, 2, 1280, 720))
                .extra(0x24, &[6, 2, 1, 0])
                .extra(0x24, &frame(7, 1, 1280, 720))
                .extra(0x24, &frame(5, 9, 1, 1)),
        )
        .with(with(1, 128, 0))
        .with(with(2, 1024, 2))
        .with(with(3, 512, 0))
        .bytes(Speed::High)
}

fn mode(frame: u8, compressed: bool) -> Mode {
    let (width, height) = if frame == 1 && !compressed { (640, 480) } else { (1280, 720) };
    let format = if compressed { 2 } else { 1 };
    Mode { format, frame, width, height, interval: 333_333, bytes: 0, compressed }
}

fn camera(mode: Mode) -> Camera {
    let bytes = bytes();
    Camera::find(&Configuration::parse_once(&bytes, Speed::High).unwrap(), mode).unwrap()
}

/// Returns the camera's answer to the negotiation.
fn block(mode: &Mode, frame: u32, payload: u32) -> Vec<u8> {
    let mut block = vec![0; 34];
    (block[2], block[3]) = (mode.format, mode.frame);
    block[4..8].copy_from_slice(&mode.interval.to_le_bytes());
    block[18..22].copy_from_slice(&frame.to_le_bytes());
    block[22..26].copy_from_slice(&payload.to_le_bytes());
    block
}

fn word(event: CameraEvent<'_>) -> String {
    match event {
        CameraEvent::Piece(Piece::Data(bytes)) => format!("data {}", bytes.len()),
        CameraEvent::Piece(Piece::End { bytes, whole, .. }) => format!("end {bytes} {whole}"),
        other => format!("{other:?}"),
    }
}

fn end(shell: &mut Shell<Camera>, at: u8, result: Result<&[u8], TransferFault>) -> Vec<String> {
    let mut heard = Vec::new();
    shell.end(at, result, &mut |event| heard.push(word(event)));
    heard
}

/// Returns a camera that needs `payload` bytes in an interval, up to the choice of its setting.
fn negotiated(mode: Mode, payload: u32) -> (Shell<Camera>, Vec<String>) {
    let mut shell = Shell::new(camera(mode));
    shell.isochronous = true;
    shell.pull();
    end(&mut shell, 0, Ok(&[0; 34]));
    end(&mut shell, 0, Ok(&block(&mode, FRAME_BYTES, payload)));
    let heard = end(&mut shell, 0, Ok(&[0; 34]));
    (shell, heard)
}

fn streaming(compressed: bool) -> Shell<Camera> {
    let (mut shell, _) = negotiated(mode(1, compressed), 400);
    assert_eq!(shell.next(0), Some(&Asked::Alternate(1, 3)));
    let heard = end(&mut shell, 0, Ok(&[]));
    let started = "Started { frame_bytes: 64, interval_bytes: 512, frame_time: Nanos(33333300), \
                   payload: 400, clock: 0 }";
    assert_eq!(heard, [started]);
    assert_eq!(shell.next(0x81), Some(&Asked::In(512)));
    shell
}

#[test]
fn modes_are_found() {
    let bytes = bytes();
    let set = Configuration::parse_once(&bytes, Speed::High).unwrap();
    let found: Vec<_> = modes(&set).collect();
    assert_eq!(found, [mode(1, false), mode(2, false), mode(1, true)]);
}

#[test]
fn a_mode_is_negotiated_in_three_steps() {
    let wanted = mode(2, false);
    let mut shell = Shell::new(camera(wanted));
    shell.pull();
    let setup = |kind, request, value| Setup { kind, request, value, index: 1, length: 34 };
    let Some(Asked::Control(probe, wish)) = shell.next(0).cloned() else { panic!("no probe") };
    assert_eq!(probe, setup(0x21, 1, 0x100));
    assert_eq!(wish[..8], [1, 0, 1, 2, 0x15, 0x16, 5, 0]);
    end(&mut shell, 0, Ok(&wish));
    assert_eq!(shell.next(0), Some(&Asked::Control(setup(0xa1, 0x81, 0x100), vec![])));
    let answer = block(&wanted, 1280 * 720 * 2, 3000);
    end(&mut shell, 0, Ok(&answer));
    assert_eq!(shell.next(0), Some(&Asked::Control(setup(0x21, 1, 0x200), answer.clone())));
    end(&mut shell, 0, Ok(&answer));
    assert_eq!(shell.next(0), Some(&Asked::Alternate(1, 2)));
    assert_eq!(
        end(&mut shell, 0, Err(TransferFault::NoBandwidth)),
        ["NoBandwidth { needed: 3000 }"]
    );
}

#[test]
fn the_smallest_setting_that_suffices_is_chosen() {
    for (payload, alternate) in [(1, 1), (128, 1), (129, 3), (512, 3), (513, 2), (3072, 2)] {
        let (shell, _) = negotiated(mode(1, false), payload);
        assert_eq!(shell.next(0), Some(&Asked::Alternate(1, alternate)), "{payload}");
    }
    let (_, heard) = negotiated(mode(1, false), 3073);
    assert_eq!(heard, ["NoBandwidth { needed: 3073 }"]);
}

#[test]
fn answers_that_lie_are_refused() {
    let wanted = mode(1, false);
    for answer in [
        block(&mode(2, false), 64, 100),
        block(&wanted, 0, 100),
        block(&wanted, u32::MAX, 100),
        block(&wanted, 64, 0),
        block(&wanted, 64, 100)[..25].to_vec(),
    ] {
        let mut shell = Shell::new(camera(wanted));
        shell.pull();
        end(&mut shell, 0, Ok(&[0; 34]));
        assert_eq!(end(&mut shell, 0, Ok(&answer)), ["Failed"]);
        assert_eq!(shell.next(0), None);
    }
}

/// Returns a payload with so much data and these flags.
fn payload(flags: u8, data: usize) -> Vec<u8> {
    [vec![2, flags], vec![7; data]].concat()
}

#[test]
fn frames_begin_and_end() {
    let mut shell = streaming(false);
    let mut heard = Vec::new();
    let mut put = |bytes: &[u8]| heard.extend(end(&mut shell, 0x81, Ok(bytes)));
    // By their last payload, by the next frame, and one whose last payload is missing.
    put(&payload(0, 40));
    put(&[]);
    put(&payload(2, 24));
    put(&payload(0, 5));
    put(&payload(1, 64));
    put(&payload(0, 40));
    put(&payload(1, 10));
    let wanted = [
        "data 40",
        "data 24",
        "end 64 true",
        "data 64",
        "end 64 true",
        "data 40",
        "end 40 false",
        "data 10",
    ];
    assert_eq!(heard, wanted);
    let counts = shell.class.counts();
    assert_eq!((counts.whole, counts.broken, counts.stray), (2, 1, 1));
}

#[test]
fn damage_spoils_the_frame_it_is_in() {
    // Compressed, so that length does not tell.
    let mut shell = streaming(true);
    let mut ends = Vec::new();
    let mut frame = 0;
    let mut with = |middle: Result<&[u8], TransferFault>| {
        let id = frame & 1;
        frame += 1;
        end(&mut shell, 0x81, Ok(&payload(id, 20)));
        end(&mut shell, 0x81, middle);
        ends.extend(end(&mut shell, 0x81, Ok(&payload(id | 2, 20))));
    };
    with(Ok(&[]));
    with(Err(TransferFault::Damaged));
    with(Ok(&[13, 1, 0]));
    with(Ok(&[2]));
    with(Ok(&[9, 0, 0]));
    with(Ok(&payload(0x41, 1)));
    with(Ok(&payload(0, 30)));
    let wanted = [
        "data 20",
        "end 40 true",
        "data 20",
        "end 40 false",
        "data 20",
        "end 40 false",
        "data 20",
        "end 40 false",
        "data 20",
        "end 40 false",
        "data 20",
        "end 41 false",
        "data 14",
        "end 64 false",
    ];
    assert_eq!(ends, wanted);
    let counts = shell.class.counts();
    assert_eq!((counts.missed, counts.malformed, counts.broken), (1, 3, 6));
}

/// A head has 2 bytes, and with both time stamps 12 (UVC 1.5 §2.4.3.3): no more, no less.
#[test]
fn a_head_longer_than_all_its_fields_is_malformed() {
    let headed = |head: u8, flags: u8| {
        let mut bytes = vec![0; usize::from(head) + 20];
        (bytes[0], bytes[1]) = (head, flags);
        bytes
    };
    for (head, is_head) in [(1, false), (2, true), (11, true), (12, true), (13, false), (14, false)]
    {
        let mut shell = streaming(true);
        let mut heard = end(&mut shell, 0x81, Ok(&payload(0, 20)));
        heard.extend(end(&mut shell, 0x81, Ok(&headed(head, 0))));
        heard.extend(end(&mut shell, 0x81, Ok(&payload(2, 20))));
        let (middle, last) = (is_head.then_some("data 20"), ["end 40 false", "end 60 true"]);
        let last = last[usize::from(is_head)];
        let wanted: Vec<&str> =
            ["data 20"].into_iter().chain(middle).chain(["data 20", last]).collect();
        assert_eq!(heard, wanted, "{head}");
        assert_eq!(shell.class.counts().malformed, u64::from(!is_head), "{head}");
    }
}

#[test]
fn a_stream_stops() {
    let mut shell = streaming(false);
    shell.class.stop();
    shell.settle(&mut |_| {});
    assert_eq!(shell.next(0), Some(&Asked::Alternate(1, 0)));
    assert_eq!(shell.next(0x81), None);
    assert_eq!(end(&mut shell, 0, Ok(&[])), ["Stopped"]);
}

/// Lets a camera that has stopped stream again, with this reservation and this need.
fn resumed(reserved: u32, needed: u32) -> (Shell<Camera>, Vec<String>) {
    let mut shell = streaming(false);
    let other = mode(2, false);
    assert!(!shell.class.resume(other, reserved), "it streams");
    shell.class.stop();
    shell.settle(&mut |_| {});
    assert_eq!(end(&mut shell, 0, Ok(&[])), ["Stopped"]);
    assert!(shell.class.resume(other, reserved));
    shell.settle(&mut |_| {});
    let _ = end(&mut shell, 0, Ok(&[]));
    let _ = end(&mut shell, 0, Ok(&block(&other, FRAME_BYTES, needed)));
    let heard = end(&mut shell, 0, Ok(&[]));
    (shell, heard)
}

#[test]
fn a_stream_that_stopped_goes_on_in_the_setting_that_is_reserved() {
    for (reserved, needed, alternate) in [(1, 128, 1), (129, 100, 3), (513, 100, 2), (0, 600, 2)] {
        let (mut shell, heard) = resumed(reserved, needed);
        assert_eq!(heard, [""; 0]);
        assert_eq!(shell.next(0), Some(&Asked::Alternate(1, alternate)), "{reserved}");
        assert!(end(&mut shell, 0, Ok(&[]))[0].starts_with("Started"));
    }
    // The setting with 128 bytes is not enough, and another one was not planned.
    let (mut shell, heard) = resumed(1, 129);
    assert_eq!((heard, shell.next(0)), (vec!["NoBandwidth { needed: 129 }".to_owned()], None));
    assert!(!shell.class.resume(mode(2, false), 600), "it has given up");
}

#[test]
fn a_camera_that_rests_is_told_to_stop_and_asked_for_nothing() {
    let mut shell = Shell::new(camera(mode(1, false)));
    shell.class.rest();
    shell.settle(&mut |_| {});
    assert_eq!(shell.next(0), Some(&Asked::Alternate(1, 0)));
    assert_eq!(end(&mut shell, 0, Ok(&[])), ["Stopped"]);
    assert_eq!((shell.next(0), shell.next(0x81)), (None, None));
    assert!(shell.class.resume(mode(1, false), 128));
}

#[test]
fn whatever_a_camera_says() {
    let mut seeds: Vec<Vec<u8>> =
        [0, 1, 2, 3, 0x40].iter().map(|flags| payload(*flags, 30)).collect();
    seeds.push(block(&mode(1, true), FRAME_BYTES, 100));
    let (mut whole, mut broken, mut open) = (0, 0, 0);
    hostile(
        (7, true),
        100_000,
        &seeds,
        &never,
        |random| {
            if random.one_in(3) { camera(mode(1, true)) } else { fresh(streaming(true)) }
        },
        |class, _, random| match random.below(1_600) {
            0..4 => class.stop(),
            4 => class.rest(),
            5..100 => {
                let _ = class.resume(mode(1, true), random.below(4_000) as u32);
            }
            _ => {}
        },
        &mut |event| match event {
            CameraEvent::Piece(Piece::Data(data)) => open += data.len() as u32,
            CameraEvent::Piece(Piece::End { bytes, whole: good, .. }) => {
                // The bytes told are the bytes counted; the first may have begun in another life.
                assert!(bytes <= 7680 * 4320 * 2 && bytes <= open);
                open = 0;
                *if good { &mut whole } else { &mut broken } += 1;
            }
            _ => {}
        },
    );
    assert!(whole > 5_000 && broken > 1_000, "{whole} {broken}");
}

/// Returns the class of a shell, with no transfers pending.
fn fresh(shell: Shell<Camera>) -> Camera {
    use diapason_usb::class::Completion;
    let mut class = shell.class;
    for _ in 0..16 {
        let done = Completion { endpoint: 0x81, result: Ok(&[]) };
        class.complete(shell.now, done, &mut |_| {});
    }
    class
}

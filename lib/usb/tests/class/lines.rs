//! Serial lines and keyboards: what goes there and comes back.

use super::shell::{Asked, Shell, hostile, never};
use diapason_abi::Nanos;
use diapason_usb::class::cdc_acm::{self, CdcAcm, LineCoding, SerialState};
use diapason_usb::class::hid::{self, Keyboard};
use diapason_usb::class::{Class, TransferFault};
use diapason_usb::descriptor::Configuration;
use diapason_usb::descriptor::build::{Configuration as Make, Interface, bulk, interrupt};
use diapason_usb::{Setup, Speed};

fn line() -> CdcAcm {
    let control = Interface::new(0).class(2, 2, 1).extra(0x24, &[6, 0, 1]);
    let bytes = Make::new(1)
        .association(0, 2, [2, 2, 1])
        .with(control.endpoint(interrupt(0x83, 8, 8)))
        .with(Interface::new(1).class(10, 0, 0).endpoint(bulk(1, 512)).endpoint(bulk(0x82, 512)))
        .bytes(Speed::High);
    let set = Configuration::parse_once(&bytes, Speed::High).unwrap();
    CdcAcm::find(&set, LineCoding::new(115_200)).unwrap()
}

/// An event of a line, with its bytes kept.
#[derive(Default, Debug, PartialEq, Eq)]
struct Heard {
    opened: u32,
    refused: u32,
    failed: u32,
    data: Vec<u8>,
    states: Vec<u16>,
}

impl Heard {
    fn hear(&mut self, event: cdc_acm::SerialEvent<'_>) {
        match event {
            cdc_acm::SerialEvent::Opened => self.opened += 1,
            cdc_acm::SerialEvent::CodingRefused => self.refused += 1,
            cdc_acm::SerialEvent::Data(bytes) => self.data.extend(bytes),
            cdc_acm::SerialEvent::State(SerialState(bits)) => self.states.push(bits),
            cdc_acm::SerialEvent::Failed => self.failed += 1,
        }
    }
}

/// Returns a line that is set up.
fn opened() -> (Shell<CdcAcm>, Heard) {
    let (mut shell, mut heard) = (Shell::new(line()), Heard::default());
    shell.pull();
    shell.end(0, Ok(&[]), &mut |event| heard.hear(event));
    shell.end(0, Ok(&[]), &mut |event| heard.hear(event));
    assert_eq!(heard.opened, 1);
    (shell, heard)
}

#[test]
fn a_line_is_set_up_before_it_is_heard() {
    let (mut shell, mut heard) = (Shell::new(line()), Heard::default());
    shell.pull();
    let coding = Setup { kind: 0x21, request: 0x20, value: 0, index: 0, length: 7 };
    let wanted = Asked::Control(coding, vec![0, 0xc2, 1, 0, 0, 0, 8]);
    assert_eq!((shell.next(0), shell.next(0x82)), (Some(&wanted), None));
    shell.end(0, Err(TransferFault::Stall), &mut |event| heard.hear(event));
    let lines = Setup { kind: 0x21, request: 0x22, value: 3, index: 0, length: 0 };
    assert_eq!(shell.next(0), Some(&Asked::Control(lines, vec![])));
    shell.end(0, Ok(&[]), &mut |event| heard.hear(event));
    assert_eq!((heard.refused, heard.opened), (1, 1));
    assert_eq!(shell.next(0x82), Some(&Asked::In(512)));
    assert_eq!(shell.next(0x83), Some(&Asked::In(8)));
}

/// A sensor spoke 2 ms before its server was told that the line was open, and its packets waited
/// for transfers that nobody had queued.
#[test]
fn transfers_are_queued_before_the_device_may_speak() {
    let (mut shell, mut heard) = (Shell::new(line()), Heard::default());
    shell.pull();
    shell.end(0, Ok(&[]), &mut |event| heard.hear(event));
    assert!(matches!(shell.next(0), Some(Asked::Control(Setup { request: 0x22, .. }, _))));
    assert_eq!(shell.next(0x82), Some(&Asked::In(512)));
    assert_eq!(heard.opened, 0);
    shell.end(0x82, Ok(b"early"), &mut |event| heard.hear(event));
    assert_eq!((heard.opened, &heard.data[..]), (1, &b"early"[..]));
    shell.end(0, Ok(&[]), &mut |event| heard.hear(event));
    assert_eq!((heard.opened, heard.failed), (1, 0));
}

#[test]
fn bytes_go_both_ways_and_full_packets_are_closed() {
    let (mut shell, mut heard) = opened();
    assert_eq!(shell.class.write(&[7; 1024]), 1024);
    shell.pull();
    assert_eq!(shell.next(1), Some(&Asked::Out(vec![7; 1024])));
    // Written while others are on their way.
    assert_eq!(shell.class.write(&[8; 4000]), 4096 - 1024);
    shell.end(1, Ok(&[7; 1024]), &mut |event| heard.hear(event));
    assert_eq!(shell.next(1), Some(&Asked::Out(vec![8; 3072])));
    shell.end(1, Ok(&[8; 3072]), &mut |event| heard.hear(event));
    assert_eq!(shell.next(1), Some(&Asked::Out(vec![])));
    shell.end(1, Ok(&[]), &mut |event| heard.hear(event));
    assert_eq!(shell.next(1), None);
    // A stall keeps what was not sent.
    shell.class.write(b"again");
    shell.pull();
    shell.end(1, Err(TransferFault::Stall), &mut |event| heard.hear(event));
    assert_eq!(shell.next(1), Some(&Asked::Recover));
    shell.end(1, Ok(&[]), &mut |event| heard.hear(event));
    assert_eq!(shell.next(1), Some(&Asked::Out(b"again".to_vec())));
    shell.end(0x82, Ok(b"hello"), &mut |event| heard.hear(event));
    shell.end(0x82, Ok(&[]), &mut |event| heard.hear(event));
    assert_eq!((&heard.data[..], heard.failed), (&b"hello"[..], 0));
}

#[test]
fn states_come_whole_or_cut_into_packets() {
    let (mut shell, mut heard) = opened();
    let notice = [0xa1, 0x20, 0, 0, 0, 0, 2, 0, 0x43, 0];
    shell.end(0x83, Ok(&notice[..8]), &mut |event| heard.hear(event));
    shell.end(0x83, Ok(&notice[8..]), &mut |event| heard.hear(event));
    // Another notification, a cut one, a fault in the middle, then the same again.
    shell.end(0x83, Ok(&[0xa1, 0, 1, 0, 0, 0]), &mut |event| heard.hear(event));
    shell.end(0x83, Ok(&notice[..8]), &mut |event| heard.hear(event));
    shell.end(0x83, Err(TransferFault::Damaged), &mut |event| heard.hear(event));
    shell.end(0x83, Ok(&[]), &mut |event| heard.hear(event));
    shell.end(0x83, Ok(&notice[..8]), &mut |event| heard.hear(event));
    shell.end(0x83, Ok(&notice[8..]), &mut |event| heard.hear(event));
    let carrier = SerialState::CARRIER | SerialState::READY | SerialState::OVERRUN;
    assert_eq!(heard.states, [carrier, carrier]);
}

#[test]
fn a_silent_line_fails_in_time() {
    let (mut shell, mut heard) = (Shell::new(line()), Heard::default());
    shell.pull();
    shell.wake(&mut |event| heard.hear(event));
    assert_eq!((shell.now, heard.failed), (Nanos::from_secs(1), 1));
    assert_eq!(shell.class.next_wake(), Nanos::FOREVER);
}

#[test]
fn whatever_a_line_says() {
    let seeds = [vec![0xa1, 0x20, 0, 0, 0, 0, 2, 0, 3, 0], vec![0; 40], b"text".to_vec()];
    let mut heard = Heard::default();
    hostile(
        (2, false),
        100_000,
        &seeds,
        &never,
        |_| line(),
        |class, _, random| match random.below(6) {
            0 => class.set_lines(random.one_in(2), random.one_in(2)),
            1 => class.set_coding(LineCoding::new(random.bits() as u32)),
            _ => assert!(class.write(&[1; 700]) <= 700),
        },
        &mut |event| heard.hear(event),
    );
    let enough = heard.states.len() > 100 && heard.data.len() > 10_000 && heard.failed > 10;
    assert!(enough, "{} {} {}", heard.states.len(), heard.data.len(), heard.failed);
}

fn keyboard() -> Keyboard {
    let boot = Interface::new(2).class(3, 1, 1).hid(0x111, 0, 63).endpoint(interrupt(0x81, 8, 10));
    let spare = |number| Interface::new(number).class(0xff, 0, 0);
    let bytes = Make::new(1).with(spare(0)).with(spare(1)).with(boot).bytes(Speed::Low);
    Keyboard::find(&Configuration::parse_once(&bytes, Speed::Low).unwrap()).unwrap()
}

#[test]
fn keys_go_down_and_come_up() {
    let mut shell = Shell::new(keyboard());
    let mut keys = Vec::new();
    shell.pull();
    let protocol = Setup { kind: 0x21, request: 11, value: 0, index: 2, length: 0 };
    assert_eq!(shell.next(0), Some(&Asked::Control(protocol, vec![])));
    shell.end(0, Ok(&[]), &mut |event| keys.push(event));
    shell.end(0, Err(TransferFault::Stall), &mut |event| keys.push(event));
    assert_eq!(keys, [hid::KeyboardEvent::Opened]);
    shell.class.set_lights(2);
    shell.pull();
    let lights = Setup { kind: 0x21, request: 9, value: 0x200, index: 2, length: 1 };
    assert_eq!(shell.next(0), Some(&Asked::Control(lights, vec![2])));
    keys.clear();
    let reports: [[u8; 8]; 7] = [
        [2, 0, 4, 0, 0, 0, 0, 0],
        [2, 0, 4, 5, 5, 0, 0, 0],
        // The codes of errors are no keys, wherever they stand.
        [2, 0, 1, 1, 1, 1, 1, 1],
        [2, 0, 4, 5, 1, 2, 3, 0],
        [0, 0, 5, 0, 0, 0, 0, 0],
        [0, 0, 5, 6, 0, 0, 0, 0],
        [0; 8],
    ];
    for report in reports {
        shell.end(0x81, Ok(&report), &mut |event| keys.push(event));
    }
    shell.end(0x81, Ok(&[0, 0, 9]), &mut |event| keys.push(event));
    let key = |usage, down| hid::KeyboardEvent::Key { usage, down };
    let wanted = [
        key(0xe1, true),
        key(4, true),
        key(5, true),
        key(0xe1, false),
        key(4, false),
        key(6, true),
        key(5, false),
        key(6, false),
    ];
    assert_eq!(keys, wanted);
}

#[test]
fn whatever_a_keyboard_says() {
    let mut down = [false; 256];
    let mut keys = 0u64;
    let seeds = [vec![0, 0, 4, 5, 6, 7, 8, 9], vec![0xff, 0, 1, 1, 1, 1, 1, 1], vec![0; 8]];
    hostile(
        (3, false),
        100_000,
        &seeds,
        &never,
        |_| keyboard(),
        |class, _, random| class.set_lights(random.bits() as u8),
        &mut |event| match event {
            hid::KeyboardEvent::Opened => down = [false; 256],
            // No key goes down twice or comes up unpressed.
            hid::KeyboardEvent::Key { usage, down: now } => {
                keys += 1;
                assert!(std::mem::replace(&mut down[usize::from(usage)], now) != now);
            }
            hid::KeyboardEvent::Failed => {}
        },
    );
    assert!(keys > 10_000, "{keys}");
}

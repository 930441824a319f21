//! The host side of the USB-CAN interface, against a far side written from the protocol's tables.

use super::shell::{Asked, Shell, hostile, never};
use diapason_abi::Nanos;
use diapason_can::bus::Health;
use diapason_can::frame::{extended, standard};
use diapason_can::{BitRate, CanFrame};
use diapason_usb::class::can::{
    CloseCause, FrameOutcome, InterfaceEvent, InterfaceFailure, Mode, ProbeStep, Refused,
};
use diapason_usb::class::kvaser::{
    BusParameters, InterfaceIdentity, Kvaser, Personality, TRANSFER,
};
use diapason_usb::class::{Class, Completion, TransferFault};

/// Entities whose two halves are both non-zero, as the rig had them.
const ENTITIES: [u8; 5] = [0x13, 0x14, 0x15, 0x16, 0x17];
const DEBUG: u8 = 0x2a;
const KCAN: u32 = 1 << 5 | 1 << 9 | 1 << 12;
const FLEXC: u32 = 1 << 12;

/// Returns a normal command from the device.
fn from(number: u8, source: u8, transaction: u16, body: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; 32];
    bytes[0] = number;
    bytes[1] = (source >> 4) << 6;
    let word = u16::from(source & 15) << 12 | transaction;
    bytes[2..4].copy_from_slice(&word.to_le_bytes());
    for (at, part) in body {
        bytes[*at..at + part.len()].copy_from_slice(part);
    }
    bytes
}

/// A device that answers commands; channels keep their parameters.
struct Far {
    flags: u32,
    slots: u16,
    channels: u8,
    parameters: [[u8; 8]; 5],
    log: Vec<Vec<u8>>,
}

impl Far {
    fn new(flags: u32) -> Far {
        Far { flags, slots: 16, channels: 5, parameters: [[0; 8]; 5], log: Vec::new() }
    }

    fn answer(&mut self, command: &[u8]) -> Vec<u8> {
        self.log.push(command.to_vec());
        let transaction = u16::from_le_bytes([command[2], command[3]]) & 0xfff;
        let to = command[1] & 0x3f;
        let channel = ENTITIES.iter().position(|entity| *entity == to).unwrap_or(0);
        let reply = |number, body: &[(usize, &[u8])]| from(number, to, transaction, body);
        match command[0] {
            200 if command[4..8] == *b"CAN\0" => {
                reply(201, &[(4, &[ENTITIES[usize::from(command[20])]])])
            }
            200 => reply(201, &[(4, &[DEBUG])]),
            38 => reply(39, &[(12, &self.slots.to_le_bytes())]),
            202 => reply(203, &[(4, &self.flags.to_le_bytes()), (8, &[7, 0, 2, 4])]),
            34 => reply(35, &[(4, &[0x39, 0x30, 0, 0]), (28, &[self.channels])]),
            95 => reply(96, &[(4, &command[4..6]), (8, &[0x1f]), (12, &[command[4]])]),
            16 => {
                self.parameters[channel].copy_from_slice(&command[4..12]);
                reply(85, &[])
            }
            17 => reply(18, &[(4, &self.parameters[channel])]),
            19 => reply(20, &[(10, &[0, 0, 0])]),
            26 => reply(27, &[]),
            28 => reply(29, &[]),
            48 => reply(66, &[]),
            _ => Vec::new(),
        }
    }
}

type Events = Vec<InterfaceEvent>;

/// Answers everything until both sides are silent.
fn run(shell: &mut Shell<Kvaser>, far: &mut Far, events: &mut Events) {
    shell.settle(&mut |event| events.push(event));
    while let Some(Asked::Out(command)) = shell.next(2).cloned() {
        shell.end(2, Ok(&command), &mut |event| events.push(event));
        let answer = far.answer(&command);
        if !answer.is_empty() {
            say(shell, &answer, events);
        }
    }
}

fn say(shell: &mut Shell<Kvaser>, bytes: &[u8], events: &mut Events) {
    shell.end(0x82, Ok(bytes), &mut |event| events.push(event));
}

const SETTING: BusParameters =
    BusParameters { bitrate: 500_000, before_sample: 13, after_sample: 2, jump: 1 };

/// Returns a device that is probed and has channel 0 open.
fn opened(flags: u32) -> (Shell<Kvaser>, Far, Events) {
    let (mut far, mut events) = (Far::new(flags), Vec::new());
    let mut shell = Shell::new(Kvaser::new(Nanos::ZERO, true));
    run(&mut shell, &mut far, &mut events);
    let kind = shell.class.identity().unwrap().personality;
    let setting = kind.parameters(BitRate::new(500_000).unwrap(), 875).unwrap();
    shell.class.open(shell.now, 0, setting, Mode::Normal).unwrap();
    run(&mut shell, &mut far, &mut events);
    assert_eq!(events.pop(), Some(InterfaceEvent::Opened { channel: 0 }));
    (shell, far, events)
}

#[test]
fn the_probe_asks_in_order_and_learns_all() {
    let (mut far, mut events) = (Far::new(KCAN), Vec::new());
    let mut shell = Shell::new(Kvaser::new(Nanos::ZERO, true));
    run(&mut shell, &mut far, &mut events);
    let numbers: Vec<_> = far.log.iter().map(|c| c[0]).collect();
    assert_eq!(numbers, [200, 200, 200, 200, 200, 200, 38, 202, 34, 95, 95, 95]);
    assert_eq!(far.log[1][..8], [200, 0, 0x41, 0, b'C', b'A', b'N', 0]);
    assert_eq!(far.log[1][20], 1);
    assert_eq!(far.log[5][..10], *b"\xc8\0\x61\0SYSDBG");
    assert_eq!(far.log[7][..5], [202, 0x3e, far.log[7][2], 0, 1]);
    assert!(far.log.iter().all(|command| command.len() == 32));
    let identity = InterfaceIdentity {
        personality: Personality::Kcan,
        channels: 5,
        slots: 16,
        extended: true,
        flags: KCAN,
        firmware: 0x0402_0007,
        serial: 12_345,
        can: [2, 5, 6],
    };
    let serial = Some(identity.serial);
    assert_eq!(events, [InterfaceEvent::Ready { channels: 5, serial }]);
    assert_eq!(shell.class.identity(), Some(identity));
    assert_eq!(shell.class.next_wake(), Nanos::FOREVER);
}

#[test]
fn each_kind_of_device_is_recognised() {
    for (flags, kind, extended) in [
        (KCAN, Personality::Kcan, true),
        (1 << 5 | 1 << 13, Personality::Kcan, false),
        (1 << 13 | 1 << 9, Personality::Rt, true),
        (FLEXC, Personality::Flexc, false),
        (0, Personality::Flexc, false),
    ] {
        let (shell, _, _) = opened(flags);
        let identity = shell.class.identity().unwrap();
        assert_eq!((identity.personality, identity.extended), (kind, extended));
    }
}

#[test]
fn a_channel_opens_and_closes_step_by_step() {
    let (mut far, mut events) = (Far::new(FLEXC), Vec::new());
    let mut shell = Shell::new(Kvaser::new(Nanos::ZERO, true));
    run(&mut shell, &mut far, &mut events);
    far.log.clear();
    events.clear();
    assert_eq!(shell.class.open(shell.now, 5, SETTING, Mode::Normal), Err(Refused::NoSuchChannel));
    let wrong = BusParameters { before_sample: 69, ..SETTING };
    assert_eq!(shell.class.open(shell.now, 1, wrong, Mode::Normal), Err(Refused::Parameters));
    shell.class.open(shell.now, 1, SETTING, Mode::ListenOnly).unwrap();
    run(&mut shell, &mut far, &mut events);
    let numbers: Vec<_> = far.log.iter().map(|c| (c[0], c[1])).collect();
    assert_eq!(numbers, [(16, 0x14), (17, 0x14), (21, 0x14), (26, 0x14)]);
    assert_eq!(far.log[0][4..12], [0x20, 0xa1, 7, 0, 0x0d, 2, 1, 1]);
    assert_eq!(far.log[2][4], 2);
    let again = shell.class.open(shell.now, 1, SETTING, Mode::Normal);
    assert_eq!(again, Err(Refused::WrongPhase));
    far.log.clear();
    shell.class.close(shell.now, 1).unwrap();
    run(&mut shell, &mut far, &mut events);
    assert_eq!(far.log.iter().map(|c| c[0]).collect::<Vec<_>>(), [48, 28]);
    let closed = InterfaceEvent::Closed { channel: 1, cause: CloseCause::Asked };
    assert_eq!(events, [InterfaceEvent::Opened { channel: 1 }, closed]);
}

#[test]
fn frames_travel_as_normal_commands() {
    let (mut shell, mut far, mut events) = opened(FLEXC);
    far.log.clear();
    events.clear();
    let short = CanFrame::data(standard(0x123).unwrap(), &[1, 2, 3]).unwrap();
    let long = CanFrame::remote(extended(0x1abc_de00).unwrap(), 5).unwrap();
    assert_eq!(shell.class.send(0, &short, false), Ok(0));
    assert_eq!(shell.class.send(0, &long, false), Ok(1));
    assert_eq!(shell.class.send(0, &long, true), Err(Refused::Unsupported));
    run(&mut shell, &mut far, &mut events);
    let mut wanted = vec![0; 32];
    wanted[..11].copy_from_slice(&[33, 0x13, 0, 0, 0x23, 1, 0, 0, 1, 2, 3]);
    wanted[16] = 3;
    assert_eq!(far.log[0], wanted);
    assert_eq!(far.log[1][..8], [33, 0x13, 1, 0, 0, 0xde, 0xbc, 0x9a]);
    assert_eq!(far.log[1][16..18], [5, 0x30]);
    say(&mut shell, &from(50, 0x13, 1, &[(18, &[0x10, 0x27])]), &mut events);
    let time = Nanos::from_micros(10_000);
    let ack =
        InterfaceEvent::Acknowledged { channel: 0, slot: 1, time, outcome: FrameOutcome::Sent };
    assert_eq!(events.pop(), Some(ack));
    assert_eq!(shell.class.outstanding(0), 1);
    let body: [(usize, &[u8]); 4] =
        [(8, &[1, 0, 1]), (14, &[3]), (16, &[0x23, 1]), (20, &[9, 8, 7])];
    say(&mut shell, &from(106, 0x13, 0, &body), &mut events);
    let frame = CanFrame::data(standard(0x123).unwrap(), &[9, 8, 7]).unwrap();
    let time = Nanos::from_micros(0x1_0001);
    assert_eq!(events.pop(), Some(InterfaceEvent::Frame { channel: 0, time, frame }));
}

/// Returns an extended receive command of a frame with eight bytes of data.
fn received(source: u8, id: u32, ticks: u64, flags: u32, data: [u8; 8]) -> Vec<u8> {
    let mut bytes = from(255, source, 0, &[(4, &[40, 0]), (6, &[226])]);
    bytes.extend(data);
    bytes[8..12].copy_from_slice(&flags.to_le_bytes());
    bytes[12..16].copy_from_slice(&id.to_le_bytes());
    bytes[20..24].copy_from_slice(&(8u32 << 8).to_le_bytes());
    bytes[24..32].copy_from_slice(&ticks.to_le_bytes());
    bytes
}

#[test]
fn frames_travel_as_extended_commands() {
    let (mut shell, mut far, mut events) = opened(KCAN);
    far.log.clear();
    events.clear();
    let data =
        CanFrame::data(extended(0x1abc_de00).unwrap(), &[7; 8]).unwrap().with_code(15).unwrap();
    let remote = CanFrame::remote(standard(0x7ff).unwrap(), 8).unwrap();
    shell.class.send(0, &data, true).unwrap();
    shell.class.send(0, &remote, false).unwrap();
    run(&mut shell, &mut far, &mut events);
    let wanted = [
        255, 0x13, 0, 0, 40, 0, 224, 0, 0x20, 0, 0, 0, 0, 0xde, 0xbc, 0x1a, 0, 0xde, 0xbc, 0xda, 0,
        15, 1, 0x80, 8, 15, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7,
    ];
    assert_eq!(far.log[0], wanted);
    assert_eq!(
        far.log[1][..24],
        [
            255, 0x13, 1, 0, 32, 0, 224, 0, 0x10, 0, 0, 0, 0xff, 7, 0, 0, 0xff, 7, 0, 0x20, 0, 8,
            0, 0x80
        ]
    );
    assert_eq!(far.log[1].len(), 32);
    for (slot, flags, outcome) in [
        (0u8, 0x1000u32, FrameOutcome::NotAcknowledged),
        (1, 0x2000, FrameOutcome::ArbitrationLost),
    ] {
        let mut ack = from(255, 0x13, slot.into(), &[(4, &[32, 0]), (6, &[225]), (16, &[160])]);
        ack[8..12].copy_from_slice(&flags.to_le_bytes());
        say(&mut shell, &ack, &mut events);
        let time = Nanos::from_micros(2);
        assert_eq!(
            events.pop(),
            Some(InterfaceEvent::Acknowledged { channel: 0, slot, time, outcome })
        );
    }
    say(&mut shell, &received(0x13, 0x1abc_de00, 80_000, 0x20, [1; 8]), &mut events);
    let frame = CanFrame::data(extended(0x1abc_de00).unwrap(), &[1; 8]).unwrap();
    let time = Nanos::from_millis(1);
    assert_eq!(events, [InterfaceEvent::Frame { channel: 0, time, frame }]);
}

#[test]
fn a_stream_may_be_cut_anywhere() {
    let mut stream = Vec::new();
    for n in 0..4u8 {
        stream.extend(received(0x13, n.into(), u64::from(n) * 80, 0, [n; 8]));
        stream.extend(from(20, 0x13, 0, &[(10, &[n, 100 + n, 0])]));
        stream.extend(from(77, 0x13, 0, &[]));
    }
    let (base, _, _) = opened(KCAN);
    let of = |cuts: &[usize]| {
        let mut class = base.class.clone();
        let mut events = Vec::new();
        let mut rest = &stream[..];
        let mut at = 0;
        for cut in cuts.iter().copied().chain([stream.len()]) {
            let (head, tail) = rest.split_at(cut - at);
            (rest, at) = (tail, cut);
            let done = Completion { endpoint: 0x82, result: Ok(head) };
            class.complete(Nanos::ZERO, done, &mut |event| events.push(event));
            while class.request(Nanos::ZERO).is_some() {}
        }
        assert_eq!((class.counts().skipped, class.counts().broken_streams), (4, 0));
        events
    };
    let whole = of(&[]);
    assert_eq!(whole.len(), 8);
    for cut in 1..stream.len() {
        assert_eq!(of(&[cut]), whole, "cut at {cut}");
        let second = (cut + 1 + cut * 7 % 60).min(stream.len());
        assert_eq!(of(&[cut, second]), whole, "cut at {cut} and {second}");
    }
    let each: Vec<usize> = (1..stream.len()).collect();
    assert_eq!(of(&each), whole);
}

#[test]
fn slots_limit_what_is_on_its_way() {
    let (mut shell, mut far, mut events) = opened(KCAN);
    let frame = CanFrame::data(standard(1).unwrap(), &[]).unwrap();
    for slot in 0..16 {
        assert!(shell.class.takes(0));
        assert_eq!(shell.class.send(0, &frame, false), Ok(slot));
        run(&mut shell, &mut far, &mut events);
    }
    assert!(!shell.class.takes(0) && !shell.class.takes(1) && !shell.class.takes(200));
    assert_eq!(shell.class.send(0, &frame, false), Err(Refused::Busy));
    let ack = |slot| from(255, 0x13, slot, &[(4, &[32, 0]), (6, &[225])]);
    say(&mut shell, &[ack(9), ack(9), ack(200), ack(4000)].concat(), &mut events);
    assert_eq!(shell.class.counts().stray_acknowledgements, 3);
    assert!(shell.class.takes(0));
    assert_eq!(shell.class.send(0, &frame, false), Ok(9));
    assert_eq!(shell.class.send(0, &frame, false), Err(Refused::Busy));
    // Another channel has slots of its own.
    shell
        .class
        .open(
            shell.now,
            1,
            BusParameters { before_sample: 139, after_sample: 20, ..SETTING },
            Mode::Normal,
        )
        .unwrap();
    run(&mut shell, &mut far, &mut events);
    assert_eq!(shell.class.send(1, &frame, false), Ok(0));
}

#[test]
fn losses_and_errors_are_told() {
    let (mut shell, _, mut events) = opened(KCAN);
    events.clear();
    say(&mut shell, &received(0x13, 5, 80, 2, [0; 8]), &mut events);
    let frame = CanFrame::data(standard(5).unwrap(), &[0; 8]).unwrap();
    let time = Nanos::from_micros(1);
    let wanted =
        [InterfaceEvent::Overrun { channel: 0 }, InterfaceEvent::Frame { channel: 0, time, frame }];
    assert_eq!(events, wanted);
    events.clear();
    say(&mut shell, &received(0x13, 0, 80, 1, [0x10, 0, 8, 1, 0, 0, 0, 0]), &mut events);
    assert_eq!(events, [InterfaceEvent::BusError { channel: 0, time, counters: (8, 1) }]);
    for (counters, status, wanted) in [
        ((95, 0), 0, Health::ErrorActive),
        ((0, 96), 0, Health::Warning),
        ((128, 0), 0, Health::ErrorPassive),
        ((0, 0), 0x20, Health::ErrorPassive),
    ] {
        let body = [counters.0, counters.1, status];
        say(&mut shell, &from(20, 0x13, 0, &[(10, &body)]), &mut events);
        let Some(InterfaceEvent::ChipState { health, .. }) = events.pop() else {
            panic!("no state")
        };
        assert_eq!(health, wanted);
    }
    // A frame of CAN FD, one with an impossible identifier, one for nobody, our own echo.
    let odd = [
        received(0x13, 1, 0, 1 << 16, [0; 8]),
        received(0x13, 0x800, 0, 0, [0; 8]),
        received(0x2f, 1, 0, 0, [0; 8]),
        received(0x13, 1, 0, 0x40, [0; 8]),
        received(0x14, 1, 0, 0, [0; 8]),
    ];
    events.clear();
    say(&mut shell, &odd.concat(), &mut events);
    let counts = shell.class.counts();
    assert_eq!((counts.malformed, counts.strangers, counts.unwanted), (2, 1, 1));
    assert_eq!(events, []);
}

#[test]
fn bus_off_stops_the_channel() {
    let (mut shell, mut far, mut events) = opened(KCAN);
    let frame = CanFrame::data(standard(1).unwrap(), &[]).unwrap();
    shell.class.send(0, &frame, false).unwrap();
    run(&mut shell, &mut far, &mut events);
    far.log.clear();
    events.clear();
    say(&mut shell, &from(20, 0x13, 0, &[(10, &[255, 0, 0x40])]), &mut events);
    run(&mut shell, &mut far, &mut events);
    assert_eq!(far.log.iter().map(|c| c[0]).collect::<Vec<_>>(), [28]);
    assert!(matches!(events[0], InterfaceEvent::ChipState { health: Health::BusOff, .. }));
    assert_eq!(events[1], InterfaceEvent::Closed { channel: 0, cause: CloseCause::BusOff });
    assert_eq!(shell.class.outstanding(0), 0);
    assert_eq!(shell.class.send(0, &frame, false), Err(Refused::WrongPhase));
    // A stopped chip calls itself bus-off: nothing is to be done then.
    say(&mut shell, &from(20, 0x13, 0, &[(10, &[0, 0, 0x40])]), &mut events);
    assert!(shell.next(2).is_none());
}

#[test]
fn silence_ends_in_time() {
    let mut events = Vec::new();
    let mut shell = Shell::new(Kvaser::new(Nanos::from_secs(7), true));
    shell.now = Nanos::from_secs(7);
    shell.settle(&mut |event| events.push(event));
    shell.wake(&mut |event| events.push(event));
    assert_eq!(shell.now, Nanos::from_secs(8));
    let reason = InterfaceFailure::NoAnswer(ProbeStep::Map(0));
    assert_eq!(events, [InterfaceEvent::Failed { channel: None, reason }]);
    assert_eq!(shell.class.next_wake(), Nanos::FOREVER);
    // A device that goes silent while a channel closes: told twice, then closed.
    let (mut shell, _, mut events) = opened(KCAN);
    events.clear();
    shell.class.close(shell.now, 0).unwrap();
    shell.wake(&mut |event| events.push(event));
    shell.wake(&mut |event| events.push(event));
    let failed = InterfaceEvent::Failed { channel: Some(0), reason: InterfaceFailure::Late };
    assert_eq!(
        events,
        [failed, failed, InterfaceEvent::Closed { channel: 0, cause: CloseCause::Asked }]
    );
}

#[test]
fn devices_that_lie_are_refused() {
    let ready = |far: &mut Far| {
        let mut events = Vec::new();
        let mut shell = Shell::new(Kvaser::new(Nanos::ZERO, true));
        run(&mut shell, far, &mut events);
        match events.pop() {
            Some(InterfaceEvent::Failed { channel: None, reason }) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ready(&mut Far::new(1 << 4)), InterfaceFailure::BadFirmware);
    assert_eq!(ready(&mut Far { slots: 0, ..Far::new(KCAN) }), InterfaceFailure::NoSlots);
    assert_eq!(ready(&mut Far { channels: 0, ..Far::new(KCAN) }), InterfaceFailure::Channels(0));
    assert_eq!(ready(&mut Far { channels: 6, ..Far::new(KCAN) }), InterfaceFailure::Channels(6));
    // Other parameters than were set.
    let (mut shell, mut far, mut events) = opened(KCAN);
    let setting = BusParameters { before_sample: 139, after_sample: 20, ..SETTING };
    shell.class.open(shell.now, 1, setting, Mode::Normal).unwrap();
    shell.settle(&mut |_| {});
    say(&mut shell, &from(18, 0x14, 0, &[(4, &[1, 2, 3, 4, 5, 6, 7, 8])]), &mut events);
    let failed =
        InterfaceEvent::Failed { channel: Some(1), reason: InterfaceFailure::ParametersDiffer };
    assert!(events.contains(&failed));
    run(&mut shell, &mut far, &mut events);
    assert_eq!(shell.class.open(shell.now, 1, setting, Mode::Normal), Ok(()));
}

#[test]
fn a_stalled_pipe_recovers_and_nothing_is_lost() {
    let (mut shell, mut far, mut events) = opened(KCAN);
    far.log.clear();
    events.clear();
    for n in 0..3 {
        let frame = CanFrame::data(standard(n).unwrap(), &[]).unwrap();
        shell.class.send(0, &frame, false).unwrap();
    }
    shell.settle(&mut |_| {});
    shell.end(2, Err(TransferFault::Stall), &mut |_| {});
    assert_eq!(shell.next(2), Some(&Asked::Recover));
    shell.end(2, Ok(&[]), &mut |_| {});
    run(&mut shell, &mut far, &mut events);
    assert_eq!(far.log.iter().map(|c| c[12]).collect::<Vec<_>>(), [0, 1, 2]);
    // For ever is too often.
    for _ in 0..8 {
        assert_eq!(shell.next(0x82), Some(&Asked::In(TRANSFER.0)));
        shell.end(0x82, Err(TransferFault::Stall), &mut |event| events.push(event));
        if shell.next(0x82).is_some() {
            shell.end(0x82, Ok(&[]), &mut |event| events.push(event));
        }
    }
    assert_eq!(events, [InterfaceEvent::Failed { channel: None, reason: InterfaceFailure::Pipe }]);
}

#[test]
fn whatever_the_device_says() {
    let (shell, far, _) = opened(KCAN);
    let mut seeds: Vec<Vec<u8>> = far.log.iter().map(|c| Far::new(KCAN).answer(c)).collect();
    seeds.retain(|bytes| !bytes.is_empty());
    // Mostly frames, so that channels stay open for a while.
    for slot in 0..16 {
        seeds.push(received(0x13, 1, 99, 2, [1; 8]));
        seeds.push(from(106, 0x14, 0, &[(14, &[8])]));
        seeds.push(from(50, 0x13, slot, &[]));
    }
    seeds.extend([
        from(255, 0x13, 2, &[(4, &[32, 0]), (6, &[225])]),
        from(20, 0x13, 0, &[(10, &[255, 0, 0x40])]),
        from(45, 0x13, 0, &[(11, &[9, 16])]),
    ]);
    let frame = CanFrame::data(standard(1).unwrap(), &[3; 8]).unwrap();
    let (mut frames, mut acknowledged, mut closed) = (0, 0, 0);
    hostile(
        (1, false),
        100_000,
        &seeds,
        &never,
        |random| if random.one_in(3) { Kvaser::new(Nanos::ZERO, true) } else { fresh(&shell) },
        |class, now, random| {
            let channel = random.below(6) as u8;
            let setting = BusParameters { before_sample: 139, after_sample: 20, ..SETTING };
            match random.below(12) {
                0 => drop(class.open(now, channel, setting, Mode::Normal)),
                1 if random.one_in(4) => drop(class.close(now, channel)),
                2 => drop(class.ask_chip_state(channel)),
                _ => drop(class.send(channel, &frame, random.one_in(9))),
            }
            assert!(class.outstanding(channel) <= 128);
        },
        &mut |event| match event {
            InterfaceEvent::Frame { channel, .. } => {
                assert!(channel < 5);
                frames += 1;
            }
            InterfaceEvent::Acknowledged { slot, .. } => {
                assert!(slot < 128);
                acknowledged += 1;
            }
            InterfaceEvent::Closed { .. } => closed += 1,
            _ => {}
        },
    );
    let enough = frames > 1_500 && acknowledged > 1_000 && closed > 1_000;
    assert!(enough, "{frames} {acknowledged} {closed}");
}

/// Returns the class of a shell, with no transfers pending.
fn fresh(shell: &Shell<Kvaser>) -> Kvaser {
    let mut class = shell.class.clone();
    for _ in 0..TRANSFER.1 {
        let done = Completion { endpoint: 0x82, result: Ok(&[]) };
        class.complete(Nanos::ZERO, done, &mut |_| {});
    }
    class
}

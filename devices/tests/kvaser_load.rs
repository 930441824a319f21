//! The USB-CAN interface under load: five busy buses, its 4 KB buffer, hostile hosts.

use crate::support::can_host::{Reader, ask, command, drain, extended_transmit, reply};
use crate::support::{Random, configure, hostile, write};
use diapason_abi::Nanos;
use diapason_can::BitRate;
use diapason_can::frame::standard;
use diapason_devices::can::{CanBus, PeriodicMessage};
use diapason_devices::kvaser::{CHANNELS, ControllerKind, FRAMES, Hydra, Identity, OUT};
use diapason_devices::{Answer, Handshake, UsbDevice};

const MS: Nanos = Nanos::from_millis(1);

/// An interface on five busy buses, all channels open.
fn opened(personality: ControllerKind) -> (Hydra, Vec<CanBus>) {
    let (mut device, buses) = Hydra::busy(Identity { personality, ..Identity::default() });
    configure(&mut device, Nanos::ZERO);
    for (entity, bus) in (0x13..).zip(&buses) {
        let rate = bus.with_bus(|bus| bus.rate().hertz()).to_le_bytes();
        ask(
            &mut device,
            Nanos::ZERO,
            &command(16, entity, 2, &[&rate[..], &[13, 2, 1, 1]].concat()),
        );
        ask(&mut device, Nanos::ZERO, &command(26, entity, 5, &[]));
        bus.record(100_000);
    }
    (device, buses)
}

/// The channel of a message, by its source.
fn channel(bytes: &[u8]) -> usize {
    (0..CHANNELS).find(|c| bytes[1..4] == reply(0, 0x13 + *c as u8, 0)[1..]).unwrap()
}

fn hash(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Polls whenever something may have changed; what came, and its hash.
fn listen(device: &mut Hydra, until: Nanos) -> (Vec<Vec<u8>>, u64) {
    let (mut all, mut sum) = (Vec::new(), 0xcbf2_9ce4_8422_2325);
    while device.next_change() <= until {
        let now = device.next_change();
        device.advance(now);
        for bytes in drain(device, now) {
            sum = hash(sum, &now.0.to_le_bytes());
            sum = hash(sum, &[channel(&bytes) as u8]);
            sum = hash(sum, &bytes);
            all.push(bytes);
        }
    }
    (all, sum)
}

#[test]
fn seven_thousand_frames_a_second_are_the_right_ones_at_the_right_times() {
    let (mut device, buses) = opened(ControllerKind::Kcan);
    let (all, sum) = listen(&mut device, Nanos::from_secs(2));
    assert_eq!((0..CHANNELS).map(|c| device.overruns(c)).sum::<u64>(), 0);
    assert!((13_990..=14_000).contains(&all.len()), "{}", all.len());
    for (index, bus) in buses.iter().enumerate() {
        let bit = bus.with_bus(|bus| bus.rate().time(1));
        let mut sent = bus.take_record().into_iter();
        for bytes in all.iter().filter(|bytes| channel(bytes) == index) {
            let sent = sent.next().unwrap();
            let ticks = (sent.time - bit).0 * 80 / 1_000;
            assert_eq!((bytes[6], bytes[8] & 2), (226, 0));
            assert_eq!(bytes[24..32], ticks.to_le_bytes());
            assert_eq!(bytes[12..16], sent.frame.raw_id().to_le_bytes());
            assert_eq!(&bytes[32..40], sent.frame.bytes());
        }
        assert!(sent.len() <= 1 && bus.overdue() == 0);
    }
    assert_eq!(
        sum, 0xb4db_06c3_e837_69bd,
        "the same frames at the same nanoseconds as when this was written"
    );
}

#[test]
fn the_buffer_loses_the_oldest_frames_and_says_so() {
    let id = standard(0x100).unwrap();
    for personality in [ControllerKind::Kcan, ControllerKind::Flexc] {
        let flexc = personality == ControllerKind::Flexc;
        let (flags, data) = if flexc { (7, 20) } else { (8, 32) };
        let identity = Identity { personality, ..Identity::default() };
        let bus = CanBus::new(BitRate::new(500_000).unwrap());
        bus.add_unit(vec![PeriodicMessage { id, length: 8, period: MS, offset: MS }]);
        let mut device = Hydra::new(identity, &[Some(bus)]);
        configure(&mut device, Nanos::ZERO);
        let rate = 500_000u32.to_le_bytes();
        for body in [(16, [&rate[..], &[13, 2, 1, 1]].concat()), (26, Vec::new())] {
            ask(&mut device, Nanos::ZERO, &command(body.0, 0x13, 2, &body.1));
        }
        // 100 frames come; requests in between are answered all the same.
        device.advance(Nanos(100_900_000));
        assert_eq!((device.buffered(), device.overruns(0)), (FRAMES, 36));
        let late = Nanos(100_900_000);
        write(&mut device, late, OUT, &command(34, 0x3e, 4, &[]));
        let got = drain(&mut device, late);
        let (frames, replies): (Vec<_>, Vec<_>) =
            got.iter().partition(|bytes| matches!(bytes[0], 106 | 255));
        assert_eq!((frames.len(), replies.len(), replies[0][0]), (FRAMES, 1, 35));
        for (at, bytes) in frames.iter().enumerate() {
            assert_eq!(bytes[data..data + 8], (36 + at as u64).to_le_bytes());
            assert_eq!(bytes[flags] & 2 != 0, at == 0, "only the first one says it");
        }
    }
}

#[test]
fn acknowledgements_survive_an_overrun_and_bound_themselves() {
    let (mut device, _) = opened(ControllerKind::Kcan);
    let (mut sent, mut refused) = (0, 0);
    for step in 0..4_000u64 {
        let bytes = extended_transmit(0x13, (step % 128) as u16, 0x700, 0, b"12345678");
        match device.receive(Nanos(step * 500_000), OUT, &bytes) {
            Handshake::Ack => sent += 1,
            Handshake::Nak => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    let got = drain(&mut device, Nanos::from_secs(3));
    let acknowledged = got.iter().filter(|bytes| bytes[0] == 255 && bytes[6] == 225).count();
    let errors = got.iter().filter(|bytes| bytes[0] == 45).count();
    assert_eq!(sent, acknowledged + errors, "each command has exactly one end");
    assert!(refused > 0 && acknowledged <= 5 * 128 + 64 + 128, "{sent} {refused} {acknowledged}");
}

#[test]
fn transfers_of_any_length_carry_the_same_commands() {
    for personality in [ControllerKind::Kcan, ControllerKind::Flexc] {
        let mut first: Option<Vec<Vec<u8>>> = None;
        for bytes in [512, 1_024, 3_072, 65_536] {
            let (mut device, _) = opened(personality);
            let (mut reader, mut all) = (Reader::default(), Vec::new());
            for step in 1..=100 {
                let now = Nanos(step * 5_000_000);
                write(&mut device, now, OUT, &command(34, 0x3e, step as u16, &[]));
                loop {
                    let commands = reader.transfer(&mut device, now, bytes);
                    if commands.is_empty() {
                        break;
                    }
                    all.extend(commands);
                }
            }
            assert!(all.len() > 3_500);
            assert_eq!(*first.get_or_insert(all.clone()), all, "{bytes}");
        }
    }
}

#[test]
fn a_full_packet_does_not_leave_the_transfer_open() {
    let (mut device, _) = opened(ControllerKind::Kcan);
    for _ in 0..16 {
        write(&mut device, Nanos::ZERO, OUT, &command(34, 0x3e, 1, &[]));
    }
    let answers = [(); 3].map(|()| device.send(Nanos::ZERO, 0x82, &mut [0; 512]));
    assert_eq!(answers, [Answer::Data(512), Answer::Data(0), Answer::Nak]);
}

#[test]
fn a_hostile_host_breaks_nothing_and_fills_nothing() {
    let mut random = Random::new(41);
    for _ in 0..20 {
        let (mut device, _) = opened(ControllerKind::Kcan);
        hostile(&mut device, &mut random, 5_000);
        for _ in 0..2_000 {
            configure(&mut device, Nanos::from_secs(2));
            let mut bytes = command(0, 0, 0, &[]);
            bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
            bytes[0] = random.pick(&[16, 17, 19, 21, 26, 28, 33, 34, 48, 95, 200, 202, 255, 77]);
            bytes[1] = random.pick(&[0, 0x13, 0x15, 0x17, 0x2a, 0x3e, 0x18]);
            if bytes[0] == 255 {
                bytes[4..7].copy_from_slice(&[random.pick(&[32, 40, 48, 41, 0]), 0, 224]);
            }
            device.receive(Nanos::from_secs(2), OUT, &bytes);
        }
        let mut bytes = 0;
        for _ in 0..200 {
            let mut packet = [0; 512];
            if let Answer::Data(length) = device.send(Nanos::from_secs(2), 0x82, &mut packet) {
                bytes += length;
            }
        }
        assert!(bytes <= (5 * 128 + 64 + 32 + FRAMES + 5) * 64, "{bytes}");
    }
}

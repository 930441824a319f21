//! Devices that carry what hosts give them: the bridge and the disk.

use crate::support::{Random, configure, hostile, read, write};
use diapason_abi::Nanos;
use diapason_devices::bridge::{self, Bridge, bridge, slow_bridge};
use diapason_devices::disk::{self, Disk};
use diapason_devices::{Answer, Handshake, UsbDevice};
use diapason_usb::Setup;
use std::collections::VecDeque;

const NOW: Nanos = Nanos::from_millis(1);

fn ends(capacity: usize) -> (Bridge, Bridge) {
    let (mut one, mut two) = bridge(capacity);
    configure(&mut one, Nanos::ZERO);
    configure(&mut two, Nanos::ZERO);
    (one, two)
}

#[test]
fn what_one_host_writes_the_other_reads() {
    let (mut one, mut two) = ends(4_096);
    assert_eq!(read(&mut two, NOW, bridge::IN, 1_024), None);
    assert_eq!(read(&mut two, NOW, bridge::NEWS, 2), Some(vec![1]));
    write(&mut one, NOW, bridge::OUT, b"hello");
    write(&mut one, NOW, bridge::OUT, b"");
    assert_eq!(two.next_change(), NOW, "there is something now");
    assert_eq!(read(&mut two, NOW, bridge::IN, 1_024), Some(b"hello".to_vec()));
    assert_eq!(read(&mut two, NOW, bridge::IN, 1_024), Some(Vec::new()));
    assert_eq!((two.next_change(), one.next_change()), (Nanos::FOREVER, NOW));
    two.reset(NOW);
    assert_eq!(one.receive(NOW, bridge::OUT, b"to nobody"), Handshake::Nak);
    assert_eq!(read(&mut one, NOW, bridge::NEWS, 2), Some(vec![0]));
}

#[test]
fn features_reset_the_pipes() {
    let (mut one, mut two) = ends(4_096);
    write(&mut one, NOW, bridge::OUT, b"old");
    let reset = Setup { kind: 0x40, request: 3, value: 0x99, index: 0, length: 0 };
    assert_eq!(one.control(NOW, reset, &[]), Ok(Vec::new()));
    assert_eq!(read(&mut two, NOW, bridge::IN, 1_024), None);
}

#[test]
fn random_traffic_arrives_in_order_and_full_buffers_hold_writers_off() {
    let (mut one, mut two) = ends(10_000);
    let mut random = Random::new(5);
    let (mut held, mut under_way) = (0, VecDeque::new());
    for _ in 0..50_000 {
        if random.one_in(2) {
            let packet = vec![random.bits() as u8; random.below(1_025) as usize];
            match one.receive(NOW, bridge::OUT, &packet) {
                Handshake::Ack => under_way.push_back(packet),
                Handshake::Nak => held += 1,
                other => panic!("{other:?}"),
            }
            assert!(under_way.iter().map(Vec::len).sum::<usize>() <= 10_000);
        } else {
            assert_eq!(read(&mut two, NOW, bridge::IN, 1_024), under_way.pop_front());
        }
    }
    assert!(held > 100);
}

/// A cable of some length: what arrives, and when, does not depend on which end goes first.
#[test]
fn a_slow_cable_brings_everything_at_its_time_whoever_goes_first() {
    const STEP: Nanos = Nanos(1_000);
    let run = |first: usize| {
        let (one, two) = slow_bridge(4_096, Nanos(3_500));
        let mut ends = [one, two];
        ends.iter_mut().for_each(|end| configure(end, Nanos::ZERO));
        let mut random = [Random::new(1), Random::new(2)];
        let mut seen = [Vec::new(), Vec::new()];
        for step in 1..20_000 {
            let now = Nanos(STEP.0 * step);
            for index in [first, 1 - first] {
                let (end, random) = (&mut ends[index], &mut random[index]);
                let packet = vec![step as u8; random.below(1_025) as usize];
                let taken = random.one_in(2).then(|| end.receive(now, bridge::OUT, &packet));
                let got = random.one_in(2).then(|| read(end, now, bridge::IN, 1_024));
                if random.one_in(500) {
                    let both = Setup { kind: 0x40, request: 3, value: 0x18, index: 0, length: 0 };
                    end.control(now, both, &[]).unwrap();
                }
                if random.one_in(500) {
                    end.reset(now);
                    configure(end, now);
                }
                seen[index].push((now, taken, got));
            }
        }
        seen
    };
    let seen = run(0);
    assert_eq!(seen, run(1));
    let held = seen[0].iter().filter(|(_, taken, _)| *taken == Some(Handshake::Nak)).count();
    let arrived = seen[1].iter().filter(|(_, _, got)| matches!(got, Some(Some(_)))).count();
    assert!(held > 100 && arrived > 1_000, "{held} {arrived}");
}

#[test]
fn a_slow_cable_tells_when_something_arrives() {
    let (mut one, mut two) = slow_bridge(2_048, Nanos(700));
    configure(&mut one, Nanos::ZERO);
    configure(&mut two, Nanos::ZERO);
    assert_eq!((one.next_change(), two.next_change()), (Nanos(700), Nanos(700)));
    assert_eq!(one.receive(Nanos(699), bridge::OUT, b"early"), Handshake::Nak);
    assert_eq!(one.receive(Nanos(700), bridge::OUT, &[7; 1_024]), Handshake::Ack);
    assert_eq!(one.receive(Nanos(700), bridge::OUT, &[7; 1_024]), Handshake::Ack);
    assert_eq!(one.receive(Nanos(700), bridge::OUT, b"full"), Handshake::Nak);
    two.advance(Nanos(700));
    assert_eq!(two.next_change(), Nanos(1_400));
    assert_eq!(read(&mut two, Nanos(1_399), bridge::IN, 1_024), None);
    assert_eq!(read(&mut two, Nanos(1_400), bridge::IN, 1_024), Some(vec![7; 1_024]));
    assert_eq!(one.receive(Nanos(2_099), bridge::OUT, b"full"), Handshake::Nak);
    assert_eq!(one.receive(Nanos(2_100), bridge::OUT, b"room"), Handshake::Ack);
}

fn block(tag: u32, length: u32, to_host: bool, command: &[u8]) -> Vec<u8> {
    let mut block = b"USBC".to_vec();
    block.extend(tag.to_le_bytes());
    block.extend(length.to_le_bytes());
    block.extend([if to_host { 0x80 } else { 0 }, 0, command.len() as u8]);
    block.extend(command);
    block.resize(31, 0);
    block
}

/// A whole command that reads; its data, residue and status.
fn ask(disk: &mut Disk, length: u32, command: &[u8]) -> (Vec<u8>, u32, u8) {
    write(disk, NOW, disk::OUT, &block(7, length, true, command));
    let mut data = Vec::new();
    while data.len() < length as usize {
        data.extend(read(disk, NOW, disk::IN, 512).unwrap());
    }
    let (residue, status) = end(disk);
    (data, residue, status)
}

fn end(disk: &mut Disk) -> (u32, u8) {
    let status = read(disk, NOW, disk::IN, 512).unwrap();
    assert_eq!((status.len(), &status[..8]), (13, &b"USBS\x07\0\0\0"[..]));
    (u32::from_le_bytes(status[8..12].try_into().unwrap()), status[12])
}

#[test]
fn the_disk_keeps_what_was_written() {
    let mut disk = Disk::new(100);
    configure(&mut disk, Nanos::ZERO);
    let (capacity, ..) = ask(&mut disk, 8, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(capacity, [0, 0, 0, 99, 0, 0, 2, 0]);
    let inquiry = ask(&mut disk, 36, &[0x12, 0, 0, 0, 36, 0]);
    assert_eq!((&inquiry.0[8..16], inquiry.1, inquiry.2), (&b"Diapason"[..], 0, 0));
    let written: Vec<u8> = (0..1_024u32).map(|n| (n * 7) as u8).collect();
    write(&mut disk, NOW, disk::OUT, &block(7, 1_024, false, &[0x2a, 0, 0, 0, 0, 5, 0, 0, 2, 0]));
    written.chunks(512).for_each(|part| write(&mut disk, NOW, disk::OUT, part));
    assert_eq!(end(&mut disk), (0, 0));
    assert_eq!(disk.bytes()[5 * 512..7 * 512], written);
    let back = ask(&mut disk, 1_024, &[0x28, 0, 0, 0, 0, 5, 0, 0, 2, 0]);
    assert_eq!(back, (written, 0, 0));
}

#[test]
fn disagreements_about_data_are_told() {
    let mut disk = Disk::new(10);
    configure(&mut disk, Nanos::ZERO);
    let beyond = ask(&mut disk, 512, &[0x28, 0, 0, 0, 0, 10, 0, 0, 1, 0]);
    assert_eq!((beyond.1, beyond.2), (512, 1));
    let sense = ask(&mut disk, 18, &[3, 0, 0, 0, 18, 0]).0;
    assert_eq!((sense[2], sense[12]), (5, 0x21));
    let more = ask(&mut disk, 1_024, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!((more.1, more.2), (512, 0), "the host wanted more");
    let less = ask(&mut disk, 512, &[0x28, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
    assert_eq!((less.1, less.2), (0, 2), "the host wanted less");
    let wrong_way = ask(&mut disk, 512, &[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!((wrong_way.1, wrong_way.2), (512, 2));
}

#[test]
fn nonsense_stalls_until_it_is_reset() {
    let mut disk = Disk::new(10);
    configure(&mut disk, Nanos::ZERO);
    assert_eq!(disk.receive(NOW, disk::OUT, b"USBX"), Handshake::Stall);
    assert_eq!(disk.control(NOW, Setup::clear_halt(disk::IN), &[]), Ok(Vec::new()));
    assert_eq!(disk.send(NOW, disk::IN, &mut [0; 512]), Answer::Stall, "a clear is not enough");
    let reset = Setup { kind: 0x21, request: 0xff, value: 0, index: 0, length: 0 };
    assert_eq!(disk.control(NOW, reset, &[]), Ok(Vec::new()));
    for endpoint in [disk::IN, disk::OUT] {
        disk.control(NOW, Setup::clear_halt(endpoint), &[]).unwrap();
    }
    assert_eq!(ask(&mut disk, 0, &[0; 6]), (Vec::new(), 0, 0));
}

#[test]
fn hostile_hosts_break_neither() {
    let mut random = Random::new(13);
    for _ in 0..10 {
        hostile(&mut Disk::new(64), &mut random, 2_500);
        hostile(&mut ends(4_096).0, &mut random, 2_500);
        let mut disk = Disk::new(64);
        configure(&mut disk, Nanos::ZERO);
        for _ in 0..2_000 {
            let mut bytes = block(1, 0, random.one_in(2), &[0; 16]);
            bytes[8..12].copy_from_slice(&(random.below(3_000) as u32).to_le_bytes());
            bytes[15..].iter_mut().for_each(|byte| *byte = random.pick(&[0, 1, 2, 60, 255]));
            bytes[15] = random.pick(&[0, 3, 0x12, 0x1a, 0x25, 0x28, 0x2a, 0x35, 0x99]);
            disk.receive(NOW, disk::OUT, &bytes);
            for _ in 0..random.below(9) {
                disk.send(NOW, disk::IN, &mut [0; 512]);
                disk.receive(NOW, disk::OUT, &[9; 512]);
            }
        }
    }
}

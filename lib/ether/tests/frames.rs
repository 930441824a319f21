//! Attacks on the full stack and the filter: damaged frames of every kind, judged by another
//! implementation (`smoltcp`) and by each other.

use core::net::{Ipv4Addr, SocketAddrV4};
use diapason_ether::checksum::OnesSum;
use diapason_ether::stack::{self, VlanTag};
use diapason_ether::{Datagram, Discard, Listener, Listeners, Match, UdpFrame};
use diapason_random::Random;
use smoltcp::wire::{EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, UdpPacket};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORT: u16 = 5_000;
/// The longest frame that is tried: a jumbo frame and some.
const LONGEST: usize = 9_100;

fn flow(random: &mut Random) -> UdpFrame {
    let tag = random.one_in(3).then(|| VlanTag::from_bits(random.bits() as u16));
    UdpFrame {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        tag,
        source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4_000),
        destination: SocketAddrV4::new(OWN, PORT),
        checksum: random.one_in(3),
    }
}

/// A frame as a sender writes it, and the payload in it.
fn plain(random: &mut Random) -> (UdpFrame, Vec<u8>, Vec<u8>) {
    let flow = flow(random);
    let length = match random.below(4) {
        0 => random.index(20),
        1 => random.index(9_000),
        _ => random.index(1_473),
    };
    let payload: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
    let mut frame = vec![0xa5; LONGEST];
    let bytes = flow.write(&payload, &mut frame).unwrap();
    frame.truncate(bytes);
    (flow, frame, payload)
}

/// The place of the IP header.
fn ip(flow: &UdpFrame) -> usize {
    if flow.tag.is_some() { 18 } else { 14 }
}

/// Makes the checksum of the header correct, if there is one.
fn repair(frame: &mut [u8], at: usize) {
    let Some(first) = frame.get(at) else { return };
    let length = usize::from(first & 15) * 4;
    let Some(header) = frame.get_mut(at..at + length).filter(|header| header.len() >= 20) else {
        return;
    };
    header[10..12].fill(0);
    let checksum = OnesSum::new().bytes(header).checksum();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Puts `words` words of options behind the header: mostly such as are skipped.
fn insert_options(random: &mut Random, frame: &mut Vec<u8>, at: usize, words: u8) {
    let kinds = [0, 1, 7, 68, 131, 137, 148];
    let count = usize::from(words) * 4;
    let options: Vec<u8> = (0..count)
        .map(|_| if random.one_in(2) { random.pick(&kinds) } else { random.below(12) as u8 })
        .collect();
    let behind = at + 20;
    frame.splice(behind..behind, options);
    frame[at] = 0x45 + words;
    let total = u16::from_be_bytes([frame[at + 2], frame[at + 3]]).wrapping_add(count as u16);
    frame[at + 2..at + 4].copy_from_slice(&total.to_be_bytes());
}

/// Damages a frame once.
fn damage(random: &mut Random, frame: &mut Vec<u8>, at: usize) {
    let heads = (at + 28).min(frame.len());
    match random.below(8) {
        0 => frame.truncate(random.index(frame.len() + 1)),
        1 => frame.resize((frame.len() + random.index(40)).min(LONGEST), 0),
        2 if frame.len() >= at + 28 => {
            let words = random.between(1, 10) as u8;
            insert_options(random, frame, at, words);
        }
        3 if !frame.is_empty() => {
            let place = random.index(frame.len());
            frame[place] ^= 1 << random.below(8);
        }
        4 if heads > 0 => frame[random.index(heads)] = random.bits() as u8,
        // The fields that the filter compares, with values near the right ones.
        5 if frame.len() >= at + 28 => {
            let field = at + random.pick(&[0, 2, 3, 6, 7, 9, 12, 16, 19, 22, 23, 24, 25, 26, 27]);
            frame[field] = frame[field].wrapping_add(random.pick(&[1, 255, 8, 0x20, 0x40, 0x80]));
        }
        _ if heads > 0 => frame[random.index(heads)] ^= 1 << random.below(8),
        _ => frame.push(random.bits() as u8),
    }
    if random.one_in(2) {
        repair(frame, at);
    }
}

/// Returns sender, receiver and payload of a frame that `smoltcp` takes.
fn judged(frame: &[u8]) -> Option<(SocketAddrV4, SocketAddrV4, Vec<u8>)> {
    let mut frame = frame.to_vec();
    if frame.len() >= 18 && frame[12..14] == [0x81, 0] {
        frame.drain(12..16);
    }
    let frame = EthernetFrame::new_checked(frame.as_slice()).ok()?;
    if frame.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    let whole = !packet.more_frags() && packet.frag_offset() == 0;
    let right = packet.version() == 4 && packet.header_len() >= 20 && packet.verify_checksum();
    if !whole || !right || packet.next_header() != IpProtocol::Udp {
        return None;
    }
    let (from, to) = (packet.src_addr(), packet.dst_addr());
    let udp = UdpPacket::new_checked(packet.payload()).ok()?;
    if !udp.verify_checksum(&from.into(), &to.into()) || udp.dst_port() == 0 {
        return None;
    }
    let ends = [SocketAddrV4::new(from, udp.src_port()), SocketAddrV4::new(to, udp.dst_port())];
    Some((ends[0], ends[1], udp.payload().to_vec()))
}

/// The refusals that are ours alone: `smoltcp` does not look at these.
const STRICTER: [Discard; 4] =
    [Discard::Options, Discard::Source, Discard::UdpLength, Discard::Fragment];

/// Holds the stack against the other implementation.
fn agree(frame: &[u8]) -> Result<Datagram<'_>, Discard> {
    let ours = stack::receive(frame);
    let theirs = judged(frame);
    match (&ours, theirs) {
        (Ok(ours), Some((source, destination, payload))) => {
            assert_eq!((ours.source, ours.destination), (source, destination), "{frame:02x?}");
            assert_eq!(ours.payload, payload, "{frame:02x?}");
        }
        (Ok(_), None) => panic!("only we take {frame:02x?}"),
        (Err(reason), Some(_)) => assert!(STRICTER.contains(reason), "{reason}: {frame:02x?}"),
        (Err(_), None) => {}
    }
    ours
}

/// Counts of what filter and stack said of many frames.
#[derive(Default, Debug)]
struct Seen {
    exact: u64,
    full: u64,
    delivered_by_full: u64,
    reasons: [u64; Discard::ALL.len()],
}

/// Holds filter, stack and the other implementation against each other.
fn attack(seed: u64, frames: u64) -> Seen {
    let mut listeners = Listeners::<8>::default();
    listeners.add(3, &Listener::udp(OWN, PORT, 8)).unwrap();
    listeners.add(4, &Listener::udp(OWN, PORT + 1, 8)).unwrap();
    let mut seen = Seen::default();
    for index in 0..frames {
        let mut random = Random::stream(seed, index);
        let (flow, mut frame, _) = plain(&mut random);
        for _ in 0..random.below(4) {
            damage(&mut random, &mut frame, ip(&flow));
        }
        let stack = agree(&frame);
        if let Err(reason) = stack {
            seen.reasons[reason as usize] += 1;
        }
        match listeners.classify(&frame) {
            Match::Exact { listener, at, length } => {
                seen.exact += 1;
                let payload = &frame[usize::from(at)..][..usize::from(length)];
                let datagram = stack.unwrap_or_else(|reason| {
                    panic!("the bypass delivers what the stack refuses ({reason}): {frame:02x?}")
                });
                assert_eq!(datagram.payload, payload);
                let port = if listener == 3 { PORT } else { PORT + 1 };
                assert_eq!(datagram.destination, SocketAddrV4::new(OWN, port));
            }
            Match::Full { listener } => {
                seen.full += 1;
                if let Ok(datagram) = stack {
                    seen.delivered_by_full += 1;
                    assert_eq!(listener == 3, datagram.destination.port() == PORT);
                }
            }
            Match::Nobody(_) => {
                // A datagram for a listener is never discarded here.
                let own = |port| SocketAddrV4::new(OWN, port);
                let ours = |datagram: Datagram<'_>| {
                    [own(PORT), own(PORT + 1)].contains(&datagram.destination)
                };
                assert!(!stack.is_ok_and(ours), "lost {frame:02x?}");
            }
        }
    }
    seen
}

#[test]
fn the_bypass_delivers_nothing_that_the_full_stack_refuses() {
    let seen = attack(21, 60_000);
    assert!(seen.exact > 10_000 && seen.delivered_by_full > 5_000, "{seen:?}");
    for (reason, count) in Discard::ALL.into_iter().zip(seen.reasons) {
        let in_the_stack = reason as u8 >= Discard::Version as u8
            && ![Discard::Address, Discard::Port, Discard::Room].contains(&reason)
            || [Discard::Short, Discard::EtherType].contains(&reason);
        assert_eq!(count > 0, in_the_stack, "{reason}: {seen:?}");
    }
}

#[test]
#[ignore = "a long attack"]
fn a_million_damaged_frames() {
    let seen = attack(1, 1_000_000);
    println!("{seen:?}");
    assert!(seen.exact > 100_000, "{seen:?}");
}

#[test]
fn what_is_written_is_read() {
    let mut random = Random::new(3);
    for _ in 0..2_000 {
        let (flow, frame, payload) = plain(&mut random);
        let datagram = agree(&frame).unwrap();
        assert_eq!((datagram.source, datagram.destination), (flow.source, flow.destination));
        assert_eq!((datagram.tag, datagram.payload), (flow.tag, payload.as_slice()));
        assert!(frame.len() >= 60);
        assert_eq!(flow.heads() + payload.len() <= 60, frame.len() == 60);
    }
}

#[test]
fn frames_of_every_length_are_taken_or_named() {
    let mut random = Random::new(4);
    let mut listeners = Listeners::<1>::default();
    listeners.add(0, &Listener::udp(OWN, PORT, 1)).unwrap();
    let (flow, whole, _) = loop {
        let found = plain(&mut random);
        if found.1.len() > 8_900 {
            break found;
        }
    };
    for length in 0..=9_000 {
        let mut frame: Vec<u8> = whole.iter().copied().chain([7; 200]).take(length).collect();
        let expected = match length {
            _ if length >= whole.len() => None,
            _ if length < ip(&flow) + 20 => Some(Discard::Short),
            _ => Some(Discard::TotalLength),
        };
        assert_eq!(agree(&frame).err(), expected, "{length}");
        let _ = listeners.classify(&frame);
        frame.iter_mut().for_each(|byte| *byte = random.bits() as u8);
        assert!(agree(&frame).is_err());
        let _ = listeners.classify(&frame);
    }
}

/// Each error alone, made from a correct frame.
#[test]
fn each_error_has_its_name() {
    let mut random = Random::new(5);
    let (flow, frame, _) = loop {
        let found = plain(&mut random);
        if found.0.checksum && found.0.tag.is_none() && found.2.len() > 100 {
            break found;
        }
    };
    let at = ip(&flow);
    let altered = |repaired: bool, place: usize, value: u8| {
        let mut frame = frame.clone();
        frame[place] = value;
        if repaired {
            repair(&mut frame, at);
        }
        agree(&frame).err()
    };
    assert_eq!(altered(false, 12, 0x86), Some(Discard::EtherType));
    assert_eq!(altered(false, at, 0x65), Some(Discard::Version));
    assert_eq!(altered(false, at, 0x44), Some(Discard::HeaderLength));
    assert_eq!(altered(true, at + 2, 0xff), Some(Discard::TotalLength));
    assert_eq!(altered(false, at + 10, !frame[at + 10]), Some(Discard::HeaderChecksum));
    assert_eq!(altered(true, at + 6, 0x20), Some(Discard::Fragment), "more fragments");
    assert_eq!(altered(true, at + 7, 1), Some(Discard::Fragment), "a later fragment");
    assert_eq!(altered(true, at + 6, 0x80), Some(Discard::Fragment), "the reserved bit");
    assert_eq!(altered(true, at + 9, 6), Some(Discard::Protocol));
    assert_eq!(altered(true, at + 12, 224), Some(Discard::Source));
    assert_eq!(altered(true, at + 12, 127), Some(Discard::Source));
    assert_eq!(altered(false, at + 24, 0xff), Some(Discard::UdpLength));
    assert_eq!(altered(false, at + 60, !frame[at + 60]), Some(Discard::UdpChecksum));
    let mut to_zero = frame.clone();
    to_zero[at + 22..at + 24].fill(0);
    to_zero[at + 26..at + 28].fill(0);
    assert_eq!(agree(&to_zero).err(), Some(Discard::Port));
    let routed = |option: &[u8; 4]| {
        let mut frame = frame.clone();
        insert_options(&mut random.clone(), &mut frame, at, 1);
        frame[at + 20..at + 24].copy_from_slice(option);
        repair(&mut frame, at);
        agree(&frame).err()
    };
    assert_eq!(routed(&[1, 1, 1, 0]), None);
    assert_eq!(routed(&[7, 4, 9, 9]), None);
    assert_eq!(routed(&[7, 5, 9, 9]), Some(Discard::Options));
    assert_eq!(routed(&[7, 1, 9, 9]), Some(Discard::Options));
    assert_eq!(routed(&[131, 3, 4, 0]), Some(Discard::Options));
    assert_eq!(routed(&[1, 1, 1, 7]), Some(Discard::Options));
}

#[test]
fn payloads_that_do_not_fit_are_refused() {
    let flow = flow(&mut Random::new(9));
    assert_eq!(flow.write(&[0; 100], &mut [0; 120]), None);
    assert_eq!(flow.write(&[0; 65_508], &mut vec![0; 70_000]), None);
    assert!(flow.write(&[0; 65_507], &mut vec![0; 70_000]).is_some());
    assert_eq!(VlanTag::from_bits(0xb123).bits(), 0xb123);
}

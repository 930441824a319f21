//! Packets there and back, however they are cut, and any bytes at all.

use diapason_random::Random;
use diapason_redir::protocol::{
    AddressedPacket, CAPABILITIES, Connect, Data, EndpointInfo, Interfaces, Malformed,
    PacketDecoder, PacketStatus, RedirPacket, SLOTS, TransferType, encode,
};
use diapason_usb::Setup;

const STATUSES: [PacketStatus; 7] = [
    PacketStatus::Success,
    PacketStatus::Cancelled,
    PacketStatus::Invalid,
    PacketStatus::Error,
    PacketStatus::Stall,
    PacketStatus::Timeout,
    PacketStatus::Babble,
];
const KINDS: [TransferType; 5] = [
    TransferType::Control,
    TransferType::Isochronous,
    TransferType::Bulk,
    TransferType::Interrupt,
    TransferType::Absent,
];
/// Kinds of packets below, but for the hello.
const PACKETS: u64 = 25;

fn byte(random: &mut Random) -> u8 {
    random.below(256) as u8
}

fn half(random: &mut Random) -> u16 {
    random.below(1 << 16) as u16
}

/// Bytes and how many are announced: all of them, or none are there.
fn bytes(random: &mut Random) -> (Vec<u8>, u32) {
    let length = random.below(700);
    let there = if random.one_in(3) { 0 } else { length };
    ((0..there).map(|_| byte(random)).collect(), length as u32)
}

fn data(random: &mut Random, stream: u32) -> Data {
    let (bytes, length) = bytes(random);
    Data { endpoint: byte(random), status: random.pick(&STATUSES), length, stream, bytes }
}

fn endpoints(random: &mut Random) -> Box<[EndpointInfo; SLOTS]> {
    let mut all = Box::new([EndpointInfo::default(); SLOTS]);
    for endpoint in all.iter_mut() {
        *endpoint = EndpointInfo {
            kind: random.pick(&KINDS),
            interval: byte(random),
            interface: byte(random),
            bytes: half(random),
        };
    }
    all
}

fn control(random: &mut Random) -> RedirPacket {
    let (bytes, length) = bytes(random);
    let setup = Setup {
        kind: byte(random),
        request: byte(random),
        value: half(random),
        index: half(random),
        length: length as u16,
    };
    RedirPacket::Control(byte(random), random.pick(&STATUSES), setup, bytes)
}

fn connect(random: &mut Random) -> RedirPacket {
    RedirPacket::Connect(Connect {
        speed: byte(random),
        class: [byte(random), byte(random), byte(random)],
        vendor: half(random),
        product: half(random),
        version: half(random),
    })
}

fn interfaces(random: &mut Random) -> RedirPacket {
    let count = random.index(SLOTS + 1);
    RedirPacket::Interfaces(Interfaces(
        (0..count).map(|_| [byte(random), byte(random), byte(random), byte(random)]).collect(),
    ))
}

fn packet(random: &mut Random, which: u64) -> RedirPacket {
    let status = random.pick(&STATUSES);
    let (a, b, c) = (byte(random), byte(random), byte(random));
    match which {
        0 => connect(random),
        1 => RedirPacket::Disconnect,
        2 => RedirPacket::Reset,
        3 => interfaces(random),
        4 => RedirPacket::Endpoints(endpoints(random)),
        5 => RedirPacket::SetConfiguration(a),
        6 => RedirPacket::GetConfiguration,
        7 => RedirPacket::ConfigurationStatus(status, a),
        8 => RedirPacket::SetAlternate(a, b),
        9 => RedirPacket::GetAlternate(a),
        10 => RedirPacket::AlternateStatus(status, a, b),
        11 => RedirPacket::StartIsochronous(a, b, c),
        12 => RedirPacket::StopIsochronous(a),
        13 => RedirPacket::IsochronousStatus(status, a),
        14 => RedirPacket::StartInterrupt(a),
        15 => RedirPacket::StopInterrupt(a),
        16 => RedirPacket::InterruptStatus(status, a),
        17 => RedirPacket::Cancel,
        18 => RedirPacket::FilterReject,
        19 => RedirPacket::Filter(bytes(random).0),
        20 => RedirPacket::DisconnectAcknowledged,
        21 => control(random),
        22 => RedirPacket::Bulk(data(random, 7)),
        23 => RedirPacket::Isochronous(data(random, 0)),
        _ => RedirPacket::Interrupt(data(random, 0)),
    }
}

fn conversation(random: &mut Random) -> Vec<AddressedPacket> {
    let mut messages = vec![AddressedPacket { id: 0, packet: RedirPacket::Hello(CAPABILITIES) }];
    for which in 0..PACKETS {
        messages.push(AddressedPacket { id: random.bits(), packet: packet(random, which) });
    }
    messages
}

fn all(decoder: &mut PacketDecoder) -> Result<Vec<AddressedPacket>, Malformed> {
    let mut messages = Vec::new();
    while let Some(message) = decoder.decode()? {
        messages.push(message);
    }
    Ok(messages)
}

#[test]
fn packets_come_back_however_they_are_cut() {
    for case in 0..300 {
        let mut random = Random::stream(1, case);
        let messages = conversation(&mut random);
        let mut wire = Vec::new();
        messages.iter().for_each(|message| encode(message, &mut wire));
        let (mut decoder, mut back) = (PacketDecoder::default(), Vec::new());
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            let most = if random.one_in(2) { 16 } else { 2_000 };
            let (now, later) = rest.split_at(1 + random.index(rest.len().min(most)));
            decoder.push(now);
            back.extend(all(&mut decoder).unwrap());
            rest = later;
        }
        assert_eq!(back, messages);
        assert!(!decoder.is_partial());
    }
}

#[test]
fn damage_gives_packets_or_a_refusal() {
    let mut refused = 0;
    for case in 0..3_000 {
        let mut random = Random::stream(2, case);
        let mut wire = Vec::new();
        conversation(&mut random).iter().for_each(|message| encode(message, &mut wire));
        for _ in 0..=random.below(4) {
            let at = random.index(wire.len());
            wire[at] = byte(&mut random);
        }
        wire.truncate(random.index(wire.len() + 1));
        let mut decoder = PacketDecoder::default();
        decoder.push(&wire);
        refused += u32::from(all(&mut decoder).is_err());
    }
    assert!(refused > 300, "{refused}");
}

#[test]
fn noise_gives_packets_or_a_refusal() {
    for case in 0..20_000 {
        let mut random = Random::stream(3, case);
        let mut decoder = PacketDecoder::default();
        let mut hello = Vec::new();
        encode(&AddressedPacket { id: 0, packet: RedirPacket::Hello(CAPABILITIES) }, &mut hello);
        decoder.push(&hello);
        for _ in 0..4 {
            let kind: u32 = random.pick(&[1, 4, 5, 8, 11, 12, 17, 23, 100, 101, 102, 103]);
            let noise: Vec<u8> = (0..random.below(200)).map(|_| byte(&mut random)).collect();
            let length = random.below(noise.len() as u64 + 2) as u32;
            decoder.push(&kind.to_le_bytes());
            decoder.push(&length.to_le_bytes());
            decoder.push(&random.bits().to_le_bytes());
            decoder.push(&noise);
        }
        let _ = all(&mut decoder);
    }
}

#[test]
fn what_must_not_be_is_refused_by_name() {
    let of = |bytes: &[u8]| {
        let mut decoder = PacketDecoder::default();
        decoder.push(bytes);
        all(&mut decoder).unwrap_err()
    };
    let mut weak = Vec::new();
    encode(&AddressedPacket { id: 0, packet: RedirPacket::Hello(0x1e) }, &mut weak);
    assert_eq!(of(&weak), Malformed::Capabilities(0x1e));
    let mut reset = Vec::new();
    encode(&AddressedPacket { id: 0, packet: RedirPacket::Reset }, &mut reset);
    assert_eq!(of(&reset), Malformed::Hello);
    let mut hello = Vec::new();
    encode(&AddressedPacket { id: 0, packet: RedirPacket::Hello(CAPABILITIES) }, &mut hello);
    assert_eq!(of(&[hello.clone(), hello.clone()].concat()), Malformed::Hello);
    let head = |kind: u32, length: u32| {
        let id = [0; 8];
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), &id].concat()
    };
    assert_eq!(of(&[hello.clone(), head(3, u32::MAX)].concat()), Malformed::Length(u32::MAX));
    assert_eq!(of(&[hello.clone(), head(77, 0)].concat()), Malformed::Kind(77));
    assert_eq!(of(&[hello, head(6, 0)].concat()), Malformed::Short(6));
}

/// Bytes as they were seen between QEMU and a device, in the fact sheet's words.
#[test]
fn the_layout_is_that_of_the_protocol() {
    let mut wire = Vec::new();
    encode(&AddressedPacket { id: 0, packet: RedirPacket::Hello(CAPABILITIES) }, &mut wire);
    assert_eq!((wire.len(), &wire[..12]), (12 + 68, &[0, 0, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0][..]));
    assert_eq!(&wire[76..], [0x7e, 0, 0, 0]);
    wire.clear();
    let bulk = Data {
        endpoint: 0x82,
        status: PacketStatus::Stall,
        length: 0x0001_0002,
        stream: 5,
        bytes: Vec::new(),
    };
    encode(&AddressedPacket { id: 9, packet: RedirPacket::Bulk(bulk) }, &mut wire);
    let body = [0x82, 4, 2, 0, 5, 0, 0, 0, 1, 0];
    let head = [101, 0, 0, 0, 10, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(wire, [&head[..], &body].concat());
    wire.clear();
    let setup = Setup::get_descriptor(1, 2, 0x409, 18);
    encode(
        &AddressedPacket {
            id: 1,
            packet: RedirPacket::Control(0x80, PacketStatus::Success, setup, vec![]),
        },
        &mut wire,
    );
    assert_eq!(&wire[16..], [0x80, 6, 0x80, 0, 2, 1, 9, 4, 18, 0]);
    wire.clear();
    let endpoints = Box::new([EndpointInfo::default(); SLOTS]);
    encode(&AddressedPacket { id: 0, packet: RedirPacket::Endpoints(endpoints) }, &mut wire);
    assert_eq!((wire.len(), wire[16]), (16 + 160, 255));
}

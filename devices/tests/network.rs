//! The network device: two configurations, frames in packets, and the computer behind it.

use crate::support::{Random, hostile, read, write};
use diapason_abi::Nanos;
use diapason_devices::network::{
    ADDRESS, Adapter, DATAGRAM_NUMBER_AT, DATAGRAM_TIME_AT, DatagramEnd, FRAMES, IN, NEWS,
    NUMBER_AT, NUMBERED, OUT, PACKET, PEER, PEER_ADDRESS, TIME_AT, VENDORS, numbered,
};
use diapason_devices::{Handshake, Stall, UsbDevice};
use diapason_ether::UdpFrame;
use diapason_usb::Setup;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, Icmpv4Packet, Icmpv4Repr, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr,
};

use std::net::{Ipv4Addr, SocketAddrV4};

const HOST: Ipv4Address = Ipv4Address::new(10, 0, 2, 15);
const HOST_ADDRESS: EthernetAddress = EthernetAddress(ADDRESS);

fn peer() -> Ipv4Address {
    Ipv4Address::from_octets(PEER)
}

/// In the configuration with whole frames, its data interface open; with this filter.
fn open(adapter: &mut Adapter, filter: u16) {
    let mut ask = |setup| adapter.control(Nanos::ZERO, setup, &[]);
    ask(Setup::set_configuration(FRAMES)).unwrap();
    ask(Setup::set_interface(1, 1)).unwrap();
    ask(Setup { kind: 0x21, request: 0x43, value: filter, index: 0, length: 0 }).unwrap();
}

fn frame(to: EthernetAddress, ethertype: EthernetProtocol, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; 14 + length];
    let head = EthernetRepr { src_addr: HOST_ADDRESS, dst_addr: to, ethertype };
    head.emit(&mut EthernetFrame::new_unchecked(&mut bytes));
    bytes
}

/// Returns an ARP question for the address of the peer.
fn question() -> Vec<u8> {
    let arp = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Request,
        source_hardware_addr: HOST_ADDRESS,
        source_protocol_addr: HOST,
        target_hardware_addr: EthernetAddress::BROADCAST,
        target_protocol_addr: peer(),
    };
    let mut bytes = frame(EthernetAddress::BROADCAST, EthernetProtocol::Arp, arp.buffer_len());
    arp.emit(&mut ArpPacket::new_unchecked(&mut bytes[14..]));
    bytes
}

fn echo(number: u16, data: &[u8]) -> Vec<u8> {
    let echo = Icmpv4Repr::EchoRequest { ident: 7, seq_no: number, data };
    let ip = Ipv4Repr {
        src_addr: HOST,
        dst_addr: peer(),
        next_header: IpProtocol::Icmp,
        payload_len: echo.buffer_len(),
        hop_limit: 64,
    };
    let length = ip.buffer_len() + echo.buffer_len();
    let mut bytes = frame(EthernetAddress(PEER_ADDRESS), EthernetProtocol::Ipv4, length);
    let sums = ChecksumCapabilities::default();
    ip.emit(&mut Ipv4Packet::new_unchecked(&mut bytes[14..]), &sums);
    echo.emit(&mut Icmpv4Packet::new_unchecked(&mut bytes[34..]), &sums);
    bytes
}

/// A frame of the host's, in packets.
fn send(adapter: &mut Adapter, now: Nanos, frame: &[u8]) {
    frame.chunks(PACKET).for_each(|packet| write(adapter, now, OUT, packet));
    if frame.len().is_multiple_of(PACKET) {
        write(adapter, now, OUT, &[]);
    }
}

/// The next frame for the host, once it is there.
fn receive(adapter: &mut Adapter) -> Option<Vec<u8>> {
    let now = adapter.next_change();
    if now == Nanos::FOREVER {
        return None;
    }
    assert_eq!(read(adapter, now - Nanos(1), IN, PACKET), None, "before it is there");
    let mut frame = Vec::new();
    loop {
        let packet = read(adapter, now, IN, PACKET).unwrap();
        frame.extend(&packet);
        if packet.len() < PACKET {
            return Some(frame);
        }
    }
}

#[test]
fn only_an_open_interface_of_the_second_configuration_carries_frames() {
    let mut adapter = Adapter::default();
    let mut ask = |setup| adapter.control(Nanos::ZERO, setup, &[]);
    let filter = Setup { kind: 0x21, request: 0x43, value: 15, index: 0, length: 0 };
    assert_eq!(ask(Setup::set_configuration(9)), Err(Stall));
    for value in [VENDORS, FRAMES] {
        ask(Setup::set_configuration(value)).unwrap();
        assert_eq!(ask(filter), Err(Stall), "configuration {value}");
    }
    assert_eq!(adapter.receive(Nanos::ZERO, OUT, &[]), Handshake::Error);
    open(&mut adapter, 15);
    let news = read(&mut adapter, Nanos::ZERO, NEWS, 16).unwrap();
    assert_eq!(news, [0xa1, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(read(&mut adapter, Nanos::ZERO, NEWS, 16).unwrap()[..2], [0xa1, 0x2a]);
    send(&mut adapter, Nanos::ZERO, &question());
    assert!(receive(&mut adapter).is_some());
    let vendors = adapter.control(Nanos::ZERO, Setup::set_configuration(VENDORS), &[]);
    assert_eq!(vendors, Ok(vec![]));
    send(&mut adapter, Nanos::ZERO, &question());
    assert_eq!(receive(&mut adapter), None);
}

#[test]
fn the_peer_says_its_address_and_echoes_every_length() {
    let mut adapter = Adapter::default();
    open(&mut adapter, 0b1110);
    send(&mut adapter, Nanos::ZERO, &question());
    let answer = receive(&mut adapter).unwrap();
    let arp = ArpRepr::parse(&ArpPacket::new_checked(&answer[14..]).unwrap()).unwrap();
    let ArpRepr::EthernetIpv4 { operation, source_hardware_addr, .. } = arp else { panic!() };
    assert_eq!(operation, ArpOperation::Reply);
    assert_eq!(source_hardware_addr, EthernetAddress(PEER_ADDRESS));
    let data: Vec<u8> = (0..1472).map(|at| (at * 7) as u8).collect();
    for (number, length) in (0..).zip((0..=1472).rev()) {
        let now = Nanos::from_millis(1 + u64::from(number));
        send(&mut adapter, now, &echo(number, &data[..length]));
        let answer = receive(&mut adapter).unwrap();
        let icmp = Icmpv4Packet::new_checked(&answer[34..42 + length]).unwrap();
        let said = Icmpv4Repr::parse(&icmp, &ChecksumCapabilities::default()).unwrap();
        let wanted = Icmpv4Repr::EchoReply { ident: 7, seq_no: number, data: &data[..length] };
        assert_eq!(said, wanted, "{length} bytes");
    }
    assert_eq!(adapter.dropped(), 0);
}

#[test]
fn the_filter_and_too_long_frames() {
    let mut adapter = Adapter::default();
    open(&mut adapter, 0b1000);
    send(&mut adapter, Nanos::ZERO, &question());
    assert_eq!(receive(&mut adapter), None, "the host wants what is for all alone");
    open(&mut adapter, 0b100);
    send(&mut adapter, Nanos::ZERO, &[0xff; 1515]);
    assert_eq!(adapter.dropped(), 1);
    send(&mut adapter, Nanos::ZERO, &question());
    assert!(receive(&mut adapter).is_some());
}

#[test]
fn numbered_frames_come_one_by_one_while_the_interface_is_open() {
    let period = Nanos::from_micros(100);
    let mut adapter = Adapter::default().with_frames(period);
    assert_eq!(adapter.next_change(), Nanos::FOREVER, "nobody listens");
    open(&mut adapter, 0b1110);
    for number in 0..5 {
        let at = Nanos(period.0 * (1 + number));
        assert_eq!(adapter.next_change(), at);
        assert_eq!(receive(&mut adapter), Some(numbered(number, at)));
    }
    // It keeps a few; the others are dropped.
    adapter.advance(Nanos(period.0 * 105));
    assert_eq!(adapter.dropped(), 100 - 16);
    let frame = numbered(7, Nanos(9));
    assert_eq!((frame[NUMBER_AT], frame[TIME_AT], frame.len()), (7, 9, NUMBERED));
    assert_eq!((frame[100], frame[255]), (107, 6), "the rest counts up from the number");
    adapter.reset(Nanos(period.0 * 105));
    assert_eq!(adapter.next_change(), Nanos::FOREVER);
}

/// Datagrams go to each socket in its turn, as `netd` and its sockets take them. Answers end here;
/// what is for another port gets the answer of a computer that has no such port.
#[test]
fn datagrams_go_to_each_socket_in_turn() {
    let end = |port| DatagramEnd {
        mac: ADDRESS,
        socket: SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 15), port),
        from_port: 9_000,
    };
    let period = Nanos::from_micros(500);
    let ends = vec![end(4_000), end(5_000)];
    let mut adapter = Adapter::default().with_frames(period).with_datagrams(ends);
    open(&mut adapter, 0b1110);
    for number in 0..6 {
        let at = Nanos(period.0 * (1 + number));
        let frame = receive(&mut adapter).unwrap();
        let word = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().unwrap());
        assert_eq!((word(DATAGRAM_NUMBER_AT), word(DATAGRAM_TIME_AT)), (number / 2, at.0));
        let port = if number % 2 == 0 { 4_000_u16 } else { 5_000 };
        assert_eq!(frame[36..38], port.to_be_bytes());
        assert_eq!(
            (frame.len(), frame[58], frame[59]),
            (NUMBERED, number as u8 / 2, 1 ^ frame[58])
        );
    }
    let answer = |port| {
        let frame = UdpFrame {
            source_mac: ADDRESS,
            destination_mac: PEER_ADDRESS,
            tag: None,
            source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 15), 4_000),
            destination: SocketAddrV4::new(PEER.into(), port),
            checksum: false,
        };
        let mut bytes = vec![0; 100];
        let length = frame.write(&[1, 2, 3], &mut bytes).unwrap();
        bytes.truncate(length);
        bytes
    };
    let (now, next) = (Nanos(period.0 * 6), Nanos(period.0 * 7));
    send(&mut adapter, now, &answer(9_000));
    assert_eq!((adapter.answers(), adapter.next_change()), (1, next), "nobody answers an answer");
    send(&mut adapter, now, &answer(9_001));
    assert_eq!(adapter.answers(), 1);
    assert!(adapter.next_change() < next, "there is no such port");
}

#[test]
fn an_adapter_takes_a_frame_some_time_after_it_was_offered() {
    let takes = Nanos::from_micros(200);
    let mut adapter = Adapter::default().taking(takes);
    open(&mut adapter, 0b1110);
    let frame = [0xff; 600];
    for start in [Nanos::ZERO, Nanos::from_millis(1)] {
        let mut offer = |at: Nanos, packet: &[u8]| adapter.receive(at, OUT, packet);
        assert_eq!(offer(start, &frame[..PACKET]), Handshake::Nak);
        assert_eq!(offer(start + takes - Nanos(1), &frame[..PACKET]), Handshake::Nak);
        assert_eq!(offer(start + takes, &frame[..PACKET]), Handshake::Ack);
        assert_eq!(offer(start + takes, &frame[PACKET..]), Handshake::Ack, "the same frame");
        assert_eq!(adapter.next_change(), Nanos::FOREVER);
    }
}

#[test]
fn hosts_without_manners_break_nothing() {
    let mut random = Random::new(11);
    for _ in 0..20 {
        hostile(&mut Adapter::default(), &mut random, 2_500);
    }
}

//! The datagrams that the computer on the network sends to sockets of the host, and the answers to
//! them.

use super::{NUMBERED, PEER, PEER_ADDRESS};
use diapason_abi::Nanos;
use diapason_ether::UdpFrame;
use std::net::SocketAddrV4;

/// Bytes before the payload of a datagram: the heads of Ethernet, IPv4 without options, and UDP.
const HEADS: usize = 42;
/// Bytes of the number and of the time, which begin the payload.
const WORDS: usize = 16;
/// The places of the number and of the time in a frame with a datagram.
pub const DATAGRAM_NUMBER_AT: usize = HEADS;
pub const DATAGRAM_TIME_AT: usize = HEADS + 8;
/// Bytes of the payload.
pub const DATAGRAM_BYTES: usize = NUMBERED - HEADS;

/// The type of IPv4, the protocol UDP, and their places in a frame.
const IPV4: [u8; 2] = [0x08, 0x00];
const TYPE_AT: usize = 12;
const UDP: u8 = 17;
const PROTOCOL_AT: usize = 23;
/// The place of the address and of the port that a datagram goes to.
const ADDRESS_AT: usize = 30;
const PORT_AT: usize = 36;

/// A socket of the host, and the port that its datagrams come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DatagramEnd {
    pub mac: [u8; 6],
    pub socket: SocketAddrV4,
    pub from_port: u16,
}

/// The sockets that get datagrams, each in its turn.
#[derive(Default)]
pub(crate) struct Datagrams {
    pub ends: Vec<DatagramEnd>,
    /// Datagrams that came back from them.
    pub answers: u64,
}

impl Datagrams {
    /// Returns the frame with datagram `number` of all, made at `time`. Each socket counts its own
    /// from 0. The bytes behind number and time count up, each with the number exclusive or.
    pub fn frame(&self, number: u64, time: Nanos) -> Option<Vec<u8>> {
        let count = self.ends.len() as u64;
        let end = self.ends.get(number.checked_rem(count)? as usize)?;
        let number = number / count;
        let head = [number.to_le_bytes(), time.0.to_le_bytes()].concat();
        let rest = (0..DATAGRAM_BYTES - WORDS).map(|place| place as u8 ^ number as u8);
        let payload: Vec<u8> = head.into_iter().chain(rest).collect();
        let datagram = UdpFrame {
            source_mac: PEER_ADDRESS,
            destination_mac: end.mac,
            tag: None,
            source: SocketAddrV4::new(PEER.into(), end.from_port),
            destination: end.socket,
            checksum: false,
        };
        let mut frame = vec![0; NUMBERED];
        datagram.write(&payload, &mut frame).map(|_| frame)
    }

    /// Takes a frame of the host's if it is an answer, and counts it. Nobody answers that.
    pub fn takes(&mut self, frame: &[u8]) -> bool {
        let has = |at: usize, bytes: &[u8]| frame.get(at..at + bytes.len()) == Some(bytes);
        let to = |end: &DatagramEnd| has(PORT_AT, &end.from_port.to_be_bytes());
        let is_answer = has(TYPE_AT, &IPV4)
            && has(PROTOCOL_AT, &[UDP])
            && has(ADDRESS_AT, &PEER)
            && self.ends.iter().any(to);
        self.answers += u64::from(is_answer);
        is_answer
    }
}

//! Asks a host for an echo by ICMP, opens a connection of TCP to it, sends bytes, and checks that
//! the same come back.
//!
//! It says `TCP WHOLE bytes` at the end, or `TCP NOT WHOLE` with what was wrong. Its argument says
//! how many bytes it sends.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_stack::Station;
use diapason_stack::smoltcp::iface::{SocketHandle, SocketSet, SocketStorage};
use diapason_stack::smoltcp::phy::ChecksumCapabilities;
use diapason_stack::smoltcp::socket::{icmp, tcp};
use diapason_stack::smoltcp::wire::{Icmpv4Packet, Icmpv4Repr};
use diapason_tcp::{ADDRESS, ASKER, BUFFER, OWN_PORT, PORT, PREFIX, byte};

entry!(main);

/// The number by which its echoes are known, and what is in them.
const IDENT: u16 = 0xd1a;
const PING: &[u8] = b"is anybody there?";
/// It gives up after so long without an answer.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// The reason for which the conversation was not whole, and the bytes that had come until then.
type Wrong = (&'static str, u64);

const NO_ECHO: Wrong = ("no echo", 0);
const NO_CONNECTION: Wrong = ("no connection", 0);

fn main(Arguments([bytes, ..]): Arguments) {
    if let Err(errno) = run(bytes) {
        log!("no TCP: {errno:?}");
    }
}

/// Has the conversation, says how it went, and answers others for ever.
fn run(bytes: u64) -> Result<(), Errno> {
    let (mut to, mut from) = ([0; BUFFER], [0; BUFFER]);
    let (mut asked, mut heard) = ([0; 256], [0; 256]);
    let (mut one, mut other) = ([icmp::PacketMetadata::EMPTY; 2], [icmp::PacketMetadata::EMPTY; 2]);
    let echo = icmp::Socket::new(
        icmp::PacketBuffer::new(&mut one[..], &mut heard[..]),
        icmp::PacketBuffer::new(&mut other[..], &mut asked[..]),
    );
    let connection = tcp::Socket::new(
        tcp::SocketBuffer::new(&mut from[..]),
        tcp::SocketBuffer::new(&mut to[..]),
    );
    let mut storage = [SocketStorage::EMPTY; 2];
    let mut sockets = SocketSet::new(&mut storage[..]);
    let (echo, connection) = (sockets.add(echo), sockets.add(connection));
    let mut station = Station::open(ASKER, PREFIX, sockets)?;
    match converse(&mut station, [echo, connection], bytes) {
        Ok(()) => log!("TCP WHOLE {bytes}"),
        Err((wrong, came)) => log!("TCP NOT WHOLE: {wrong} after {came} bytes"),
    }
    loop {
        time::work("tcp.step", || station.poll());
        station.wait(Nanos::FOREVER)?;
    }
}

fn converse(
    station: &mut Station<'_>,
    [echo, connection]: [SocketHandle; 2],
    bytes: u64,
) -> Result<(), Wrong> {
    ping(station, echo)?;
    let (interface, sockets) = station.parts();
    let socket = sockets.get_mut::<tcp::Socket<'_>>(connection);
    let to = (ADDRESS, PORT);
    socket.connect(interface.context(), to, OWN_PORT).map_err(|_| NO_CONNECTION)?;
    exchange(station, connection, bytes)
}

/// Asks for an echo, and waits until it is there.
fn ping(station: &mut Station<'_>, echo: SocketHandle) -> Result<(), Wrong> {
    let give_up = time::now() + PATIENCE;
    let socket = station.sockets.get_mut::<icmp::Socket<'_>>(echo);
    socket.bind(icmp::Endpoint::Ident(IDENT)).map_err(|_| NO_ECHO)?;
    let question = Icmpv4Repr::EchoRequest { ident: IDENT, seq_no: 1, data: PING };
    let room = socket.send(question.buffer_len(), ADDRESS.into()).map_err(|_| NO_ECHO)?;
    let mut packet = Icmpv4Packet::new_unchecked(room);
    question.emit(&mut packet, &ChecksumCapabilities::default());
    loop {
        time::work("tcp.step", || station.poll());
        let socket = station.sockets.get_mut::<icmp::Socket<'_>>(echo);
        if let Ok((said, _)) = socket.recv() {
            let packet = Icmpv4Packet::new_checked(said).map_err(|_| NO_ECHO)?;
            let said = Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default());
            let wanted = Icmpv4Repr::EchoReply { ident: IDENT, seq_no: 1, data: PING };
            return if said == Ok(wanted) { Ok(()) } else { Err(NO_ECHO) };
        }
        if time::now() >= give_up {
            return Err(NO_ECHO);
        }
        station.wait(give_up).map_err(|_| ("no waiting", 0))?;
    }
}

/// Sends the bytes, checks those that come back, and closes the connection.
fn exchange(station: &mut Station<'_>, connection: SocketHandle, bytes: u64) -> Result<(), Wrong> {
    let (mut sent, mut came) = (0_u64, 0_u64);
    let mut give_up = time::now() + PATIENCE;
    loop {
        time::work("tcp.step", || station.poll());
        let socket = station.sockets.get_mut::<tcp::Socket<'_>>(connection);
        let before = came;
        while let more @ 1.. = check(socket, came)? {
            came += more;
        }
        while sent < bytes && socket.can_send() {
            let Ok(more) = socket.send(|room| {
                let length = room.len().min((bytes - sent) as usize);
                (sent..).zip(&mut room[..length]).for_each(|(place, to)| *to = byte(place));
                (length, length)
            }) else {
                break;
            };
            sent += more as u64;
        }
        if came == bytes && socket.may_send() {
            socket.close();
        }
        if came == bytes && !socket.is_active() {
            return Ok(());
        }
        if came > before {
            give_up = time::now() + PATIENCE;
        } else if time::now() >= give_up {
            return Err(("silence", came));
        }
        time::work("tcp.step", || station.poll());
        station.wait(give_up).map_err(|_| ("no waiting", 0))?;
    }
}

/// Takes bytes that came back and returns how many, or the place of one that is wrong.
fn check(socket: &mut tcp::Socket<'_>, from: u64) -> Result<u64, Wrong> {
    let taken = socket.recv(|bytes| {
        let wrong = (from..).zip(&*bytes).find(|(place, is)| byte(*place) != **is);
        (bytes.len(), (bytes.len() as u64, wrong.map(|(place, _)| place)))
    });
    match taken {
        Ok((_, Some(place))) => Err(("another byte", place)),
        Ok((length, None)) => Ok(length),
        // It is not open yet, or was closed: nothing comes.
        Err(_) => Ok(0),
    }
}

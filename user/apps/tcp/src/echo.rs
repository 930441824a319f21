//! Sends back whatever comes on a connection of TCP, one connection after the other.
//!
//! When a connection has ended it says `TCP ECHO bytes connections`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_stack::Station;
use diapason_stack::smoltcp::iface::{SocketSet, SocketStorage};
use diapason_stack::smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use diapason_tcp::{ANSWERER, BUFFER, PORT, PREFIX};

entry!(main);

fn main(_: Arguments) {
    if let Err(errno) = echo() {
        log!("no TCP: {errno:?}");
    }
}

fn echo() -> Result<(), Errno> {
    let (mut to, mut from) = ([0; BUFFER], [0; BUFFER]);
    let socket = Socket::new(SocketBuffer::new(&mut from[..]), SocketBuffer::new(&mut to[..]));
    let mut storage = [SocketStorage::EMPTY; 1];
    let mut sockets = SocketSet::new(&mut storage[..]);
    let connection = sockets.add(socket);
    let mut station = Station::open(ANSWERER, PREFIX, sockets)?;
    let (mut bytes, mut connections) = (0_u64, 0_u64);
    loop {
        let socket = station.sockets.get_mut::<Socket<'_>>(connection);
        if !socket.is_open() {
            socket.listen(PORT).map_err(|_| Errno::Busy)?;
        }
        time::work("tcp.step", || station.poll());
        let socket = station.sockets.get_mut::<Socket<'_>>(connection);
        bytes += answer(socket);
        if socket.state() == State::CloseWait && socket.send_queue() == 0 {
            connections += 1;
            log!("TCP ECHO {bytes} {connections}");
            socket.close();
        }
        time::work("tcp.step", || station.poll());
        station.wait(Nanos::FOREVER)?;
    }
}

/// Hands back as much as there is room for, and returns how much that was.
fn answer(socket: &mut Socket<'_>) -> u64 {
    let mut memory = [0; BUFFER];
    let room = (socket.send_capacity() - socket.send_queue()).min(BUFFER);
    if !socket.can_recv() || !socket.can_send() {
        return 0;
    }
    let Ok(came) = socket.recv_slice(&mut memory[..room]) else { return 0 };
    let sent = socket.send_slice(&memory[..came]).unwrap_or(0);
    sent as u64
}

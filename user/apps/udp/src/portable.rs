//! A client written for the traits of `embedded-nal`: sends numbered datagrams, and checks those
//! that come back.
//!
//! Arguments: the time between two datagrams in us, the bytes of each, and how many it sends. At
//! the end it says `PORTABLE sent came wrong`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use diapason_nal::DeclaredSockets;
use diapason_nal::embedded_nal::{UdpClientStack, UdpFullStack, nb};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_udp::{HEAD, MOST, read, write};

entry!(main);

/// The peer of the socket `control`, and the port of that socket.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 5_000);
const PORT: u16 = 4_000;
/// A peer that no socket of this process has.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 5_009);
/// The time from the start to the first datagram: the servers reset their adapters meanwhile.
const REST: Nanos = Nanos::from_millis(50);

fn main(Arguments([period, bytes, count, _]): Arguments) {
    let bytes = (bytes as usize).clamp(HEAD, MOST);
    let mut sockets = DeclaredSockets::default();
    if let Err(errno) = refused(&mut sockets) {
        log!("no refusal: {errno:?}");
    }
    match ask(&mut sockets, Nanos::from_micros(period), bytes, count) {
        Ok([sent, came, wrong]) => log!("PORTABLE {sent} {came} {wrong}"),
        Err(error) => log!("no datagrams: {error:?}"),
    }
}

/// Tries what the description does not declare. Returns an error if something of it is there.
fn refused(stack: &mut DeclaredSockets) -> Result<(), Errno> {
    let mut socket = stack.socket()?;
    let is_absent = |done: nb::Result<(), Errno>| done == Err(nb::Error::Other(Errno::Absent));
    let unbound = stack.bind(&mut socket, PORT + 9).is_err();
    let unconnected = stack.connect(&mut socket, NOBODY).is_err();
    let unsent = is_absent(stack.send(&mut socket, &[0]));
    // A socket that was bound is closed, and can be taken again.
    stack.bind(&mut socket, PORT)?;
    let elsewhere = is_absent(stack.send_to(&mut socket, NOBODY, &[0]));
    stack.close(socket)?;
    if unbound && unconnected && unsent && elsewhere { Ok(()) } else { Err(Errno::Busy) }
}

/// Returns how many datagrams were sent, how many came back, and how many of those are wrong.
fn ask<S: UdpClientStack>(
    stack: &mut S,
    period: Nanos,
    bytes: usize,
    count: u64,
) -> Result<[u64; 3], S::Error> {
    let mut socket = stack.socket()?;
    stack.connect(&mut socket, PEER)?;
    let (mut memory, mut came, mut wrong) = ([0; MOST], 0, 0);
    time::sleep(REST);
    // The last ones are on their way for a while.
    for turn in 0..count + 20 {
        if turn < count {
            write(&mut memory[..bytes], turn, time::now().0);
            match stack.send(&mut socket, &memory[..bytes]) {
                Ok(()) | Err(nb::Error::WouldBlock) => {}
                Err(nb::Error::Other(error)) => return Err(error),
            }
        }
        time::sleep(period);
        while let Ok((length, source)) = stack.receive(&mut socket, &mut memory) {
            let number = memory.get(..length).and_then(read);
            wrong += u64::from(number.is_none_or(|(it, _)| it != came) || source != PEER);
            came += 1;
        }
    }
    stack.close(socket)?;
    Ok([count, came, wrong])
}

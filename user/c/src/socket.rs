//! UDP sockets for C. A socket has a number, in the order in which the program bound them.

use crate::claim::Claim;
use crate::words::{CText, INVALID, Place, bytes, error};
use core::ffi::c_void;
use diapason_abi::{Errno, Key, Nanos};
use diapason_contract::ethernet::{PAYLOAD_MAX, SOCKETS};
use diapason_netlib::UdpSocket;

/// A datagram that came.
#[repr(C)]
struct Datagram {
    address: u32,
    port: u32,
    length: u32,
    bypassed: u32,
    data: [u8; PAYLOAD_MAX as usize],
}

impl Datagram {
    const EMPTY: Datagram =
        Datagram { address: 0, port: 0, length: 0, bypassed: 0, data: [0; PAYLOAD_MAX as usize] };
}

/// A socket that is bound, and the key of its name.
struct Bound {
    name: Key,
    socket: UdpSocket,
}

// SAFETY: the memory behind a socket stays attached for all threads of the process, and a claim
// lets one of them use the socket at a time.
unsafe impl Send for Bound {}

static BOUND: [Claim<Option<Bound>>; SOCKETS] = [const { Claim::new(None) }; SOCKETS];

/// Does something with a bound socket; returns C's number for how it went.
fn with(socket: i32, body: impl FnOnce(&mut UdpSocket) -> Result<(), i32>) -> i32 {
    let Some(place) = usize::try_from(socket).ok().and_then(|number| BOUND.get(number)) else {
        return error(Errno::Absent);
    };
    let done = place.with(|bound| match bound {
        Some(bound) => body(&mut bound.socket),
        None => Err(error(Errno::Absent)),
    });
    done.unwrap_or(Err(error(Errno::Busy))).map_or_else(|code| code, |()| 0)
}

/// Binds the socket of this name in the first free place.
fn bind(name: &str) -> Result<usize, Errno> {
    let key = Key::new(name);
    for (number, place) in BOUND.iter().enumerate() {
        let bound = place.with(|bound| match bound {
            Some(other) if other.name == key => Err(Errno::Busy),
            Some(_) => Ok(false),
            None => {
                *bound = Some(Bound { name: key, socket: UdpSocket::bind(name)? });
                Ok(true)
            }
        });
        if bound.unwrap_or(Err(Errno::Busy))? {
            return Ok(number);
        }
    }
    Err(Errno::Full)
}

/// Binds the socket of this name; returns its number.
#[unsafe(no_mangle)]
extern "C" fn dia_socket_bind(name: CText) -> i32 {
    match name.name() {
        Some(name) => bind(name).map_or_else(error, |number| number as i32),
        None => INVALID,
    }
}

/// Takes the oldest datagram, or waits for one until the deadline.
#[unsafe(no_mangle)]
extern "C" fn dia_socket_receive(socket: i32, datagram: Place<'_, Datagram>, deadline: u64) -> i32 {
    let Some(datagram) = datagram else { return INVALID };
    with(socket, |socket| {
        let datagram = datagram.write(Datagram::EMPTY);
        let came = match deadline {
            0 => socket.try_recv(&mut datagram.data).ok_or(Errno::WouldBlock),
            _ => socket.recv(&mut datagram.data, Nanos(deadline)),
        };
        let came = came.map_err(error)?;
        datagram.address = (*came.source.ip()).into();
        datagram.port = came.source.port().into();
        datagram.length = came.length as u32;
        datagram.bypassed = came.bypassed.into();
        Ok(())
    })
}

/// Sends a datagram to the peer of the socket.
#[unsafe(no_mangle)]
extern "C" fn dia_socket_send(socket: i32, data: *const c_void, length: usize) -> i32 {
    if length > PAYLOAD_MAX as usize {
        return INVALID;
    }
    // SAFETY: the C program vouches for so many bytes there.
    let Some(data) = (unsafe { bytes(data.cast(), length) }) else { return INVALID };
    with(socket, |socket| socket.send(data).map_err(error))
}

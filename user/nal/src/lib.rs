//! The traits of `embedded-nal` over the UDP sockets of a description, so that a client that is
//! written for them runs unchanged.
//!
//! The description fixes which sockets a process has, their ports and their peers: the plan rests
//! on that. So a socket of the traits is a place for one of them. Connecting it takes the declared
//! socket with this peer, and binding it the one with this port. Others are `Absent`.

#![no_std]
#![forbid(unsafe_code)]

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use diapason_abi::Errno;
use diapason_contract::ethernet::SocketTerms;
use diapason_netlib::{UdpSocket, declared};
pub use embedded_nal;
use embedded_nal::{UdpClientStack, UdpFullStack, nb};

/// The most sockets that are closed at once.
const CLOSED: usize = 8;

/// All sockets that the description declares for this process.
#[derive(Default)]
pub struct DeclaredSockets {
    /// A bit for the number of each that was opened: a process opens a socket once.
    opened: u64,
    /// Those that were closed and may be taken again.
    closed: [Option<Open>; CLOSED],
}

/// A place for a declared socket.
#[derive(Default)]
pub struct DeclaredSocket(Option<Open>);

/// An open socket, and what the description says of it.
struct Open {
    terms: SocketTerms,
    socket: UdpSocket,
}

impl Open {
    /// Returns the place where its datagrams go.
    fn peer(&self) -> Option<SocketAddr> {
        peer(&self.terms)
    }
}

fn peer(terms: &SocketTerms) -> Option<SocketAddr> {
    let at = |peer: diapason_contract::ethernet::Peer| {
        SocketAddrV4::new(Ipv4Addr::from(peer.address), peer.port)
    };
    terms.peer.map(at).map(SocketAddr::V4)
}

impl DeclaredSockets {
    /// Opens the first declared socket of which this is true, or takes it if it was closed.
    fn take(&mut self, is: impl Fn(&SocketTerms) -> bool) -> Result<Open, Errno> {
        let was_closed =
            |closed: &&mut Option<Open>| closed.as_ref().is_some_and(|it| is(&it.terms));
        if let Some(open) = self.closed.iter_mut().find(was_closed).and_then(Option::take) {
            return Ok(open);
        }
        let bit = |terms: &SocketTerms| 1_u64 << (terms.number % 64);
        let is_new = |terms: &SocketTerms| self.opened & bit(terms) == 0 && is(terms);
        let terms = declared(is_new).ok_or(Errno::Absent)?;
        let socket = UdpSocket::open(&terms)?;
        self.opened |= bit(&terms);
        Ok(Open { terms, socket })
    }
}

impl DeclaredSocket {
    fn open(&mut self) -> Result<&mut Open, Errno> {
        self.0.as_mut().ok_or(Errno::Absent)
    }
}

impl UdpClientStack for DeclaredSockets {
    type UdpSocket = DeclaredSocket;
    type Error = Errno;

    fn socket(&mut self) -> Result<DeclaredSocket, Errno> {
        Ok(DeclaredSocket::default())
    }

    fn connect(&mut self, socket: &mut DeclaredSocket, remote: SocketAddr) -> Result<(), Errno> {
        // A socket that was bound before has its peer already.
        if socket.0.as_ref().is_some_and(|open| open.peer() == Some(remote)) {
            return Ok(());
        }
        let open = self.take(|terms| peer(terms) == Some(remote))?;
        if let Some(before) = socket.0.replace(open) {
            self.close(DeclaredSocket(Some(before)))?;
        }
        Ok(())
    }

    fn send(&mut self, socket: &mut DeclaredSocket, buffer: &[u8]) -> nb::Result<(), Errno> {
        match socket.open()?.socket.send(buffer) {
            Err(Errno::Full) => Err(nb::Error::WouldBlock),
            sent => Ok(sent?),
        }
    }

    fn receive(
        &mut self,
        socket: &mut DeclaredSocket,
        buffer: &mut [u8],
    ) -> nb::Result<(usize, SocketAddr), Errno> {
        let received = socket.open()?.socket.try_recv(buffer).ok_or(nb::Error::WouldBlock)?;
        Ok((received.length, SocketAddr::V4(received.source)))
    }

    fn close(&mut self, socket: DeclaredSocket) -> Result<(), Errno> {
        if let Some(open) = socket.0 {
            let place = self.closed.iter_mut().find(|place| place.is_none());
            *place.ok_or(Errno::Full)? = Some(open);
        }
        Ok(())
    }
}

impl UdpFullStack for DeclaredSockets {
    fn bind(&mut self, socket: &mut DeclaredSocket, local_port: u16) -> Result<(), Errno> {
        if socket.0.as_ref().is_some_and(|open| open.terms.port == local_port) {
            return Ok(());
        }
        let open = self.take(|terms| terms.port == local_port)?;
        self.close(DeclaredSocket(socket.0.replace(open)))
    }

    fn send_to(
        &mut self,
        socket: &mut DeclaredSocket,
        remote: SocketAddr,
        buffer: &[u8],
    ) -> nb::Result<(), Errno> {
        if socket.open()?.peer() != Some(remote) {
            return Err(Errno::Absent.into());
        }
        self.send(socket, buffer)
    }
}

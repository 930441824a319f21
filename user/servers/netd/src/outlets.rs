//! The frames that the sockets of an adapter send, and the check that each is what its socket may
//! send.

use core::net::SocketAddrV4;
use diapason_contract::ethernet::{
    FRAME_MAX, OUT_FRAMES, OutFrame, REST, SOCKET_NAMES, SOCKETS, SocketTerms,
};
use diapason_ether::{Own, OwnDatagrams};
use diapason_pipe::Reader;
use diapason_rt::{Errno, pipe};

/// The frames that a socket sends.
pub(crate) struct Outlet {
    pub terms: SocketTerms,
    pub frames: Reader<'static, OutFrame, OUT_FRAMES>,
}

/// The outlets of an adapter.
pub(crate) struct Outlets {
    pub all: [Option<Outlet>; SOCKETS],
    /// The ports of all sockets of the adapter, whether they send or not.
    ports: [u16; SOCKETS],
    /// Frames that claim to be of somebody else, that go to another peer, that are longer than
    /// their socket says, that no gate ever lets pass, or that the pipe to a device does not carry.
    pub foreign: u64,
}

impl Outlets {
    /// Opens the pipes of all sockets that send.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open(all: impl Iterator<Item = SocketTerms>) -> Result<Outlets, Errno> {
        let (mut outlets, mut ports) = ([const { None }; SOCKETS], [REST; SOCKETS]);
        for ((outlet, port), terms) in outlets.iter_mut().zip(&mut ports).zip(all) {
            *port = terms.port;
            if !terms.sends() {
                continue;
            }
            let known = SOCKET_NAMES.get(usize::from(terms.number)).ok_or(Errno::Absent)?;
            *outlet = Some(Outlet { terms, frames: pipe::reader(known.out)? });
        }
        Ok(Outlets { all: outlets, ports, foreign: 0 })
    }

    /// Returns the bytes of a frame, if its socket may send it. Another one is counted.
    pub fn allow<'f>(&mut self, terms: &SocketTerms, frame: &'f OutFrame) -> Option<&'f [u8]> {
        let bytes = usize::try_from(frame.length).ok().filter(|bytes| *bytes <= FRAME_MAX);
        let bytes = bytes.and_then(|bytes| frame.data.get(..bytes));
        let allowed = bytes.filter(|bytes| self.is_of(terms, bytes));
        self.foreign += u64::from(allowed.is_none());
        allowed
    }

    /// Returns whether a frame is what this socket may send.
    fn is_of(&self, terms: &SocketTerms, frame: &[u8]) -> bool {
        let own = Own { mac: terms.mac, address: terms.address };
        let Some(peer) = terms.peer else {
            return terms.is_rest() && own.sends_rest(frame, |port| self.ports.contains(&port));
        };
        let datagrams = OwnDatagrams {
            port: terms.port,
            most: terms.bytes.into(),
            tag: diapason_netlib::tag(terms),
            to_mac: peer.mac,
            to: SocketAddrV4::new(peer.address.into(), peer.port),
        };
        own.sends_datagram(frame, &datagrams)
    }
}

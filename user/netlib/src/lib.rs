//! UDP sockets for programs.
//!
//! The server `netd` puts frames into the socket's slots and looks at fixed places of them only.
//! Everything else is done in the calls of this library, on the VCPU of the program that makes
//! them. Names and layouts are those of `diapason_contract::ethernet`.

#![no_std]

pub mod card;
pub mod memory;

use core::net::{Ipv4Addr, SocketAddrV4};
use diapason_abi::{Errno, Key, Nanos};
use diapason_contract::ethernet::{
    ADAPTER_NAMES, FRAME_MAX, OUT_FRAMES, OutFrame, Peer, SOCKET_NAMES, SOCKETS_SETTING,
    SocketTerms, TAKE,
};
pub use diapason_ether::{Discard, FrameCounts, Received};
use diapason_ether::{LazyReceiver, Listener, UdpFrame};
use diapason_pipe::Writer;
use diapason_pipe::measured::{FrameEnd, FrameGauge};
use diapason_rt::sync::Semaphore;
use diapason_rt::{log, pipe, settings, time};
use memory::FrameSlots;

/// A UDP socket that the description declares.
///
/// It measures what passes it and reports once a second, in whatever call its program is then.
pub struct UdpSocket {
    receiver: LazyReceiver<'static>,
    slots: FrameSlots,
    ready: Semaphore,
    out: Option<Outgoing>,
    gauge: FrameGauge,
}

/// The sending end of a socket.
struct Outgoing {
    frames: Writer<'static, OutFrame, OUT_FRAMES>,
    ask: Semaphore,
    flow: UdpFrame,
}

impl UdpSocket {
    /// Opens the socket of this name. A process opens a socket once.
    ///
    /// # Errors
    /// `Absent` if the description declares no such socket for this process.
    pub fn bind(name: &str) -> Result<UdpSocket, Errno> {
        let told = settings::read();
        let key = Key::new(name);
        let mut all = SocketTerms::all(told.get(SOCKETS_SETTING));
        let terms = all.find(|terms| terms.name == key).ok_or(Errno::Absent)?;
        let names = SOCKET_NAMES.get(usize::from(terms.number)).ok_or(Errno::Absent)?;
        let (inbox, slots) = memory::inbox(names.inbox, terms.quota)?;
        let out = terms.peer.map(|peer| Outgoing::open(&terms, peer, names.out)).transpose()?;
        let receiver = LazyReceiver::new(inbox, &listener(&terms));
        let gauge = FrameGauge::new(FrameEnd::Program, terms.number);
        Ok(UdpSocket { receiver, slots, ready: Semaphore::open(names.ready)?, out, gauge })
    }

    /// Takes the oldest datagram that waits, if there is one, and copies its payload into `into`.
    /// A frame in which the layers find an error is counted and passed over.
    pub fn try_recv(&mut self, into: &mut [u8]) -> Option<Received> {
        let received = self.take(into);
        self.report(time::now());
        received
    }

    fn take(&mut self, into: &mut [u8]) -> Option<Received> {
        loop {
            let came = self.receiver.oldest().and_then(|slot| self.slots.stamped(slot));
            let taken = time::work(TAKE, || self.receiver.take(&self.slots, into))?;
            if let (Ok(received), Some(came)) = (taken, came) {
                self.gauge.took(self.receiver.counts().passed, time::now() - came);
                return Some(received);
            }
        }
    }

    fn report(&mut self, now: Nanos) {
        if self.gauge.is_due(now) {
            let FrameCounts { offered, passed, .. } = *self.receiver.counts();
            let discarded = self.receiver.counts().discards();
            self.gauge.say(now, [offered, passed], discarded, &mut log::measured);
        }
    }

    /// Takes the oldest datagram, and waits for one until `deadline`.
    ///
    /// # Errors
    /// `TimedOut` if none came.
    pub fn recv(&mut self, into: &mut [u8], deadline: Nanos) -> Result<Received, Errno> {
        loop {
            if let Some(received) = self.try_recv(into) {
                return Ok(received);
            }
            let due = self.gauge.due(time::now());
            match self.ready.take(deadline.min(due)) {
                Err(Errno::TimedOut) if due < deadline => {}
                taken => taken?,
            }
        }
    }

    /// Sends a datagram to the peer. The heads are written in this call.
    ///
    /// # Errors
    /// `Absent` if the description names no `peer`; `Full` if too many frames wait to be sent;
    /// `BadArgument` if the payload does not fit a frame.
    pub fn send(&mut self, payload: &[u8]) -> Result<(), Errno> {
        self.report(time::now());
        self.out.as_mut().ok_or(Errno::Absent)?.send(payload)
    }

    /// Returns what was taken, delivered and discarded in calls of this socket.
    #[must_use]
    pub const fn counts(&self) -> &FrameCounts {
        self.receiver.counts()
    }
}

/// Returns the listener of a socket, as `netd` and the program know it.
#[must_use]
pub const fn listener(terms: &SocketTerms) -> Listener {
    let [a, b, c, d] = terms.address;
    let address = Ipv4Addr::new(a, b, c, d);
    Listener { real_time: terms.real_time, ..Listener::udp(address, terms.port, terms.quota) }
}

impl Outgoing {
    fn open(terms: &SocketTerms, peer: Peer, pipe: &str) -> Result<Outgoing, Errno> {
        let adapter = ADAPTER_NAMES.get(usize::from(terms.adapter)).ok_or(Errno::Absent)?;
        let flow = UdpFrame {
            source_mac: terms.mac,
            destination_mac: peer.mac,
            tag: None,
            source: SocketAddrV4::new(Ipv4Addr::from(terms.address), terms.port),
            destination: SocketAddrV4::new(Ipv4Addr::from(peer.address), peer.port),
            checksum: false,
        };
        let (frames, ask) = (pipe::writer(pipe)?, Semaphore::open(adapter.send)?);
        Ok(Outgoing { frames, ask, flow })
    }

    fn send(&mut self, payload: &[u8]) -> Result<(), Errno> {
        let mut frame = OutFrame { length: 0, spare: 0, data: [0; _] };
        let room = frame.data.get_mut(..FRAME_MAX).ok_or(Errno::Full)?;
        let length = self.flow.write(payload, room).ok_or(Errno::Full)?;
        frame.length = length as u32;
        self.frames.push(&frame).map_err(|_| Errno::Full)?;
        // At its limit it has been given often enough.
        let _ = self.ask.give();
        Ok(())
    }
}

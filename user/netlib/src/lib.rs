//! Sockets for programs: UDP, and whole frames for a program that has the other protocols.
//!
//! The server `netd` puts frames into the socket's slots and looks at fixed places of them only.
//! Everything else is done in the calls of this library, on the VCPU of the program that makes
//! them. Names and layouts are those of `diapason_contract::ethernet`.

#![no_std]

pub mod card;
pub mod memory;
mod rest;

use core::net::{Ipv4Addr, SocketAddrV4};
use diapason_abi::{Errno, Key, Nanos};
pub use diapason_contract::ethernet::FRAME_MAX;
use diapason_contract::ethernet::{
    ADAPTER_NAMES, OUT_FRAMES, OutFrame, Peer, SOCKET_NAMES, SOCKETS_SETTING, SocketNames,
    SocketTerms, TAKE,
};
use diapason_contract::release::{RELEASE_SETTING, ReleaseTerms};
use diapason_ether::release::{GateAhead, GateReleases};
pub use diapason_ether::{Discard, FrameCounts, Own, Received};
use diapason_ether::{LazyReceiver, Listener, UdpFrame, VlanTag, datagram_frame};
use diapason_pipe::Writer;
use diapason_pipe::measured::{FrameEnd, FrameGauge};
use diapason_rt::sync::Semaphore;
use diapason_rt::{log, pipe, settings, time};
use memory::FrameSlots;
pub use rest::RestSocket;

/// A UDP socket that the description declares.
///
/// It measures what passes it and reports once a second, in whatever call its program is then.
pub struct UdpSocket {
    receiver: LazyReceiver<'static>,
    slots: FrameSlots,
    ready: Semaphore,
    out: Option<Outgoing>,
    gauge: FrameGauge,
    step: Option<Step>,
}

/// The releases of a socket whose flow is in step with gates.
struct Step {
    releases: GateReleases,
    ahead: &'static GateAhead,
}

/// The sending end of a socket.
struct Outgoing {
    outbox: Outbox,
    flow: UdpFrame,
    /// The most bytes of a frame.
    most: usize,
}

/// The frames of a socket that its adapter is to send.
struct Outbox {
    frames: Writer<'static, OutFrame, OUT_FRAMES>,
    /// The semaphore of the server, if that does not look for frames by itself.
    ask: Option<Semaphore>,
}

impl UdpSocket {
    /// Opens the socket of this name. A process opens a socket once.
    ///
    /// # Errors
    /// `Absent` if the description declares no such socket for this process.
    pub fn bind(name: &str) -> Result<UdpSocket, Errno> {
        let key = Key::new(name);
        UdpSocket::open(&declared(|terms| terms.name == key).ok_or(Errno::Absent)?)
    }

    /// Opens the socket that the description declares so. A process opens a socket once.
    ///
    /// # Errors
    /// `Absent` if this process has none of this number.
    pub fn open(terms: &SocketTerms) -> Result<UdpSocket, Errno> {
        let names = names(terms)?;
        let (inbox, slots) = memory::inbox(names.inbox, terms.quota)?;
        let out = terms.peer.map(|peer| Outgoing::open(terms, peer, names)).transpose()?;
        let receiver = LazyReceiver::new(inbox, &listener(terms));
        let gauge = FrameGauge::new(FrameEnd::Program, terms.number);
        let step = Step::of(terms.number, &inbox.gates);
        Ok(UdpSocket { receiver, slots, ready: Semaphore::open(names.ready)?, out, gauge, step })
    }

    /// Returns when to send the datagram that follows the one of `last`, by the host's clock;
    /// `None` if the flow has no `offset`, and its program goes by a period of its own.
    ///
    /// A program asks anew for each datagram. Until its host knows the common time, releases go on
    /// by the host's clock, and the server discards what is sent.
    pub fn release_after(&mut self, last: Nanos) -> Option<Nanos> {
        let Step { releases, ahead } = self.step.as_mut()?;
        Some(releases.after(last, ahead.get()))
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
        report(&mut self.gauge, self.receiver.counts(), now);
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
    /// `Overload` if the payload is longer than the description says of the socket or its flow.
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

/// Returns the tag of the frames that a socket sends.
#[must_use]
pub fn tag(terms: &SocketTerms) -> Option<VlanTag> {
    terms.priority.map(|priority| VlanTag { priority, drop_eligible: false, network: 0 })
}

/// Reports what a socket took and discarded, if that is due.
fn report(gauge: &mut FrameGauge, counts: &FrameCounts, now: Nanos) {
    if gauge.is_due(now) {
        let taken = [counts.offered, counts.passed];
        gauge.say(now, taken, counts.discards(), &mut log::measured);
    }
}

/// Returns what the description says of the first socket of this process of which this is true.
fn told(is: impl Fn(&SocketTerms) -> bool) -> Option<SocketTerms> {
    let told = settings::read();
    SocketTerms::all(told.get(SOCKETS_SETTING)).find(is)
}

/// Returns what the description says of the first socket for datagrams of which this is true.
pub fn declared(is: impl Fn(&SocketTerms) -> bool) -> Option<SocketTerms> {
    told(|terms| !terms.is_rest() && is(terms))
}

/// Returns the names of the objects of a socket.
fn names(terms: &SocketTerms) -> Result<&'static SocketNames, Errno> {
    SOCKET_NAMES.get(usize::from(terms.number)).ok_or(Errno::Absent)
}

impl Step {
    fn of(socket: u8, ahead: &'static GateAhead) -> Option<Step> {
        let told = settings::read();
        let mut all = ReleaseTerms::all(told.get(RELEASE_SETTING));
        let terms = all.find(|it| it.socket == socket)?;
        Some(Step { releases: GateReleases::new(terms), ahead })
    }
}

impl Outbox {
    fn open(terms: &SocketTerms, names: &SocketNames) -> Result<Outbox, Errno> {
        let adapter = ADAPTER_NAMES.get(usize::from(terms.adapter)).ok_or(Errno::Absent)?;
        let ask = (!terms.is_polled).then(|| Semaphore::open(adapter.send)).transpose()?;
        Ok(Outbox { frames: pipe::writer(names.out)?, ask })
    }

    fn send(&mut self, frame: &OutFrame) -> Result<(), Errno> {
        self.frames.push(frame).map_err(|_| Errno::Full)?;
        if let Some(ask) = &self.ask {
            // At its limit it has been given often enough.
            let _ = ask.give();
        }
        Ok(())
    }
}

impl Outgoing {
    fn open(terms: &SocketTerms, peer: Peer, names: &SocketNames) -> Result<Outgoing, Errno> {
        let flow = UdpFrame {
            source_mac: terms.mac,
            destination_mac: peer.mac,
            tag: tag(terms),
            source: SocketAddrV4::new(Ipv4Addr::from(terms.address), terms.port),
            destination: SocketAddrV4::new(Ipv4Addr::from(peer.address), peer.port),
            checksum: false,
        };
        let most = datagram_frame(terms.bytes.into(), flow.tag.is_some()).min(FRAME_MAX);
        Ok(Outgoing { outbox: Outbox::open(terms, names)?, flow, most })
    }

    fn send(&mut self, payload: &[u8]) -> Result<(), Errno> {
        let mut frame = OutFrame { length: 0, spare: 0, data: [0; _] };
        let room = frame.data.get_mut(..self.most).ok_or(Errno::Full)?;
        frame.length = self.flow.write(payload, room).ok_or(Errno::Overload)? as u32;
        self.outbox.send(&frame)
    }
}

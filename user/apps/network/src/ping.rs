//! Echoes: one at a time, of every length, each of other bytes.

use diapason_rt::{Nanos, log};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp::{Endpoint, Socket};
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, IpAddress, Ipv4Address};

/// The peer to ask.
pub const PEER: Ipv4Address = Ipv4Address::new(10, 0, 2, 2);
/// Most bytes of an echo: what a frame of 1514 holds behind its heads.
pub const DATA_MAX: usize = 1472;
/// An answer that has not come by then is lost.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// The next length is so much larger, modulo [`DATA_MAX`] + 1: all come in turn, and far apart.
const STRIDE: usize = 37;
/// How its echoes are known.
const IDENT: u16 = 0xd1a;

/// The counts of the echoes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub sent: u64,
    /// Echoes that were answered in time, byte for byte.
    pub answered: u64,
    /// Not answered in time.
    pub lost: u64,
    /// Answered with something else.
    pub wrong: u64,
}

/// The one who asks.
pub(crate) struct Ping {
    pause: Nanos,
    /// Number of the echo whose answer must come until then.
    waiting: Option<(u16, Nanos)>,
    next_at: Nanos,
    number: u16,
    data: [u8; DATA_MAX],
    pub tally: Tally,
}

impl Ping {
    /// Returns a client with this pause before the next echo.
    pub fn new(pause: Nanos) -> Ping {
        let (waiting, next_at, number) = (None, Nanos::ZERO, 0);
        Ping { pause, waiting, next_at, number, data: [0; DATA_MAX], tally: Tally::default() }
    }

    /// Returns when it wants to be called.
    pub fn next_wake(&self) -> Nanos {
        self.waiting.map_or(self.next_at, |(_, until)| until)
    }

    /// The network is gone, and the answer with it.
    pub fn give_up(&mut self, now: Nanos) {
        if self.waiting.take().is_some() {
            self.tally.lost += 1;
            self.next_at = now + self.pause;
        }
    }

    /// Reads what came, and sends the next echo if it is time.
    pub fn step(&mut self, now: Nanos, socket: &mut Socket<'_>) {
        if !socket.is_open() && socket.bind(Endpoint::Ident(IDENT)).is_err() {
            return;
        }
        while let Ok((bytes, from)) = socket.recv() {
            self.hear(bytes, from, now);
        }
        if self.waiting.is_some_and(|(_, until)| now >= until) {
            self.give_up(now);
        }
        if self.waiting.is_none() && now >= self.next_at {
            self.send(now, socket);
        }
    }

    /// Returns the bytes of the echo with this number.
    fn fill(&mut self, number: u16) -> usize {
        let length = usize::from(number) * STRIDE % (DATA_MAX + 1);
        for (at, byte) in self.data[..length].iter_mut().enumerate() {
            *byte = (at * 7 + (at >> 8) * 3 + usize::from(number) * 31) as u8;
        }
        length
    }

    fn send(&mut self, now: Nanos, socket: &mut Socket<'_>) {
        let length = self.fill(self.number);
        let data = &self.data[..length];
        let echo = Icmpv4Repr::EchoRequest { ident: IDENT, seq_no: self.number, data };
        let Ok(room) = socket.send(echo.buffer_len(), PEER.into()) else { return };
        let mut packet = Icmpv4Packet::new_unchecked(room);
        echo.emit(&mut packet, &ChecksumCapabilities::default());
        self.waiting = Some((self.number, now + PATIENCE));
        self.number = self.number.wrapping_add(1);
        self.tally.sent += 1;
    }

    fn hear(&mut self, bytes: &[u8], from: IpAddress, now: Nanos) {
        let packet = Icmpv4Packet::new_checked(bytes);
        let said = packet
            .as_ref()
            .map_or(Err(smoltcp::wire::Error), |p| Icmpv4Repr::parse(p, &Default::default()));
        let Ok(Icmpv4Repr::EchoReply { seq_no, data, .. }) = said else {
            log!("{from} says something else than an echo");
            self.tally.wrong += 1;
            return;
        };
        let length = self.fill(seq_no);
        if data != &self.data[..length] || from != IpAddress::from(PEER) {
            self.tally.wrong += 1;
        }
        // One that was given up may come late.
        if self.waiting.take_if(|(number, _)| *number == seq_no).is_some() {
            self.tally.answered += 1;
            self.next_at = now + self.pause;
        }
    }
}

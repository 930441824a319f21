//! Sends each packet of the `[[pipe]]` from a sensor on, over link 0.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_frame::HEAD as SEAL;
use diapason_links::{Flows, own_label};
use diapason_onward::{HEAD, PacketOrder, START, head};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::Packets;
use diapason_usblib::link::{Link, UNIT};
use diapason_usblib::sensor::Packet;

entry!(main);

/// Pieces of memory for messages, and the bytes of one.
const PLACES: usize = 8;
const PIECE: usize = 1_024;

/// The messages that are on their way out.
struct Sender {
    link: Link,
    label: u8,
    flows: Flows,
    /// Pieces that the link has.
    away: [bool; PLACES],
}

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("onward: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let mut pipe = Packets::of_sensor()?;
    let (link, label) = (Link::open(0)?, own_label());
    let mut sender = Sender { link, label, flows: Flows::default(), away: [false; PLACES] };
    let work = pipe.source().message;
    let (mut order, mut number) = (PacketOrder::default(), 0);
    let begin = time::now() + START;
    loop {
        let packet = pipe.read_wait(Nanos::FOREVER)?;
        let (place, missing) = time::work(work, || (sender.copy(&packet), order.missing(&packet)));
        pipe.missed(missing);
        let now = time::now();
        if now < begin {
            continue;
        }
        number += 1;
        // A message without memory is lost, and its number is missing at the end.
        if let Some(place) = place {
            sender.send((number, now), (place, packet.length))?;
        }
    }
}

impl Sender {
    /// Returns the memory of a piece.
    fn place(&self, piece: usize) -> u32 {
        self.link.place_of(piece as u32, PIECE)
    }

    /// Copies a packet to a piece of memory that the link has not, and returns the number of the
    /// piece.
    fn copy(&mut self, packet: &Packet) -> Option<usize> {
        // The link tells what moved when the next message goes.
        while let Some(done) = self.link.pop() {
            let piece = (0..PLACES).find(|piece| self.place(*piece) == done.place);
            piece.into_iter().for_each(|piece| self.away[piece] = false);
        }
        let free = self.away.iter().position(|away| !away)?;
        let at = self.place(free) as usize * UNIT + SEAL + HEAD;
        let words = packet.data.chunks_exact(4).take((packet.length as usize).div_ceil(4));
        for (offset, bytes) in (at..).step_by(4).zip(words) {
            let word = bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            self.link.data.write32(offset, word);
        }
        Some(free)
    }

    /// Gives the link a message that was copied.
    fn send(
        &mut self,
        (number, now): (u64, Nanos),
        (piece, length): (usize, u32),
    ) -> Result<(), Errno> {
        let place = self.place(piece);
        let at = place as usize * UNIT + SEAL;
        for (offset, word) in (at..).step_by(4).zip(head(number, now)) {
            self.link.data.write32(offset, word);
        }
        let bytes = HEAD as u32 + length;
        let sealed = self.flows.head(self.label, bytes as u16);
        time::work("link.seal", || self.link.seal(place, sealed));
        self.link.send_quietly(place, SEAL as u32 + bytes)?;
        self.link.ring();
        self.away[piece] = true;
        Ok(())
    }
}

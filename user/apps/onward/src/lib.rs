//! Layout of the messages that are sent on: a number, a time, and the packet of the device; and the
//! packets that come, in their order.

#![no_std]
#![forbid(unsafe_code)]

use diapason_frame::HEAD as SEAL;
use diapason_links::mail::{Arrivals, Letter};
use diapason_rt::{Errno, Nanos, log, time};
use diapason_usblib::link::{DONE, Done, FILL, Link, UNIT};
use diapason_usblib::sensor::Packet;

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// Bytes of the number and of the time, before the packet.
pub const HEAD: usize = 16;
/// Bytes of the longest message.
pub const MOST: usize = HEAD + 512;
/// The work for the content of a datagram, as descriptions name it.
pub const CHECK: &str = "onward.check";
/// Until the other computer is there. Packets that come before are not sent on.
pub const START: Nanos = Nanos::from_millis(500);
/// The place of a packet's number in the packet, and where bytes begin that count up.
const NUMBER: usize = 8;
const COUNTS: usize = 24;

/// Returns the head of a message, as words of 32 bits.
#[must_use]
pub const fn head(number: u64, now: Nanos) -> [u32; HEAD / 4] {
    [number as u32, (number >> 32) as u32, now.0 as u32, (now.0 >> 32) as u32]
}

/// The numbers of a sensor's packets.
#[derive(Default)]
pub struct PacketOrder {
    /// The session, and the number that comes next in it.
    next: Option<(u32, u64)>,
}

impl PacketOrder {
    /// Returns how many packets of the same session are missing before this one.
    pub fn missing(&mut self, packet: &Packet) -> u64 {
        let number = packet.data.get(NUMBER..).and_then(|data| data.first_chunk());
        let number = number.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let next = self.next.replace((packet.session, number + 1));
        next.filter(|next| next.0 == packet.session)
            .map_or(0, |(_, next)| number.saturating_sub(next))
    }
}

/// The end of a flow of these messages.
pub struct OnwardEnd {
    arrivals: Arrivals,
    damaged: u64,
    report_at: Nanos,
}

impl Default for OnwardEnd {
    fn default() -> OnwardEnd {
        let report_at = time::now() + REPORT;
        OnwardEnd { arrivals: Arrivals::new(0), damaged: 0, report_at }
    }
}

impl OnwardEnd {
    /// Returns when the next report is due.
    #[must_use]
    pub const fn report_at(&self) -> Nanos {
        self.report_at
    }

    /// Counts a message that came, by its number and time; `None` if some of it was damaged. A
    /// damaged one leaves a number that is missing.
    pub fn took(&mut self, message: Option<(u64, Nanos)>) {
        let Some((number, stamp)) = message else {
            self.damaged += 1;
            return;
        };
        let letter = Letter { number, stamp: stamp.0, asked: 0, client: 0 };
        self.arrivals.took(&letter, time::now());
    }

    /// Reports as the end of a flow, if that is due, and says `ONWARD came lost damaged`. Returns
    /// whether it did.
    pub fn look(&mut self) -> bool {
        let now = time::now();
        let is_due = now >= self.report_at;
        if is_due {
            self.report_at += REPORT;
            let (came, lost) = self.arrivals.counts();
            log!("ONWARD {came} {lost} {}", self.damaged);
            self.arrivals.report(now);
        }
        is_due
    }
}

/// Pieces of memory for the messages of a link: those that the flow says.
const SLOTS: u32 = 4;
/// Bytes of a piece: whole packets, so that a message with a full last one ends with the memory.
const PIECE: usize = 1_024;

/// Link 0, from which messages come.
pub struct OnwardLink(Link);

impl OnwardLink {
    /// Opens the link and lends it memory.
    ///
    /// # Errors
    /// The link is not there.
    pub fn open() -> Result<OnwardLink, Errno> {
        let mut link = Link::open(0)?;
        for number in 0..SLOTS {
            link.fill(link.place_of(number, PIECE), PIECE as u32)?;
        }
        link.ring();
        Ok(OnwardLink(link))
    }

    /// Waits for messages until the next report is due. Calls `then` with the bytes of each that is
    /// whole, and counts it.
    ///
    /// # Errors
    /// The link does not answer as it should.
    pub fn wait(&mut self, end: &mut OnwardEnd, mut then: impl FnMut(&[u8])) -> Result<(), Errno> {
        match self.0.wait(end.report_at()) {
            Ok(()) => {}
            Err(Errno::TimedOut) => return Ok(()),
            Err(errno) => return Err(errno),
        }
        while let Some(done) = self.0.pop() {
            if done.what == FILL && done.status == DONE {
                let mut memory = [0; MOST];
                let message = self.take(&done, &mut memory);
                let found = message.and_then(|message| read(message).inspect(|_| then(message)));
                end.took(found);
            }
            self.0.fill(done.place, PIECE as u32)?;
            self.0.ring();
        }
        Ok(())
    }

    /// Returns the bytes of a message that came, if its seal is whole.
    fn take<'m>(&self, done: &Done, memory: &'m mut [u8; MOST]) -> Option<&'m [u8]> {
        let link = &self.0;
        time::work("link.check", || link.check(done.place, done.bytes))?;
        let at = done.place as usize * UNIT + SEAL;
        let bytes = (done.bytes as usize).saturating_sub(SEAL).min(MOST);
        let message = memory.get_mut(..bytes)?;
        for (offset, word) in (at..).step_by(4).zip(message.chunks_mut(4)) {
            let read = link.data.read32(offset).to_le_bytes();
            word.iter_mut().zip(read).for_each(|(place, byte)| *place = byte);
        }
        Some(message)
    }
}

/// Returns the number and the time of a message, if its bytes are as the sensor made them.
#[must_use]
pub fn read(message: &[u8]) -> Option<(u64, Nanos)> {
    let (head, packet) = message.split_first_chunk::<HEAD>()?;
    let (number, stamp) = head.split_at(HEAD / 2);
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let made = word(packet.get(NUMBER..)?);
    let mut rest = packet.iter().zip(0_u64..).skip(COUNTS);
    let counts_up = rest.all(|(byte, at)| *byte == at.wrapping_add(made) as u8);
    counts_up.then(|| (word(number), Nanos(word(stamp))))
}

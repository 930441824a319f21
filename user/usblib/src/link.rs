//! A link to another computer: messages in memory that clients, servers and controllers share, so
//! that nobody copies them. Whether `usbd` serves it (a bridge cable, a debug device) or `dbcd`
//! (this computer as a debug device) makes no difference here.
//!
//! A client lends memory for messages ([`Link::fill`]) and gives messages ([`Link::send`]). From
//! then on that memory is the link's, until it is told as done. All links of a computer share one
//! segment and one client, which may send on one what came from another.

use crate::UsbClient;
use diapason_abi::Errno;
pub use diapason_contract::link::*;
use diapason_frame::{Crc, HEAD, Head};
use diapason_pipe::{Reader, Writer};
use diapason_rt::memory::DmaSegment;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;

/// The server's side of a link.
pub struct LinkServer {
    pub asks: Reader<'static, Ask, RECORDS>,
    /// The ends of transfers.
    pub done: Writer<'static, Done, RECORDS>,
    pub data: DmaSegment,
    /// Given after an ask.
    pub ask: Semaphore,
    /// Given after an answer.
    pub ready: Semaphore,
}

/// Returns the server's side of the link with this number, below [`LINKS`].
///
/// # Errors
/// None for what the description grants.
pub fn counter(number: usize) -> Result<LinkServer, Errno> {
    let [asks, done, ask] = NAMES[number % LINKS];
    Ok(LinkServer {
        asks: pipe::reader(asks)?,
        done: pipe::writer(done)?,
        data: DmaSegment::attach(DATA)?,
        ask: Semaphore::open(ask)?,
        ready: Semaphore::open(READY)?,
    })
}

/// The client's side of a link.
pub type Link = UsbClient<Ask, Done, RECORDS>;

impl Link {
    /// Returns the link with this number, below [`LINKS`].
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open(number: usize) -> Result<Link, Errno> {
        let [asks, done, ask] = NAMES[number % LINKS];
        UsbClient::named([asks, done, DATA, ask, READY])
    }

    /// Memory for a message of any length: piece `number` of as many as there are, one fewer than
    /// fit into the segment.
    #[must_use]
    pub fn place(&self, number: u32) -> u32 {
        self.place_of(number, MESSAGE_MAX)
    }

    /// Memory for a message of at most `bytes`, a power of two of at least [`UNIT`]: piece
    /// `number`.
    #[must_use]
    pub fn place_of(&self, number: u32, bytes: usize) -> u32 {
        let first = self.data.bus_address(0).next_multiple_of(bytes as u64);
        let skipped = (first - self.data.bus_address(0)) as usize;
        (skipped / UNIT) as u32 + number * (bytes / UNIT) as u32
    }

    /// Lends memory for a message of at most so many bytes.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn fill(&mut self, place: u32, bytes: u32) -> Result<(), Errno> {
        self.put(&Ask { what: FILL, place, bytes, quiet: 0 })
    }

    /// Gives a message. One whose last packet is full must fill the memory it goes to.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn send(&mut self, place: u32, bytes: u32) -> Result<(), Errno> {
        self.put(&Ask { what: SEND, place, bytes, quiet: 0 })
    }

    /// Gives a message; that it moved is told with other news only.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn send_quietly(&mut self, place: u32, bytes: u32) -> Result<(), Errno> {
        self.put(&Ask { what: SEND, place, bytes, quiet: 1 })
    }

    /// Writes the head of a message that begins at `place`, over what is behind it.
    pub fn seal(&self, place: u32, head: Head) {
        let (at, words) = (place as usize * UNIT, head.words());
        let crc = self.sum(at, head);
        for (offset, word) in (at..).step_by(4).zip(words.into_iter().chain([crc])) {
            self.data.write32(offset, word);
        }
    }

    /// Returns the head of a message of `bytes` bytes that came to `place`, if nothing of it is
    /// damaged.
    #[must_use]
    pub fn check(&self, place: u32, bytes: u32) -> Option<Head> {
        let at = place as usize * UNIT;
        if (bytes as usize) < HEAD {
            return None;
        }
        let head = Head::of([self.data.read32(at), self.data.read32(at + 4)])?;
        let whole = usize::from(head.bytes) + HEAD == bytes as usize;
        (whole && self.sum(at, head) == self.data.read32(at + 8)).then_some(head)
    }

    fn sum(&self, at: usize, head: Head) -> u32 {
        let (from, end) = (at + HEAD, at + HEAD + usize::from(head.bytes));
        let words = from + (usize::from(head.bytes) & !3);
        let crc = head.words().into_iter().fold(Crc::new(), Crc::word);
        let crc = (from..words).step_by(4).fold(crc, |crc, at| crc.word(self.data.read32(at)));
        (words..end).fold(crc, |crc, at| crc.byte(self.data.read8(at))).sum()
    }
}

//! A link to another computer: messages in memory that clients, servers and controllers share, so
//! that nobody copies them. Whether `usbd` serves it (a bridge cable, a debug device) or `dbcd`
//! (this computer as a debug device) makes no difference here.
//!
//! A client lends memory for messages ([`Link::fill`]) and gives messages ([`Link::send`]). From
//! then on that memory is the link's, until it is told as done. All links of a computer share one
//! segment and one client, which may send on one what came from another.

use diapason_abi::{Errno, Nanos};
use diapason_frame::{Crc, HEAD, Head};
use diapason_pipe::{Reader, Writer};
use diapason_rt::memory::Dma;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;
use diapason_state::plain;

/// Most links of a computer.
pub const LINKS: usize = 4;
/// Asks that may wait or be under way; answers that may wait.
pub const RECORDS: usize = 64;
/// Places are counted in so many bytes.
pub const UNIT: usize = 1024;
/// Most bytes of a message. It must not cross a multiple of this as devices count
/// ([`Link::place`]).
pub const MESSAGE_MAX: usize = 65_536;

/// In [`Ask::what`] and [`Done::what`]: memory for a message.
pub const FILL: u32 = 0;
/// In [`Ask::what`] and [`Done::what`]: a message.
pub const SEND: u32 = 1;

/// In [`Done::status`]: it moved.
pub const DONE: u32 = 0;
/// In [`Done::status`]: nobody took it, or it was lost.
pub const DROPPED: u32 = 1;
/// In [`Done::status`]: no such memory.
pub const NONSENSE: u32 = 2;

/// Asks, answers and what is given after asks, by the number of the link.
const NAMES: [[&str; 3]; LINKS] = [
    ["link0.asks", "link0.done", "link0.ask"],
    ["link1.asks", "link1.done", "link1.ask"],
    ["link2.asks", "link2.done", "link2.ask"],
    ["link3.asks", "link3.done", "link3.ask"],
];
/// The memory of all links, and what is given after answers of any.
const DATA: &str = "link.data";
const READY: &str = "link.ready";

plain! {
    /// What a client wants.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Ask {
        /// [`FILL`] or [`SEND`].
        pub what: u32,
        /// Where the memory begins, in units of [`UNIT`].
        pub place: u32,
        /// Its bytes, or those of the message.
        pub bytes: u32,
        /// Not 0: nothing is given when it moved, since its client does not wait for that.
        pub quiet: u32,
    }
}

plain! {
    /// What became of it.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Done {
        /// When the server learned of it, in ns since boot.
        pub taken: u64,
        /// [`FILL`] or [`SEND`].
        pub what: u32,
        /// As it was asked for.
        pub place: u32,
        /// Bytes of the message.
        pub bytes: u32,
        /// [`DONE`], [`DROPPED`] or [`NONSENSE`].
        pub status: u32,
    }
}

/// A server's side.
pub struct Counter {
    /// What is wanted.
    pub asks: Reader<'static, Ask, RECORDS>,
    /// What became of it.
    pub done: Writer<'static, Done, RECORDS>,
    /// The memory.
    pub data: Dma,
    /// Given after an ask.
    pub ask: Semaphore,
    /// Given after an answer.
    pub ready: Semaphore,
}

/// The server's side of the link with this number, below [`LINKS`].
///
/// # Errors
/// None for what the description grants.
pub fn counter(number: usize) -> Result<Counter, Errno> {
    let [asks, done, ask] = NAMES[number % LINKS];
    Ok(Counter {
        asks: pipe::reader(asks)?,
        done: pipe::writer(done)?,
        data: Dma::attach(DATA)?,
        ask: Semaphore::open(ask)?,
        ready: Semaphore::open(READY)?,
    })
}

impl Ask {
    /// Is it about memory that there is, and that one block of a controller can describe?
    #[must_use]
    pub fn is_sane(&self, memory: &Dma) -> bool {
        let (at, bytes) = (u64::from(self.place) * UNIT as u64, u64::from(self.bytes));
        let inside = at + bytes <= memory.bytes() as u64 && bytes > 0;
        let begin = memory.bus_address(0) + at;
        let whole = begin % MESSAGE_MAX as u64 + bytes <= MESSAGE_MAX as u64;
        self.what <= SEND && inside && whole
    }
}

/// A client's side.
pub struct Link {
    asks: Writer<'static, Ask, RECORDS>,
    done: Reader<'static, Done, RECORDS>,
    ask: Semaphore,
    /// Taken before looking for what is done.
    pub ready: Semaphore,
    /// The memory.
    pub data: Dma,
}

impl Link {
    /// The link with this number, below [`LINKS`].
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open(number: usize) -> Result<Link, Errno> {
        let [asks, done, ask] = NAMES[number % LINKS];
        Ok(Link {
            asks: pipe::writer(asks)?,
            done: pipe::reader(done)?,
            ask: Semaphore::open(ask)?,
            ready: Semaphore::open(READY)?,
            data: Dma::attach(DATA)?,
        })
    }

    /// Memory for a message of any length: piece `number` of as many as there are, one fewer than
    /// fit into the segment.
    #[must_use]
    pub fn place(&self, number: u32) -> u32 {
        let first = self.data.bus_address(0).next_multiple_of(MESSAGE_MAX as u64);
        let skipped = (first - self.data.bus_address(0)) as usize;
        (skipped / UNIT) as u32 + number * (MESSAGE_MAX / UNIT) as u32
    }

    fn ask(&mut self, ask: &Ask) -> Result<(), Errno> {
        self.asks.push(ask).map_err(|_| Errno::Full)
    }

    /// Lends memory for a message of at most so many bytes.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn fill(&mut self, place: u32, bytes: u32) -> Result<(), Errno> {
        self.ask(&Ask { what: FILL, place, bytes, quiet: 0 })
    }

    /// Gives a message. One whose last packet is full must fill the memory it goes to.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn send(&mut self, place: u32, bytes: u32) -> Result<(), Errno> {
        self.ask(&Ask { what: SEND, place, bytes, quiet: 0 })
    }

    /// The same; that it moved is told with other news only.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn send_quietly(&mut self, place: u32, bytes: u32) -> Result<(), Errno> {
        self.ask(&Ask { what: SEND, place, bytes, quiet: 1 })
    }

    /// Lets the server know of what was asked since the last time.
    pub fn ring(&self) {
        // At its limit it has been given often enough.
        let _ = self.ask.give();
    }

    /// What was done next.
    pub fn pop(&mut self) -> Option<Done> {
        self.done.pop()
    }

    /// Waits for news.
    ///
    /// # Errors
    /// `TimedOut`, or `Gone` if the semaphore was deleted.
    pub fn wait(&self, deadline: Nanos) -> Result<(), Errno> {
        self.ready.take(deadline)
    }

    /// Writes the head of a message that begins at `place`, over what is behind it.
    pub fn seal(&self, place: u32, head: Head) {
        let (at, words) = (place as usize * UNIT, head.words());
        let crc = self.sum(at, head);
        for (offset, word) in (at..).step_by(4).zip(words.into_iter().chain([crc])) {
            self.data.write32(offset, word);
        }
    }

    /// The head of a message of so many bytes that came to `place`, if nothing of it is damaged.
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

//! A network device: whole Ethernet frames in memory that the client shares with the controller.
//!
//! A client lends slots for frames that come ([`Network::lend`]) and gives frames
//! ([`Network::send`]). From then on the slot is the server's, until it is told as come or back.
//! Without a device every slot comes back at once, so a client begins when it hears of one
//! ([`STATE`]), and after [`GONE`] waits for the next.

use diapason_abi::{Errno, Nanos};
use diapason_pipe::{Reader, Writer};
use diapason_rt::memory::Dma;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;
use diapason_state::plain;

/// Frames that lie in the memory at a time.
pub const SLOTS: u32 = 32;
/// Bytes from one to the next: more than a frame has, and whole packets.
pub const SLOT_BYTES: u32 = 2048;
/// Most bytes of a frame, without its checksum.
pub const FRAME_MAX: usize = 1514;
/// Asks and news that may wait.
pub const RECORDS: usize = 64;

/// In [`Ask::what`]: a slot for a frame that comes.
pub const LEND: u16 = 0;
/// In [`Ask::what`]: a frame.
pub const SEND: u16 = 1;

/// In [`News::what`]: a frame came to this slot, which is the client's again.
pub const CAME: u32 = 0;
/// In [`News::what`]: this slot is the client's again.
pub const BACK: u32 = 1;
/// In [`News::what`]: there is a device, and this is known of it.
pub const STATE: u32 = 2;
/// In [`News::what`]: there is no device any more.
pub const GONE: u32 = 3;

/// In [`News::status`]: the frame is with the device.
pub const DONE: u32 = 0;
/// In [`News::status`]: there is no device, or it went with the frame.
pub const DROPPED: u32 = 1;
/// In [`News::status`]: no such slot, or it is the server's already; no such frame.
pub const NONSENSE: u32 = 2;

plain! {
    /// What a client wants.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Ask {
        /// Which slot.
        pub slot: u32,
        /// [`LEND`] or [`SEND`].
        pub what: u16,
        /// Bytes of the frame.
        pub bytes: u16,
    }
}

plain! {
    /// What happened.
    #[derive(Debug, PartialEq, Eq)]
    pub struct News {
        /// When the server learned of it, in ns since boot.
        pub taken: u64,
        /// [`CAME`], [`BACK`], [`STATE`] or [`GONE`].
        pub what: u32,
        /// Which slot.
        pub slot: u32,
        /// Bytes of the frame.
        pub bytes: u32,
        /// Of a slot that is back: [`DONE`], [`DROPPED`] or [`NONSENSE`].
        pub status: u32,
        /// Bits per second from and to the network, as the device says; 0 if it does not.
        pub speed: [u32; 2],
        /// The device's address.
        pub address: [u8; 6],
        /// 1 unless the device says that there is no network.
        pub connected: u16,
    }
}

/// The server's side.
pub struct Counter {
    /// What is wanted.
    pub asks: Reader<'static, Ask, RECORDS>,
    /// What happened.
    pub news: Writer<'static, News, RECORDS>,
    /// The memory that is shared.
    pub data: Dma,
    /// Given after an ask.
    pub ask: Semaphore,
    /// Given after news.
    pub ready: Semaphore,
}

/// The server's side.
///
/// # Errors
/// None for what the description grants.
pub fn counter() -> Result<Counter, Errno> {
    Ok(Counter {
        asks: pipe::reader("network.asks")?,
        news: pipe::writer("network.news")?,
        data: Dma::attach("network.data")?,
        ask: Semaphore::open("network.ask")?,
        ready: Semaphore::open("network.ready")?,
    })
}

/// A client's side.
pub struct Network {
    asks: Writer<'static, Ask, RECORDS>,
    news: Reader<'static, News, RECORDS>,
    data: Dma,
    ask: Semaphore,
    ready: Semaphore,
}

impl Network {
    /// The network of the description.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open() -> Result<Network, Errno> {
        Ok(Network {
            asks: pipe::writer("network.asks")?,
            news: pipe::reader("network.news")?,
            data: Dma::attach("network.data")?,
            ask: Semaphore::open("network.ask")?,
            ready: Semaphore::open("network.ready")?,
        })
    }

    fn ask(&mut self, ask: &Ask) -> Result<(), Errno> {
        self.asks.push(ask).map_err(|_| Errno::Full)
    }

    /// Lets the server know of what was asked since the last time.
    pub fn ring(&self) {
        // At its limit it has been given often enough.
        let _ = self.ask.give();
    }

    /// Lends a slot, below [`SLOTS`], for a frame that comes.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn lend(&mut self, slot: u32) -> Result<(), Errno> {
        self.ask(&Ask { what: LEND, slot, bytes: 0 })
    }

    /// Gives the frame of so many bytes in a slot.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn send(&mut self, slot: u32, bytes: u16) -> Result<(), Errno> {
        self.ask(&Ask { what: SEND, slot, bytes })
    }

    /// What happened next.
    pub fn pop(&mut self) -> Option<News> {
        self.news.pop()
    }

    /// Waits for news.
    ///
    /// # Errors
    /// `TimedOut`, or `Gone` if the semaphore was deleted.
    pub fn wait(&self, deadline: Nanos) -> Result<(), Errno> {
        self.ready.take(deadline)
    }

    /// Copies the beginning of a slot.
    pub fn read(&self, slot: u32, frame: &mut [u8]) {
        let at = (slot * SLOT_BYTES) as usize;
        let (words, rest) = frame.as_chunks_mut();
        let end = at + 4 * words.len();
        for (at, word) in (at..).step_by(4).zip(words) {
            *word = self.data.read32(at).to_le_bytes();
        }
        for (at, byte) in (end..).zip(rest) {
            *byte = self.data.read8(at);
        }
    }

    /// Writes the beginning of a slot.
    pub fn write(&self, slot: u32, frame: &[u8]) {
        let at = (slot * SLOT_BYTES) as usize;
        let (words, rest) = frame.as_chunks();
        let end = at + 4 * words.len();
        for (at, word) in (at..).step_by(4).zip(words) {
            self.data.write32(at, u32::from_le_bytes(*word));
        }
        for (at, byte) in (end..).zip(rest) {
            self.data.write8(at, *byte);
        }
    }
}

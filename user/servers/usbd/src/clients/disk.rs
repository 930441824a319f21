//! A disk: blocks between the medium and memory that the client shares with the controller.
//!
//! A client writes what it wants into the pipe of asks and gives `disk.ask`; it is answered in the
//! same order. From the ask to its answer the memory it names is the device's.

use diapason_abi::{Errno, Nanos};
use diapason_pipe::{Reader, Writer};
use diapason_rt::memory::Dma;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;
use diapason_state::plain;

/// Asks that may wait.
pub const RECORDS: usize = 16;
/// Most bytes of an ask.
pub const BYTES_MAX: usize = 65_536;

/// In [`Ask::what`]: how large is the disk?
pub const SIZE: u32 = 0;
/// In [`Ask::what`]: blocks from the medium.
pub const READ: u32 = 1;
/// In [`Ask::what`]: blocks to the medium.
pub const WRITE: u32 = 2;

/// In [`Answer::status`]: it was done.
pub const DONE: u32 = 0;
/// In [`Answer::status`]: the device would not, or could not.
pub const FAILED: u32 = 1;
/// In [`Answer::status`]: there is no disk.
pub const GONE: u32 = 2;
/// In [`Answer::status`]: no such blocks, too many at once, or memory that is not shared.
pub const NONSENSE: u32 = 3;

plain! {
    /// What a client wants.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Ask {
        /// [`SIZE`], [`READ`] or [`WRITE`].
        pub what: u32,
        /// The first block.
        pub block: u32,
        /// How many.
        pub count: u32,
        /// Where their bytes are or go, from the beginning of the shared memory.
        pub place: u32,
    }
}

plain! {
    /// What became of it.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Answer {
        /// How many blocks the disk has, if there is one.
        pub blocks: u64,
        /// Bytes of each.
        pub block_bytes: u32,
        /// [`DONE`], [`FAILED`], [`GONE`] or [`NONSENSE`].
        pub status: u32,
    }
}

/// The server's side.
pub struct Counter {
    /// What is wanted.
    pub asks: Reader<'static, Ask, RECORDS>,
    /// What became of it.
    pub answers: Writer<'static, Answer, RECORDS>,
    /// The memory that is shared.
    pub data: Dma,
    /// Given after an ask.
    pub ask: Semaphore,
    /// Given after an answer.
    pub ready: Semaphore,
}

/// The server's side.
///
/// # Errors
/// None for what the description grants.
pub fn counter() -> Result<Counter, Errno> {
    Ok(Counter {
        asks: pipe::reader("disk.asks")?,
        answers: pipe::writer("disk.answers")?,
        data: Dma::attach("disk.data")?,
        ask: Semaphore::open("disk.ask")?,
        ready: Semaphore::open("disk.ready")?,
    })
}

/// A client's side.
pub struct Disk {
    asks: Writer<'static, Ask, RECORDS>,
    answers: Reader<'static, Answer, RECORDS>,
    ask: Semaphore,
    ready: Semaphore,
    /// The memory that is shared.
    pub data: Dma,
}

impl Disk {
    /// The disk of the description.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open() -> Result<Disk, Errno> {
        Ok(Disk {
            asks: pipe::writer("disk.asks")?,
            answers: pipe::reader("disk.answers")?,
            ask: Semaphore::open("disk.ask")?,
            ready: Semaphore::open("disk.ready")?,
            data: Dma::attach("disk.data")?,
        })
    }

    /// Asks without waiting for the answer.
    ///
    /// # Errors
    /// `Full` if too many wait.
    pub fn ask(&mut self, ask: &Ask) -> Result<(), Errno> {
        self.asks.push(ask).map_err(|_| Errno::Full)?;
        // At its limit it has been given often enough.
        let _ = self.ask.give();
        Ok(())
    }

    /// The next answer.
    ///
    /// # Errors
    /// `TimedOut`, or `Gone` if the semaphore was deleted.
    pub fn answer(&mut self, deadline: Nanos) -> Result<Answer, Errno> {
        loop {
            if let Some(answer) = self.answers.pop() {
                return Ok(answer);
            }
            self.ready.take(deadline)?;
        }
    }
}

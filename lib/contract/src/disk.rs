//! A disk: blocks between the medium and memory that the client shares with the controller.
//!
//! A client writes what it wants into the pipe of asks and gives `disk.ask`; it is answered in the
//! same order. From the ask to its answer the memory it names is the device's.

use crate::home::Home;
use diapason_abi::Nanos;
use diapason_state::plain;

/// The pipe of asks.
pub const ASKS: &str = "disk.asks";
/// The pipe of answers.
pub const ANSWERS: &str = "disk.answers";
/// The memory that is shared.
pub const DATA: &str = "disk.data";
/// The semaphore that is given after an ask.
pub const ASKED: &str = "disk.ask";
/// The semaphore that is given after an answer.
pub const READY: &str = "disk.ready";

/// The bottom half of a disk: three transfers to a command, and none waits for another client.
pub const HOME: Home = Home::new("usb-disk", "disk", "usbd.disk")
    .paced(Nanos::from_micros(125))
    .asked(ASKED)
    .ready(READY);

/// Asks that may wait.
pub const RECORDS: usize = 16;
/// Most bytes of an ask.
pub const BYTES_MAX: usize = 65_536;

/// In [`Ask::what`]: asks for the size of the disk.
pub const SIZE: u32 = 0;
/// In [`Ask::what`]: blocks from the medium.
pub const READ: u32 = 1;
/// In [`Ask::what`]: blocks to the medium.
pub const WRITE: u32 = 2;

/// In [`DiskAnswer::status`]: it was done.
pub const DONE: u32 = 0;
/// In [`DiskAnswer::status`]: the device would not, or could not.
pub const FAILED: u32 = 1;
/// In [`DiskAnswer::status`]: there is no disk.
pub const GONE: u32 = 2;
/// In [`DiskAnswer::status`]: no such blocks, too many at once, or memory that is not shared.
pub const NONSENSE: u32 = 3;

plain! {
    /// A request of a client.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Ask {
        /// [`SIZE`], [`READ`] or [`WRITE`].
        pub what: u32,
        pub block: u32,
        pub count: u32,
        /// Offset of their bytes in the shared memory.
        pub place: u32,
    }
}

plain! {
    /// The answer to a request.
    #[derive(Debug, PartialEq, Eq)]
    pub struct DiskAnswer {
        /// Blocks of the disk, if there is one.
        pub blocks: u64,
        pub block_bytes: u32,
        /// [`DONE`], [`FAILED`], [`GONE`] or [`NONSENSE`].
        pub status: u32,
    }
}

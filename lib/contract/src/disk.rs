//! A disk: blocks between the medium and memory that the client shares with the controller.
//!
//! A client writes what it wants into the pipe of asks and gives `disk.ask`; it is answered in the
//! same order. From the ask to its answer the memory it names is the device's.
//!
//! The process at the end of a `[[pipe]]` is such a client. The reader of a pipe from the disk asks
//! for the next blocks once a period, and each ask bears the time at which it was due. The writer
//! of a pipe to the disk asks for each run of blocks that it has put into the memory.

use crate::home::Home;
use crate::kinds::ServiceKind;
use crate::source::{EndpointAttributes, MessageForm, PipeSource, SharedPlaces, segment};
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
    .ready(&[READY]);

/// The work of a reader or writer for one message, by its name in descriptions.
pub const MESSAGE: &str = "disk.message";

/// The pipe from a disk, or to it. Its messages are runs of blocks.
pub const SOURCE: PipeSource = PipeSource {
    kind: ServiceKind::Disks,
    pipe: (ANSWERS, segment(RECORDS, size_of::<DiskAnswer>())),
    ready: READY,
    form: MessageForm::Blocks(SharedPlaces {
        data: (DATA, PLACES * BYTES_MAX as u64),
        returned: (ASKS, segment(RECORDS, size_of::<Ask>())),
    }),
    home: &HOME,
    message: MESSAGE,
    attributes: EndpointAttributes {
        max_channels: 1,
        max_tput: 8 * BYTES_MAX as u64,
        min_latency: Nanos::from_micros(500),
        buffer: 1,
        packet: (BLOCK, BYTES_MAX),
        slots: RECORDS,
        transfer: (BYTES_MAX, 1),
    },
};

/// The setting with the [`Ask::what`] of the pipe's asks, if that is not [`READ`]. It follows from
/// a pipe.
pub const PIPED: &str = "disk";

/// Asks that may wait.
pub const RECORDS: usize = 16;
/// Most bytes of an ask.
pub const BYTES_MAX: usize = 65_536;
/// Bytes of the smallest block.
pub const BLOCK: usize = 512;
/// Places of a pipe's memory, of the most bytes of an ask. Smaller messages have more places.
const PLACES: u64 = 4;

/// Returns how many messages of so many bytes the pipe of a disk has places for.
#[must_use]
pub const fn places(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    let all = PLACES as usize * BYTES_MAX / bytes;
    // There is an ask, and an answer, for each.
    if all < RECORDS { all } else { RECORDS }
}

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
        /// The time at which the reader of a pipe was to ask, or at which its writer asked, in ns
        /// since boot.
        pub due: u64,
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
        /// The ask: what, which blocks, where, and when it was due.
        pub ask: Ask,
        /// The time at which the server took the ask in hand, and at which it knew that it was
        /// done, in ns since boot.
        pub begun: u64,
        pub taken: u64,
        /// 1 if the message is outside of the contract of its pipe: it was asked for too soon, or
        /// the disk took longer than a period.
        pub outside: u64,
    }
}

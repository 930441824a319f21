//! A disk: blocks between the medium and memory that the client shares with the controller.
//!
//! A client writes what it wants into the pipe of asks and gives `disk.ask`; it is answered in the
//! same order. From the ask to its answer the memory it names is the device's.
//!
//! The process at the end of a `[[pipe]]` is such a client. The reader of a pipe from the disk asks
//! for the next blocks once a period, and each ask bears the time at which it was due. The writer
//! of a pipe to the disk asks for each run of blocks that it has put into the memory.
//!
//! A server has a seat for each disk with a pipe. Each seat has objects and a bottom half of its
//! own, so no disk waits for the client of another one. A client without a pipe is that of the
//! first seat.

use crate::home::Home;
use crate::kinds::ServiceKind;
use crate::settings::MOST;
use crate::source::{EndpointAttributes, MessageForm, PipeSource, SharedPlaces, segment};
use diapason_abi::Nanos;
use diapason_state::plain;

/// The objects of a disk's seat, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskNames {
    /// The pipe of asks.
    pub asks: &'static str,
    /// The pipe of answers.
    pub answers: &'static str,
    /// The memory that is shared.
    pub data: &'static str,
    /// The semaphore that is given after an ask.
    pub asked: &'static str,
    /// The semaphore that is given after an answer.
    pub ready: &'static str,
}

impl DiskNames {
    /// Returns all names, in their order.
    #[must_use]
    pub const fn all(self) -> [&'static str; 5] {
        [self.asks, self.answers, self.data, self.asked, self.ready]
    }
}

/// Makes the tables of seats: names, segments, and bottom halves.
macro_rules! seats {
    ($($name:literal),*) => {
        /// The names of each seat's objects.
        pub const NAMES: [DiskNames; MOST] = [$(DiskNames {
            asks: concat!($name, ".asks"),
            answers: concat!($name, ".answers"),
            data: concat!($name, ".data"),
            asked: concat!($name, ".ask"),
            ready: concat!($name, ".ready"),
        }),*];

        /// The segments of each seat.
        pub(crate) const SEGMENTS: [&[&str]; MOST] = [
            $(&[concat!($name, ".asks"), concat!($name, ".answers"), concat!($name, ".data")]),*
        ];

        /// The bottom half of each seat: three transfers to a command, and none waits for another
        /// client.
        pub const HOMES: [Home; MOST] = [$(
            Home::new(concat!("usb-", $name), "disk", "usbd.disk")
                .paced(Nanos::from_micros(125))
                .asked(concat!($name, ".ask"))
                .ready(&[concat!($name, ".ready")])
        ),*];
    };
}

seats!("disk", "disk1", "disk2", "disk3");

/// The work of a reader or writer for one message, by its name in descriptions.
pub const MESSAGE: &str = "disk.message";

/// The pipe from the disk of each seat, or to it. Its messages are runs of blocks.
pub const SOURCES: [PipeSource; MOST] = [source(0), source(1), source(2), source(3)];

const fn source(seat: usize) -> PipeSource {
    let DiskNames { asks, answers, data, ready, .. } = NAMES[seat];
    PipeSource {
        kind: ServiceKind::Disks,
        pipe: (answers, segment(RECORDS, size_of::<DiskAnswer>())),
        ready,
        form: MessageForm::Blocks(SharedPlaces {
            data: (data, PLACES * BYTES_MAX as u64),
            returned: (asks, segment(RECORDS, size_of::<Ask>())),
        }),
        home: &HOMES[seat],
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
    }
}

/// The setting with the [`Ask::what`] of the asks of the pipe of each seat, if one is not [`READ`].
/// It follows from the pipes.
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

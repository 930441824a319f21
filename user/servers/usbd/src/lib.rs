//! What the USB server and its clients agree on: pipes of CAN frames, by name and by layout; and
//! what other devices bring.

#![no_std]
#![forbid(unsafe_code)]

mod clients;

pub use clients::{camera, disk, keyboard, sensor};

use diapason_abi::Errno;
use diapason_pipe::{Reader, Writer};
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;
use diapason_state::plain;

/// CAN channels that are served.
pub const CHANNELS: usize = 5;

/// Records in the pipe of a channel. Channel 4 is the fastest, with 3,194 frames a second: this is
/// room for 80 ms of it.
pub const RECORDS: usize = diapason_abi::pipe::SLOTS;

const _: () = assert!(size_of::<Arrival>() <= diapason_abi::pipe::RECORD_BYTES);

/// The segments with the pipes, and the semaphores that are given when something was put in.
const NAMES: [(&str, &str); CHANNELS] = [
    ("can0", "can0.ready"),
    ("can1", "can1.ready"),
    ("can2", "can2.ready"),
    ("can3", "can3.ready"),
    ("can4", "can4.ready"),
];

/// In [`Arrival::flags`]: the identifier has 29 bits.
pub const EXTENDED: u8 = 1 << 0;
/// In [`Arrival::flags`]: a remote frame.
pub const REMOTE: u8 = 1 << 1;
/// In [`Arrival::flags`]: the interface lost frames of this channel before this one.
pub const LOST_BEFORE: u8 = 1 << 2;

plain! {
    /// A CAN frame that came.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Arrival {
        /// When it was through on its bus, in ns by the clock of the interface.
        pub time: u64,
        /// When the server took it from the controller, in ns since boot.
        pub taken: u64,
        /// Data, zeros behind it.
        pub data: [u8; 8],
        /// Identifier.
        pub id: u32,
        /// Data length code.
        pub code: u8,
        /// [`EXTENDED`], [`REMOTE`], [`LOST_BEFORE`].
        pub flags: u8,
        /// How often the channel was opened before: the interface's clock may have begun anew.
        pub opened: u16,
    }
}

/// The writing end of a channel's pipe.
pub type Outlet = Writer<'static, Arrival, RECORDS>;
/// Its reading end.
pub type Inlet = Reader<'static, Arrival, RECORDS>;

/// The server's end of a channel, and what it gives after it put something in.
///
/// # Errors
/// There is no such channel.
pub fn outlet(channel: usize) -> Result<(Outlet, Semaphore), Errno> {
    let (segment, ready) = *NAMES.get(channel).ok_or(Errno::Absent)?;
    Ok((pipe::writer(segment)?, Semaphore::open(ready)?))
}

/// A client's end of a channel, and what it takes before it looks.
///
/// # Errors
/// There is no such channel.
pub fn inlet(channel: usize) -> Result<(Inlet, Semaphore), Errno> {
    let (segment, ready) = *NAMES.get(channel).ok_or(Errno::Absent)?;
    Ok((pipe::reader(segment)?, Semaphore::open(ready)?))
}

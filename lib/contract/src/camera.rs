//! Cameras: their frames stay where the controller put them, in pieces.
//!
//! The pipe says which bytes of the shared memory come next in a frame, and where frames end. A
//! place that was told is the client's until it gives it back by its number.
//!
//! A server has a seat for each camera whose frames somebody reads. Each seat has objects and a
//! bottom half of its own, so no camera waits for the reader of another one.

use crate::home::Home;
use crate::kinds::ServiceKind;
use crate::settings::MOST;
use crate::source::{EndpointAttributes, MessageForm, PipeSource, SharedPlaces, segment};
use diapason_abi::Nanos;
use diapason_state::plain;

/// The objects of a camera's seat, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CameraNames {
    /// The pipe of pieces.
    pub pieces: &'static str,
    /// The pipe of places that come back.
    pub returned: &'static str,
    /// The memory with the places.
    pub data: &'static str,
    /// The semaphore that is given after pieces.
    pub ready: &'static str,
}

/// Makes the tables of seats: names, segments, and bottom halves.
macro_rules! seats {
    ($($name:literal),*) => {
        /// The names of each seat's objects.
        pub const NAMES: [CameraNames; MOST] = [$(CameraNames {
            pieces: $name,
            returned: concat!($name, ".back"),
            data: concat!($name, ".data"),
            ready: concat!($name, ".ready"),
        }),*];

        /// The segments of each seat.
        pub(crate) const SEGMENTS: [&[&str]; MOST] =
            [$(&[$name, concat!($name, ".back"), concat!($name, ".data")]),*];

        /// The bottom half of each seat: of 16 pending transfers, one each 125 us, eight wait for
        /// an interrupt.
        pub const HOMES: [Home; MOST] = [$(
            Home::new(concat!("usb-", $name), "camera", WORK)
                .paced(Nanos::from_micros(500))
                .ready(&[concat!($name, ".ready")])
        ),*];
    };
}

seats!("camera", "camera1", "camera2", "camera3");

/// The work of each bottom half.
pub const WORK: &str = "usbd.camera";

/// The work of a reader for one piece of a picture, by its name in descriptions.
pub const MESSAGE: &str = "camera.message";

/// The pipe from the camera of each seat. Its messages are pictures.
pub const SOURCES: [PipeSource; MOST] = [source(0), source(1), source(2), source(3)];

const fn source(seat: usize) -> PipeSource {
    let CameraNames { pieces, returned, data, ready } = NAMES[seat];
    PipeSource {
        kind: ServiceKind::Cameras,
        pipe: (pieces, segment(RECORDS, size_of::<FramePiece>())),
        ready,
        form: MessageForm::Picture(SharedPlaces {
            data: (data, PLACES * PLACE as u64),
            returned: (returned, segment(RECORDS, size_of::<Back>())),
        }),
        home: &HOMES[seat],
        message: MESSAGE,
        attributes: EndpointAttributes {
            max_channels: 1,
            max_tput: 8 * PICTURE as u64,
            min_latency: Nanos::from_millis(1),
            buffer: 1,
            packet: (1, PICTURE),
            slots: RECORDS,
            transfer: (PLACE, QUEUED),
        },
    }
}

/// Most bytes of a picture.
const PICTURE: usize = 1 << 20;
/// Transfers that the driver keeps queued: each is the data of an interval.
pub const QUEUED: usize = 16;
/// Places of a camera's pipe.
pub const PLACES: u64 = 128;

/// Pieces in the pipe; there are more than places.
pub const RECORDS: usize = 192;
/// Bytes of a place: most of an interval.
pub const PLACE: usize = 4096;

/// In [`FramePiece::flags`]: the frame ends with these bytes.
pub const END: u32 = 1 << 0;
/// In [`FramePiece::flags`] with [`END`]: nothing of it is missing.
pub const WHOLE: u32 = 1 << 1;
/// In [`FramePiece::flags`] with [`END`]: the picture is outside of the contract of its pipe.
pub const OUTSIDE: u32 = 1 << 2;

plain! {
    /// Bytes of a frame, its end, or both.
    #[derive(Debug, PartialEq, Eq)]
    pub struct FramePiece {
        /// The time at which the server took the piece from the controller, in ns since boot.
        pub taken: u64,
        /// At the end, the time of the frame by the clock of the camera; `taken` if it does not
        /// say one.
        pub time: u64,
        /// The place it is in.
        pub place: u32,
        /// The first byte in it.
        pub from: u32,
        /// Bytes of the piece; without any there is no place.
        pub bytes: u32,
        pub flags: u32,
        /// At the end, bytes of the whole frame.
        pub frame: u32,
        /// At the end, the delay of the frame from the camera to the server beyond the fastest one,
        /// and by how much that may be too short, in ns.
        pub moved: u32,
        pub inexact: u32,
        /// Fills the record up to whole words.
        pub spare: u32,
    }
}

plain! {
    /// A place that is given back.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Back {
        pub place: u64,
    }
}

//! A camera: its frames stay where the controller put them, in pieces.
//!
//! The pipe says which bytes of the shared memory come next in a frame, and where frames end. A
//! place that was told is the client's until it gives it back by its number.

use crate::home::Home;
use diapason_abi::Nanos;
use diapason_state::plain;

/// The pipe of pieces, and the one of places that come back.
pub const PIECES: &str = "camera";
/// The pipe of places that come back.
pub const RETURNED: &str = "camera.back";
/// The memory with the places.
pub const DATA: &str = "camera.data";
/// The semaphore that is given after pieces.
pub const READY: &str = "camera.ready";

/// The bottom half of a camera: of 16 pending transfers, one each 125 us, eight wait for an
/// interrupt.
pub const HOME: Home =
    Home::new("usb-camera", "camera", "usbd.camera").paced(Nanos::from_micros(500)).ready(READY);

/// Pieces in the pipe; there are more than places.
pub const RECORDS: usize = 256;
/// Bytes of a place: most of an interval.
pub const PLACE: usize = 4096;

/// In [`FramePiece::flags`]: the frame ends; no bytes go with it.
pub const END: u32 = 1 << 0;
/// In [`FramePiece::flags`] with [`END`]: nothing of it is missing.
pub const WHOLE: u32 = 1 << 1;

plain! {
    /// Bytes of a frame, or its end.
    #[derive(Debug, PartialEq, Eq)]
    pub struct FramePiece {
        /// The time at which the server took the piece from the controller, in ns since boot.
        pub taken: u64,
        /// The place it is in.
        pub place: u32,
        /// The first byte in it.
        pub from: u32,
        /// Bytes of the piece; at the end, of the whole frame.
        pub bytes: u32,
        pub flags: u32,
    }
}

plain! {
    /// A place that is given back.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Back {
        pub place: u64,
    }
}

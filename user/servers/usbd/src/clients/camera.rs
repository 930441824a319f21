//! A camera: its frames stay where the controller put them, in pieces.
//!
//! The pipe says which bytes of the shared memory come next in a frame, and where frames end. A
//! place that was told is the client's until it gives it back by its number.

use diapason_abi::Errno;
use diapason_pipe::{Reader, Writer};
use diapason_rt::memory::Dma;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;
use diapason_state::plain;

/// Pieces in the pipe; there are more than places.
pub const RECORDS: usize = 256;
/// Bytes of a place: most of an interval.
pub const PLACE: usize = 4096;

/// In [`Piece::flags`]: the frame ends; no bytes go with it.
pub const END: u32 = 1 << 0;
/// In [`Piece::flags`] with [`END`]: nothing of it is missing.
pub const WHOLE: u32 = 1 << 1;

plain! {
    /// Bytes of a frame, or its end.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Piece {
        /// When the server took it from the controller, in ns since boot.
        pub taken: u64,
        /// The place it is in.
        pub place: u32,
        /// The first byte in it.
        pub from: u32,
        /// How many; at the end, of the whole frame.
        pub bytes: u32,
        /// [`END`], [`WHOLE`].
        pub flags: u32,
    }
}

plain! {
    /// A place that is given back.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Back {
        /// Which.
        pub place: u64,
    }
}

/// The server's side.
pub struct Outlet {
    /// Pieces to the client.
    pub pieces: Writer<'static, Piece, RECORDS>,
    /// Places from it.
    pub back: Reader<'static, Back, RECORDS>,
    /// The places.
    pub data: Dma,
    /// Given after pieces.
    pub ready: Semaphore,
}

/// The client's side.
pub struct Inlet {
    /// Pieces from the server.
    pub pieces: Reader<'static, Piece, RECORDS>,
    back: Writer<'static, Back, RECORDS>,
    /// The places.
    pub data: Dma,
    /// Taken before looking.
    pub ready: Semaphore,
}

/// The server's side.
///
/// # Errors
/// None for what the description grants.
pub fn outlet() -> Result<Outlet, Errno> {
    Ok(Outlet {
        pieces: pipe::writer("camera")?,
        back: pipe::reader("camera.back")?,
        data: Dma::attach("camera.data")?,
        ready: Semaphore::open("camera.ready")?,
    })
}

/// The client's side.
///
/// # Errors
/// None for what the description grants.
pub fn inlet() -> Result<Inlet, Errno> {
    Ok(Inlet {
        pieces: pipe::reader("camera")?,
        back: pipe::writer("camera.back")?,
        data: Dma::attach("camera.data")?,
        ready: Semaphore::open("camera.ready")?,
    })
}

impl Inlet {
    /// The bytes of a piece were read: its place may be filled again.
    pub fn give_back(&mut self, piece: &Piece) {
        // There is room for more places than there are.
        let _ = self.back.push(&Back { place: piece.place.into() });
    }
}

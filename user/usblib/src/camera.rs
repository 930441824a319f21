//! A camera: its frames stay where the controller put them, in pieces.
//!
//! The pipe says which bytes of the shared memory come next in a frame, and where frames end. A
//! place that was told is the client's until it gives it back by its number.

use diapason_abi::Errno;
pub use diapason_contract::camera::*;
use diapason_pipe::{Reader, Writer};
use diapason_rt::memory::DmaSegment;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;

/// The client's side of a camera.
pub struct Inlet {
    /// Pieces from the server.
    pub pieces: Reader<'static, FramePiece, RECORDS>,
    back: Writer<'static, Back, RECORDS>,
    pub data: DmaSegment,
    pub ready: Semaphore,
}

/// Returns the client's side of the first camera.
///
/// # Errors
/// None for what the description grants.
pub fn inlet() -> Result<Inlet, Errno> {
    let [CameraNames { pieces, returned, data, ready }, ..] = NAMES;
    Ok(Inlet {
        pieces: pipe::reader(pieces)?,
        back: pipe::writer(returned)?,
        data: DmaSegment::attach(data)?,
        ready: Semaphore::open(ready)?,
    })
}

impl Inlet {
    /// Gives a piece back after its bytes were read: its place may be filled again.
    pub fn give_back(&mut self, piece: &FramePiece) {
        // There is room for more places than there are.
        let _ = self.back.push(&Back { place: piece.place.into() });
    }
}

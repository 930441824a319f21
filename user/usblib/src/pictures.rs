//! The reading end of a `[[pipe]]` from a camera.
//!
//! A message is a picture. It comes in pieces, which stay where the controller put them until their
//! reader takes the next one.

use crate::inbox::{Arrived, Inbox, delay, own};
use diapason_abi::{Errno, Nanos};
use diapason_contract::camera::{
    Back, CameraNames, END, FramePiece, NAMES, OUTSIDE, PLACE, RECORDS, WHOLE,
};
use diapason_contract::source::PipeSource;
use diapason_contract::threads::ServiceKind;
use diapason_pipe::Writer;
use diapason_pipe::measured::ReadMessage;
use diapason_rt::memory::DmaSegment;
use diapason_rt::pipe;

impl Arrived for FramePiece {
    fn passed(&self, read: Nanos) -> Option<ReadMessage> {
        (self.flags & END != 0).then_some(ReadMessage {
            time: Nanos(self.time),
            taken: Nanos(self.taken),
            read,
            moved: delay(self.moved, self.inexact),
            outside: self.flags & OUTSIDE != 0,
            lost_before: false,
        })
    }
}

/// The pictures of a camera, piece by piece.
pub struct Pictures {
    pieces: Inbox<FramePiece, RECORDS>,
    back: Writer<'static, Back, RECORDS>,
    data: DmaSegment,
    /// The piece that the reader has.
    held: Option<FramePiece>,
}

impl Pictures {
    /// Opens the pipe from the camera that the description has this program read.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open() -> Result<Pictures, Errno> {
        let own = own(ServiceKind::Cameras)?;
        let CameraNames { returned, data, .. } = NAMES[own.1.seat().unwrap_or_default()];
        Ok(Pictures {
            pieces: Inbox::open(own)?,
            back: pipe::writer(returned)?,
            data: DmaSegment::attach(data)?,
            held: None,
        })
    }

    /// Returns what the driver says of cameras, and the name of the work that is done for one
    /// piece.
    #[must_use]
    pub const fn source(&self) -> &'static PipeSource {
        self.pieces.source()
    }

    /// Returns the next piece, or waits for it until `deadline`. The piece before is given back.
    ///
    /// # Errors
    /// `TimedOut` if none came, or `Gone` if the semaphore was deleted.
    pub fn read_wait(&mut self, deadline: Nanos) -> Result<FramePiece, Errno> {
        self.give_back();
        let piece = self.pieces.read_wait(deadline)?;
        if piece.flags & (END | WHOLE) == END {
            self.pieces.missed(1);
        }
        self.held = Some(piece);
        Ok(piece)
    }

    /// Returns the four bytes of a piece from `offset` on, the least significant first.
    #[must_use]
    pub fn word(&self, piece: &FramePiece, offset: u32) -> u32 {
        self.data.read32(piece.place as usize * PLACE + (piece.from + offset) as usize)
    }

    /// Counts pictures that the caller found missing by their contents: they are reported as lost.
    pub fn missed(&mut self, pictures: u64) {
        self.pieces.missed(pictures);
    }

    /// Pieces that the pipe had no room for: its reader was too slow.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.pieces.lost()
    }

    fn give_back(&mut self) {
        if let Some(piece) = self.held.take().filter(|piece| piece.bytes > 0) {
            // There is room for more places than there are.
            let _ = self.back.push(&Back { place: piece.place.into() });
        }
    }
}

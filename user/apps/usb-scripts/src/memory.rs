//! The memory of transfers, and what is around each buffer in it.

use alloc::vec;
use diapason_abi::archive::crc32;
use diapason_hardware::Shared;
use diapason_random::Random;
use diapason_usb::xhci::{Buffer, Dma, Window};

/// Bytes before and behind each buffer that nobody may touch.
const MARGIN: usize = 32;
/// Bytes of the segment in the description.
pub const BYTES: usize = 256 << 10;

/// A buffer with its margins.
#[derive(Clone, Copy, Default)]
pub(crate) struct Piece {
    at: usize,
    length: usize,
}

/// The sums over a buffer, and over its margins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sums {
    pub own: u32,
    pub around: [u32; 2],
}

/// The memory that transfers come from and go to.
pub(crate) struct Memory {
    shared: Shared,
    /// Where the next piece of this step may begin.
    free: usize,
}

impl Memory {
    /// Returns the memory of the segment, none of which is in use.
    pub fn new(shared: Shared) -> Memory {
        Memory { shared, free: 0 }
    }

    /// Returns all of it.
    pub fn window(&self) -> Window {
        Window { base: self.shared.base(), length: self.shared.length() }
    }

    /// Forgets all pieces: the transfers of the step before are over.
    pub fn clear(&mut self) {
        self.free = 0;
    }

    /// Returns a piece for so many bytes at an odd place, filled with drawn bytes; now and then
    /// across a border of 64 KiB.
    pub fn piece(&mut self, length: usize, random: &mut Random) -> Option<Piece> {
        let gap = random.index(70);
        let border = (self.free + MARGIN + length).next_multiple_of(0x1_0000);
        let across = border.saturating_sub(MARGIN + 1 + random.index(length.max(1)));
        let at = if random.one_in(4) && across >= self.free { across } else { self.free + gap };
        let piece = Piece { at, length };
        if at + piece.all() > BYTES {
            return None;
        }
        self.free = at + piece.all();
        let mut bytes = vec![0; piece.all()];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&random.bits().to_le_bytes()[..chunk.len()]);
        }
        self.shared.write(at as u64, &bytes);
        Some(piece)
    }

    /// Puts bytes to the beginning of a piece.
    pub fn put(&mut self, piece: Piece, bytes: &[u8]) {
        let length = bytes.len().min(piece.length);
        self.shared.write((piece.at + MARGIN) as u64, &bytes[..length]);
    }

    /// Returns the sums over a piece, and over what is around it.
    pub fn sums(&self, piece: Piece) -> Sums {
        let mut bytes = vec![0; piece.all()];
        self.shared.read(piece.at as u64, &mut bytes);
        let (before, rest) = bytes.split_at(MARGIN);
        let (own, behind) = rest.split_at(piece.length);
        Sums { own: crc32(own), around: [crc32(before), crc32(behind)] }
    }

    /// Returns a piece as the driver wants it.
    pub fn buffer(&self, piece: Piece) -> Buffer {
        let address = self.shared.base() + (piece.at + MARGIN) as u64;
        Buffer { address, length: piece.length as u32 }
    }
}

impl Piece {
    fn all(self) -> usize {
        self.length + 2 * MARGIN
    }
}

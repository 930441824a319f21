//! A network device: whole Ethernet frames in memory that a client shares with the controller.
//! [`FrameReader`] reads the `[[pipe]]` from one, and [`FrameWriter`] writes the `[[pipe]]` to one.
//!
//! A program of a description without such a pipe has a [`FrameClient`] for each direction, of
//! which nothing is measured. It lends all slots for frames that come ([`FrameClient::begin`]), and
//! each again when it is done with the frame in it ([`FrameClient::lend`]). It gives frames
//! ([`FrameClient::send`]) when it has heard of a device ([`STATE`]).

use crate::UsbClient;
pub use crate::frame_writer::{FramePlace, FrameWriter, NotSent};
pub use crate::frames::{CameFrame, FrameReader};
use diapason_abi::Errno;
pub use diapason_contract::network::*;
use diapason_rt::memory::DmaSegment;
use diapason_rt::time;

/// The client's side of one direction.
pub type FrameClient = UsbClient<Ask, News, RECORDS>;

impl FrameClient {
    /// Returns that of this direction: [`FROM`] the device, or [`TO`] it.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn of(direction: &FrameNames) -> Result<FrameClient, Errno> {
        let FrameNames { asks, news, data, ready } = *direction;
        UsbClient::named([asks, news, data, ASKED, ready])
    }

    /// Begins without knowing anything: lends all slots for frames that come.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn begin(&mut self) -> Result<(), Errno> {
        self.put(&Ask { what: BEGIN, slot: 0, bytes: 0, written: 0 })
    }

    /// Lends a slot, below [`SLOTS`], for a frame that comes.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn lend(&mut self, slot: u32) -> Result<(), Errno> {
        self.put(&Ask { what: LEND, slot, bytes: 0, written: 0 })
    }

    /// Gives the frame of so many bytes in a slot.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn send(&mut self, slot: u32, bytes: u16) -> Result<(), Errno> {
        self.put(&Ask { what: SEND, slot, bytes, written: time::now().0 })
    }

    /// Copies the beginning of a slot.
    pub fn read(&self, slot: u32, frame: &mut [u8]) {
        read(&self.data, slot, frame);
    }

    /// Writes the beginning of a slot.
    pub fn write(&self, slot: u32, frame: &[u8]) {
        write(&self.data, (slot, 0), frame);
    }
}

/// Copies the beginning of a slot.
pub(crate) fn read(data: &DmaSegment, slot: u32, frame: &mut [u8]) {
    let at = (slot * SLOT_BYTES) as usize;
    let (words, rest) = frame.as_chunks_mut();
    let end = at + 4 * words.len();
    for (at, word) in (at..).step_by(4).zip(words) {
        *word = data.read32(at).to_le_bytes();
    }
    for (at, byte) in (end..).zip(rest) {
        *byte = data.read8(at);
    }
}

/// Writes bytes of a slot from `offset` on, which is a multiple of four.
pub(crate) fn write(data: &DmaSegment, (slot, offset): (u32, usize), bytes: &[u8]) {
    let at = (slot * SLOT_BYTES) as usize + offset;
    let (words, rest) = bytes.as_chunks();
    let end = at + 4 * words.len();
    for (at, word) in (at..).step_by(4).zip(words) {
        data.write32(at, u32::from_le_bytes(*word));
    }
    for (at, byte) in (end..).zip(rest) {
        data.write8(at, *byte);
    }
}

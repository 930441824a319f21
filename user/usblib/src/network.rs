//! A network device: whole Ethernet frames in memory that the client shares with the controller.
//! [`FrameReader`] reads the `[[pipe]]` from one, and [`FrameWriter`] writes the `[[pipe]]` to one.
//!
//! A client lends slots for frames that come ([`Network::lend`]) and gives frames
//! ([`Network::send`]). From then on the slot is the server's, until it is told as come or back.
//! Without a device every slot comes back at once, so a client begins when it hears of one
//! ([`STATE`]), and after [`GONE`] waits for the next.

use crate::UsbClient;
pub use crate::frame_writer::{FramePlace, FrameWriter, NotSent};
pub use crate::frames::{CameFrame, FrameReader};
use diapason_abi::Errno;
pub use diapason_contract::network::*;
use diapason_rt::memory::DmaSegment;
use diapason_rt::time;

/// The client's side of a network interface.
pub type Network = UsbClient<Ask, News, RECORDS>;

impl Network {
    /// Returns the network of the description.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open() -> Result<Network, Errno> {
        UsbClient::named([ASKS, TOLD, DATA, ASKED, READY])
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

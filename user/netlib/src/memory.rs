//! Slots for frames in memory that the server, a program or an adapter share.

use diapason_abi::{Errno, Nanos};
use diapason_contract::ethernet::{INBOX_BYTES, SLOT_BYTES, SLOT_FRAME};
use diapason_ether::{Buffers, FrameInbox};
use diapason_rt::memory::Segment;

const _: () = assert!(size_of::<FrameInbox>() <= INBOX_BYTES);

/// Slots of 2,048 bytes in a segment that stays attached for the life of the process.
#[derive(Clone, Copy, Debug)]
pub struct FrameSlots {
    first: *mut u8,
    count: u16,
}

/// A segment that stays attached for the life of the process.
fn kept(name: &str) -> Result<*mut u8, Errno> {
    let segment = Segment::attach(name)?;
    let address = segment.address();
    core::mem::forget(segment);
    Ok(address)
}

/// Returns the inbox in the segment of this name, and the slots behind it.
///
/// # Errors
/// None for what the description grants; without the grant the process ends.
pub fn inbox(name: &str, quota: u16) -> Result<(&'static FrameInbox, FrameSlots), Errno> {
    let start = kept(name)?;
    // SAFETY: the description gives the segment a page for the inbox and a slot for each frame of
    // the quota. It stays attached, is aligned to a page, and an inbox is made of atomics.
    let (inbox, first) = unsafe { (&*start.cast::<FrameInbox>(), start.add(INBOX_BYTES)) };
    Ok((inbox, FrameSlots { first, count: quota }))
}

impl FrameSlots {
    /// Returns the buffers of an adapter in the segment of this name: `count` of them.
    ///
    /// # Errors
    /// None for what the description grants; without the grant the process ends.
    pub fn of_adapter(name: &str, count: u16) -> Result<FrameSlots, Errno> {
        Ok(FrameSlots { first: kept(name)?, count })
    }

    /// Copies a frame into a slot. A frame that does not fit, and one to a slot that is not there,
    /// are left out.
    pub fn copy(&self, number: u16, frame: &[u8]) {
        if frame.len() <= SLOT_FRAME {
            self.copy_to(number, 0, frame);
        }
    }

    /// Writes when the server had the frame into the end of its slot.
    pub fn stamp(&self, number: u16, at: Nanos) {
        self.copy_to(number, SLOT_FRAME, &at.0.to_le_bytes());
    }

    /// Returns when the server had the frame in this slot.
    #[must_use]
    pub fn stamped(&self, number: u16) -> Option<Nanos> {
        let stamp = self.buffer(number).get(SLOT_FRAME..)?.first_chunk()?;
        Some(Nanos(u64::from_le_bytes(*stamp)))
    }

    fn copy_to(&self, number: u16, at: usize, bytes: &[u8]) {
        if number < self.count && at + bytes.len() <= SLOT_BYTES {
            // SAFETY: the segment has this slot. A caller copies to a slot that it has in hand, and
            // nobody else has a reference into it. A program that breaks this harms itself only.
            unsafe {
                let place = self.first.add(usize::from(number) * SLOT_BYTES + at);
                place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
    }
}

impl Buffers for FrameSlots {
    #[inline(always)]
    fn buffer(&self, number: u16) -> &[u8] {
        if number >= self.count {
            return &[];
        }
        // SAFETY: the segment has this slot and stays attached. Neither the server nor an adapter
        // writes to a slot while somebody has its number in hand.
        unsafe {
            let slot = self.first.add(usize::from(number) * SLOT_BYTES);
            core::slice::from_raw_parts(slot, SLOT_BYTES)
        }
    }
}

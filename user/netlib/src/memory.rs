//! Slots for frames in memory that the server, a program or an adapter share.

use diapason_abi::Errno;
use diapason_abi::Nanos;
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
        if number < self.count && frame.len() <= SLOT_FRAME {
            // SAFETY: the segment has this slot. A caller copies to a slot that it has in hand, and
            // nobody else has a reference into it. A program that breaks this harms itself only.
            unsafe {
                let slot = self.first.add(usize::from(number) * SLOT_BYTES);
                slot.copy_from_nonoverlapping(frame.as_ptr(), frame.len());
            }
        }
    }
}

impl FrameSlots {
    /// Writes when the server had the frame into the end of its slot.
    pub fn stamp(&self, number: u16, at: Nanos) {
        if number < self.count {
            // SAFETY: the segment has this slot, whose last eight bytes no frame reaches. They are
            // aligned, because slots have 2,048 bytes and begin at a page.
            unsafe { self.stamp_of(number).write(at.0) };
        }
    }

    /// Returns when the server had the frame in this slot.
    #[must_use]
    pub fn stamped(&self, number: u16) -> Option<Nanos> {
        // SAFETY: the segment has this slot, and its stamp was written before its number was
        // posted.
        (number < self.count).then(|| Nanos(unsafe { self.stamp_of(number).read() }))
    }

    const fn stamp_of(&self, number: u16) -> *mut u64 {
        self.first.wrapping_add(number as usize * SLOT_BYTES + SLOT_FRAME).cast()
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

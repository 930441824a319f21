//! The ends of pipes between processes: rings (`diapason-pipe`) in shared segments.

use crate::memory::Segment;
use diapason_abi::Errno;
use diapason_abi::layout::SLOT;
use diapason_pipe::{Reader, Ring, Writer};
use diapason_state::Plain;

/// Returns the ring in a segment, attached for the life of the process.
fn ring<T: Plain, const N: usize>(segment: &str) -> Result<*const Ring<T, N>, Errno> {
    const { assert!(size_of::<Ring<T, N>>() as u64 <= SLOT, "larger than any segment") };
    let segment = Segment::attach(segment)?;
    let address = segment.address();
    core::mem::forget(segment);
    Ok(address.cast())
}

/// Returns the writing end of the ring in the segment of this name. A segment that is too small for
/// it is found out by a fault: nothing else lies behind a segment.
///
/// # Errors
/// None for a segment the description grants; without the grant the process ends.
pub fn writer<T: Plain, const N: usize>(segment: &str) -> Result<Writer<'static, T, N>, Errno> {
    let ring = ring(segment)?;
    // SAFETY: zeroed at first, aligned to a page, attached for ever, in a slot of addresses of its
    // own that is large enough; it is made of atomics, so even a second writer does no harm.
    Ok(unsafe { Writer::from_raw(ring) })
}

/// Returns the reading end of the ring in the segment of this name.
///
/// # Errors
/// As of [`writer`].
pub fn reader<T: Plain, const N: usize>(segment: &str) -> Result<Reader<'static, T, N>, Errno> {
    let ring = ring(segment)?;
    // SAFETY: as for the writer.
    Ok(unsafe { Reader::from_raw(ring) })
}

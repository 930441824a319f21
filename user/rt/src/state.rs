//! State messages between processes: the newest value of one writer, in a shared segment.

use crate::memory::Segment;
use diapason_abi::Errno;
use diapason_abi::layout::SLOT;
use diapason_state::{Plain, StateBuffer, StateReader, StateWriter};

/// Returns the state message in a segment, attached for the life of the process.
fn cell<T: Plain, const N: usize>(segment: &str) -> Result<*const StateBuffer<T, N>, Errno> {
    const { assert!(size_of::<StateBuffer<T, N>>() as u64 <= SLOT, "larger than any segment") };
    let segment = Segment::attach(segment)?;
    let address = segment.address();
    core::mem::forget(segment);
    Ok(address.cast())
}

/// Returns the writer of the state message in the segment of this name, of which there is one. A
/// segment that is too small for it is found out by a fault: nothing else lies behind a segment.
///
/// # Errors
/// None for a segment the description grants; without the grant the process ends.
pub fn writer<T: Plain, const N: usize>(
    segment: &str,
) -> Result<StateWriter<'static, StateBuffer<T, N>>, Errno> {
    let cell = cell(segment)?;
    // SAFETY: zeroed at first, aligned to a page, attached for ever, in a slot of addresses of its
    // own that is large enough; it is made of atomics, so even a second writer does no harm.
    Ok(unsafe { StateWriter::from_raw(cell) })
}

/// Returns a reader of the state message in the segment of this name.
///
/// # Errors
/// As of [`writer`].
pub fn reader<T: Plain, const N: usize>(
    segment: &str,
) -> Result<StateReader<'static, StateBuffer<T, N>>, Errno> {
    let cell = cell(segment)?;
    // SAFETY: as for the writer.
    Ok(unsafe { StateReader::from_raw(cell) })
}

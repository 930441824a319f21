//! Handles of attached segments. The kernel knows whether a process has a segment, and this module
//! counts for how many handles: the last one that goes detaches it.

use crate::sys::call1;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::SeqCst;
use diapason_abi::call::PARTIAL;
use diapason_abi::{CallNumber, Errno, Key, layout};

/// Added to the number of handles while the last one detaches the segment.
const GOING: u32 = 1 << 31;

/// Handles of each declared segment, by its slot in the process's window.
static HANDLES: [AtomicU32; layout::SLOTS_MAX as usize] =
    [const { AtomicU32::new(0) }; layout::SLOTS_MAX as usize];

const _: () = assert!(layout::base(0).is_multiple_of(layout::SLOT * layout::SLOTS_MAX));
const _: () = assert!(layout::SEGMENTS.is_multiple_of(layout::SLOT * layout::SLOTS_MAX));

/// Moves before and after each detachment, so that an attachment notices one beside it.
static DETACHED: AtomicU32 = AtomicU32::new(0);

/// Attaches a segment for one more handle and returns its address.
///
/// # Errors
/// `Busy` while another thread detaches it.
#[inline(always)]
pub(crate) fn attach(key: Key) -> Result<u64, Errno> {
    let before = DETACHED.load(SeqCst);
    let address = attach_whole(key)?;
    let handles = handles(address);
    if handles.fetch_add(1, SeqCst) >= GOING {
        handles.fetch_sub(1, SeqCst);
        return Err(Errno::Busy);
    }
    // From here on nobody detaches it. If somebody did so since the call, it is attached again.
    if DETACHED.load(SeqCst) == before { Ok(address) } else { attach_whole(key) }
}

/// One handle goes, and with the last one the segment.
pub(crate) fn detach(key: Key, address: u64) {
    let handles = handles(address);
    let less = |count: u32| Some(if count == 1 { GOING } else { count.saturating_sub(1) });
    if handles.fetch_update(SeqCst, SeqCst, less) != Ok(1) {
        return;
    }
    DETACHED.fetch_add(1, SeqCst);
    let _ = call1::<{ CallNumber::ShmDetach as u8 }>(key.0);
    DETACHED.fetch_add(1, SeqCst);
    handles.fetch_sub(GOING, SeqCst);
}

/// Calls until all pages of the segment are there.
#[inline(always)]
fn attach_whole(key: Key) -> Result<u64, Errno> {
    loop {
        let answer = call1::<{ CallNumber::ShmAttach as u8 }>(key.0)?;
        if answer & PARTIAL == 0 {
            return Ok(answer);
        }
    }
}

/// Returns the number of handles of the segment at this address.
#[inline(always)]
fn handles(address: u64) -> &'static AtomicU32 {
    // Windows, and the first segment in one, lie at multiples of so many slots.
    &HANDLES[(address / layout::SLOT % layout::SLOTS_MAX) as usize]
}

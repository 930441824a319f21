//! Shared segments and pages.

use crate::words::{CText, INVALID, Place, store};
use core::ffi::c_void;
use diapason_rt::memory::{self, Segment};

/// Attaches a segment, for the life of the process, and writes its address to its place.
#[unsafe(no_mangle)]
extern "C" fn dia_segment_attach(text: CText, address: Place<'_, *mut c_void>) -> i32 {
    let Some(name) = text.name() else { return INVALID };
    if address.is_none() {
        return INVALID;
    }
    let attached = Segment::attach(name).map(|segment| {
        let start = segment.address();
        core::mem::forget(segment);
        start.cast()
    });
    store(address, attached)
}

/// Takes so many zeroed pages of the process's heap, for good.
#[unsafe(no_mangle)]
extern "C" fn dia_pages(pages: usize, address: Place<'_, *mut c_void>) -> i32 {
    if address.is_none() || pages == 0 {
        return INVALID;
    }
    store(address, memory::allocate(pages).map(|bytes| bytes.as_mut_ptr().cast()))
}

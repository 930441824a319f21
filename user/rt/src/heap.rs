//! Memory for programs that need `alloc`: one piece, taken from the quota when first needed.
//!
//! ```ignore
//! diapason_rt::heap!(256 * 1024);
//! ```
//!
//! Behind it is a list of holes, searched from the front (`linked_list_allocator`): what is asked
//! for while the program starts is quick and packs well, and how long a later request takes depends
//! on the holes there are by then. Parts with deadlines allocate nothing. Threads take turns by a
//! mutex, so it costs one private semaphore; a thread that allocates inherits the urgency of the
//! waiters.

use crate::locked::Locked;
use crate::memory;
use core::alloc::{GlobalAlloc, Layout};
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null_mut};
use diapason_abi::{Errno, PAGE};
use linked_list_allocator::Heap;

/// The global allocator of a program; see [`crate::heap!`].
pub struct ProgramHeap {
    bytes: usize,
    holes: Locked<Heap>,
}

impl ProgramHeap {
    /// Returns a heap of so many bytes, rounded up to pages, none of them taken yet.
    #[must_use]
    pub const fn new(bytes: usize) -> ProgramHeap {
        ProgramHeap { bytes, holes: Locked::new(Heap::empty()) }
    }

    /// Returns the bytes in use.
    ///
    /// # Errors
    /// As of [`Locked::lock`].
    pub fn used(&self) -> Result<usize, Errno> {
        self.holes.lock().map(|holes| holes.used())
    }

    /// Adds bytes, rounded up to pages, from the quota: for programs that learn from their
    /// arguments how much they do.
    ///
    /// # Errors
    /// `Busy` if something else was allocated behind it.
    pub fn grow(&self, bytes: usize) -> Result<(), Errno> {
        let mut holes = self.holes.lock()?;
        self.fill(&mut holes);
        let more = memory::allocate(bytes.div_ceil(PAGE))?;
        if holes.top().addr() != more.as_ptr().addr() {
            return Err(Errno::Busy);
        }
        // SAFETY: these pages lie right behind the heap and are given to nobody else, for ever.
        unsafe { holes.extend(more.len()) };
        Ok(())
    }

    /// Takes the pages, if that has not been done.
    fn fill(&self, heap: &mut Heap) {
        if heap.size() > 0 {
            return;
        }
        if let Ok(pages) = memory::allocate(self.bytes.div_ceil(PAGE)) {
            let bytes = pages.as_mut_ptr().cast::<MaybeUninit<u8>>();
            // SAFETY: the same memory under another type, which takes any bytes.
            heap.init_from_slice(unsafe { core::slice::from_raw_parts_mut(bytes, pages.len()) });
        }
    }
}

// SAFETY: the list gives every byte to one owner at a time, and only its holder changes it.
unsafe impl GlobalAlloc for ProgramHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Ok(mut holes) = self.holes.lock() else { return null_mut() };
        self.fill(&mut holes);
        holes.allocate_first_fit(layout).map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if let (Ok(mut holes), Some(place)) = (self.holes.lock(), NonNull::new(place)) {
            // SAFETY: the caller had it from `alloc`, with this layout.
            unsafe { holes.deallocate(place, layout) };
        }
    }
}

/// Gives the program a heap of so many bytes, for `alloc`. The process needs a `heap` of that size
/// and one private semaphore.
#[macro_export]
macro_rules! heap {
    ($bytes:expr) => {
        #[global_allocator]
        static HEAP: $crate::heap::ProgramHeap = $crate::heap::ProgramHeap::new($bytes);
    };
}

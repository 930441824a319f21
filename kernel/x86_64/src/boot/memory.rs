//! Memory at boot: cut from the front of the largest free region, never given back.

use super::refuse;
use diapason_abi::PAGE;
use diapason_abi::archive::Refusal;

/// The rest of the region.
pub struct BootMemory {
    next: u64,
    end: u64,
}

impl BootMemory {
    /// The region from `start` to `end`.
    pub fn new(start: u64, end: u64) -> BootMemory {
        BootMemory { next: start.next_multiple_of(PAGE as u64), end }
    }

    /// First byte not yet cut, and how many are left.
    pub fn remaining(&self) -> (u64, u64) {
        (self.next, self.end.saturating_sub(self.next))
    }

    /// Returns where the region ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// `bytes` of zeroed memory, whole pages; `None` if too little is left.
    #[inline(never)]
    pub fn cut(&mut self, bytes: u64) -> Option<u64> {
        let start = self.next;
        let end =
            start.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(PAGE as u64));
        let end = end.filter(|end| *end <= self.end)?;
        self.next = end;
        // SAFETY: the region is free memory, mapped one to one, and was not cut before.
        unsafe { core::ptr::write_bytes(start as *mut u8, 0, (end - start) as usize) };
        Some(start)
    }

    /// Takes one page of memory.
    #[inline(never)]
    pub fn page(&mut self) -> Option<u64> {
        self.cut(PAGE as u64)
    }

    /// `count` copies of `value`, or of what is all zeros. Without the memory nothing boots.
    ///
    /// # Safety
    /// `T` owns nothing, so that a copy of its bytes is a value of its own; without `value`, all
    /// zeros is one.
    pub unsafe fn array<T>(&mut self, count: usize, value: Option<&T>) -> &'static mut [T] {
        let value = value.map_or(core::ptr::null(), core::ptr::from_ref);
        let start = self.repeat(count, value.cast(), size_of::<T>());
        // SAFETY: aligned to a page, filled just now, and nobody else has the memory.
        unsafe { core::slice::from_raw_parts_mut(start as *mut T, count) }
    }

    /// The bytes of [`BootMemory::array`]: once, and not for each type.
    #[inline(never)]
    fn repeat(&mut self, count: usize, value: *const u8, bytes: usize) -> u64 {
        let Some(start) = self.cut((count * bytes) as u64) else { refuse(Refusal::Memory) };
        for i in (0..count).filter(|_| !value.is_null()) {
            let to = (start as *mut u8).wrapping_add(i * bytes);
            // SAFETY: within what was cut; `value` has so many bytes.
            unsafe { core::ptr::copy_nonoverlapping(value, to, bytes) };
        }
        start
    }
}

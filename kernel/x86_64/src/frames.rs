//! Memory at boot: cut from the front of the largest free region, never given back.

use diapason_abi::PAGE;

/// What is left of the region.
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

    /// `bytes` of zeroed memory, whole pages; `None` if too little is left.
    pub fn cut(&mut self, bytes: u64) -> Option<u64> {
        let start = self.next;
        let end = start.checked_add(bytes)?.checked_next_multiple_of(PAGE as u64)?;
        if end > self.end {
            return None;
        }
        self.next = end;
        // SAFETY: the region is free memory, mapped one to one, and was not cut before.
        unsafe { core::ptr::write_bytes(start as *mut u8, 0, (end - start) as usize) };
        Some(start)
    }

    /// A page.
    pub fn page(&mut self) -> Option<u64> {
        self.cut(PAGE as u64)
    }

    /// `count` times `value`.
    pub fn slice<T>(&mut self, count: usize, value: fn() -> T) -> Option<&'static mut [T]> {
        let start = self.cut((count * size_of::<T>()) as u64)? as *mut T;
        for i in 0..count {
            // SAFETY: within what was cut, which is aligned to a page.
            unsafe { start.add(i).write(value()) };
        }
        // SAFETY: initialized just now, and nobody else has the memory.
        Some(unsafe { core::slice::from_raw_parts_mut(start, count) })
    }
}

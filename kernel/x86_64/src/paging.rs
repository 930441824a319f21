//! Address spaces: the kernel's part, shared by all, and each process's window.

use diapason_abi::{PAGE, layout};

/// Page table entry bits.
pub mod bits {
    pub const PRESENT: u64 = 1;
    pub const WRITE: u64 = 2;
    pub const USER: u64 = 4;
    pub const UNCACHED: u64 = 0x18;
    pub const GLOBAL: u64 = 0x100;
    pub const NO_EXECUTE: u64 = 1 << 63;
}
use bits::{NO_EXECUTE, PRESENT, USER, WRITE};

/// The address in an entry.
pub const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Where a hidden table's entry keeps how many of its pages were used.
const USED: u64 = 52;
/// The memory that one level-2 entry maps.
pub const LARGE_PAGE: u64 = 0x20_0000;

/// # Safety
/// `table` is a page table that lives for ever, and no other reference to it is in use.
pub unsafe fn entry<'a>(table: u64, index: u64) -> &'a mut u64 {
    // SAFETY: page tables are mapped one to one; the index is cut to the table.
    unsafe { &mut *(table as *mut u64).add(index as usize & 511) }
}

/// A process's address space. All zeros is never loaded: it stands for a process whose program was
/// refused.
#[derive(Clone, Copy)]
pub struct Space {
    /// Level-4 table: what CR3 holds.
    pub root: u64,
    /// The window's level-2 table.
    pub directory: u64,
}

impl Space {
    /// Maps a heap page whose table was reserved at boot. If that was hidden meanwhile, what it
    /// mapped is forgotten first.
    pub fn show_heap(&self, page: u32, frame: u64) {
        let offset = layout::HEAP + u64::from(page) * PAGE as u64;
        // SAFETY: `reserve` made the table; the references end here.
        unsafe {
            let slot = entry(self.directory, offset / LARGE_PAGE);
            let table = *slot & ADDRESS;
            if *slot & PRESENT == 0 {
                core::ptr::write_bytes(table as *mut u64, 0, (*slot >> USED) as usize);
                *slot = table | PRESENT | WRITE | USER;
            }
            *entry(table, offset / PAGE as u64) = frame | PRESENT | WRITE | USER | NO_EXECUTE;
        }
    }

    /// Hides the first `pages` of the heap, a table at a time: however large it was, ending its
    /// process stays a short path.
    pub fn hide_heap(&self, pages: u32) {
        let mut left = u64::from(pages);
        for table in 0..left.div_ceil(512) {
            // SAFETY: our directory; a heap that has pages has these tables.
            let slot = unsafe { entry(self.directory, layout::HEAP / LARGE_PAGE + table) };
            *slot = *slot & ADDRESS | left.min(512) << USED;
            left = left.saturating_sub(512);
        }
    }

    /// Shows or hides the whole window.
    pub fn show_window(&self, process: u16, visible: bool) {
        let rights = if visible { PRESENT | WRITE | USER } else { 0 };
        // SAFETY: our own tables, as boot made them: the first entry of the root leads to the table
        // that has our directory.
        unsafe {
            let upper = *entry(self.root, 0) & ADDRESS;
            *entry(upper, layout::base(process) >> 30) = self.directory | rights;
        }
    }

    /// Shows a whole table in the window; 0 hides the one that is there.
    pub fn show(&self, offset: u64, table: u64) {
        let value = if table != 0 { table | PRESENT | WRITE | USER } else { 0 };
        // SAFETY: our directory; `table` was made for this.
        unsafe { *entry(self.directory, offset / LARGE_PAGE) = value }
    }
}

/// Sets an entry of a table that several processes may see.
pub fn set_shared(table: u64, page: u32, frame: u64) {
    // SAFETY: a table made at boot for a segment.
    unsafe { *entry(table, u64::from(page)) = frame | PRESENT | WRITE | USER | NO_EXECUTE }
}

/// Returns the address of the first page that such a table shows.
pub fn shared(table: u64) -> u64 {
    // SAFETY: a table made at boot for a segment.
    unsafe { *entry(table, 0) & ADDRESS }
}

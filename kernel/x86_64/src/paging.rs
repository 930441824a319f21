//! Address spaces: the kernel's part, shared by all, and each process's window.

use crate::frames::BootMemory;
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
use bits::{GLOBAL, NO_EXECUTE, PRESENT, UNCACHED, USER, WRITE};

const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Entries of the kernel in every level-3 table: 4 GiB.
const KERNEL_ENTRIES: usize = 4;
/// Where a hidden table's entry keeps how many of its pages were used.
const USED: u64 = 52;
/// What one level-2 entry maps.
const LARGE_PAGE: u64 = 0x20_0000;

type Table = [u64; 512];

unsafe extern "C" {
    static KERNEL_PDPT: Table;
    static mut KERNEL_PDS: [Table; 4];
    static mut KERNEL_PT: Table;
    static KERNEL_STACK_GUARD: u8;
    static __text_start: u8;
    static __rodata_start: u8;
    static __data_start: u8;
    static __kernel_end: u8;
}

/// Narrow the boot tables: code may only be executed, constants only read, everything else not
/// executed; the page below the kernel stack is gone.
///
/// # Safety
/// Called once at boot; the kernel occupies less than one large page.
pub unsafe fn protect_kernel() {
    // SAFETY: the linker's symbols delimit the kernel; only bits that forbid are added to pages it
    // does not use that way.
    unsafe {
        let text = &raw const __text_start as u64;
        let rodata = &raw const __rodata_start as u64;
        let data = &raw const __data_start as u64;
        let guard = &raw const KERNEL_STACK_GUARD as u64;
        let directory = (&raw mut KERNEL_PDS).cast::<u64>();
        let table = (&raw mut KERNEL_PT).cast::<u64>();
        for i in 0..512 {
            let page = text + i as u64 * PAGE as u64;
            let rights = match page {
                p if p == guard => 0,
                p if p < rodata => PRESENT,
                p if p < data => PRESENT | NO_EXECUTE,
                _ => PRESENT | WRITE | NO_EXECUTE,
            };
            *table.add(i) = page | rights | if rights != 0 { GLOBAL } else { 0 };
        }
        // The kernel's own pages first: from here on nothing depends on its large page, which runs
        // this very code.
        let own = (text / LARGE_PAGE) as usize;
        *directory.add(own) = table as u64 | PRESENT | WRITE;
        for i in (0..KERNEL_ENTRIES * 512).filter(|i| *i != own) {
            *directory.add(i) |= NO_EXECUTE;
        }
    }
}

/// Where the kernel ends.
pub fn kernel_end() -> u64 {
    &raw const __kernel_end as u64
}

/// # Safety
/// `table` is a page table that lives for ever, and no other reference to it is in use.
unsafe fn entry<'a>(table: u64, index: u64) -> &'a mut u64 {
    // SAFETY: page tables are mapped one to one; the index is cut to the table.
    unsafe { &mut *(table as *mut u64).add(index as usize & 511) }
}

/// A process's address space.
#[derive(Clone, Copy)]
pub struct Space {
    /// Level-4 table: what CR3 holds.
    pub root: u64,
    /// The window's level-2 table.
    directory: u64,
}

impl Space {
    /// Never loaded; stands for a process whose program was refused.
    pub const NONE: Space = Space { root: 0, directory: 0 };

    /// An address space with the kernel and an empty window.
    pub fn new(memory: &mut BootMemory, process: u16) -> Option<Space> {
        let (root, upper, directory) = (memory.page()?, memory.page()?, memory.page()?);
        // SAFETY: three fresh tables of our own; the kernel's level-2 tables are shared as they
        // are.
        unsafe {
            *entry(root, 0) = upper | PRESENT | WRITE | USER;
            core::ptr::copy_nonoverlapping(KERNEL_PDPT.as_ptr(), upper as *mut u64, KERNEL_ENTRIES);
            *entry(upper, layout::base(process) >> 30) = directory | PRESENT | WRITE | USER;
        }
        Some(Space { root, directory })
    }

    /// The level-1 table for an offset in the window, made if it is missing.
    fn table(&self, memory: &mut BootMemory, offset: u64) -> Option<u64> {
        // SAFETY: our directory; boot is single-threaded.
        let slot = unsafe { entry(self.directory, offset / LARGE_PAGE) };
        if *slot & PRESENT == 0 {
            *slot = memory.page()? | PRESENT | WRITE | USER;
        }
        Some(*slot & ADDRESS)
    }

    /// Map a page at an offset in the window, at boot.
    pub fn map(&self, memory: &mut BootMemory, offset: u64, page: u64, rights: u64) -> Option<()> {
        let table = self.table(memory, offset)?;
        // SAFETY: our table.
        unsafe { *entry(table, offset / PAGE as u64) = page | rights | PRESENT | USER };
        Some(())
    }

    /// Make the tables for a range that is filled later.
    pub fn reserve(&self, memory: &mut BootMemory, offset: u64, pages: u64) -> Option<()> {
        let end = offset + pages * PAGE as u64;
        let mut at = offset;
        while at < end {
            self.table(memory, at)?;
            at += LARGE_PAGE;
        }
        Some(())
    }

    /// Map a heap page whose table was reserved at boot. If that was hidden meanwhile, what it
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

    /// Hide the first `pages` of the heap, a table at a time: however large it was, ending its
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

    /// Show or hide a whole table in the window.
    pub fn show(&self, offset: u64, table: u64, visible: bool) {
        let value = if visible { table | PRESENT | WRITE | USER } else { 0 };
        // SAFETY: our directory; `table` was made for this.
        unsafe { *entry(self.directory, offset / LARGE_PAGE) = value }
    }
}

/// Set an entry of a table that several processes may see.
pub fn set_shared(table: u64, page: u32, frame: u64) {
    // SAFETY: a table made at boot for a segment.
    unsafe { *entry(table, u64::from(page)) = frame | PRESENT | WRITE | USER | NO_EXECUTE }
}

/// Set an entry for a page of device registers.
pub fn set_device(table: u64, page: u32, address: u64) {
    // SAFETY: as above.
    unsafe {
        *entry(table, u64::from(page)) =
            address & ADDRESS | PRESENT | WRITE | USER | NO_EXECUTE | UNCACHED;
    }
}

/// Set the entry of a page that everybody may read.
pub fn set_read_only(table: u64, page: u32, address: u64) {
    // SAFETY: as above.
    unsafe { *entry(table, u64::from(page)) = address | PRESENT | USER | NO_EXECUTE }
}

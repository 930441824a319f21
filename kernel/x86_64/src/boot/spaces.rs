//! Address spaces as boot makes them: the kernel's pages narrowed, each process's window filled.

use super::memory::BootMemory;
use super::{
    __boot_rodata, __boot_start, __data_start, __kernel_end, __rodata_start, __screen_text,
    KERNEL_PDPT, KERNEL_PDS, KERNEL_PT, KERNEL_STACK_GUARD,
};
use crate::cpu;
use crate::paging::bits::{GLOBAL, NO_EXECUTE, PRESENT, UNCACHED, USER, WRITE};
use crate::paging::{ADDRESS, LARGE_PAGE, Space, entry};
use diapason_abi::{PAGE, layout};

/// Entries of the kernel in every level-3 table: 4 GiB.
const KERNEL_ENTRIES: usize = 4;

/// The kernel reaches what lies below this.
pub const REACH: u64 = 1 << 32;

/// Narrow the boot tables: code may only be executed, constants only read, everything else not
/// executed; the page below the kernel stack is gone.
///
/// # Safety
/// Called once at boot; the kernel occupies less than one large page.
pub unsafe fn protect_kernel() {
    // SAFETY: the linker's symbols delimit the kernel; only bits that forbid are added to pages it
    // does not use that way.
    unsafe {
        let start = &raw const __boot_start as u64;
        let boot_rodata = &raw const __boot_rodata as u64;
        let text = &raw const __screen_text as u64;
        let rodata = &raw const __rodata_start as u64;
        let data = &raw const __data_start as u64;
        let guard = &raw const KERNEL_STACK_GUARD as u64;
        let directory = (&raw mut KERNEL_PDS).cast::<u64>();
        let table = (&raw mut KERNEL_PT).cast::<u64>();
        for i in 0..512 {
            let page = start + i as u64 * PAGE as u64;
            let code = page < boot_rodata || (text..rodata).contains(&page);
            let rights = match page {
                p if p == guard => 0,
                _ if code => PRESENT | GLOBAL,
                p if p < data => PRESENT | GLOBAL | NO_EXECUTE,
                _ => PRESENT | GLOBAL | WRITE | NO_EXECUTE,
            };
            *table.add(i) = page | rights;
        }
        // The kernel's own pages first: from here on nothing depends on its large page, which runs
        // this very code.
        let own = (start / LARGE_PAGE) as usize;
        *directory.add(own) = table as u64 | PRESENT | WRITE;
        for i in (0..KERNEL_ENTRIES * 512).filter(|i| *i != own) {
            *directory.add(i) |= NO_EXECUTE;
        }
    }
}

/// The lowest memory, where another core began, is not executed any more.
///
/// # Safety
/// Called once, at boot, from the kernel's own pages.
pub unsafe fn forbid_low_code() {
    // SAFETY: only forbids what nobody does.
    unsafe {
        *(&raw mut KERNEL_PDS).cast::<u64>() |= NO_EXECUTE;
        cpu::forget_page(0);
    }
}

/// Memory below 4 GiB, from `start` on, is registers: the kernel reads and writes them uncached.
pub fn uncache(start: u64, length: u64) {
    for page in start / LARGE_PAGE..(start + length).div_ceil(LARGE_PAGE) {
        // SAFETY: the kernel's level-2 tables are one behind the other; only boot runs.
        unsafe {
            *(&raw mut KERNEL_PDS).cast::<u64>().add(page as usize & 2047) |= UNCACHED;
            cpu::forget_page(page * LARGE_PAGE);
        }
    }
}

/// Shows registers that lie above 4 GiB to the kernel, in a large page of the range in which a PC
/// has the memory of its firmware. Returns where the kernel sees them; `None` if there is no room,
/// or they do not lie in one large page.
pub fn alias(far: u64, length: u64) -> Option<u64> {
    const LARGE: u64 = 1 << 7;
    const FIRST: u64 = 0xff00_0000;
    let (page, offset) = (far & !(LARGE_PAGE - 1), far % LARGE_PAGE);
    let kinds = LARGE | PRESENT | WRITE | GLOBAL | UNCACHED | NO_EXECUTE;
    if offset + length > LARGE_PAGE {
        return None;
    }
    for here in (FIRST..1 << 32).step_by(LARGE_PAGE as usize) {
        // SAFETY: as above; nobody reads the firmware's memory.
        unsafe {
            let entry = (&raw mut KERNEL_PDS).cast::<u64>().add((here / LARGE_PAGE) as usize);
            if [here, page].contains(&(*entry & ADDRESS)) {
                *entry = page | kinds;
                cpu::forget_page(here);
                return Some(here + offset);
            }
        }
    }
    None
}

/// Shows a device's registers to the kernel, uncached, wherever they lie. Returns where it sees
/// them; `None` as for [`alias`].
pub fn registers(address: u64, length: u64) -> Option<u64> {
    if address.checked_add(length)? > REACH {
        return alias(address, length);
    }
    uncache(address, length);
    Some(address)
}

/// Returns where the kernel ends.
pub fn kernel_end() -> u64 {
    &raw const __kernel_end as u64
}

impl Space {
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

    /// Maps a page at an offset in the window, at boot.
    #[inline(never)]
    pub fn map(&self, memory: &mut BootMemory, offset: u64, page: u64, rights: u64) -> Option<()> {
        let table = self.table(memory, offset)?;
        // SAFETY: our table.
        unsafe { *entry(table, offset / PAGE as u64) = page | rights | PRESENT | USER };
        Some(())
    }

    /// Makes the tables for a range that is filled later.
    pub fn reserve(&self, memory: &mut BootMemory, offset: u64, pages: u64) -> Option<()> {
        let end = offset + pages * PAGE as u64;
        let mut at = offset;
        while at < end {
            self.table(memory, at)?;
            at += LARGE_PAGE;
        }
        Some(())
    }
}

/// Sets an entry for a page of device registers.
pub fn set_device(table: u64, page: u32, address: u64) {
    // SAFETY: as above.
    unsafe {
        *entry(table, u64::from(page)) =
            address & ADDRESS | PRESENT | WRITE | USER | NO_EXECUTE | UNCACHED;
    }
}

/// Sets the entry of a page that everybody may read.
pub fn set_read_only(table: u64, page: u32, address: u64) {
    // SAFETY: as above.
    unsafe { *entry(table, u64::from(page)) = address | PRESENT | USER | NO_EXECUTE }
}

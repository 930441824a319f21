//! From boot to the first decision: boot's code and constants leave memory, and those of the screen
//! if there is none.
//!
//! Nothing here is part of boot: this runs while that disappears.

use crate::cpu;
use crate::paging::entry;
use crate::percpu::shell;
use crate::screen;
use diapason_abi::PAGE;
use diapason_core::Cause;

unsafe extern "C" {
    static mut KERNEL_PT: [u64; 512];
    static __boot_start: u8;
    static __boot_end: u8;
    static __screen_end: u8;
    fn resume_from_boot(context: usize) -> !;
}

/// Called by boot, once, as the last thing it does. The table that maps the kernel is shared by all
/// address spaces, so what is taken out of it here is gone from every one.
#[inline(never)]
pub fn begin() -> ! {
    // SAFETY: nothing returns to boot, so nobody uses what the linker's symbols delimit. Boot made
    // the shell, and gs names the core's state. The context is that of a thread the core chose, or
    // none.
    unsafe {
        let mut page = &raw const __boot_start as u64;
        let kept = screen::is_open();
        let end = if kept { &raw const __boot_end } else { &raw const __screen_end };
        while page < end as u64 {
            *entry(&raw mut KERNEL_PT as u64, page / PAGE as u64) = 0;
            cpu::forget_page(page);
            page += PAGE as u64;
        }
        let next = shell().enter(Cause::Boot);
        resume_from_boot(next)
    }
}

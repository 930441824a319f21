//! From the kernel's first instruction to the program's `main`, and the way out of a panic.

use crate::sys;
use core::arch::global_asm;
use diapason_abi::{CallNumber, layout};

global_asm!(
    include_str!("start.s"),
    INFO = const layout::INFO,
    DATA_IMAGE = const layout::DATA_IMAGE,
    BASE = const layout::info::CLOCK_BASE * 8,
    MULTIPLIER = const layout::info::CLOCK_MULTIPLIER * 8,
    FAIL = const CallNumber::Fail as u64,
);

/// The numbers the description gives a program.
#[derive(Clone, Copy, Debug)]
pub struct Arguments(pub [u64; 4]);

unsafe extern "Rust" {
    fn __diapason_main(arguments: Arguments);
}

/// Names the function a program starts with: `fn main(arguments: Arguments)`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        #[unsafe(no_mangle)]
        fn __diapason_main(arguments: $crate::Arguments) {
            $main(arguments)
        }
    };
}

#[unsafe(no_mangle)]
extern "C" fn __dia_start(_info: u64, a: u64, b: u64, c: u64, d: u64) -> ! {
    // SAFETY: `entry!` defines it, with this signature.
    unsafe { __diapason_main(Arguments([a, b, c, d])) };
    crate::thread::exit(0)
}

/// The first address of this process's window.
#[must_use]
pub fn window() -> u64 {
    unsafe extern "C" {
        static __image_start: u8;
    }
    &raw const __image_start as u64
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    crate::log!("panic: {info}");
    let line = info.location().map_or(0, core::panic::Location::line);
    sys::fail(u64::from(line))
}

/// Named by the precompiled `core`; programs do not unwind.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Memory routines the compiler calls.
mod libc {
    use core::arch::asm;

    /// # Safety
    /// As for C's `memcpy`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
        // SAFETY: the caller passes valid, non-overlapping ranges.
        unsafe {
            asm!("rep movsq", "mov rcx, {rest}", "rep movsb", rest = in(reg) length & 7,
                 inout("rcx") length / 8 => _, inout("rdi") to => _, inout("rsi") from => _,
                 options(nostack));
        }
        to
    }

    /// # Safety
    /// As for C's `memmove`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
        // SAFETY: the caller passes valid ranges; backwards when the target overlaps from above.
        unsafe {
            if (to as usize).wrapping_sub(from as usize) >= length {
                return memcpy(to, from, length);
            }
            asm!("std", "rep movsb", "cld", inout("rcx") length => _,
                 inout("rdi") to.wrapping_add(length).wrapping_sub(1) => _,
                 inout("rsi") from.wrapping_add(length).wrapping_sub(1) => _, options(nostack));
        }
        to
    }

    /// # Safety
    /// As for C's `memset`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memset(to: *mut u8, value: i32, length: usize) -> *mut u8 {
        let word = u64::from(value as u8) * 0x0101_0101_0101_0101;
        // SAFETY: the caller passes a valid range.
        unsafe {
            asm!("rep stosq", "mov rcx, {rest}", "rep stosb", rest = in(reg) length & 7,
                 inout("rcx") length / 8 => _, inout("rdi") to => _, in("rax") word,
                 options(nostack));
        }
        to
    }

    /// # Safety
    /// As for C's `memcmp`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, length: usize) -> i32 {
        for i in 0..length {
            // SAFETY: the caller passes valid ranges.
            let (x, y) = unsafe { (*a.add(i), *b.add(i)) };
            if x != y {
                return i32::from(x) - i32::from(y);
            }
        }
        0
    }

    /// # Safety
    /// As for [`memcmp`].
    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, length: usize) -> i32 {
        // SAFETY: as above.
        unsafe { memcmp(a, b, length) }
    }
}

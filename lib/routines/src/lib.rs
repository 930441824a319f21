//! The functions of a C library that the compiler expects, for images that have none.
//!
//! Linked by naming it: `use diapason_routines as _;`.

#![no_std]

use core::arch::asm;

/// Copies forwards, words first.
///
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

/// Copies in the direction that is safe.
///
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

/// Fills, words first.
///
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

/// Compares byte by byte.
///
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

/// Old name of `memcmp` for equality.
///
/// # Safety
/// As for [`memcmp`].
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, length: usize) -> i32 {
    // SAFETY: as above.
    unsafe { memcmp(a, b, length) }
}

/// Named by the precompiled `core`; neither kernel nor programs unwind.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

//! System calls as they are: numbers in, a result out. The other modules give them meaning.
//!
//! The number of a call is known when the program is compiled. The code of a call refers to the
//! record of its number (`start.s`), so the linker keeps the records of exactly those calls whose
//! code it keeps. The tools read them to build a kernel with these calls and no others.

use core::arch::asm;
use diapason_abi::call::Counter;
use diapason_abi::{CallNumber, Errno, decode_result};

macro_rules! raw {
    ($name:ident($($word:ident: $register:tt),*)) => {
        /// A call with this many words.
        ///
        /// # Safety
        /// A call can write to memory the words name, or unmap it.
        #[inline(always)]
        pub unsafe fn $name<const CALL: u8>($($word: u64),*) -> u64 {
            let result;
            // SAFETY: the kernel preserves what a function preserves; the caller vouches for the
            // words.
            unsafe {
                asm!(
                    ".reloc ., R_X86_64_NONE, __dia_call_{call}",
                    "call __dia_trap",
                    call = const CALL,
                    inout("rax") u64::from(CALL) => result,
                    $(in($register) $word,)*
                    clobber_abi("C"),
                );
            }
            result
        }
    };
}

raw!(raw0());
raw!(raw1(a: "rdi"));
raw!(raw2(a: "rdi", b: "rsi"));
raw!(raw3(a: "rdi", b: "rsi", c: "rdx"));
raw!(raw4(a: "rdi", b: "rsi", c: "rdx", d: "r10"));
raw!(raw5(a: "rdi", b: "rsi", c: "rdx", d: "r10", e: "r8"));

/// A call whose number only the running program knows. A program with this call gets a kernel that
/// serves every call.
///
/// # Safety
/// A call can write to memory the words name, or unmap it.
#[inline(never)]
pub unsafe fn any_call(number: u64, [a, b, c, d, e]: [u64; 5]) -> u64 {
    let result;
    // SAFETY: the kernel preserves what a function preserves; the caller vouches for the words.
    unsafe {
        asm!(
            ".reloc ., R_X86_64_NONE, __dia_call_any",
            "call __dia_trap",
            inout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            clobber_abi("C"),
        );
    }
    result
}

/// Notes in the program's list of calls that some have hints. Takes no instruction.
#[inline(always)]
pub(crate) fn note_hints() {
    // SAFETY: emits a relocation, and no code.
    unsafe {
        asm!(".reloc ., R_X86_64_NONE, __dia_call_hints", options(nomem, nostack, preserves_flags));
    }
}

macro_rules! checked {
    ($name:ident, $raw:ident($($word:ident),*)) => {
        /// A call that touches no memory of the program.
        ///
        /// # Errors
        /// The call's error.
        #[inline(always)]
        pub(crate) fn $name<const CALL: u8>($($word: u64),*) -> Result<u64, Errno> {
            // SAFETY: the calls made through this take numbers and handles, no addresses.
            decode_result(unsafe { $raw::<CALL>($($word),*) })
        }
    };
}

checked!(call0, raw0());
checked!(call1, raw1(a));
checked!(call2, raw2(a, b));
checked!(call3, raw3(a, b, c));
checked!(call4, raw4(a, b, c, d));
checked!(call5, raw5(a, b, c, d, e));

macro_rules! registers {
    ($read:ident $read_stub:literal, $write:ident $write_stub:literal: $word:ty, $a:tt, $b:tt) => {
        /// Reads a register that is mapped.
        #[inline(always)]
        pub(crate) fn $read(address: u64) -> $word {
            let value: $word;
            // SAFETY: an access of the device, not of memory of the program; the stub is a
            // function.
            unsafe {
                asm!(concat!("call ", $read_stub), in("rdi") address, lateout($a) value,
                    clobber_abi("C"));
            }
            value
        }

        /// Writes a register that is mapped.
        #[inline(always)]
        pub(crate) fn $write(address: u64, value: $word) {
            // SAFETY: as above.
            unsafe {
                asm!(concat!("call ", $write_stub), in("rdi") address, in($b) value,
                    clobber_abi("C"));
            }
        }
    };
}

registers!(read32 "__dia_read32", write32 "__dia_write32": u32, "eax", "esi");
registers!(read64 "__dia_read64", write64 "__dia_write64": u64, "rax", "rsi");

/// Does nothing: this is the floor of every measurement.
#[inline(always)]
pub fn null() {
    let _ = call0::<{ CallNumber::Null as u8 }>();
}

/// Returns a counter of the kernel.
#[must_use]
pub fn count(which: Counter) -> u64 {
    call1::<{ CallNumber::Count as u8 }>(which as u64).unwrap_or(0)
}

/// Gives the program up: its process ends, and its supervisor is told.
pub fn fail(place: u64) -> ! {
    // SAFETY: the stub does not return.
    unsafe { asm!("call __dia_fault", in("rdi") place, options(noreturn)) }
}

//! Words between C and the kernel: results, names, texts, places for results.

use core::fmt::{self, Write};
use core::mem::MaybeUninit;
use diapason_abi::call::PARTIAL;
use diapason_abi::{Errno, decode_result};
use diapason_rt::sys;

/// An argument makes no sense: `DIA_INVALID`. The errors of the kernel are above it.
pub const INVALID: i32 = -32;
/// The USB server cannot promise what a pipe is asked for: `DIA_REFUSED`.
pub const REFUSED: i32 = -33;

/// A place for a result: null, or valid. Only C makes one.
pub type Place<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Longest name that is read, with its end.
const NAME: usize = 64;

/// Makes a call with these words. Words after the last that a call has are ignored.
pub fn call<const CALL: u8, const N: usize>(words: [u64; N]) -> Result<u64, Errno> {
    let word = |index: usize| words.get(index).copied().unwrap_or(0);
    // SAFETY: a word that is an address is the C program's, which vouches for what is there, or
    // comes from a reference.
    decode_result(unsafe { sys::raw5::<CALL>(word(0), word(1), word(2), word(3), word(4)) })
}

/// Makes a call, and repeats it until all is done.
pub fn whole<const CALL: u8, const N: usize>(words: [u64; N]) -> Result<u64, Errno> {
    loop {
        match call::<CALL, N>(words)? {
            PARTIAL => {}
            done => return Ok(done),
        }
    }
}

/// Returns the number that C has for an error.
pub fn error(errno: Errno) -> i32 {
    -(errno as i32)
}

/// Returns the result of a call without a value.
pub fn status<T>(result: Result<T, Errno>) -> i32 {
    result.map_or_else(error, |_| 0)
}

/// Writes what a call returned to the place for it.
pub fn store<T>(place: Place<'_, T>, result: Result<T, Errno>) -> i32 {
    match (place, result) {
        (Some(place), Ok(value)) => {
            place.write(value);
            0
        }
        (None, Ok(_)) => INVALID,
        (_, Err(errno)) => error(errno),
    }
}

/// Writes a value that the caller may not want: a null place takes none.
pub fn offer<T>(place: Place<'_, T>, value: T) {
    if let Some(place) = place {
        place.write(value);
    }
}

/// Returns the bytes at an address. None if it is null and there should be some, or if no memory is
/// as long.
///
/// # Safety
/// So many bytes can be read there, as long as the slice lives; or the address is null.
pub unsafe fn bytes<'a>(address: *const u8, length: usize) -> Option<&'a [u8]> {
    match (address.is_null(), length) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        (_, length) if isize::try_from(length).is_err() => None,
        // SAFETY: not null, not longer than a slice may be, and valid by contract.
        _ => Some(unsafe { core::slice::from_raw_parts(address, length) }),
    }
}

/// A buffer of C that takes a text as far as it fits. Its last byte stays free for a zero.
struct Buffer {
    text: *mut u8,
    room: usize,
    length: usize,
}

impl Write for Buffer {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let count = part.len().min(self.room - 1 - self.length);
        // SAFETY: `write_text` has so much room from `text` on, and `count` more fit.
        unsafe { self.text.add(self.length).copy_from_nonoverlapping(part.as_ptr(), count) };
        self.length += count;
        Ok(())
    }
}

/// Writes a text to a buffer of C, cut to its room, with a zero byte at its end.
///
/// # Safety
/// `room` bytes can be written at `text`, and there is at least one.
pub unsafe fn write_text(text: *mut u8, room: usize, said: fmt::Arguments<'_>) {
    let mut buffer = Buffer { text, room, length: 0 };
    // A buffer takes what fits, and never refuses.
    let _ = buffer.write_fmt(said);
    // SAFETY: the length is below `room`.
    unsafe { text.add(buffer.length).write(0) };
}

/// Text of C: null, or bytes that end with a zero byte. Only C makes one.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct CText(*const u8);

impl CText {
    /// Returns the bytes of the text, but no more than `most`.
    pub fn bytes(&self, most: usize) -> Option<&[u8]> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: bytes up to the first zero can be read, and no more are.
        let length = (0..most).find(|at| unsafe { *self.0.add(*at) } == 0).unwrap_or(most);
        // SAFETY: these bytes were read just now.
        unsafe { bytes(self.0, length) }
    }

    /// Returns a name. None if it is null, longer than any name, or no text.
    pub fn name(&self) -> Option<&str> {
        let bytes = self.bytes(NAME).filter(|bytes| bytes.len() < NAME)?;
        core::str::from_utf8(bytes).ok()
    }
}

//! One line of text to the console, or one measurement.

use crate::sys;
use core::fmt::{self, Write};
use diapason_abi::CallNumber;
use diapason_abi::call::MEASUREMENT;
use diapason_abi::record::MEASURED_WORDS;

/// Longest line; the rest is cut.
pub const LINE_BYTES: usize = 112;

/// A line being written.
struct Line {
    bytes: [u8; LINE_BYTES],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
        }
        Ok(())
    }
}

/// Logs a line; see [`crate::log!`].
pub fn write(text: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; LINE_BYTES], length: 0 };
    let _ = line.write_fmt(text);
    tell(line.bytes.as_ptr() as u64, line.length as u64);
}

/// Reports a measurement: a record, to which the kernel adds the process.
pub fn measured(words: &[u64; MEASURED_WORDS]) {
    tell(words.as_ptr() as u64, MEASUREMENT);
}

fn tell(address: u64, length: u64) {
    // SAFETY: the kernel only reads.
    unsafe { sys::raw2::<{ CallNumber::Log as u8 }>(address, length) };
}

/// Log a line, formatted as by `println!`.
#[macro_export]
macro_rules! log {
    ($($word:tt)*) => { $crate::log::write(format_args!($($word)*)) };
}

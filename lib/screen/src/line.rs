//! Text put together without the formatting of the standard library, which a kernel has not.

use diapason_abi::record::shown;

/// Most characters of a line.
pub const LENGTH: usize = 112;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;

/// A line under way. Text that does not fit is left out.
#[derive(Clone, Copy, Debug)]
pub struct ScreenLine {
    bytes: [u8; LENGTH],
    length: usize,
}

impl Default for ScreenLine {
    fn default() -> ScreenLine {
        ScreenLine { bytes: [b' '; LENGTH], length: 0 }
    }
}

impl ScreenLine {
    /// Returns the text so far.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }

    /// Adds text; a byte that is no character becomes a dot.
    #[inline(never)]
    pub fn say(&mut self, text: &[u8]) -> &mut ScreenLine {
        for byte in text {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = shown(*byte);
                self.length += 1;
            }
        }
        self
    }

    /// Adds a number, at least `digits` long.
    #[inline(never)]
    fn digits(&mut self, number: u64, base: u64, digits: usize) -> &mut ScreenLine {
        let mut reversed = [b'0'; 20];
        let (mut rest, mut length) = (number, 0);
        for place in &mut reversed {
            if rest == 0 && length >= digits {
                break;
            }
            let digit = (rest % base.max(2)) as u8;
            *place = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
            rest /= base.max(2);
            length += 1;
        }
        while let Some(last) = length.checked_sub(1) {
            self.say(reversed.get(last..length).unwrap_or(&[]));
            length = last;
        }
        self
    }

    /// Adds a decimal number.
    pub fn number(&mut self, number: u64) -> &mut ScreenLine {
        self.digits(number, 10, 1)
    }

    /// Adds a hexadecimal number.
    pub fn hex(&mut self, number: u64) -> &mut ScreenLine {
        self.say(&crate::words::HEX).digits(number, 16, 1)
    }

    /// Adds a time in seconds, or in milliseconds if it is shorter than one second. A time is
    /// rounded up, because most are worst cases.
    pub fn time(&mut self, nanos: u64) -> &mut ScreenLine {
        if nanos >= SECOND {
            let millis = nanos.div_ceil(MILLISECOND);
            self.number(millis / 1_000).say(b".").digits(millis % 1_000, 10, 3);
            self.say(&crate::words::SECONDS)
        } else {
            let micros = nanos.div_ceil(1_000);
            self.number(micros / 1_000).say(b".").digits(micros % 1_000, 10, 3);
            self.say(&crate::words::MILLISECONDS)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    fn said(say: impl FnOnce(&mut ScreenLine)) -> String {
        let mut line = ScreenLine::default();
        say(&mut line);
        String::from_utf8_lossy(line.text()).into_owned()
    }

    #[test]
    fn numbers_and_times_read_as_people_write_them() {
        let numbers = |line: &mut ScreenLine| {
            line.number(0).say(b" ").number(1_200).say(b" ").number(u64::MAX);
        };
        assert_eq!(said(numbers), "0 1200 18446744073709551615");
        assert_eq!(said(|line| _ = line.hex(0xdead_0bee)), "0xdead0bee");
        assert_eq!(said(|line| _ = line.hex(u64::MAX)), "0xffffffffffffffff");
        assert_eq!(said(|line| _ = line.time(1)), "0.001 ms");
        assert_eq!(said(|line| _ = line.time(999_999_999)), "1000.000 ms");
        assert_eq!(said(|line| _ = line.time(10_000_000_001)), "10.001 s");
    }

    #[test]
    fn too_much_is_left_out_and_nothing_garbles() {
        let long = said(|line| {
            for _ in 0..100 {
                line.say(b"ab\x1b");
            }
        });
        assert_eq!(long.len(), LENGTH);
        assert!(long.starts_with("ab.ab."));
    }
}

//! The text of a counted table, read by the compiler: one that is damaged does not compile.

use super::{CALLS, Longest, Table};

/// Returns one line each: what, staying, leaving. The line `kernel` has the hash of what was
/// counted, in hex.
pub(super) const fn table(text: &str) -> Table {
    let text = text.as_bytes();
    let none = Longest { staying: 0, leaving: 0 };
    let mut table =
        Table { kernel: 0, calls: [none; CALLS], timer: none, interrupt: none, fault: none };
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'#' {
            at = line_end(text, at);
        } else {
            let (first, second) = (word_end(text, at), word_end(text, word_end(text, at) + 1));
            if starts(text, at, b"kernel ") {
                table.kernel = number(text, first + 1, second, 16);
                at = second;
            } else {
                let end = line_end(text, at);
                let staying = number(text, first + 1, second, 10);
                let leaving = number(text, second + 1, end, 10);
                let longest = Longest { staying, leaving };
                match text[at] {
                    b't' if starts(text, at, b"timer ") => table.timer = longest,
                    b'i' if starts(text, at, b"interrupt ") => table.interrupt = longest,
                    b'f' if starts(text, at, b"fault ") => table.fault = longest,
                    _ => table.calls[number(text, at, first, 10) as usize] = longest,
                }
                at = end;
            }
        }
        at += 1;
    }
    table
}

const fn starts(text: &[u8], at: usize, word: &[u8]) -> bool {
    let mut place = 0;
    while place < word.len() {
        if at + place >= text.len() || text[at + place] != word[place] {
            return false;
        }
        place += 1;
    }
    true
}

const fn line_end(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && text[at] != b'\n' {
        at += 1;
    }
    at
}

const fn word_end(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && text[at] != b'\n' && text[at] != b' ' {
        at += 1;
    }
    at
}

const fn number(text: &[u8], mut at: usize, end: usize, base: u64) -> u64 {
    assert!(at < end, "a number is missing");
    let mut value = 0;
    while at < end {
        let digit = match text[at] {
            digit @ b'0'..=b'9' => digit - b'0',
            digit @ b'a'..=b'f' if base == 16 => digit - b'a' + 10,
            _ => panic!("neither a number nor a name that is known"),
        };
        value = value * base + digit as u64;
        at += 1;
    }
    value
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn what_was_measured_is_read() {
        let text = "# what staying leaving\nkernel 00ff\n6 0 610\n13 40 300\ntimer 200 519\n";
        let read = table(text);
        assert_eq!(read.call(6), Longest { staying: 0, leaving: 610 });
        assert_eq!(read.call(13), Longest { staying: 40, leaving: 300 });
        assert_eq!(read.timer, Longest { staying: 200, leaving: 519 });
        assert_eq!(read.call(7), read.fault);
        assert_eq!(read.kernel, 0xff);
    }

    #[test]
    fn what_is_damaged_is_not_read() {
        for bad in ["6 1\n", "six 1 2\n", "6 1 2x\n", "64 1 2\n", "kernel xyz\n", "\n"] {
            let read = std::panic::catch_unwind(|| table(bad).kernel);
            assert!(read.is_err(), "{bad}");
        }
    }
}

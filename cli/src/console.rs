//! Lines of the kernel's console, taken apart.
//!
//! Nothing here can fail: whatever arrives is a record, a program's text, or a raw line, and is
//! kept. Damage shows as a raw line, never as a missing one.

use diapason_abi::archive::CORES_MAX;
use diapason_abi::record::Record;
use diapason_abi::results::mark;
use diapason_pipe::measured::Reported;

/// Longest line kept in one piece; a guest that never ends a line cannot fill the host's memory.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

/// One line of the console.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// A numbered record with as many words as it has fields.
    Record(Record, Vec<u64>),
    /// Text a process logged.
    Log {
        /// The process's place in the description.
        process: u16,
        /// The text of the line.
        text: String,
    },
    /// Anything else, as it came.
    Raw(String),
}

impl Line {
    /// Returns what a process measured, if the line is such a report.
    #[must_use]
    pub fn measured(&self) -> Option<(u64, Option<Reported>)> {
        let Line::Record(Record::Measured, words) = self else { return None };
        words.split_first().map(|(process, words)| (*process, Reported::of(words)))
    }

    /// Takes one line apart, without its newline.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Line {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        record(text).or_else(|| log(text)).unwrap_or_else(|| Line::Raw(text.to_string()))
    }
}

/// `~` NUMBER (` ` WORD)*, with exactly the words the record has.
fn record(text: &str) -> Option<Line> {
    let mut words = text.strip_prefix('~')?.split(' ');
    let record = Record::decode(hex(words.next()?)?)?;
    let words = words.map(hex).collect::<Option<Vec<u64>>>()?;
    (words.len() == record.fields().len()).then_some(Line::Record(record, words))
}

/// `=` PROCESS ` ` text.
fn log(text: &str) -> Option<Line> {
    let (process, text) = text.strip_prefix('=')?.split_once(' ')?;
    let process = u16::try_from(hex(process)?).ok()?;
    Some(Line::Log { process, text: text.to_string() })
}

/// Returns a hexadecimal word as the kernel writes it: lower case, no sign, at most 64 bits.
fn hex(text: &str) -> Option<u64> {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.is_empty() || !text.bytes().all(digit) {
        return None;
    }
    u64::from_str_radix(text, 16).ok()
}

/// Cuts a stream of bytes into lines.
#[derive(Default, Debug)]
pub struct Splitter {
    pending: Vec<u8>,
}

impl Splitter {
    /// Takes more bytes and hands out every line they complete.
    pub fn push(&mut self, bytes: &[u8], mut line: impl FnMut(Line)) {
        for byte in bytes {
            if *byte != b'\n' {
                self.pending.push(*byte);
            }
            if *byte == b'\n' || self.pending.len() == LINE_BYTES_MAX {
                line(Line::parse(&self.pending));
                self.pending.clear();
            }
        }
    }

    /// The stream ended: what is left is the last line.
    pub fn finish(&mut self, mut line: impl FnMut(Line)) {
        if !self.pending.is_empty() {
            line(Line::parse(&self.pending));
            self.pending.clear();
        }
    }
}

/// Tells apart what several cores say through one port: before a byte of a core that did not speak
/// last comes one that has its number. One with the number of no core is damage, and kept.
#[derive(Debug)]
pub struct Speakers {
    cores: Vec<Splitter>,
    speaker: usize,
}

impl Speakers {
    /// Returns what tells so many cores apart. A machine with one core sends no marks.
    #[must_use]
    pub fn new(cores: usize) -> Speakers {
        let cores = (0..cores.max(1)).map(|_| Splitter::default()).collect();
        Speakers { cores, speaker: 0 }
    }

    /// Takes more bytes, and hands out every line they complete with the number of its core.
    pub fn push(&mut self, bytes: &[u8], mut line: impl FnMut(usize, Line)) {
        let cores = self.cores.len();
        let core_of = |byte: &u8| usize::from(byte.wrapping_sub(mark(0)));
        let marked = |byte: &u8| cores > 1 && core_of(byte) < cores;
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = rest.iter().position(marked).unwrap_or(rest.len());
            let (own, after) = rest.split_at(length);
            let speaker = self.speaker;
            if let Some(splitter) = self.cores.get_mut(speaker) {
                splitter.push(own, |said| line(speaker, said));
            }
            self.speaker = after.first().map_or(speaker, core_of);
            rest = after.get(1..).unwrap_or_default();
        }
    }

    /// The stream ended: what is left are the last lines.
    pub fn finish(&mut self, mut line: impl FnMut(usize, Line)) {
        for (core, splitter) in self.cores.iter_mut().enumerate() {
            splitter.finish(|said| line(core, said));
        }
    }
}

/// Tells apart what a computer says through its port, however many cores it has. Firmware speaks
/// before the kernel's first record, and sends any bytes.
#[derive(Default, Debug)]
pub struct SerialPort {
    firmware: Splitter,
    kernels: Option<Speakers>,
}

impl SerialPort {
    /// Takes more bytes, and hands out every line they complete with the number of its core.
    pub fn push(&mut self, bytes: &[u8], mut line: impl FnMut(usize, Line)) {
        for byte in bytes {
            let mut has_booted = false;
            let mut said = |core, it: Line| {
                let boots = matches!(it, Line::Record(Record::Boot, _));
                has_booted |= boots;
                // The core that spoke last before a restart is another matter.
                line(if boots { 0 } else { core }, it);
            };
            match &mut self.kernels {
                Some(speakers) => speakers.push(&[*byte], said),
                None => self.firmware.push(&[*byte], |it| said(0, it)),
            }
            if has_booted {
                self.kernels = Some(Speakers::new(CORES_MAX));
            }
        }
    }

    /// The stream ended: what is left are the last lines.
    pub fn finish(&mut self, mut line: impl FnMut(usize, Line)) {
        self.firmware.finish(|said| line(0, said));
        if let Some(speakers) = &mut self.kernels {
            speakers.finish(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{names::Names, outcome::Outcome, outcome::sample, words};
    use proptest::prelude::*;

    #[test]
    fn records_need_their_exact_words() {
        let started = Line::Record(Record::Started, vec![0x10, 2, 1]);
        assert_eq!(Line::parse(b"~9 10 2 1"), started);
        assert_eq!(Line::parse(b"~9 10 2 1\r"), started);
        for damaged in
            ["~9 10 2", "~9 10 2 1 5", "~9 10 2 G", "~9  10 2 1", "~ff 1", "~", "~9 10 2 "]
        {
            assert_eq!(Line::parse(damaged.as_bytes()), Line::Raw(damaged.into()), "{damaged}");
        }
    }

    #[test]
    fn a_log_line_says_who_spoke() {
        let expected = Line::Log { process: 0x1f, text: "rpm  1200 = fine".into() };
        assert_eq!(Line::parse(b"=1f rpm  1200 = fine"), expected);
        assert_eq!(Line::parse(b"=3 "), Line::Log { process: 3, text: String::new() });
        assert_eq!(Line::parse(b"=10000 far"), Line::Raw("=10000 far".into()));
        assert_eq!(Line::parse(b"=nobody said"), Line::Raw("=nobody said".into()));
    }

    #[test]
    fn lines_are_cut_wherever_the_bytes_arrive() {
        let bytes = b"~13 5\n=0 hello\nboo";
        for cut in 0..bytes.len() {
            let (mut splitter, mut lines) = (Splitter::default(), Vec::new());
            splitter.push(&bytes[..cut], |line| lines.push(line));
            splitter.push(&bytes[cut..], |line| lines.push(line));
            splitter.finish(|line| lines.push(line));
            let log = Line::Log { process: 0, text: "hello".into() };
            let expected = [Line::Record(Record::Halted, vec![5]), log, Line::Raw("boo".into())];
            assert_eq!(lines, expected);
        }
    }

    #[test]
    fn cores_are_told_apart_wherever_the_bytes_arrive() {
        let bytes = b"=0 a\x81=0 o\x80b\n\x81n\n\x87lost\n\x80=1 c";
        let log = |process, text: &str| Line::Log { process, text: text.into() };
        for cut in 0..bytes.len() {
            let (mut speakers, mut lines) = (Speakers::new(2), Vec::new());
            speakers.push(&bytes[..cut], |core, line| lines.push((core, line)));
            speakers.push(&bytes[cut..], |core, line| lines.push((core, line)));
            speakers.finish(|core, line| lines.push((core, line)));
            let damage = (1, Line::Raw("\u{fffd}lost".into()));
            assert_eq!(lines, [(0, log(0, "ab")), (1, log(0, "on")), damage, (0, log(1, "c"))]);
        }
    }

    #[test]
    fn marks_count_from_the_kernels_first_record_on() {
        let boot = "~1 7 1 1 1 1\n";
        let bytes = [b"\x81BIOS \xff\n", boot.as_bytes(), b"=0 a\x81=0 b\n\xc8\n\x80n\n"].concat();
        let (mut port, mut lines) = (SerialPort::default(), Vec::new());
        port.push(&bytes, |core, line| lines.push((core, line)));
        port.push(b"\x81", |core, line| lines.push((core, line)));
        port.push(boot.as_bytes(), |core, line| lines.push((core, line)));
        port.push(b"\x82=0 c", |core, line| lines.push((core, line)));
        port.finish(|core, line| lines.push((core, line)));
        let log = |text: &str| Line::Log { process: 0, text: text.into() };
        let raw = |text: &str| Line::Raw(text.into());
        let booted = Line::parse(boot.as_bytes());
        let expected = [
            (0, raw("\u{fffd}BIOS \u{fffd}")),
            (0, booted.clone()),
            (1, log("b")),
            (1, raw("\u{fffd}")),
            (0, log("an")),
            (0, booted),
            (2, log("c")),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn one_core_sends_no_marks() {
        let (mut speakers, mut lines) = (Speakers::new(1), Vec::new());
        speakers.push(b"=0 a\x81b\n", |core, line| lines.push((core, line)));
        assert_eq!(lines, [(0, Line::Log { process: 0, text: "a\u{fffd}b".into() })]);
    }

    #[test]
    fn an_endless_line_is_cut() {
        let (mut splitter, mut lines) = (Splitter::default(), 0);
        splitter.push(&vec![b'x'; 3 * LINE_BYTES_MAX], |_| lines += 1);
        assert_eq!(lines, 3);
    }

    /// Lines that look like the kernel's but may be damaged anywhere.
    fn almost_a_line() -> impl Strategy<Value = Vec<u8>> {
        let words = prop::collection::vec(any::<u64>(), 0..10);
        let record = (0u64..40, words).prop_map(|(number, words)| {
            let words: String = words.iter().map(|word| format!(" {word:x}")).collect();
            format!("~{number:x}{words}").into_bytes()
        });
        prop_oneof![record, prop::collection::vec(any::<u8>(), 0..100)]
    }

    proptest! {
        #[test]
        fn nothing_that_arrives_can_upset_us(
            lines in prop::collection::vec(almost_a_line(), 0..20)
        ) {
            let (mut outcome, promised) = (Outcome::default(), sample::assumptions());
            for bytes in &lines {
                let line = Line::parse(bytes);
                outcome.note(&line);
                prop_assert!(!words::sentence(&line, &Names::default()).contains('\n'));
            }
            prop_assert!(outcome.render(&Names::default()).is_ascii());
            let json = outcome.to_json("any", &Names::default(), &[], &[], &promised);
            prop_assert_eq!(&json["holds"], true);
        }
    }
}

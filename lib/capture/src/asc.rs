//! ASC: the text format in which Vector's tools log CAN buses.
//!
//! ```text
//! date Thu Jan 1 12:00:00.000 AM 1970
//! base hex  timestamps absolute
//! internal events logged
//! Begin Triggerblock Thu Jan 1 12:00:00.000 AM 1970
//!    0.001000 1  123             Rx   d 4 DE AD BE EF
//!    0.002000 2  12345678x       Tx   r 4
//!    0.004000 1  ErrorFrame
//!    0.005000 CANFD   1 Rx  123  1 0 9 12 11 22 … CC  0 0 3000
//! End TriggerBlock
//! ```
//! A line with a time, a channel, an identifier and `Rx` or `Tx` must be a frame. One with `CANFD`
//! has a name if it likes, whether the data was fast and the sender error-passive, the data length
//! code, the number of bytes, and after the data a time, a length and flags. By these it is a frame
//! of CAN FD or a classic one on a bus that has both. Lines about
//! anything else are passed over: comments, statistics, other buses, requests to send (`TxRq`).

use crate::log::{BUS_ERROR, LogEntry};
use alloc::format;
use alloc::string::String;
use core::fmt;
use diapason_abi::Nanos;
use diapason_can::candump::LineContent;
use diapason_can::fd::{FD_BYTES_MAX, LENGTHS};
use diapason_can::frame::{BYTES_MAX, extended, standard};
use diapason_can::{AnyFrame, CanFrame, FdFrame, Id};

/// The lines before the first frame. Time 0 of a run is the beginning of Unix's time.
pub const HEADER: &str = "date Thu Jan 1 12:00:00.000 AM 1970\n\
    base hex  timestamps absolute\ninternal events logged\n\
    Begin Triggerblock Thu Jan 1 12:00:00.000 AM 1970\n   0.000000 Start of measurement\n";
/// The line after the last frame.
pub const FOOTER: &str = "End TriggerBlock\n";

/// Words that begin the lines of a header.
const HEADERS: [&str; 6] = ["date", "base", "internal", "no", "begin", "//"];
const CODE_MAX: u32 = 15;
/// Flags of a line with `CANFD`.
pub(crate) mod flag {
    pub const REMOTE: u32 = 1 << 4;
    pub const FD: u32 = 1 << 12;
    pub const FAST: u32 = 1 << 13;
    pub const PASSIVE: u32 = 1 << 14;
}

/// Why a line cannot be read: what, and at which byte of it, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AscError {
    /// Where the trouble begins.
    pub at: usize,
    pub what: AscTrouble,
}

/// A mistake in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AscTrouble {
    /// The base is neither `hex` nor `dec`.
    Base,
    /// The line begins with a digit, and with no time.
    Time,
    /// More than 584 years.
    TimeTooLarge,
    /// Channels are 1 to 65535.
    Channel,
    /// Neither 0 nor 1.
    Switch,
    /// A number of bytes other than the data length code means.
    Length,
    /// Neither a number of 11 bits, nor one of 29 bits with `x`.
    Identifier,
    /// Neither `d` nor `r`.
    Kind,
    /// Not a data length code.
    Code,
    /// Fewer bytes than the data length code says, or something else.
    Data,
}

impl fmt::Display for AscError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.what {
            AscTrouble::Base => "the base of numbers is `hex` or `dec`",
            AscTrouble::Time => "a time in seconds is expected, such as `0.001000`",
            AscTrouble::TimeTooLarge => "times reach 18446744073 seconds",
            AscTrouble::Channel => "a channel is a number from 1 to 65535",
            AscTrouble::Switch => "0 or 1 is expected",
            AscTrouble::Length => "the number of bytes is not that of the data length code",
            AscTrouble::Identifier => {
                "an identifier is a number up to 7FF, or up to 1FFFFFFF with `x` behind it"
            }
            AscTrouble::Kind => "`d` for data or `r` for a remote frame is expected",
            AscTrouble::Code => "a data length code from 0 to 15 is expected",
            AscTrouble::Data => "as many bytes are expected as the data length code says",
        };
        write!(f, "column {}: {text}", self.at + 1)
    }
}

/// Returns whether a line, without spaces around it, begins a file of this format.
pub(crate) fn is_header(line: &[u8]) -> bool {
    let is = |word: &&str| -> bool {
        let (word, rest) = (word.as_bytes(), line.get(word.len()));
        let begins = line.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
        begins && (word == b"//" || rest.is_some_and(u8::is_ascii_whitespace))
    };
    HEADERS.iter().any(is)
}

/// The state of a file that is read line by line: how its header says numbers and times are.
#[derive(Clone, Debug, Default)]
pub struct AscReader {
    /// Numbers are decimal, not hexadecimal.
    decimal: bool,
    /// Each time counts from that of the line before.
    relative: bool,
    last: Nanos,
}

/// A word, with its first byte in the line.
#[derive(Clone, Copy)]
struct Word<'a> {
    at: usize,
    text: &'a str,
}

impl Word<'_> {
    fn wrong(self, what: AscTrouble) -> AscError {
        AscError { at: self.at, what }
    }

    /// Reads the number of a channel.
    fn channel(self) -> Result<u16, AscError> {
        let number = self.text.parse().ok().filter(|number| *number > 0);
        number.ok_or(self.wrong(AscTrouble::Channel))
    }

    fn is(self, text: &str) -> bool {
        self.text.eq_ignore_ascii_case(text)
    }
}

/// The words of a line. At its end there is an empty one.
#[derive(Clone)]
struct Words<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Word<'a> {
        let blank = |c: char| c.is_ascii_whitespace();
        let rest = &self.line[self.at..];
        let begin = self.at + rest.find(|c| !blank(c)).unwrap_or(rest.len());
        let rest = &self.line[begin..];
        self.at = begin + rest.find(blank).unwrap_or(rest.len());
        Word { at: begin, text: &self.line[begin..self.at] }
    }
}

impl AscReader {
    /// Reads one line, without its end. Returns what it says about a CAN bus, if it does.
    ///
    /// # Errors
    /// Returns the mistake and its position.
    pub fn line(&mut self, line: &str) -> Result<Option<LogEntry>, AscError> {
        let mut words = Words { line, at: 0 };
        let first = words.next();
        if first.is("base") {
            return self.base(&mut words).map(|()| None);
        }
        if !first.text.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        let since = time(first)?;
        let time = if self.relative { self.last.0.checked_add(since.0) } else { Some(since.0) };
        let time = time.map(Nanos).ok_or(first.wrong(AscTrouble::TimeTooLarge))?;
        self.last = time;
        let report = self.event(&mut words)?;
        Ok(report.map(|(channel, report)| LogEntry { time, channel, report }))
    }

    fn base(&mut self, words: &mut Words<'_>) -> Result<(), AscError> {
        let base = words.next();
        self.decimal = base.is("dec");
        if !self.decimal && !base.is("hex") {
            return Err(base.wrong(AscTrouble::Base));
        }
        self.relative = words.next().is("timestamps") && words.next().is("relative");
        Ok(())
    }

    /// Reads what follows a time.
    fn event(&self, words: &mut Words<'_>) -> Result<Option<(u16, LineContent)>, AscError> {
        let channel = words.next();
        if channel.is("CANFD") {
            return self.fd_event(words);
        }
        let all_digits = channel.text.bytes().all(|byte| byte.is_ascii_digit());
        if channel.text.is_empty() || !all_digits {
            return Ok(None);
        }
        let (id, direction) = (words.next(), words.next());
        let is_error = id.is("ErrorFrame");
        if !is_error && !direction.is("Rx") && !direction.is("Tx") {
            return Ok(None);
        }
        let number = channel.channel()?;
        let report = match is_error {
            true => LineContent::Error { class: BUS_ERROR, details: [0; BYTES_MAX] },
            false => LineContent::Frame(self.frame(id, words)?.into()),
        };
        Ok(Some((number, report)))
    }

    /// Reads what follows `CANFD`.
    fn fd_event(&self, words: &mut Words<'_>) -> Result<Option<(u16, LineContent)>, AscError> {
        let (channel, direction, id) = (words.next(), words.next(), words.next());
        if !direction.is("Rx") && !direction.is("Tx") {
            return Ok(None);
        }
        let number = channel.channel()?;
        if id.is("ErrorFrame") {
            let report = LineContent::Error { class: BUS_ERROR, details: [0; BYTES_MAX] };
            return Ok(Some((number, report)));
        }
        let id = self.identifier(id)?;
        let mut fast = words.next();
        if fast.text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            fast = words.next();
        }
        let switch = |word: Word<'_>| match word.text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(word.wrong(AscTrouble::Switch)),
        };
        let (fast, passive) = (switch(fast)?, switch(words.next())?);
        let (code, length) = (words.next(), words.next());
        let wrong = code.wrong(AscTrouble::Code);
        let code = u32::from_str_radix(code.text, 16).ok().filter(|code| *code <= CODE_MAX);
        let (code, said) = (code.ok_or(wrong)? as usize, length.text.parse::<usize>().ok());
        let mut bytes = [0; FD_BYTES_MAX as usize];
        let wrong = length.wrong(AscTrouble::Length);
        let data = said.and_then(|said| bytes.get_mut(..said)).ok_or(wrong)?;
        self.data(words, data)?;
        let (_, _, flags) = (words.next(), words.next(), words.next());
        let flags = u32::from_str_radix(flags.text, 16).unwrap_or(flag::FD);
        let frame = match flags & (flag::FD | flag::REMOTE) {
            flag::REMOTE => CanFrame::remote(id, code).ok().map(AnyFrame::Classic),
            0 => classic(id, data, code).map(AnyFrame::Classic),
            _ if LENGTHS[code].0 as usize != data.len() => None,
            _ => FdFrame::new(id, data)
                .ok()
                .map(|frame| AnyFrame::Fd(frame.with_fast(fast).with_passive(passive))),
        };
        Ok(Some((number, LineContent::Frame(frame.ok_or(wrong)?))))
    }

    /// Reads bytes of data.
    fn data(&self, words: &mut Words<'_>, bytes: &mut [u8]) -> Result<(), AscError> {
        for byte in bytes {
            let word = words.next();
            let value = self.number(word.text).and_then(|value| u8::try_from(value).ok());
            *byte = value.ok_or(word.wrong(AscTrouble::Data))?;
        }
        Ok(())
    }

    fn identifier(&self, id: Word<'_>) -> Result<Id, AscError> {
        let named = match id.text.strip_suffix(['x', 'X']) {
            Some(digits) => self.number(digits).and_then(|raw| extended(raw).ok()),
            None => self.number(id.text).and_then(|raw| standard(raw).ok()),
        };
        named.ok_or(id.wrong(AscTrouble::Identifier))
    }

    fn frame(&self, id: Word<'_>, words: &mut Words<'_>) -> Result<CanFrame, AscError> {
        let (named, kind, length) = (self.identifier(id)?, words.next(), words.next());
        let code = self.number(length.text).filter(|code| *code <= CODE_MAX);
        if kind.is("r") {
            // Old files have no length here.
            let code = code.unwrap_or(0) as usize;
            return CanFrame::remote(named, code).map_err(|_| length.wrong(AscTrouble::Code));
        }
        if !kind.is("d") {
            return Err(kind.wrong(AscTrouble::Kind));
        }
        let wrong = length.wrong(AscTrouble::Code);
        let code = code.ok_or(wrong)? as usize;
        let mut bytes = [0; BYTES_MAX];
        let data = &mut bytes[..code.min(BYTES_MAX)];
        self.data(words, data)?;
        classic(named, data, code).ok_or(wrong)
    }

    /// Returns a number in the base of the file.
    fn number(&self, text: &str) -> Option<u32> {
        let (base, good): (u32, fn(&u8) -> bool) = match self.decimal {
            true => (10, u8::is_ascii_digit),
            false => (16, u8::is_ascii_hexdigit),
        };
        let digits = !text.is_empty() && text.as_bytes().iter().all(good);
        if digits { u32::from_str_radix(text, base).ok() } else { None }
    }
}

/// Returns the classic frame with this data and data length code, if there is one.
fn classic(id: Id, data: &[u8], code: usize) -> Option<CanFrame> {
    let frame = CanFrame::data(id, data).ok()?;
    frame.with_code(u8::try_from(code).ok()?).ok()
}

/// Returns a time in seconds, with up to nine digits after the point.
fn time(word: Word<'_>) -> Result<Nanos, AscError> {
    let (whole, fraction) = word.text.split_once('.').unwrap_or((word.text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return Err(word.wrong(AscTrouble::Time));
    }
    let part = fraction.bytes().fold(0, |n: u64, digit| n * 10 + u64::from(digit - b'0'));
    let part = part * 10u64.pow(9 - fraction.len() as u32);
    let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(1_000_000_000));
    let time = whole.and_then(|whole| whole.checked_add(part)).map(Nanos);
    time.ok_or(word.wrong(AscTrouble::TimeTooLarge))
}

/// Returns an entry as a line, with its end. Times are in microseconds, rounded down.
#[must_use]
pub fn line(entry: &LogEntry) -> String {
    let (seconds, micros) = (entry.time.0 / 1_000_000_000, entry.time.0 / 1_000 % 1_000_000);
    let time = format!("{seconds:4}.{micros:06}");
    let channel = entry.channel;
    let LineContent::Frame(frame) = entry.report else {
        return format!("{time} {channel}  ErrorFrame\n");
    };
    let id = match frame.is_extended() {
        true => format!("{:X}x", frame.raw_id()),
        false => format!("{:X}", frame.raw_id()),
    };
    let data: String = frame.bytes().iter().map(|byte| format!(" {byte:02X}")).collect();
    match frame {
        AnyFrame::Classic(frame) => {
            let kind = if frame.is_remote() { 'r' } else { 'd' };
            format!("{time} {channel}  {id:<15} Rx   {kind} {:x}{data}\n", frame.code())
        }
        AnyFrame::Fd(frame) => {
            let (fast, passive) = (u8::from(frame.is_fast()), u8::from(frame.is_passive()));
            let (code, length) = (frame.code(), frame.bytes().len());
            // The time on the bus and the number of bits are left out.
            format!(
                "{time} CANFD {channel:>3} Rx   {id:>9} {fast} {passive} {code:x} {length:>2}\
                 {data}        0    0 {:>8X}        0        0        0        0        0\n",
                fd_flags(&frame)
            )
        }
    }
}

/// Returns the flags of a frame of CAN FD.
pub(crate) fn fd_flags(frame: &FdFrame) -> u32 {
    let set = |set: bool, flag: u32| if set { flag } else { 0 };
    flag::FD | set(frame.is_fast(), flag::FAST) | set(frame.is_passive(), flag::PASSIVE)
}

//! The log format of candump: one line per frame.
//!
//! ```text
//! (1700000000.250001) can0 123#DEADBEEF        data, standard
//! (1700000000.250002) can0 18DB33F1#0201.0D    data, extended: eight digits
//! (1700000000.250003) can0 123#R4              remote, data length code 4
//! (1700000000.250004) can0 7FF#0102030405060708_9   data length code 9
//! (1700000000.250005) can0 20000080#0000000000000000   an error the controller reported
//! (1700000000.250006) can0 123##5112233445566778899AABBCC   CAN FD: flags, then data
//! ```
//! A trailing ` R` or ` T` (received or transmitted) is read and forgotten. The fraction of a
//! second may have one to nine digits; six are written, nine where they are needed. The flags of a
//! frame of CAN FD are a sum: 1 if its data goes at the rate of the data, 2 if its sender is
//! error-passive, and 4, which says that it is of CAN FD. The last may be missing.

use crate::fd::{AnyFrame, FD_BYTES_MAX, FdFrame};
use crate::frame::{BYTES_MAX, CanFrame, extended, standard};
use core::fmt;
use diapason_abi::Nanos;
use embedded_can::Id;

/// Marks an error frame in the identifier.
const ERROR_FLAG: u32 = 1 << 29;
const EXTENDED_MAX: u32 = 0x1fff_ffff;
/// The data of a frame of CAN FD goes at the rate of the data.
const FAST: u8 = 1;
/// The sender of a frame of CAN FD is error-passive.
const PASSIVE: u8 = 2;
/// The frame is of CAN FD.
const FD: u8 = 4;

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineContent {
    Frame(AnyFrame),
    /// An error: its class bits, and eight bytes about it (SocketCAN's meaning).
    Error {
        /// The class of the error.
        class: u32,
        details: [u8; BYTES_MAX],
    },
}

/// One line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine<'a> {
    pub time: Nanos,
    pub interface: &'a str,
    /// The content of the line.
    pub report: LineContent,
}

/// Why a line cannot be read: what, and at which byte of it, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogError {
    /// Where the trouble begins.
    pub at: usize,
    pub what: LogTrouble,
}

/// A mistake in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogTrouble {
    Time,
    /// More than 584 years.
    TimeTooLarge,
    /// No interface after the time.
    Interface,
    Separator,
    /// Not three or eight hexadecimal digits.
    Identifier,
    /// Beyond the largest of its format.
    IdentifierTooLarge {
        id: u32,
        max: u32,
    },
    /// A frame of CAN FD for a bus that has none.
    FlexibleDataRate,
    /// Not one digit of flags of CAN FD.
    Flags,
    /// A number of bytes that no frame of CAN FD has.
    FdLength {
        bytes: usize,
    },
    /// Not hexadecimal digits in pairs.
    Data,
    /// More than eight bytes.
    DataTooLong,
    /// Not one digit of a data length code that the data allows.
    Code,
    /// Something after the frame.
    Rest,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: ", self.at + 1)?;
        match self.what {
            LogTrouble::Time => write!(f, "a time is expected, such as `(1700000000.250001)`"),
            LogTrouble::TimeTooLarge => write!(f, "times reach 18446744073 seconds"),
            LogTrouble::Interface => write!(f, "an interface is expected, such as `can0`"),
            LogTrouble::Separator => write!(f, "a frame is expected, such as `123#DEADBEEF`"),
            LogTrouble::Identifier => {
                write!(f, "an identifier has 3 hexadecimal digits (11 bits) or 8 (29 bits)")
            }
            LogTrouble::IdentifierTooLarge { id, max } => {
                write!(f, "identifier {id:X} is too large: at most {max:X} fits")
            }
            LogTrouble::FlexibleDataRate => {
                write!(f, "`##` is a CAN FD frame, and this bus has classic frames only")
            }
            LogTrouble::Flags => write!(f, "the flags of a CAN FD frame are a digit 0 to 7"),
            LogTrouble::FdLength { bytes } => {
                write!(f, "{bytes} bytes: a CAN FD frame has 0 to 8, 12, 16, 20, 24, 32, 48 or 64")
            }
            LogTrouble::Data => write!(f, "data are hexadecimal digits in pairs"),
            LogTrouble::DataTooLong => {
                write!(f, "a classic frame has at most 8 bytes of data, one of CAN FD 64")
            }
            LogTrouble::Code => {
                write!(f, "a data length code is a digit 0 to F, after `_` 9 to F with 8 bytes")
            }
            LogTrouble::Rest => write!(f, "nothing but ` R` or ` T` may follow the frame"),
        }
    }
}

/// The unread rest of a line, with its position.
struct Cursor<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    fn trouble<T>(&self, what: LogTrouble) -> Result<T, LogError> {
        Err(LogError { at: self.at, what })
    }

    fn skip(&mut self, text: &str) -> bool {
        let there = self.rest().starts_with(text);
        self.at += if there { text.len() } else { 0 };
        there
    }

    fn expect(&mut self, text: &str, what: LogTrouble) -> Result<(), LogError> {
        if self.skip(text) { Ok(()) } else { self.trouble(what) }
    }

    fn take(&mut self, good: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !good(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn spaces(&mut self) -> bool {
        !self.take(|c| c == ' ' || c == '\t').is_empty()
    }
}

/// Reads one line, without its end.
///
/// # Errors
/// Returns the mistake and its position.
pub fn parse(line: &str) -> Result<LogLine<'_>, LogError> {
    let mut cursor = Cursor { line: line.trim_end(), at: 0 };
    cursor.spaces();
    let time = time(&mut cursor)?;
    if !cursor.spaces() {
        return cursor.trouble(LogTrouble::Interface);
    }
    let interface = cursor.take(|c| !c.is_whitespace());
    if interface.is_empty() || !cursor.spaces() {
        return cursor.trouble(LogTrouble::Interface);
    }
    let report = report(&mut cursor)?;
    if cursor.spaces() && !cursor.skip("R") {
        cursor.skip("T");
    }
    if cursor.rest().is_empty() {
        Ok(LogLine { time, interface, report })
    } else {
        cursor.trouble(LogTrouble::Rest)
    }
}

fn time(cursor: &mut Cursor<'_>) -> Result<Nanos, LogError> {
    cursor.expect("(", LogTrouble::Time)?;
    let begin = cursor.at;
    let seconds = cursor.take(|c| c.is_ascii_digit());
    cursor.expect(".", LogTrouble::Time)?;
    let fraction = cursor.take(|c| c.is_ascii_digit());
    if seconds.is_empty() || !(1..=9).contains(&fraction.len()) {
        return Err(LogError { at: begin, what: LogTrouble::Time });
    }
    cursor.expect(")", LogTrouble::Time)?;
    let digits = fraction.bytes().fold(0, |n: u64, digit| n * 10 + u64::from(digit - b'0'));
    let nanos = digits * 10u64.pow(9 - fraction.len() as u32);
    let whole = seconds.parse::<u64>().ok().and_then(|s| s.checked_mul(1_000_000_000));
    let time = whole.and_then(|whole| whole.checked_add(nanos)).map(Nanos);
    time.ok_or(LogError { at: begin, what: LogTrouble::TimeTooLarge })
}

fn report(cursor: &mut Cursor<'_>) -> Result<LineContent, LogError> {
    let begin = cursor.at;
    let digits = cursor.take(|c| c.is_ascii_hexdigit());
    cursor.expect("#", LogTrouble::Separator)?;
    let wrong = |what| LogError { at: begin, what };
    let raw = match digits.len() {
        3 | 8 => u32::from_str_radix(digits, 16).map_err(|_| wrong(LogTrouble::Identifier))?,
        _ => return Err(wrong(LogTrouble::Identifier)),
    };
    let too_large = |max| wrong(LogTrouble::IdentifierTooLarge { id: raw, max });
    let is_fd = cursor.skip("#");
    if !is_fd && digits.len() == 8 && raw & ERROR_FLAG != 0 && raw >> 30 == 0 {
        let (bytes, len) = data::<BYTES_MAX>(cursor)?;
        let class = raw & EXTENDED_MAX;
        return match len {
            BYTES_MAX => Ok(LineContent::Error { class, details: bytes }),
            _ => cursor.trouble(LogTrouble::Data),
        };
    }
    let id = match digits.len() {
        3 => standard(raw).map_err(|_| too_large(0x7ff))?,
        _ => extended(raw).map_err(|_| too_large(EXTENDED_MAX))?,
    };
    if is_fd {
        return Ok(LineContent::Frame(fd_frame(id, cursor)?.into()));
    }
    if cursor.skip("R") {
        let code = cursor.take(|c| c.is_ascii_hexdigit());
        let code = if code.is_empty() { Some(0) } else { hex(code) };
        let frame = code.and_then(|code| CanFrame::remote(id, code.into()).ok());
        let frame = frame.map_or_else(|| cursor.trouble(LogTrouble::Code), Ok)?;
        return Ok(LineContent::Frame(frame.into()));
    }
    let (bytes, len) = data::<BYTES_MAX>(cursor)?;
    let mut frame =
        CanFrame::data(id, &bytes[..len]).map_err(|_| wrong(LogTrouble::DataTooLong))?;
    if cursor.skip("_") {
        let code = hex(cursor.take(|c| c.is_ascii_hexdigit()));
        let coded = code.and_then(|code| frame.with_code(code).ok());
        frame = coded.map_or_else(|| cursor.trouble(LogTrouble::Code), Ok)?;
    }
    Ok(LineContent::Frame(frame.into()))
}

/// Returns the frame of CAN FD whose flags come next.
fn fd_frame(id: Id, cursor: &mut Cursor<'_>) -> Result<FdFrame, LogError> {
    let flags =
        cursor.rest().get(..1).and_then(hex).filter(|flags| flags & !(FAST | PASSIVE | FD) == 0);
    let Some(flags) = flags else { return cursor.trouble(LogTrouble::Flags) };
    cursor.at += 1;
    let begin = cursor.at;
    let (bytes, len) = data::<{ FD_BYTES_MAX as usize }>(cursor)?;
    let wrong = |_| LogError { at: begin, what: LogTrouble::FdLength { bytes: len } };
    let frame = FdFrame::new(id, &bytes[..len]).map_err(wrong)?;
    Ok(frame.with_fast(flags & FAST != 0).with_passive(flags & PASSIVE != 0))
}

/// Returns a single hexadecimal digit.
fn hex(digit: &str) -> Option<u8> {
    if digit.len() == 1 { u8::from_str_radix(digit, 16).ok() } else { None }
}

/// Pairs of digits, with dots between pairs if somebody likes them.
fn data<const MAX: usize>(cursor: &mut Cursor<'_>) -> Result<([u8; MAX], usize), LogError> {
    let (mut bytes, mut len) = ([0; MAX], 0);
    loop {
        if len > 0 {
            cursor.skip(".");
        }
        let pair = cursor.rest().get(..2);
        let all = |pair: &&str| pair.bytes().all(|byte| byte.is_ascii_hexdigit());
        match pair.filter(all).and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(_) if len == MAX => return cursor.trouble(LogTrouble::DataTooLong),
            Some(byte) => bytes[len] = byte,
            None if cursor.rest().starts_with(|c: char| c.is_ascii_hexdigit()) => {
                return cursor.trouble(LogTrouble::Data);
            }
            None => return Ok((bytes, len)),
        }
        len += 1;
        cursor.at += 2;
    }
}

impl fmt::Display for LogLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.time.0 / 1_000_000_000, self.time.0 % 1_000_000_000);
        match nanos % 1_000 {
            0 => write!(f, "({seconds:010}.{:06}) {} ", nanos / 1_000, self.interface)?,
            _ => write!(f, "({seconds:010}.{nanos:09}) {} ", self.interface)?,
        }
        match &self.report {
            LineContent::Error { class, details } => {
                write!(f, "{:08X}#", ERROR_FLAG | class & EXTENDED_MAX)?;
                details.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
            }
            LineContent::Frame(AnyFrame::Classic(frame)) => write_frame(f, frame),
            LineContent::Frame(AnyFrame::Fd(frame)) => write_fd(f, frame),
        }
    }
}

fn write_id(f: &mut fmt::Formatter<'_>, id: Id) -> fmt::Result {
    match id {
        Id::Extended(id) => write!(f, "{:08X}#", id.as_raw()),
        Id::Standard(id) => write!(f, "{:03X}#", id.as_raw()),
    }
}

fn write_fd(f: &mut fmt::Formatter<'_>, frame: &FdFrame) -> fmt::Result {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = FD | flag(frame.is_fast(), FAST) | flag(frame.is_passive(), PASSIVE);
    write_id(f, frame.id())?;
    write!(f, "#{flags}")?;
    frame.bytes().iter().try_for_each(|byte| write!(f, "{byte:02X}"))
}

fn write_frame(f: &mut fmt::Formatter<'_>, frame: &CanFrame) -> fmt::Result {
    write_id(f, frame.id())?;
    match (frame.is_remote(), frame.code()) {
        (true, 0) => return write!(f, "R"),
        (true, code) => return write!(f, "R{code:X}"),
        (false, _) => {}
    }
    frame.bytes().iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
    if frame.code() > BYTES_MAX as u8 {
        write!(f, "_{:X}", frame.code())?;
    }
    Ok(())
}

//! Logs of CAN buses: which format bytes are in, and how they read as candump writes them.

use crate::asc::{self, AscError};
use crate::blf::{self, BlfError};
use alloc::format;
use alloc::string::String;
use core::fmt::{self, Write};
use diapason_abi::Nanos;
use diapason_can::candump::{LineContent, LogLine};

/// Most entries that are taken from a log: three full buses at 500 kbit/s for ten minutes.
pub const ENTRIES_MAX: usize = 6_000_000;

/// The class bits of an error of which the log says nothing else: an error on the bus.
pub(crate) const BUS_ERROR: u32 = 0x80;

/// One frame or error of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The time since the measurement began.
    pub time: Nanos,
    /// The channel, counted from 1.
    pub channel: u16,
    pub report: LineContent,
}

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines as candump writes them.
    Candump,
    /// The text format of Vector's tools.
    Asc,
    /// The binary format of Vector's tools.
    Blf,
}

/// Why a log cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRefusal {
    /// The line, counted from 1, and its mistake.
    Asc(usize, AscError),
    Blf(BlfError),
    /// The log has more than [`ENTRIES_MAX`] entries.
    TooLong,
}

impl fmt::Display for LogRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogRefusal::Asc(line, error) => write!(f, "line {line}, {error}"),
            LogRefusal::Blf(error) => write!(f, "{error}"),
            LogRefusal::TooLong => write!(f, "the log has more than {ENTRIES_MAX} frames"),
        }
    }
}

impl LogFormat {
    /// Returns the format of a log by its first bytes. A log in neither format of Vector's
    /// tools is one of candump.
    #[must_use]
    pub fn of(bytes: &[u8]) -> LogFormat {
        if bytes.starts_with(blf::MAGIC) {
            return LogFormat::Blf;
        }
        let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
        if asc::is_header(first) { LogFormat::Asc } else { LogFormat::Candump }
    }
}

/// Returns a log of Vector's as candump would have written it, channel 1 as `can0`. `text` is the
/// text of `bytes`, which an ASC file is read from.
///
/// # Errors
/// Where the log is wrong, and how.
pub fn as_candump(format: LogFormat, bytes: &[u8], text: &str) -> Result<String, LogRefusal> {
    let (mut out, mut entries) = (String::new(), 0);
    let mut put = |entry: LogEntry| {
        entries += 1;
        let interface = format!("can{}", entry.channel.saturating_sub(1));
        let record = LogLine { time: entry.time, interface: &interface, report: entry.report };
        // A string takes all that it is given.
        let _ = writeln!(out, "{record}");
        entries <= ENTRIES_MAX
    };
    match format {
        LogFormat::Candump => return Ok(text.into()),
        LogFormat::Asc => {
            let mut reader = asc::AscReader::default();
            for (number, line) in (1..).zip(text.lines()) {
                let entry = reader.line(line).map_err(|error| LogRefusal::Asc(number, error))?;
                if entry.is_some_and(|entry| !put(entry)) {
                    return Err(LogRefusal::TooLong);
                }
            }
        }
        LogFormat::Blf => {
            let whole = blf::read(bytes, &mut put).map_err(LogRefusal::Blf)?;
            if !whole {
                return Err(LogRefusal::TooLong);
            }
        }
    }
    Ok(out)
}

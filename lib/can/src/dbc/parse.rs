//! From lines to messages and their signals. Lines that say nothing about how frames are read
//! (nodes, comments, attributes, …) are passed over.

use super::bits::{BitRange, ByteOrder};
use super::decimal::Decimal;
use super::line::{Cursor, Lines};
use super::trouble::{DbcError, DbcTrouble};
use super::{Dbc, DbcMessage, Number, Selection, Signal};
use crate::frame::{extended, standard};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

const MESSAGE: &str = "BO_ 256 Engine: 8 ECU";
const SIGNAL: &str = "SG_ Speed m1 : 0|16@1+ (0.01,-40) [0|655.35] \"km/h\" ECU";
const LABELS: &str = "VAL_ 256 Gear 0 \"neutral\" 1 \"first\" ;";
const NUMBERS: &str = "SIG_VALTYPE_ 256 Torque : 1;";
const CYCLE: &str = "BA_ \"GenMsgCycleTime\" BO_ 256 10;";
const DEFAULT: &str = "BA_DEF_DEF_ \"GenMsgCycleTime\" 0;";
const FORMATS: &str = "BA_DEF_ BO_ \"VFrameFormat\" ENUM \"StandardCAN\",\"StandardCAN_FD\";";
const CYCLE_TIME: &str = "GenMsgCycleTime";
const FRAME_FORMAT: &str = "VFrameFormat";
/// The end of the names of formats of CAN FD.
const FD_FORMAT: &str = "_FD";
/// The sender of messages that nobody sends.
const NO_SENDER: &str = "Vector__XXX";
const SELECTIONS: &str = "SG_MUL_VAL_ 256 Torque Gear 1-1, 3-5;";

/// Set in the number of a message with an extended identifier.
const EXTENDED: u32 = 1 << 31;
/// Both bits: a message that is none, of signals that are in no frame.
const NOWHERE: u32 = 3 << 30;

/// A signal's `m` and its line, until it is known which signal selects it.
struct Pending {
    signal: usize,
    line: usize,
    value: u64,
}

/// A message under construction.
struct Draft {
    number: u32,
    message: DbcMessage,
    /// Signals marked `M` and not selected themselves.
    selectors: Vec<usize>,
    pending: Vec<Pending>,
}

/// The parts read so far.
#[derive(Default)]
struct Reader {
    drafts: Vec<Draft>,
    /// The signals that follow are in no frame.
    nowhere: bool,
    /// A list of the file's own keywords is being read.
    keywords: bool,
    /// The cycle time of messages that do not say theirs.
    cycle: Option<u64>,
    /// The names of formats of frames, in the order of the file: their numbers are theirs only.
    formats: Vec<String>,
    /// Whether messages that do not say their format are of CAN FD.
    fd: Option<bool>,
}

/// Reads the text of a DBC file. Fails at the first line that makes no sense.
pub fn parse(text: &str) -> Result<Dbc, DbcError> {
    let mut reader = Reader::default();
    for line in Lines::of(text) {
        let (number, line) = line?;
        reader.line(number, line)?;
    }
    let cycle = reader.cycle;
    let fd = reader.fd;
    let messages = reader.drafts.into_iter().map(|draft| finish(draft, cycle, fd));
    let messages = messages.collect::<Result<_, _>>()?;
    Ok(Dbc { messages })
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), DbcError> {
        let trimmed = line.trim();
        let end = trimmed.find(|c: char| !c.is_alphanumeric() && c != '_');
        let (word, rest) = trimmed.split_at(end.unwrap_or(trimmed.len()));
        let listed = self.keywords && rest.is_empty() && line.starts_with([' ', '\t']);
        self.keywords = word == "NS_" || listed || self.keywords && word.is_empty();
        let cursor = |like| Cursor::new(number, rest, like);
        match word {
            _ if listed => Ok(()),
            "BO_" => self.message(cursor(MESSAGE)),
            "SG_" => self.signal(cursor(SIGNAL)),
            "VAL_" => self.labels(cursor(LABELS)),
            "SIG_VALTYPE_" => self.number_type(cursor(NUMBERS)),
            "BA_" => self.attribute(cursor(CYCLE)),
            "BA_DEF_" => self.definition(cursor(FORMATS)),
            "BA_DEF_DEF_" => self.default_value(cursor(DEFAULT)),
            "SG_MUL_VAL_" => self.selection(cursor(SELECTIONS)),
            _ => Ok(()),
        }
    }

    fn message(&mut self, mut line: Cursor<'_>) -> Result<(), DbcError> {
        let number: u32 = line.number("the message's number")?;
        let name = line.name("the message's name")?;
        line.pass(':', "`:`")?;
        let size = line.number("the message's size in bytes")?;
        let sender = line.begins_with_letter().then(|| line.name("the sender's name"));
        let sender = sender.transpose()?.filter(|name| *name != NO_SENDER);
        self.nowhere = number & NOWHERE == NOWHERE;
        if self.nowhere {
            return Ok(());
        }
        let id = match number & EXTENDED {
            0 => standard(number),
            _ => extended(number & !EXTENDED),
        };
        let Ok(id) = id else { return line.trouble(DbcTrouble::Identifier(number)) };
        if self.drafts.iter().any(|draft| draft.number == number) {
            return line.trouble(DbcTrouble::Twice(number.to_string()));
        }
        let message = DbcMessage {
            id,
            name: name.into(),
            size,
            sender: sender.map(Into::into),
            cycle_ms: None,
            fd: None,
            signals: Vec::new(),
        };
        let (selectors, pending) = (Vec::new(), Vec::new());
        self.drafts.push(Draft { number, message, selectors, pending });
        Ok(())
    }

    fn signal(&mut self, mut line: Cursor<'_>) -> Result<(), DbcError> {
        if self.nowhere {
            return Ok(());
        }
        let Some(draft) = self.drafts.last_mut() else {
            return line.trouble(DbcTrouble::NoMessage);
        };
        let name = line.name("the signal's name")?;
        let (selected, selects) = mark(&mut line)?;
        let place = place(&mut line)?;
        let signed = line.skip('-');
        if !signed {
            line.pass('+', "`+` (unsigned) or `-` (signed)")?;
        }
        let (scale, offset) = scaling(&mut line)?;
        let unit = line.text("the unit in quotes")?.into();
        let (needs, size) = (place.bytes(), draft.message.size);
        if needs > u32::from(size) {
            return line.trouble(DbcTrouble::Outside { needs, size });
        }
        let (number, labels) = (Number::Integer, Vec::new());
        let signal = Signal {
            name: name.into(),
            place,
            signed,
            number,
            scale,
            offset,
            unit,
            labels,
            when: None,
        };
        let fits = |raw| signal.value(raw).is_some();
        if !signal.extremes().into_iter().all(fits) {
            return line.trouble(DbcTrouble::TooManyDigits);
        }
        draft.add(signal, line.line, selected, selects)
    }

    /// Returns the signal that a line is about: message number and name. `None` if it is in no
    /// frame, or the line is about something else.
    fn find(&mut self, line: &mut Cursor<'_>) -> Result<Option<(usize, usize)>, DbcError> {
        let number: u32 = line.number("the message's number")?;
        let name = line.name("the signal's name")?;
        if number & NOWHERE == NOWHERE {
            return Ok(None);
        }
        let Some(draft) = self.drafts.iter().position(|draft| draft.number == number) else {
            return line.trouble(DbcTrouble::UnknownMessage(number));
        };
        let signals = &self.drafts[draft].message.signals;
        match signals.iter().position(|signal| signal.name == name) {
            Some(signal) => Ok(Some((draft, signal))),
            None => line.trouble(DbcTrouble::NoSignal(name.into())),
        }
    }

    fn labels(&mut self, mut line: Cursor<'_>) -> Result<(), DbcError> {
        // Those of an environment variable begin with its name.
        if line.begins_with_letter() {
            return Ok(());
        }
        let Some((draft, signal)) = self.find(&mut line)? else { return Ok(()) };
        let mut labels = Vec::new();
        while !line.skip(';') {
            let negative = line.skip('-');
            let raw: i128 = line.number("a value, or `;` at the end")?;
            let text: String = line.text("a text in quotes")?.into();
            labels.push((if negative { -raw } else { raw }, text));
        }
        self.drafts[draft].message.signals[signal].labels = labels;
        Ok(())
    }

    fn number_type(&mut self, mut line: Cursor<'_>) -> Result<(), DbcError> {
        let Some((draft, signal)) = self.find(&mut line)? else { return Ok(()) };
        line.skip(':');
        let kind: u8 = line.number("0 (integer), 1 (float) or 2 (double)")?;
        let signal = &mut self.drafts[draft].message.signals[signal];
        signal.number = match (kind, signal.place.length) {
            (0, _) => Number::Integer,
            (1, 32) => Number::Single,
            (2, 64) => Number::Double,
            (_, bits) => return line.trouble(DbcTrouble::FloatLength(bits)),
        };
        Ok(())
    }

    /// The cycle time or the format of a message; other attributes are passed over.
    fn attribute(&mut self, mut line: Cursor<'_>) -> Result<(), DbcError> {
        let name = line.text("the attribute's name in quotes")?;
        if ![CYCLE_TIME, FRAME_FORMAT].contains(&name) || !line.begins_with("BO_") {
            return Ok(());
        }
        line.name("`BO_`")?;
        let number: u32 = line.number("the message's number")?;
        let (mut cycle, mut fd) = (None, None);
        match name {
            CYCLE_TIME => cycle = Some(line.number("the time in ms")?),
            _ => fd = self.format(&mut line)?,
        }
        match self.drafts.iter_mut().find(|draft| draft.number == number) {
            Some(Draft { message, .. }) => {
                (message.cycle_ms, message.fd) = (cycle.or(message.cycle_ms), fd.or(message.fd));
            }
            None if number & NOWHERE == NOWHERE => {}
            None => return line.trouble(DbcTrouble::UnknownMessage(number)),
        }
        Ok(())
    }

    /// Returns whether a format is one of CAN FD, by its name in quotes or its number in the list.
    /// A file without a list says nothing of formats.
    fn format(&self, line: &mut Cursor<'_>) -> Result<Option<bool>, DbcError> {
        if line.begins_with("\"") {
            let name = line.text("the format's name in quotes")?;
            return Ok(Some(name.ends_with(FD_FORMAT)));
        }
        let number: usize = line.number("the number of a format, or its name in quotes")?;
        match self.formats.get(number) {
            None if self.formats.is_empty() => Ok(None),
            Some(name) => Ok(Some(name.ends_with(FD_FORMAT))),
            None => line.trouble(DbcTrouble::UnknownFormat(number)),
        }
    }

    /// The list of formats; other definitions are passed over.
    fn definition(&mut self, mut line: Cursor<'_>) -> Result<(), DbcError> {
        if !line.begins_with("BO_") {
            return Ok(());
        }
        line.name("`BO_`")?;
        if line.text("the attribute's name in quotes")? != FRAME_FORMAT || !line.begins_with("ENUM")
        {
            return Ok(());
        }
        line.name("`ENUM`")?;
        self.formats.clear();
        loop {
            self.formats.push(line.text("the name of a format in quotes")?.into());
            if !line.skip(',') {
                return Ok(());
            }
        }
    }

    /// The cycle time or the format of messages that do not say theirs.
    fn default_value(&mut self, mut line: Cursor<'_>) -> Result<(), DbcError> {
        match line.text("the attribute's name in quotes")? {
            CYCLE_TIME => self.cycle = Some(line.number("the time in ms")?),
            FRAME_FORMAT => self.fd = self.format(&mut line)?,
            _ => {}
        }
        Ok(())
    }

    fn selection(&mut self, mut line: Cursor<'_>) -> Result<(), DbcError> {
        let Some((draft, signal)) = self.find(&mut line)? else { return Ok(()) };
        let name = line.name("the name of the selecting signal")?;
        let signals = &mut self.drafts[draft].message.signals;
        let Some(by) = signals.iter().position(|other| other.name == name) else {
            return line.trouble(DbcTrouble::NoSignal(name.into()));
        };
        let mut ranges = Vec::new();
        loop {
            let low: u64 = line.number("a value")?;
            line.pass('-', "`-`")?;
            ranges.push((low, line.number("a value")?));
            if !line.skip(',') {
                break;
            }
        }
        line.pass(';', "`;`")?;
        signals[signal].when = Some(Selection { by, ranges });
        Ok(())
    }
}

impl Draft {
    fn add(
        &mut self,
        signal: Signal,
        line: usize,
        selected: Option<u64>,
        selects: bool,
    ) -> Result<(), DbcError> {
        let index = self.message.signals.len();
        if self.message.signals.iter().any(|other| other.name == signal.name) {
            return Err(DbcError { line, what: DbcTrouble::Twice(signal.name) });
        }
        match selected {
            Some(value) => self.pending.push(Pending { signal: index, line, value }),
            None if selects => self.selectors.push(index),
            None => {}
        }
        self.message.signals.push(signal);
        Ok(())
    }
}

/// `M`, `m3` or `m3M`: the value that selects the signal, and whether it selects others.
fn mark(line: &mut Cursor<'_>) -> Result<(Option<u64>, bool), DbcError> {
    if line.skip(':') {
        return Ok((None, false));
    }
    let what = "`M`, `m` with a number, or `:`";
    let marked = if line.skip('M') {
        (None, true)
    } else {
        line.pass('m', what)?;
        (Some(line.number(what)?), line.skip('M'))
    };
    line.pass(':', "`:`")?;
    Ok(marked)
}

fn place(line: &mut Cursor<'_>) -> Result<BitRange, DbcError> {
    let start = line.number("the start bit")?;
    line.pass('|', "`|`")?;
    let length: u64 = line.number("the length in bits")?;
    line.pass('@', "`@`")?;
    let order = if line.skip('1') {
        ByteOrder::Little
    } else {
        line.pass('0', "1 (Intel) or 0 (Motorola)")?;
        ByteOrder::Big
    };
    match u8::try_from(length) {
        Ok(length @ 1..=64) => Ok(BitRange { start, length, order }),
        _ => line.trouble(DbcTrouble::Length(length)),
    }
}

/// Scale and offset; the range is passed over.
fn scaling(line: &mut Cursor<'_>) -> Result<(Decimal, Decimal), DbcError> {
    line.pass('(', "`(` and the scale")?;
    let scale = line.decimal("the scale, a number of at most 18 digits")?;
    line.pass(',', "`,`")?;
    let offset = line.decimal("the offset, a number of at most 18 digits")?;
    line.pass(')', "`)`")?;
    line.pass('[', "`[` and the range")?;
    line.pass_decimal("the least value")?;
    line.pass('|', "`|`")?;
    line.pass_decimal("the greatest value")?;
    line.pass(']', "`]`")?;
    if scale.is_zero() {
        return line.trouble(DbcTrouble::ZeroScale);
    }
    Ok((scale, offset))
}

/// A signal marked `m` without a rule of its own is selected by the one signal marked `M`.
fn finish(draft: Draft, cycle: Option<u64>, fd: Option<bool>) -> Result<DbcMessage, DbcError> {
    let Draft { mut message, selectors, pending, .. } = draft;
    // A time of 0 is how files say that a message has none.
    message.cycle_ms = message.cycle_ms.or(cycle).filter(|cycle| *cycle > 0);
    message.fd = message.fd.or(fd);
    for Pending { signal, line, value } in pending {
        let when = &mut message.signals[signal].when;
        match selectors[..] {
            _ if when.is_some() => {}
            [by] => *when = Some(Selection { by, ranges: [(value, value)].into() }),
            _ => return Err(DbcError { line, what: DbcTrouble::Selector(selectors.len()) }),
        }
    }
    Ok(message)
}

//! DBC files: which signals are in which frames.
//!
//! ```text
//! BO_ 256 Engine: 8 ECU                                    a message: identifier, name, bytes
//!  SG_ Speed : 7|16@0+ (0.01,0) [0|655.35] "km/h" DASH     bits, scale and offset, unit
//!  SG_ Mode M : 16|8@1+ (1,0) [0|3] "" DASH                selects …
//!  SG_ Torque m1 : 24|16@1- (0.5,-10) [0|0] "Nm" DASH      … this one when it is 1
//! VAL_ 256 Mode 0 "off" 1 "drive" ;                        names of values
//! ```
//! Values are exact decimal numbers. Signals that `SIG_VALTYPE_` declares as floating-point numbers
//! are handed out as their bits.
//!
//! | file | topic |
//! |---|---|
//! | `line`, `parse` | the text |
//! | `bits` | where a signal is in a frame |
//! | `decimal` | numbers |
//! | `renumber` | the text with other identifiers |
//! | `trouble` | what can be wrong |

mod bits;
mod decimal;
mod line;
mod parse;
mod renumber;
mod trouble;

pub use bits::{BitRange, ByteOrder};
pub use decimal::Decimal;
pub use renumber::renumbered;
pub use trouble::{DbcError, DbcTrouble, EncodeRefusal};

use crate::Id;
use crate::fd::FD_BYTES_MAX;
use alloc::string::String;
use alloc::vec::Vec;

/// The content of a DBC file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dbc {
    /// In the order of the file.
    pub messages: Vec<DbcMessage>,
}

/// A kind of frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DbcMessage {
    pub id: Id,
    pub name: String,
    pub size: u16,
    /// The node that sends it, if the file names one.
    pub sender: Option<String>,
    /// The message's period, in ms, if the file says (`GenMsgCycleTime`).
    pub cycle_ms: Option<u64>,
    /// Whether the message is a frame of CAN FD, if the file says (`VFrameFormat`).
    pub fd: Option<bool>,
    /// In the order of the file.
    pub signals: Vec<Signal>,
}

/// The interpretation of a signal's bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    Integer,
    /// A floating-point number of 32 bits.
    Single,
    /// One of 64 bits.
    Double,
}

/// When a signal is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    /// The place of the signal that selects it.
    pub by: usize,
    /// The values of that which do, from … to ….
    pub ranges: Vec<(u64, u64)>,
}

/// A value in a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signal {
    pub name: String,
    pub place: BitRange,
    /// The signal's highest bit is a sign.
    pub signed: bool,
    /// The interpretation of the bits.
    pub number: Number,
    /// One step of the bits.
    pub scale: Decimal,
    /// The value of no bits.
    pub offset: Decimal,
    /// The unit; often empty.
    pub unit: String,
    /// Names of raw values.
    pub labels: Vec<(i128, String)>,
    /// The condition under which the signal is there, if not always.
    pub when: Option<Selection>,
}

/// The value of a signal in one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    Exact(Decimal),
    /// The bits of a floating-point number of 32 bits, before scale and offset.
    Single(u32),
    /// The bits of a floating-point number of 64 bits, before scale and offset.
    Double(u64),
}

/// A signal and what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading<'a> {
    pub signal: &'a Signal,
    pub value: Value,
    /// The name of the value, if it has one.
    pub label: Option<&'a str>,
}

impl Dbc {
    /// Parses a DBC file.
    ///
    /// # Errors
    /// The first line that cannot be used, and why.
    pub fn parse(text: &str) -> Result<Dbc, DbcError> {
        parse::parse(text)
    }

    /// Returns the message with this identifier.
    #[must_use]
    pub fn message(&self, id: Id) -> Option<&DbcMessage> {
        self.messages.iter().find(|message| message.id == id)
    }
}

impl Signal {
    /// Returns the least and the greatest raw value.
    #[must_use]
    pub fn extremes(&self) -> [i128; 2] {
        let values = 1i128 << self.place.length;
        if self.signed { [-values / 2, values / 2 - 1] } else { [0, values - 1] }
    }

    /// Returns the value of a raw one; `None` if it does not fit, which no file that was read
    /// allows.
    #[must_use]
    pub fn value(&self, raw: i128) -> Option<Decimal> {
        self.scale.times(raw)?.plus(self.offset)
    }

    fn signed_raw(&self, bits: u64) -> i128 {
        let [_, most] = self.extremes();
        let raw = i128::from(bits);
        if raw > most { raw - (1 << self.place.length) } else { raw }
    }

    fn read(&self, data: &[u8]) -> Option<Reading<'_>> {
        let bits = self.place.get(data)?;
        let raw = self.signed_raw(bits);
        let value = match self.number {
            Number::Integer => Value::Exact(self.value(raw)?),
            Number::Single => Value::Single(bits as u32),
            Number::Double => Value::Double(bits),
        };
        let label = self.labels.iter().find(|(of, _)| *of == raw);
        Some(Reading { signal: self, value, label: label.map(|(_, text)| text.as_str()) })
    }

    /// Returns the bits of a value.
    fn bits_of(&self, value: Decimal) -> Result<u64, EncodeRefusal> {
        let name = || self.name.clone();
        if self.number != Number::Integer {
            return Err(EncodeRefusal::Float(name()));
        }
        let steps = value.minus(self.offset).and_then(|steps| steps.over(self.scale));
        let raw = steps.ok_or_else(|| EncodeRefusal::Between(name()))?;
        let [least, most] = self.extremes();
        if (least..=most).contains(&raw) {
            Ok(raw as u64)
        } else {
            Err(EncodeRefusal::TooLarge(name()))
        }
    }
}

impl DbcMessage {
    /// Returns whether only a frame of CAN FD can be this message, by what the file says of its
    /// format or by its size.
    #[must_use]
    pub fn is_fd(&self) -> bool {
        self.fd.unwrap_or(usize::from(self.size) > crate::frame::BYTES_MAX)
    }

    /// Returns the values of the signals that this data contains, in the order of the file. Those
    /// that reach beyond the data, or are not selected, are left out.
    #[must_use]
    pub fn decode<'a>(&'a self, data: &[u8]) -> Vec<Reading<'a>> {
        let there = self.signals.iter().filter(|signal| self.is_there(signal, data));
        there.filter_map(|signal| signal.read(data)).collect()
    }

    /// Returns whether the signal is selected, and whatever selects it, and so on. Selections in a
    /// circle never are.
    fn is_there<'a>(&'a self, mut signal: &'a Signal, data: &[u8]) -> bool {
        for _ in 0..=self.signals.len() {
            let Some(when) = &signal.when else { return true };
            let Some(by) = self.signals.get(when.by) else { return false };
            let is_in = |value: u64| when.ranges.iter().any(|r| (r.0..=r.1).contains(&value));
            if !by.place.get(data).is_some_and(is_in) {
                return false;
            }
            signal = by;
        }
        false
    }

    /// Returns the data in which these signals have these values; all other bits are 0.
    ///
    /// # Errors
    /// A signal that there is not, or that cannot have its value.
    pub fn encode(&self, values: &[(&str, Decimal)]) -> Result<Vec<u8>, EncodeRefusal> {
        let mut data = [0; FD_BYTES_MAX as usize];
        for (name, value) in values {
            let signal = self.signals.iter().find(|signal| signal.name == *name);
            let signal = signal.ok_or_else(|| EncodeRefusal::NoSignal((*name).into()))?;
            signal.place.put(&mut data, signal.bits_of(*value)?);
        }
        Ok(data[..usize::from(self.size).min(data.len())].into())
    }
}

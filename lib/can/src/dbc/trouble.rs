//! The mistakes in a DBC file or in values to be encoded, and the remedies.

use alloc::string::String;
use core::fmt;

/// Why a file cannot be used: the line, counted from 1, and what is wrong there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DbcError {
    pub line: usize,
    pub what: DbcTrouble,
}

/// The kind of mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DbcTrouble {
    /// Something else is expected here.
    Expected {
        what: &'static str,
        /// The text found in its place.
        found: String,
        /// How the whole line should look.
        like: &'static str,
    },
    /// A text in quotes that never ends.
    OpenText,
    /// An identifier that is none.
    Identifier(u32),
    /// A second message with this identifier, or a second signal of a message with this name.
    Twice(String),
    /// A signal before any message.
    NoMessage,
    /// No such signal in this message.
    NoSignal(String),
    /// No message with this number.
    UnknownMessage(u32),
    /// The file's list of formats is shorter.
    UnknownFormat(usize),
    /// A signal of no bits, or of more than 64.
    Length(u64),
    /// A signal that reaches beyond its message's bytes.
    Outside {
        /// Bytes that it needs.
        needs: u32,
        /// Bytes that there are.
        size: u16,
    },
    /// A scale of 0.
    ZeroScale,
    /// A scale and an offset whose values do not fit.
    TooManyDigits,
    /// A selected signal in a message that has not exactly one selecting signal.
    Selector(usize),
    /// A floating-point type for a signal of this length.
    FloatLength(u8),
}

impl fmt::Display for DbcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.what {
            DbcTrouble::Expected { what, found, like } if found.is_empty() => {
                write!(f, "{what} is expected at its end; it should look like `{like}`")
            }
            DbcTrouble::Expected { what, found, like } => {
                write!(f, "{what} is expected at `{found}`; it should look like `{like}`")
            }
            DbcTrouble::OpenText => write!(f, "a text begins and does not end: close its quote"),
            DbcTrouble::Identifier(id) => write!(
                f,
                "{id} is no identifier: standard ones reach 2047, extended ones 536870911, with \
                 2147483648 added"
            ),
            DbcTrouble::Twice(name) => write!(f, "`{name}` is there twice: remove one of them"),
            DbcTrouble::NoMessage => write!(f, "a signal without a message: `BO_` comes first"),
            DbcTrouble::NoSignal(name) => {
                write!(f, "the message has no signal `{name}`: correct the name or remove the line")
            }
            DbcTrouble::UnknownMessage(id) => {
                write!(f, "there is no message {id} above: correct the number or remove the line")
            }
            DbcTrouble::UnknownFormat(number) => {
                write!(f, "the list of `VFrameFormat` has no format {number}: correct the number")
            }
            DbcTrouble::Length(length) => write!(f, "a signal has 1 to 64 bits, not {length}"),
            DbcTrouble::Outside { needs, size } => write!(
                f,
                "the signal needs {needs} bytes and its message has {size}: correct one of them"
            ),
            DbcTrouble::ZeroScale => write!(f, "a scale of 0 makes all values equal: write 1"),
            DbcTrouble::TooManyDigits => {
                write!(f, "scale and offset need too many digits: round them")
            }
            DbcTrouble::Selector(found) => write!(
                f,
                "a signal is selected by one that is marked `M`; the message has {found}: mark \
                 one, or say which with `SG_MUL_VAL_`"
            ),
            DbcTrouble::FloatLength(bits) => write!(
                f,
                "a floating-point signal has 32 bits (type 1) or 64 (type 2), this one has {bits}"
            ),
        }
    }
}

/// Why values cannot be put into a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EncodeRefusal {
    /// The message has no such signal.
    NoSignal(String),
    /// The value is between two that the signal can have.
    Between(String),
    /// The signal has not enough bits for the value.
    TooLarge(String),
    /// The signal is a floating-point number: set its bits instead.
    Float(String),
}

impl fmt::Display for EncodeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeRefusal::NoSignal(name) => write!(f, "the message has no signal `{name}`"),
            EncodeRefusal::Between(name) => {
                write!(f, "`{name}` cannot have this value: round it to its scale and offset")
            }
            EncodeRefusal::TooLarge(name) => write!(f, "`{name}` has too few bits for this value"),
            EncodeRefusal::Float(name) => write!(f, "`{name}` is a floating-point number"),
        }
    }
}

//! The type and the limits of the value of a key.

use std::ops::RangeInclusive;

/// A key that the reader asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownKey {
    /// The table, as it is written: `[[process]]`.
    pub table: &'static str,
    pub key: &'static str,
    pub kind: ValueKind,
}

/// The type and limits of a key's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// A list of tables.
    Tables,
    Text,
    /// One of these texts.
    Words(Vec<String>),
    Flag,
    Number(RangeInclusive<u64>),
    Numbers(RangeInclusive<u64>),
    /// A list of integers of 64 bits, with or without a sign.
    Integers,
    /// A list of texts.
    Names,
    /// A list of lists of texts.
    NameLists,
    /// A text with a unit, or a number of bytes.
    Size,
    /// A text with a unit.
    Duration,
    /// A text with a unit, or a list of such texts.
    Durations,
    /// The reader looks at the type itself.
    Any,
}

impl ValueKind {
    /// Returns the kind of a value that is one of these words.
    pub(crate) fn of_words<'a>(words: impl Iterator<Item = &'a str>) -> ValueKind {
        ValueKind::Words(words.map(String::from).collect())
    }
}

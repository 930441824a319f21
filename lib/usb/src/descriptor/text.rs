//! Texts, and the list of languages they come in.

use super::{DescriptorFlaw, DescriptorRefusal, Raw};
use crate::setup::descriptor_type::STRING;
use core::fmt;

/// A text as the device gives it, in UTF-16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    /// Parses a string descriptor.
    ///
    /// # Errors
    /// It is no text, or ends within a character.
    pub fn parse(bytes: &'a [u8]) -> Result<Text<'a>, DescriptorRefusal> {
        units(bytes).map(Text)
    }

    /// Returns its characters; what is none becomes the replacement character.
    pub fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        char::decode_utf16(halves(self.0)).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

impl fmt::Display for Text<'_> {
    /// Control characters are left out: a name must not move the reader's cursor.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.chars().filter(|c| !c.is_control()).try_for_each(|c| f.write_char(c))
    }
}

/// The languages in which a device has texts; at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Languages<'a>(&'a [u8]);

impl<'a> Languages<'a> {
    /// Reads them: text number 0.
    ///
    /// # Errors
    /// It is no such list, or an empty one.
    pub fn parse(bytes: &'a [u8]) -> Result<Languages<'a>, DescriptorRefusal> {
        let list = units(bytes)?;
        if list.is_empty() {
            return Err(DescriptorRefusal { offset: 0, reason: DescriptorFlaw::Text(0) });
        }
        Ok(Languages(list))
    }

    /// Returns the language numbers.
    pub fn iter(&self) -> impl Iterator<Item = u16> + use<'a> {
        halves(self.0)
    }
}

fn halves(bytes: &[u8]) -> impl Iterator<Item = u16> + use<'_> {
    bytes.as_chunks().0.iter().map(|pair| u16::from_le_bytes(*pair))
}

fn units(bytes: &[u8]) -> Result<&[u8], DescriptorRefusal> {
    let raw = Raw::first(bytes)?.expect(STRING, 2)?;
    let body = raw.bytes.get(2..).unwrap_or(&[]);
    if body.len() % 2 != 0 {
        return Err(raw.refuse(DescriptorFlaw::Text(body.len() as u8)));
    }
    Ok(body)
}

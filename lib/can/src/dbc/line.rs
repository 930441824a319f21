//! A DBC file as lines, and a line as words, numbers and texts.

use super::decimal::Decimal;
use super::trouble::{DbcError, DbcTrouble};

/// Lines with their numbers; one in which a text begins goes on until the text ends.
pub(crate) struct Lines<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> Lines<'a> {
    /// Returns the lines of a file.
    pub fn of(text: &'a str) -> Lines<'a> {
        Lines { rest: text.strip_prefix('\u{feff}').unwrap_or(text), number: 1 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Result<(usize, &'a str), DbcError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, mut open, mut escaped) = (self.number, false, false);
        let mut end = None;
        for (at, byte) in self.rest.bytes().enumerate() {
            match byte {
                b'"' if !escaped => open = !open,
                b'\n' => {
                    self.number += 1;
                    if !open {
                        end = Some(at);
                        break;
                    }
                }
                _ => {}
            }
            escaped = byte == b'\\' && !escaped;
        }
        if end.is_none() && open {
            self.rest = "";
            return Some(Err(DbcError { line, what: DbcTrouble::OpenText }));
        }
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.strip_prefix('\n').unwrap_or(rest);
        Some(Ok((line, text.strip_suffix('\r').unwrap_or(text))))
    }
}

/// The unread rest of a line, with the expected syntax.
pub(crate) struct Cursor<'a> {
    pub line: usize,
    rest: &'a str,
    like: &'static str,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the beginning of `rest`. `like` is an example of such a line.
    pub fn new(line: usize, rest: &'a str, like: &'static str) -> Cursor<'a> {
        Cursor { line, rest: rest.trim(), like }
    }

    /// Returns the error `what` at this line.
    pub fn trouble<T>(&self, what: DbcTrouble) -> Result<T, DbcError> {
        Err(DbcError { line: self.line, what })
    }

    fn expected<T>(&self, what: &'static str) -> Result<T, DbcError> {
        let found = self.rest.chars().take(20).collect();
        self.trouble(DbcTrouble::Expected { what, found, like: self.like })
    }

    /// Returns whether a name comes next.
    pub fn begins_with_letter(&self) -> bool {
        self.rest.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }

    /// Returns whether this comes next.
    pub fn begins_with(&self, text: &str) -> bool {
        self.rest.starts_with(text)
    }

    /// Passes this character and the spaces behind it, if it is next.
    pub fn skip(&mut self, c: char) -> bool {
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.map_or(self.rest, str::trim_start);
        rest.is_some()
    }

    /// Skips this character, or fails if another one comes.
    pub fn pass(&mut self, c: char, what: &'static str) -> Result<(), DbcError> {
        if self.skip(c) { Ok(()) } else { self.expected(what) }
    }

    fn take(&mut self, good: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !good(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        taken
    }

    /// Takes a name: letters, digits and `_`.
    pub fn name(&mut self, what: &'static str) -> Result<&'a str, DbcError> {
        let good = |c: char| c.is_alphanumeric() || c == '_';
        if self.rest.starts_with(good) { Ok(self.take(good)) } else { self.expected(what) }
    }

    /// Takes a number without sign.
    pub fn number<T: core::str::FromStr>(&mut self, what: &'static str) -> Result<T, DbcError> {
        let before = self.rest;
        let parsed = self.take(|c| c.is_ascii_digit()).parse();
        parsed.or_else(|_| {
            self.rest = before;
            self.expected(what)
        })
    }

    /// Takes a decimal number as text.
    fn digits(&mut self) -> &'a str {
        self.take(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'))
    }

    /// Takes a decimal number that will be used.
    pub fn decimal(&mut self, what: &'static str) -> Result<Decimal, DbcError> {
        let before = self.rest;
        let parsed = Decimal::parse(self.digits());
        parsed.map_or_else(
            || {
                self.rest = before;
                self.expected(what)
            },
            Ok,
        )
    }

    /// A decimal number of any size that will not be used.
    pub fn pass_decimal(&mut self, what: &'static str) -> Result<(), DbcError> {
        let before = self.rest;
        if self.digits().bytes().any(|byte| byte.is_ascii_digit()) {
            return Ok(());
        }
        self.rest = before;
        self.expected(what)
    }

    /// Takes a text in quotes, as it stands there.
    pub fn text(&mut self, what: &'static str) -> Result<&'a str, DbcError> {
        let Some(rest) = self.rest.strip_prefix('"') else { return self.expected(what) };
        let mut escaped = false;
        let end = rest.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let Some(end) = end else { return self.expected(what) };
        self.rest = rest[end + 1..].trim_start();
        Ok(&rest[..end])
    }
}

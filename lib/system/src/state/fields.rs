//! The fields of a state message: numbers and arrays of numbers, without gaps between them.
//!
//! Both ends of a message copy all bytes of a value, in Rust and in C. So a type must have the same
//! layout in both, and every byte must belong to a field.

use crate::declared::DeclaredState;
use crate::diagnostics::{Problem, Report};
use crate::source::At;
use crate::suggest::listed;

/// Most fields of a value, and most bytes.
const FIELDS_MAX: usize = 64;
const BYTES_MAX: u64 = 4_096;
/// Words with a meaning in Rust or in C, which no field can have as its name.
const KEYWORDS: &str = "\
     abstract as async auto await become bool box break case char const continue \
     crate default do double dyn else enum extern false final float fn for gen goto \
     if impl in inline int let long loop macro match mod move mut override priv pub \
     ref register restrict return self short signed sizeof static struct super switch \
     trait true try type typedef typeof union unsafe unsigned unsized use virtual \
     void volatile where while yield";

/// A type of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateNumber {
    /// The name in Rust.
    pub rust: &'static str,
    /// The name in C.
    pub c: &'static str,
    pub bytes: u64,
}

const NUMBERS: [StateNumber; 10] = [
    number("u8", "uint8_t", 1),
    number("u16", "uint16_t", 2),
    number("u32", "uint32_t", 4),
    number("u64", "uint64_t", 8),
    number("i8", "int8_t", 1),
    number("i16", "int16_t", 2),
    number("i32", "int32_t", 4),
    number("i64", "int64_t", 8),
    number("f32", "float", 4),
    number("f64", "double", 8),
];

const fn number(rust: &'static str, c: &'static str, bytes: u64) -> StateNumber {
    StateNumber { rust, c, bytes }
}

/// A field of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateField {
    pub name: String,
    pub number: StateNumber,
    /// The length of an array of numbers; `None`: one number.
    pub length: Option<u64>,
}

impl StateField {
    /// Returns the bytes of the field.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.number.bytes.saturating_mul(self.length.unwrap_or(1))
    }
}

/// Returns the bytes of a value with these fields.
pub(super) fn bytes(fields: &[StateField]) -> u64 {
    fields.iter().map(StateField::bytes).fold(0, u64::saturating_add)
}

/// Returns a name as a word of Rust and C.
#[must_use]
pub(crate) fn word(name: &str) -> String {
    name.replace(['-', '.'], "_")
}

/// Returns why a word cannot be used in Rust and C.
fn unusable(word: &str) -> Option<String> {
    let begins = word.starts_with(|c: char| c.is_ascii_lowercase());
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !begins || !word.chars().all(fine) || word.len() > 31 {
        return Some("write 1 to 31 characters of a-z, 0-9 and `_`, the first a letter".into());
    }
    let is_keyword = KEYWORDS.split_whitespace().any(|keyword| keyword == word);
    is_keyword.then(|| "choose another: the word has a meaning in Rust or in C".into())
}

/// Reports a name that is, as a word of Rust and C, no word or that of another message.
pub(super) fn same_word(before: &[DeclaredState], state: &DeclaredState, report: &mut Report) {
    let (name, span) = (&state.name.value, &state.name.span);
    if let Some(help) = unusable(&word(name)).filter(|_| !name.is_empty()) {
        let title = format!("programs cannot have a module `{}`", word(name));
        report.push(Problem::new(span, title, help));
    }
    // Two equal names have been reported.
    let is = |it: &&DeclaredState| word(&it.name.value) == word(name) && it.name.value != *name;
    if let Some(first) = before.iter().find(is) {
        let title = format!("`{name}` and `{}` are one word in programs", first.name.value);
        let problem = Problem::new(span, title, "rename one: `-` and `.` become `_`");
        report.push(problem.with(&first.name.span, "the first"));
    }
}

/// Reads the fields of a message, and reports what cannot be one.
pub(super) fn read(
    name: &At<String>,
    written: &[At<String>],
    report: &mut Report,
) -> Vec<StateField> {
    let mut fields: Vec<StateField> = Vec::new();
    for text in written {
        match parse(&text.value) {
            Ok(field) if fields.iter().any(|other| other.name == field.name) => {
                let title = format!("two fields `{}`", field.name);
                report.push(Problem::new(&text.span, title, "rename one of them"));
            }
            Ok(field) => fields.push(field),
            Err((title, help)) => report.push(Problem::new(&text.span, title, help)),
        }
    }
    if fields.len() == written.len() {
        without_gaps(&fields, written, report);
        let bytes = fields.iter().map(StateField::bytes).fold(0, u64::saturating_add);
        if bytes > BYTES_MAX || fields.len() > FIELDS_MAX {
            let title = format!("a value of {bytes} bytes in {} fields is too large", fields.len());
            let help = format!("have at most {BYTES_MAX} bytes in {FIELDS_MAX} fields");
            report.push(Problem::new(&name.span, title, help));
        }
    }
    fields
}

fn parse(text: &str) -> Result<StateField, (String, String)> {
    let example = || "write it as in `\"turns: u32\"` or `\"samples: [u16; 8]\"`".to_owned();
    let (name, kind) =
        text.split_once(':').ok_or_else(|| (format!("`{text}` is no field"), example()))?;
    let (name, kind) = (name.trim(), kind.trim());
    if let Some(help) = unusable(name) {
        return Err((format!("a field cannot be called `{name}`"), help));
    }
    let array = kind.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let (number, length) = match array.map(|inner| inner.split_once(';')) {
        None => (kind, None),
        Some(Some((number, length))) => {
            let length = length.trim().parse::<u64>().ok();
            let length = length.filter(|length| (1..=BYTES_MAX).contains(length));
            let wrong = || (format!("`{kind}` is no array of 1 to {BYTES_MAX}"), example());
            (number.trim(), Some(length.ok_or_else(wrong)?))
        }
        Some(None) => return Err((format!("`{kind}` has no length"), example())),
    };
    let known = NUMBERS.into_iter().find(|it| it.rust == number).ok_or_else(|| {
        let all = listed(NUMBERS.iter().map(|it| it.rust), "or");
        (format!("`{number}` is no type of numbers"), format!("write {all}, or an array of one"))
    })?;
    Ok(StateField { name: name.to_owned(), number: known, length })
}

/// Reports the first gap between fields, or after the last one.
fn without_gaps(fields: &[StateField], written: &[At<String>], report: &mut Report) {
    let mut at = 0_u64;
    for (field, text) in fields.iter().zip(written) {
        let gap = at.next_multiple_of(field.number.bytes) - at;
        if gap > 0 {
            let title = format!("there would be {gap} bytes of nothing before `{}`", field.name);
            let help = format!(
                "put fields with longer numbers first, or `\"gap: [u8; {gap}]\"` before this one"
            );
            return report.push(Problem::new(&text.span, title, help));
        }
        at = at.saturating_add(field.bytes());
    }
    let whole = fields.iter().map(|field| field.number.bytes).max().unwrap_or(1);
    let gap = at.checked_next_multiple_of(whole).unwrap_or(at) - at;
    if let Some(last) = written.last().filter(|_| gap > 0) {
        let title = format!("there would be {gap} bytes of nothing at the end of a value");
        let help = format!("add the field `\"gap: [u8; {gap}]\"`");
        report.push(Problem::new(&last.span, title, help));
    }
}

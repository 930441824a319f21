//! The same DBC file with other identifiers: whatever names a message by its number follows.

use super::line::Lines;
use super::trouble::DbcError;
use crate::Id;
use alloc::format;
use alloc::string::String;

/// Set in the number of a message with an extended identifier.
const EXTENDED: u32 = 1 << 31;
/// Lines whose first number is that of a message.
const DIRECT: [&str; 6] = ["BO_", "VAL_", "SIG_VALTYPE_", "SG_MUL_VAL_", "BO_TX_BU_", "SIG_GROUP_"];
/// Lines that say what they are about before the number.
const ABOUT: [&str; 3] = ["CM_", "BA_", "BA_REL_"];
/// The words behind those after which the number of a message comes, at once or after a node.
const OF_MESSAGE: [&str; 2] = ["BO_", "SG_"];
const OF_NODE: [&str; 2] = ["BU_BO_REL_", "BU_SG_REL_"];

/// Returns the number of a message in a file.
#[must_use]
pub fn number(id: Id) -> u32 {
    match id {
        Id::Standard(id) => id.as_raw().into(),
        Id::Extended(id) => id.as_raw() | EXTENDED,
    }
}

/// Returns the text with every message that `ids` names first under the identifier that it names
/// second.
///
/// # Errors
/// A text in the file that never ends.
pub fn renumbered(text: &str, ids: &[(Id, Id)]) -> Result<String, DbcError> {
    let mut out = String::new();
    if text.starts_with('\u{feff}') {
        out.push('\u{feff}');
    }
    let ends = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut first = true;
    for line in Lines::of(text) {
        let (_, line) = line?;
        if !first {
            out += ends;
        }
        first = false;
        out += &with_number(line, ids);
    }
    if text.ends_with('\n') {
        out += ends;
    }
    Ok(out)
}

fn with_number(line: &str, ids: &[(Id, Id)]) -> String {
    let unchanged = || String::from(line);
    let Some((from, to)) = place(line) else { return unchanged() };
    let Ok(written) = line[from..to].parse::<u32>() else { return unchanged() };
    let Some((_, new)) = ids.iter().find(|(old, _)| number(*old) == written) else {
        return unchanged();
    };
    format!("{}{}{}", &line[..from], number(*new), &line[to..])
}

/// Returns the place of a message's number in a line.
fn place(line: &str) -> Option<(usize, usize)> {
    let mut words = Words { line, at: 0 };
    let keyword = words.next()?;
    if DIRECT.contains(&keyword.text) {
        return words.next().map(|word| word.place);
    }
    if !ABOUT.contains(&keyword.text) {
        return None;
    }
    // An attribute has its name in quotes first.
    let about = words.find(|word| !word.text.starts_with('"'))?;
    if OF_NODE.contains(&about.text) {
        words.next()?;
    } else if !OF_MESSAGE.contains(&about.text) {
        return None;
    }
    let next = words.next()?;
    if next.text == "SG_" { words.next().map(|word| word.place) } else { Some(next.place) }
}

struct Word<'a> {
    text: &'a str,
    place: (usize, usize),
}

/// Words, and texts in quotes as one word each.
struct Words<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let rest = &self.line[self.at..];
        let from = self.at + (rest.len() - rest.trim_start().len());
        let rest = &self.line[from..];
        let length = match rest.strip_prefix('"') {
            Some(text) => text.find('"').map_or(rest.len(), |end| end + 2),
            None => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                end.unwrap_or(rest.len()).max(usize::from(!rest.is_empty()))
            }
        };
        let text = rest.get(..length).filter(|text| !text.is_empty())?;
        self.at = from + length;
        Some(Word { text, place: (from, from + length) })
    }
}

//! `include`: parts of a description in files of their own.
//!
//! A part has lists of tables, which follow those of the description. Every text becomes a table by
//! itself, so a mistake in one file does not change what another means. The places of all of them
//! are places in one [`Source`], in which the texts follow each other.

use crate::Find;
use crate::diagnostics::{Diagnostics, Problem, Report};
use crate::source::{At, Source, Span};
use crate::syntax;
use crate::table::{Raw, Table};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The key that names the parts.
pub(crate) const INCLUDE: &str = "include";
/// Most parts of a description.
const PARTS_MAX: usize = 16;

/// A description's own table and the texts of its parts.
pub(crate) struct Parts {
    pub source: Source,
    /// The text of each part, behind as many blanks as there are bytes before it in the source.
    texts: Vec<String>,
}

impl Parts {
    /// Reads the files that the table of a description includes. `find` finds a file by its name,
    /// seen from the description: the name that messages use, and the text; or why there is none.
    ///
    /// # Errors
    /// The files that cannot be read, and what else was found wrong before.
    pub fn read(
        source: Source,
        table: &DeTable<'_>,
        find: &mut Find<'_>,
        report: &mut Report,
    ) -> Result<Parts, Diagnostics> {
        let mut parts = Parts { source, texts: Vec::new() };
        let (mut wrong, mut keys) = (Report::new(), Report::new());
        let raw = Raw { entries: table, place: 0..0 };
        let named = named(&mut Table::new("the description", "description", raw, &mut keys));
        if let Some(extra) = named.get(PARTS_MAX) {
            let title = format!("{} parts, the most is {PARTS_MAX}", named.len());
            let help = "put several of them into one file";
            wrong.push(Problem::new(&extra.span, title, help));
        }
        for (index, name) in named.iter().enumerate().take(PARTS_MAX) {
            let twice = named[..index].iter().find(|first| first.value == name.value);
            if let Some(first) = twice {
                let title = format!("`{}` is included twice", name.value);
                let problem = Problem::new(&name.span, title, "remove one of them");
                wrong.push(problem.with(&first.span, "the first"));
                continue;
            }
            match find(&name.value) {
                Ok((file_name, text)) => parts.add(&file_name, &text),
                Err(why) => {
                    let title = format!("cannot read `{}`: {why}", name.value);
                    let help = "name a file, seen from the folder of this one";
                    wrong.push(Problem::new(&name.span, title, help));
                }
            }
        }
        if wrong.is_empty() {
            return Ok(parts);
        }
        report.extend(wrong);
        Err(Diagnostics::new(parts.source, std::mem::take(report)))
    }

    fn add(&mut self, file_name: &str, text: &str) {
        // The mark in front of a text is none of it, and a table cannot begin with it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (source, start) = self.source.with(file_name, text);
        self.source = source;
        self.texts.push(" ".repeat(start) + text);
    }

    /// Adds the tables of all parts to that of the description.
    pub fn join<'t>(&'t self, table: &mut DeTable<'t>, report: &mut Report) {
        for text in &self.texts {
            let part = syntax::table(text, report);
            for (key, value) in part.into_inner() {
                one(table, key, value, report);
            }
        }
    }
}

/// Reads the names of the parts.
pub(crate) fn named(top: &mut Table<'_, '_>) -> Vec<At<String>> {
    top.texts(INCLUDE, "include = [\"usb.toml\"]")
}

/// Adds what a part has under a key.
fn one<'t>(
    table: &mut DeTable<'t>,
    key: Spanned<std::borrow::Cow<'t, str>>,
    value: Spanned<DeValue<'t>>,
    report: &mut Report,
) {
    let place = key.span();
    if key.get_ref() == INCLUDE {
        let help = "name all parts in the description itself";
        report.push(Problem::new(&place, "a part includes nothing", help));
        return;
    }
    let Some(there) = table.get_mut(key.get_ref().as_ref()) else {
        table.insert(key, value);
        return;
    };
    let (first, name) = (there.span(), key.into_inner());
    match (there.get_mut(), value.into_inner()) {
        (DeValue::Array(all), DeValue::Array(more)) => more.into_iter().for_each(|it| all.push(it)),
        _ => report.push(twice(&name, &place, &first)),
    }
}

/// Returns the problem of a table that stands in two files, and may stand once.
fn twice(key: &str, place: &Span, first: &Span) -> Problem {
    let title = format!("`{key}` is in two files");
    Problem::new(place, title, "keep it in one of them").with(first, "the first")
}

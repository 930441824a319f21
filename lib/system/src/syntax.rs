//! The text as TOML. Syntax errors are re-told with a remedy, one per line, and the rest of the
//! text is still looked at.

use crate::diagnostics::{Problem, Report};
use crate::shorthand;
use crate::source::{Lines, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

/// Returns the tables of `text`, as far as they can be recognized.
pub(crate) fn table<'t>(text: &'t str, report: &mut Report) -> Spanned<DeTable<'t>> {
    let (table, mut errors) = DeTable::parse_recoverable(text);
    errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
    let open = errors.iter().find_map(|error| unclosed(error, table.get_ref()));
    let end = open.as_ref().map_or(text.len() + 1, |open| open.start);
    let lines = Lines::of(text);
    let mut last_line = None;
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        let line = lines.number(span.start);
        if last_line != Some(line) && span.start < end {
            report.push(problem(text, error, &span));
        }
        last_line = Some(line);
    }
    if let Some(open) = open {
        report.push(swallowing(text, &open));
    }
    table
}

/// Returns the list or inline table that `error` found open at its end. It has swallowed the text
/// after it, so whatever is found wrong there is noise.
fn unclosed(error: &Error, table: &DeTable<'_>) -> Option<Span> {
    let is_value = ["unclosed array", "unclosed inline table"];
    let end = error.span().filter(|_| is_value.iter().any(|m| error.message().starts_with(m)))?;
    table.iter().find_map(|(_, value)| ending_at(end.start, value))
}

/// Returns the outermost list or table in `value` that ends at `end`.
fn ending_at(end: usize, value: &Spanned<DeValue<'_>>) -> Option<Span> {
    match value.get_ref() {
        DeValue::Array(_) | DeValue::Table(_) if value.span().end == end => Some(value.span()),
        DeValue::Array(array) => array.iter().find_map(|element| ending_at(end, element)),
        DeValue::Table(table) => table.iter().find_map(|(_, value)| ending_at(end, value)),
        _ => None,
    }
}

fn swallowing(text: &str, open: &Span) -> Problem {
    let bracket = text.get(open.start..open.start + 1).unwrap_or("[");
    let close = if bracket == "{" { "}" } else { "]" };
    let title = format!("`{bracket}` is never closed");
    Problem::new(&(open.start..open.start + 1), title, format!("close it with `{close}`"))
        .swallowing()
}

fn problem(text: &str, error: &Error, span: &Span) -> Problem {
    let (title, expected) = match error.message().split_once(", expected ") {
        Some((title, expected)) if expected != "nothing" => (title, format!("expected {expected}")),
        Some((title, _)) => (title, String::new()),
        None => (error.message(), String::new()),
    };
    let written = text.get(span.clone()).unwrap_or("");
    let is_header = text.get(..span.start).is_some_and(|before| before.ends_with('['));
    if title == "duplicate key" && is_header {
        return second_table(span, written);
    }
    if title == "string values must be quoted" && written.is_empty() {
        let help = "write a number, a \"text\" or a [list] after the `=`";
        return Problem::new(span, "the value is missing", help).syntax();
    }
    let problem = Problem::new(span, title, help(title, written)).syntax();
    if title == "string values must be quoted" { problem } else { problem.label(expected) }
}

/// A header in single brackets stands in the text a second time.
fn second_table(span: &Span, name: &str) -> Problem {
    let single = ["system", "scheduling", "network", "machine", shorthand::KEY];
    let help = if single.contains(&name) {
        format!("a description has one `[{name}]`: write the keys of both in the first")
    } else {
        format!("write `[[{name}]]`, with double brackets, for each of them")
    };
    Problem::new(span, format!("`[{name}]` stands here a second time"), help).syntax()
}

/// Returns the remedy for the parser's message `title`.
fn help(title: &str, written: &str) -> String {
    const HELPS: [(&str, &str); 12] = [
        ("duplicate key", "keep one of them"),
        ("key with no value", "write `key = value`"),
        ("missing comma", "separate the elements with `,` and close the list with `]`"),
        ("in array", "separate the elements with `,` and close the list with `]`"),
        ("unclosed", "close the bracket in the same line"),
        ("invalid basic string", "close the text with `\"` in the same line"),
        ("invalid literal string", "close the text with `'` in the same line"),
        ("invalid multi-line", "close the text the way it was opened"),
        ("leading zero", "write the number without the zero in front; hexadecimal is `0x10`"),
        ("signed", "write the number without a sign, or in decimal"),
        ("escape", "write a backslash as `\\\\`"),
        ("unexpected key or value", "write one `key = value` per line"),
    ];
    if title.starts_with("string values must be quoted") {
        return format!("write `\"{}\"`", written.trim());
    }
    let known = HELPS.iter().find(|(part, _)| title.contains(part));
    known.map_or("https://toml.io shows how TOML is written", |(_, help)| help).to_owned()
}

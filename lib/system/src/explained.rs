//! `diapason explain`: what a description became, as a description again.
//!
//! The text has every table of the description, of its parts, and of what `[usbd]` stands for.
//! Beside each value stands where it is from. Comments at the end name the objects that follow from
//! pipes, sockets, chains and state messages: no table could say them, because they would be there
//! twice.

use crate::declared::{Declared, Named};
use crate::diagnostics::{Diagnostics, Report};
use crate::hosts;
use crate::parts;
use crate::shorthand::{self, Brought};
use crate::source::{Source, Span};
use crate::units::show_size;
use crate::{Whole, cores_of, expand, read, syntax, whole};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The column of comments, counted from 0.
const COLUMN: usize = 40;

/// Returns what `text` became: a description that means the same, without `[usbd]` and `include`.
/// A list of hosts stays what it is. `find` finds what a description includes.
///
/// # Errors
/// Everything that is wrong with the description. Of a list, only what makes it no TOML.
pub fn explained(
    file_name: &str,
    text: &str,
    mut find: impl FnMut(&str) -> Result<(String, String), String>,
) -> Result<String, Diagnostics> {
    let (mut report, source) = (Report::new(), Source::new(file_name, text));
    let table = syntax::table(text, &mut report);
    if hosts::lists_hosts(table.get_ref()) {
        return match report.is_empty() {
            true => Ok(Explained::of(&source, &table, &[]).tables(table.get_ref())),
            false => Err(Diagnostics::new(source, report)),
        };
    }
    whole((source, table, report), &mut find, of_host)?
}

fn of_host(source: Source, it: Whole<'_>, report: Report) -> Result<String, Diagnostics> {
    let Whole { table, brought } = it;
    cores_of(source.clone(), it, report)?;
    let text = Explained::of(&source, table, brought).tables(table.get_ref());
    Ok(text + &follows(table))
}

/// A description that is written out.
struct Explained<'a> {
    source: &'a Source,
    /// Where `[usbd]` is, and what it stands for.
    server: Option<Span>,
    brought: &'a [Brought],
}

/// A table with its header, in the order in which it is written.
struct Part<'t> {
    list: &'t str,
    header: String,
    place: (usize, usize),
    entries: &'t DeTable<'t>,
}

impl<'a> Explained<'a> {
    fn of(
        source: &'a Source,
        table: &Spanned<DeTable<'_>>,
        brought: &'a [Brought],
    ) -> Explained<'a> {
        let server = table.get_ref().get(shorthand::KEY).map(Spanned::span);
        Explained { source, server, brought }
    }

    /// Returns all tables, in the order of the text.
    fn tables(&self, table: &DeTable<'_>) -> String {
        let mut parts = Vec::new();
        for (key, value) in table {
            let list = key.get_ref().as_ref();
            match value.get_ref() {
                _ if [shorthand::KEY, parts::INCLUDE].contains(&list) => {}
                DeValue::Table(entries) => {
                    let (header, place) = (format!("[{list}]"), (value.span().start, 0));
                    parts.push(Part { list, header, place, entries });
                }
                DeValue::Array(all) => {
                    let entries = all.iter().filter_map(|each| each.get_ref().as_table());
                    parts.extend(entries.map(|entries| {
                        let (header, place) = (format!("[[{list}]]"), self.place(list, entries));
                        Part { list, header, place, entries }
                    }));
                }
                _ => {}
            }
        }
        parts.sort_by_key(|part| part.place);
        let name = self.source.file_name();
        let mut text = format!("# {name}, as `diapason explain` writes it out\n");
        parts.iter().for_each(|part| self.table(part, &mut text));
        text
    }

    /// Returns where an item is written: in the order of the text, and what `[usbd]` brings in its
    /// own order.
    fn place(&self, list: &str, entries: &DeTable<'_>) -> (usize, usize) {
        let start = entries.values().map(|value| value.span().start).min().unwrap_or(0);
        let start = entries.get("name").map_or(start, |name| name.span().start);
        let name = name(entries);
        let of = self.brought.iter().position(|it| it.list == list && it.name == name);
        (start, of.unwrap_or(0))
    }

    fn table(&self, part: &Part<'_>, text: &mut String) {
        *text += &format!("\n{}\n", part.header);
        let mut entries: Vec<_> = part.entries.iter().collect();
        let of = (part.list, name(part.entries));
        let brought =
            |key: &str| self.brought.iter().find(|it| (it.list, &*it.name) == of && it.key == key);
        let order = |key: &str| self.brought.iter().position(|it| Some(it) == brought(key));
        entries.sort_by_key(|(key, value)| {
            let key = key.get_ref().as_ref();
            (key != "name", value.span().start, order(key))
        });
        for (key, value) in &entries {
            let key = key.get_ref().as_ref();
            match value.get_ref() {
                DeValue::Table(inner) => inner.iter().for_each(|(sub, value)| {
                    let key = format!("{key}.{}", sub.get_ref());
                    self.line(&key, value, brought(&key), text);
                }),
                DeValue::Array(all) if is_tables(all) => {}
                _ => self.line(key, value, brought(key), text),
            }
        }
        for (key, value) in &entries {
            let DeValue::Array(all) = value.get_ref() else { continue };
            let list = format!("{}.{}", part.list, key.get_ref());
            for entries in all.iter().filter_map(|each| each.get_ref().as_table()) {
                let (header, place) = (format!("[[{list}]]"), part.place);
                self.table(&Part { list: &list, header, place, entries }, text);
            }
        }
    }

    /// Writes a key with its value, and where that is from.
    fn line(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        brought: Option<&Brought>,
        text: &mut String,
    ) {
        let line = format!("{key} = {}", written(value.get_ref()));
        let span = value.span();
        let from = match (self.server.as_ref() == Some(&span), brought) {
            (true, Some(brought)) => format!("[usbd]: {}", brought.why),
            (true, None) => "[usbd]".to_owned(),
            _ => format!("{}:{}", self.source.name_of(&span), self.source.position(&span).0),
        };
        *text += &format!("{line:COLUMN$} # {from}\n");
    }
}

fn name<'t>(entries: &'t DeTable<'_>) -> &'t str {
    entries.get("name").and_then(|name| name.get_ref().as_str()).unwrap_or_default()
}

fn is_tables(all: &[Spanned<DeValue<'_>>]) -> bool {
    !all.is_empty() && all.iter().all(|each| each.get_ref().is_table())
}

/// Returns a value as TOML writes it.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(all) => {
            let all: Vec<String> = all.iter().map(|each| written(each.get_ref())).collect();
            format!("[{}]", all.join(", "))
        }
        DeValue::Table(table) => {
            let entries = table.iter().map(|(key, value)| {
                format!("{} = {}", quoted(key.get_ref()), written(value.get_ref()))
            });
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted += &format!("\\u{:04x}", u32::from(letter)),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// Returns comments with the objects that follow from other tables.
fn follows(table: &Spanned<DeTable<'_>>) -> String {
    let mut declared = read::declarations(table, &mut Report::new());
    let known = [declared.segments.len(), declared.semaphores.len(), declared.mailboxes.len()];
    let vcpus = declared.vcpus.len();
    expand(&mut declared, &mut Report::new());
    let users = |name: &str| users(&declared, name);
    let mut lines: Vec<String> = Vec::new();
    for Named { name, what } in &declared.segments[known[0]..] {
        let size = show_size(what.size);
        lines.push(format!("segment `{}`, {size}: {}", name.value, users(&name.value)));
    }
    for Named { name, what } in &declared.semaphores[known[1]..] {
        let kind = if matches!(what, crate::SemaphoreKind::Mutex) { "mutex" } else { "semaphore" };
        lines.push(format!("{kind} `{}`: {}", name.value, users(&name.value)));
    }
    for Named { name, what } in &declared.mailboxes[known[2]..] {
        let name = &name.value;
        lines.push(format!("mailbox `{name}`, {} messages: {}", what.messages, users(name)));
    }
    for Named { name, .. } in &declared.vcpus[vcpus..] {
        lines.push(format!("VCPU `{}`: {}", name.value, users(&name.value)));
    }
    if lines.is_empty() {
        return String::new();
    }
    let head = "\n# These objects follow from other tables, for the processes named:\n";
    lines.iter().fold(head.to_owned(), |text, line| text + &format!("#   {line}\n"))
}

/// Returns the names of the processes that use an object.
fn users(declared: &Declared, name: &str) -> String {
    let uses = declared.processes.iter().filter(|it| it.uses.iter().any(|used| used.value == name));
    uses.map(|process| process.name.value.as_str()).collect::<Vec<_>>().join(", ")
}

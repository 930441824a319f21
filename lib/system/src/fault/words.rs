//! A fault as a command line says it: time, kind, target, arguments, in this order.

use super::kinds::{Argument, InjectedFault, TIME_MAX};
use super::{Targets, words};
use crate::declared::DeclaredFault;
use crate::diagnostics::{Problem, Report};
use crate::source::{At, Span};
use crate::suggest::{listed, nearest};
use crate::system::System;
use crate::units;
use std::ops::RangeInclusive;

/// The form of a fault, for a message about an empty text.
const EXAMPLE: &str = "write it as in `2s unplug interface 100ms`";

/// The words of a text that are still to be read, and where it ends.
pub(crate) struct Words<'t> {
    left: std::vec::IntoIter<(&'t str, Span)>,
    end: Span,
}

impl<'t> Words<'t> {
    /// Returns the words of `text`, of which none has been read.
    pub fn of(text: &'t str) -> Words<'t> {
        let place = |word: &'t str| {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            (word, start..start + word.len())
        };
        let words: Vec<(&str, Span)> = text.split_whitespace().map(place).collect();
        Words { left: words.into_iter(), end: text.len()..text.len() }
    }

    /// Returns the next word, if there is one.
    pub fn next_if_any(&mut self) -> Option<(&'t str, Span)> {
        self.left.next()
    }

    /// Returns the next word; that there is none is reported.
    pub fn next(&mut self, what: &str, help: &str, report: &mut Report) -> Option<(&'t str, Span)> {
        let next = self.left.next();
        if next.is_none() {
            report.push(Problem::new(&self.end, format!("the fault has no {what}"), help));
        }
        next
    }
}

/// Returns the fault that `text` says, of things in `system`.
pub(crate) fn parse(system: &System, text: &str, report: &mut Report) -> Option<InjectedFault> {
    let mut left = Words::of(text);
    let (at, place) = left.next("time", EXAMPLE, report)?;
    let at = time("time", (at, place), &(0..=TIME_MAX), report);
    let (word, place) = left.next("kind", EXAMPLE, report)?;
    let known = words();
    let Some((_, kind)) = known.iter().find(|(name, _)| *name == word) else {
        let names = known.iter().map(|(name, _)| *name);
        let help = match nearest(word, names.clone()) {
            Some(word) => format!("did you mean `{word}`?"),
            None => format!("write {}", listed(names, "or")),
        };
        report.push(Problem::new(&place, format!("there is no fault `{word}`"), help));
        return None;
    };
    let target = match kind.target().key() {
        None => None,
        Some(key) => {
            let help = format!("name the {} it happens to", kind.target().noun());
            let (name, place) = left.next(key, &help, report)?;
            Some(At::new(name.to_owned(), place))
        }
    };
    let mut arguments = [0; 2];
    for (to, argument) in arguments.iter_mut().zip(kind.arguments()) {
        *to = argued(&mut left, argument, report)?;
    }
    if let Some((word, place)) = left.left.next() {
        let title = format!("`{word}` is more than `{}` asks for", kind.name());
        report.push(Problem::new(&place, title, "leave it out"));
    }
    let declared = DeclaredFault { at: at?, kind: *kind, target, arguments };
    Targets::of(system).resolve(&declared, report)
}

fn argued(left: &mut Words<'_>, argument: &Argument, report: &mut Report) -> Option<u64> {
    if let (Some(default), []) = (argument.default, left.left.as_slice()) {
        return Some(default);
    }
    let example = if argument.is_time { "100ms" } else { "2" };
    let help = format!("add `{example}`: its `{}`", argument.key);
    let word = left.next(&format!("`{}`", argument.key), &help, report)?;
    if argument.is_time {
        return time(argument.key, word, &argument.range, report);
    }
    let (text, place) = word;
    let number = text.parse().ok().filter(|number| argument.range.contains(number));
    if number.is_none() {
        let (least, most) = (argument.range.start(), argument.range.end());
        let help = format!("write a whole number from {least} to {most}");
        let title = format!("`{text}` cannot be its `{}`", argument.key);
        report.push(Problem::new(&place, title, help));
    }
    number
}

fn time(
    what: &str,
    (text, place): (&str, Span),
    range: &RangeInclusive<u64>,
    report: &mut Report,
) -> Option<u64> {
    let found = units::duration(text).filter(|ns| range.contains(ns));
    if found.is_none() {
        let help = match units::duration_as_meant(text) {
            Some(meant) if units::duration(text).is_none() => format!("write `{meant}`"),
            _ => "write a number and one of ns, us, ms, s, as in `100ms`".to_owned(),
        };
        let title = format!("`{text}` cannot be its {what}");
        report.push(Problem::new(&place, title, help));
    }
    found
}

//! Problems found in a description, and how they are shown: the place, what is wrong there, and
//! what to change.

use crate::source::{Lines, Source, Span};
use crate::value::KnownKey;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use std::collections::BTreeSet;
use std::fmt;

/// Most problems shown as text; nobody reads more before the next try.
const SHOWN_MAX: usize = 100;

/// One problem. Every problem has a remedy.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    title: String,
    span: Span,
    label: String,
    context: Vec<(Span, String)>,
    note: Option<String>,
    help: String,
    /// May merely follow from a syntax error elsewhere, such as a missing key.
    is_absence: bool,
    is_syntax: bool,
    /// Makes everything after its place unreadable.
    swallows: bool,
}

impl Problem {
    /// Returns a problem at `span`, with no notes.
    pub fn new(span: &Span, title: impl Into<String>, help: impl Into<String>) -> Problem {
        Problem {
            title: title.into(),
            span: span.clone(),
            label: String::new(),
            context: Vec::new(),
            note: None,
            help: help.into(),
            is_absence: false,
            is_syntax: false,
            swallows: false,
        }
    }

    /// Says more beside the underlined place.
    pub fn label(mut self, label: impl Into<String>) -> Problem {
        self.label = label.into();
        self
    }

    /// Shows a second place.
    pub fn with(mut self, span: &Span, label: impl Into<String>) -> Problem {
        self.context.push((span.clone(), label.into()));
        self
    }

    /// Facts the reader needs, such as numbers.
    pub fn note(mut self, note: impl Into<String>) -> Problem {
        self.note = Some(note.into());
        self
    }

    /// Something is not there; pointless to report where the syntax is broken.
    pub fn absence(mut self) -> Problem {
        self.is_absence = true;
        self
    }

    /// Marks a place at which the text is not TOML.
    pub fn syntax(mut self) -> Problem {
        self.is_syntax = true;
        self
    }

    /// Marks a place from which on the text is not TOML.
    pub fn swallowing(mut self) -> Problem {
        self.swallows = true;
        self.syntax()
    }

    fn item<'s>(&'s self, source: &'s Source) -> ProblemSummary<'s> {
        let (line, column) = source.position(&self.span);
        let (title, help, file) = (&self.title, &self.help, source.name_of(&self.span));
        ProblemSummary { title, file, line, column, help }
    }

    fn render(&self, source: &Source, level: &Level<'_>, renderer: &Renderer) -> String {
        let mut files = vec![source.file_of(&self.span)];
        for file in self.context.iter().map(|(span, _)| source.file_of(span)) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        let title = level.clone().primary_title(visible(&self.title));
        let shown = files.into_iter().map(|file| self.snippet(file, source));
        let mut group = shown.fold(Group::with_title(title), |group, file| group.element(file));
        if let Some(note) = &self.note {
            group = group.element(Level::NOTE.message(visible(note)));
        }
        renderer.render(&[group.element(Level::HELP.message(visible(&self.help)))])
    }

    /// Returns the lines of a file with the places that are in it.
    fn snippet<'s>(&'s self, file: usize, source: &'s Source) -> Snippet<'s, Annotation<'s>> {
        let here = |span: &Span| source.file_of(span) == file;
        let primary = Some(&self.span).filter(|span| here(span));
        let context = || self.context.iter().filter(|(span, _)| here(span));
        let places = || primary.into_iter().chain(context().map(|(span, _)| span));
        let (lines, first_line) = source.lines_around(places());
        let place = |kind: AnnotationKind, span: &Span, label: &str| {
            let span = source.clamp(span);
            let label = (!label.is_empty()).then(|| visible(label));
            kind.span(span.start - lines.start..span.end - lines.start).label(label)
        };
        let primary = primary.map(|span| place(AnnotationKind::Primary, span, &self.label));
        let path = places().next().map_or("", |span| source.name_of(span));
        Snippet::source(&source.text[lines.clone()])
            .line_start(first_line)
            .path(path)
            .annotations(primary)
            .annotations(context().map(|(span, label)| place(AnnotationKind::Context, span, label)))
    }
}

/// Messages quote the description; whatever would move the cursor is shown escaped.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push(c),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// Where the stages put what they find.
#[derive(Debug, Default)]
pub(crate) struct Report {
    problems: Vec<Problem>,
    /// The keys that the reader asked for.
    keys: Vec<KnownKey>,
}

impl Report {
    /// Returns a report without problems.
    pub fn new() -> Report {
        Report::default()
    }

    /// Adds a problem to the report.
    pub fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Adds the problems of another report.
    pub fn extend(&mut self, other: Report) {
        self.problems.extend(other.problems);
    }

    /// Notes that a table may have a key.
    pub fn note_key(&mut self, key: KnownKey) {
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
    }

    /// Returns the keys that the reader asked for.
    pub fn into_keys(self) -> Vec<KnownKey> {
        self.keys
    }

    /// Returns whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Drops what may only follow from the syntax errors: absences, whatever stands in their lines,
    /// and all that follows what swallows the rest.
    pub fn keep_what_syntax_cannot_have_caused(&mut self, text: &str) {
        let lines = Lines::of(text);
        let line = |span: &Span| lines.number(span.start);
        let broken = self.problems.iter().filter(|problem| problem.is_syntax);
        let broken: BTreeSet<usize> = broken.map(|problem| line(&problem.span)).collect();
        let swallowing = self.problems.iter().filter(|problem| problem.swallows);
        let end = swallowing.map(|problem| problem.span.start).min().unwrap_or(usize::MAX);
        self.problems.retain(|problem| {
            let independent = !problem.is_absence && !broken.contains(&line(&problem.span));
            problem.is_syntax || (independent && problem.span.start < end)
        });
    }
}

/// Everything found wrong, in the order of the text; at least one problem.
///
/// `Display` shows it (the first hundred problems) the way a compiler does: file, line and column,
/// the line itself, the place underlined, and a `help:` line with the remedy.
#[derive(Clone)]
pub struct Diagnostics {
    source: Source,
    problems: Vec<Problem>,
}

/// One problem in short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProblemSummary<'a> {
    pub title: &'a str,
    /// Where: the file, by the name that messages use.
    pub file: &'a str,
    /// Where: the line, from 1.
    pub line: usize,
    /// Where: the character in the line, from 1.
    pub column: usize,
    pub help: &'a str,
}

impl Diagnostics {
    pub(crate) fn new(source: Source, report: Report) -> Diagnostics {
        let mut problems = report.problems;
        problems.sort_by_key(|problem| problem.span.start);
        // A key of `[usbd]` is read twice: there, and in the process that it brings.
        let mut seen = BTreeSet::new();
        problems.retain(|it| seen.insert((it.span.start, it.span.end, it.title.clone())));
        Diagnostics { source, problems }
    }

    /// Returns each problem in short, in the order of the text.
    #[must_use]
    pub fn items(&self) -> Vec<ProblemSummary<'_>> {
        self.problems.iter().map(|problem| problem.item(&self.source)).collect()
    }

    /// Returns the text without colours, as `Display` shows it.
    #[must_use]
    pub fn plain(&self) -> String {
        self.render(&Level::ERROR, &Renderer::plain())
    }

    /// Returns the text with the escape codes of an ANSI terminal.
    #[must_use]
    pub fn coloured(&self) -> String {
        self.render(&Level::ERROR, &Renderer::styled())
    }

    /// Returns the text of problems that refuse nothing, with the escape codes of a terminal if it
    /// is `coloured`.
    #[must_use]
    pub fn as_warnings(&self, coloured: bool) -> String {
        let renderer = if coloured { Renderer::styled() } else { Renderer::plain() };
        self.render(&Level::WARNING, &renderer)
    }

    fn render(&self, level: &Level<'_>, renderer: &Renderer) -> String {
        let shown = self.problems.iter().take(SHOWN_MAX);
        let shown = shown.map(|problem| problem.render(&self.source, level, renderer));
        let mut texts: Vec<String> = shown.collect();
        if let Some(more) = self.problems.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
            texts.push(format!("… and {more} more"));
        }
        texts.join("\n\n")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plain())
    }
}

/// Writes what `Display` writes, so that a failed `unwrap` in a test is readable.
impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Diagnostics {}

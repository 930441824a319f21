//! The text of a description and places in it.

use std::ops::Range;
use std::sync::Arc;

/// A half-open range of bytes of the text.
pub(crate) type Span = Range<usize>;

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub value: T,
    pub span: Span,
}

impl<T> At<T> {
    /// Returns the value that stands at `span`.
    pub fn new(value: T, span: Span) -> At<T> {
        At { value, span }
    }
}

/// A description's text under the name its messages use. A description that includes others has
/// several files: their texts follow each other.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// All files, one behind the other.
    pub text: Arc<str>,
    /// Where each file begins, and its name. The first is the description itself.
    files: Arc<[(usize, Arc<str>)]>,
}

impl Source {
    /// Returns a file with this name and text.
    pub fn new(file_name: &str, text: &str) -> Source {
        Source { text: text.into(), files: Arc::new([(0, file_name.into())]) }
    }

    /// Returns this source with one more file behind it, and where that begins.
    pub fn with(&self, file_name: &str, text: &str) -> (Source, usize) {
        let joined = format!("{}\n{text}", self.text);
        let start = self.text.len() + 1;
        let further = (start, Arc::from(file_name));
        let files = self.files.iter().cloned().chain([further]).collect();
        (Source { text: joined.into(), files }, start)
    }

    /// Returns the name of the description itself.
    pub fn file_name(&self) -> &str {
        &self.files[0].1
    }

    /// Returns the name of the file in which `span` starts.
    pub fn name_of(&self, span: &Span) -> &str {
        &self.files[self.file_of(span)].1
    }

    /// Returns the number of the file in which `span` starts.
    pub fn file_of(&self, span: &Span) -> usize {
        self.files.partition_point(|(start, _)| *start <= span.start).saturating_sub(1)
    }

    /// Returns where the text of a file is.
    fn extent(&self, file: usize) -> Span {
        let end = self.files.get(file + 1).map_or(self.text.len(), |(next, _)| next - 1);
        self.files[file].0..end
    }

    /// `span`, moved inwards where it is not a range of whole characters of its file.
    pub fn clamp(&self, span: &Span) -> Span {
        let end = self.extent(self.file_of(span)).end;
        let start = floor(&self.text, span.start.min(end));
        start..floor(&self.text, span.end.max(start).min(end))
    }

    /// Returns the whole lines from the first to the last of the places, which are in one file, and
    /// the number of the first line.
    pub fn lines_around<'s>(&self, places: impl Iterator<Item = &'s Span>) -> (Span, usize) {
        let (mut start, mut end) = (self.text.len(), 0);
        for place in places.map(|span| self.clamp(span)) {
            start = start.min(place.start);
            end = end.max(place.end);
        }
        let extent = self.extent(self.file_of(&(start..start)));
        let before = &self.text[extent.start..start];
        let start = before.rfind('\n').map_or(extent.start, |at| extent.start + at + 1);
        let end = end.max(start);
        let after = &self.text[end..extent.end];
        let end = after.find('\n').map_or(extent.end, |length| end + length + 1);
        (start..end, self.position(&(start..start)).0)
    }

    /// Line and column of the start of `span` in its file, in characters, both from 1.
    pub fn position(&self, span: &Span) -> (usize, usize) {
        let file = self.files[self.file_of(span)].0;
        let before = &self.text[file..self.clamp(span).start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }
}

/// Where the lines of a text end, for asking often.
pub(crate) struct Lines(Vec<usize>);

impl Lines {
    /// Returns where the lines of `text` end.
    pub fn of(text: &str) -> Lines {
        Lines(text.match_indices('\n').map(|(offset, _)| offset).collect())
    }

    /// Returns the number, from 0, of the line with byte `offset`.
    pub fn number(&self, offset: usize) -> usize {
        self.0.partition_point(|newline| *newline < offset)
    }
}

/// Returns the last character boundary at or before `index`.
fn floor(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let source = Source::new("f", "a = 1\nµ = 2\n");
        assert_eq!(source.position(&(0..1)), (1, 1));
        assert_eq!(source.position(&(9..9)), (2, 3));
        assert_eq!(source.position(&(13..13)), (3, 1));
    }

    #[test]
    fn lines_agree_with_positions() {
        let text = "a\n\nb\r\nc";
        let (lines, source) = (Lines::of(text), Source::new("f", text));
        for offset in 0..=text.len() {
            assert_eq!(lines.number(offset) + 1, source.position(&(offset..offset)).0);
        }
    }

    #[test]
    fn a_span_outside_the_text_or_inside_a_character_is_moved() {
        let source = Source::new("f", "µx");
        assert_eq!(source.clamp(&(1..2)), 0..2);
        assert_eq!(source.clamp(&Span { start: 9, end: 4 }), 3..3);
    }

    #[test]
    fn each_file_has_lines_of_its_own() {
        let (source, second) = Source::new("a", "x\ny").with("b", "p\nq");
        let (source, third) = source.with("c", "");
        let place = |at: usize| (source.name_of(&(at..at)), source.position(&(at..at)));
        assert_eq!((place(2), place(3)), (("a", (2, 1)), ("a", (2, 2))));
        assert_eq!((second, third, place(second + 2)), (4, 8, ("b", (2, 1))));
        assert_eq!(place(99), ("c", (1, 1)));
        let around = |place: Span| source.lines_around(std::iter::once(&place));
        assert_eq!(around(second + 2..99), (second + 2..second + 3, 2));
        assert_eq!(around(2..3), (2..3, 2));
    }
}

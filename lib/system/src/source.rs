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

/// A description's text under the name its messages use.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub file_name: Arc<str>,
    pub text: Arc<str>,
}

impl Source {
    /// Returns a file with this name and text.
    pub fn new(file_name: &str, text: &str) -> Source {
        Source { file_name: file_name.into(), text: text.into() }
    }

    /// `span`, moved inwards where it is not a range of whole characters of the text.
    pub fn clamp(&self, span: &Span) -> Span {
        let start = floor(&self.text, span.start);
        start..floor(&self.text, span.end.max(start))
    }

    /// Returns the whole lines from the first to the last of the places, and the number of the
    /// first line.
    pub fn lines_around<'s>(&self, places: impl Iterator<Item = &'s Span>) -> (Span, usize) {
        let (mut start, mut end) = (self.text.len(), 0);
        for place in places.map(|span| self.clamp(span)) {
            start = start.min(place.start);
            end = end.max(place.end);
        }
        let start = self.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let end = end.max(start);
        let end = self.text[end..].find('\n').map_or(self.text.len(), |length| end + length + 1);
        (start..end, self.position(&(start..start)).0)
    }

    /// Line and column of the start of `span`, in characters, both from 1.
    pub fn position(&self, span: &Span) -> (usize, usize) {
        let before = &self.text[..self.clamp(span).start];
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
}

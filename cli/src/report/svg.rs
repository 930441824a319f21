//! Pieces of pictures. Colours are classes, so that the page's style decides about light and dark.

use crate::chart::escaped;
use std::fmt::Write;

/// Classes of colours there are, `c0` to `c7`.
pub const COLOURS: usize = 8;

/// A picture being drawn.
pub(crate) struct Picture {
    width: f64,
    height: f64,
    content: String,
}

impl Picture {
    /// Returns an empty picture.
    pub fn new(width: f64, height: f64) -> Picture {
        Picture { width, height, content: String::new() }
    }

    /// A box, which shows `hint` under the pointer.
    pub fn rectangle(&mut self, corner: (f64, f64), size: (f64, f64), class: &str, hint: &str) {
        let ((x, y), (width, height)) = (corner, size);
        let hint = escaped(hint);
        let _ = writeln!(
            self.content,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
             class=\"{class}\"><title>{hint}</title></rect>"
        );
    }

    /// Draws a straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.content,
            "<line x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\" class=\"{class}\"/>"
        );
    }

    /// A line through points.
    pub fn path(&mut self, points: &[(f64, f64)], class: &str, hint: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.2},{y:.2}")).collect();
        let (points, hint) = (points.join(" "), escaped(hint));
        let _ = writeln!(
            self.content,
            "<polyline points=\"{points}\" class=\"curve {class}\"><title>{hint}</title></polyline>"
        );
    }

    /// Words; `anchor` is `start`, `middle` or `end`.
    pub fn text(&mut self, at: (f64, f64), anchor: &str, class: &str, words: &str) {
        let ((x, y), words) = (at, escaped(words));
        let _ = writeln!(
            self.content,
            "<text x=\"{x:.2}\" y=\"{y:.2}\" text-anchor=\"{anchor}\" \
             class=\"{class}\">{words}</text>"
        );
    }

    /// Returns the picture as a part of a page. On a narrow screen it can be moved, with keys too.
    pub fn finish(self, label: &str) -> String {
        let (Picture { width, height, content }, label) = (self, escaped(label));
        format!(
            "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\">\
             <svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{label}\">\n\
             {content}</svg></div>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_break_the_page() {
        let mut picture = Picture::new(10.0, 10.0);
        picture.text((0.0, 0.0), "start", "", "<script>&\"");
        let svg = picture.finish("a \"b\"");
        assert!(svg.contains("&lt;script&gt;&amp;&quot;") && svg.contains("a &quot;b&quot;"));
    }
}

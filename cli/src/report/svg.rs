//! Pieces of pictures. Colours are classes, so that the page's style decides about light and dark.

use crate::chart::{Axis, escaped};
use std::fmt::Write;

/// Classes of colours there are, `c0` to `c7`.
pub const COLOURS: usize = 8;

/// Returns the class of the colour with this number; those after the last are the first ones again,
/// paler and with a dashed edge.
pub fn colour(index: usize) -> String {
    let again = if index % (2 * COLOURS) >= COLOURS { " second" } else { "" };
    format!("c{}{again}", index % COLOURS)
}

/// A picture being drawn.
pub(crate) struct Picture {
    width: f64,
    height: f64,
    content: String,
}

impl Picture {
    /// Returns a picture of bars above an axis in milliseconds, with a line at each tick.
    pub fn of_bars(axis: &Axis, width: f64, bottom: f64) -> Picture {
        let mut picture = Picture::new(width, bottom + 28.0);
        for tick in axis.ticks() {
            let (at, label) = (axis.place(tick), format!("{} ms", axis.label(tick)));
            picture.line((at, 4.0), (at, bottom), "grid");
            picture.text((at, bottom + 16.0), "middle", "small", &label);
        }
        picture
    }

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

    /// Draws what leads to a place on the page. `label` says what is there.
    pub fn link(&mut self, anchor: &str, label: &str, draw: impl FnOnce(&mut Picture)) {
        let label = escaped(label);
        let _ = writeln!(self.content, "<a href=\"#{anchor}\" aria-label=\"{label}\">");
        draw(self);
        let _ = writeln!(self.content, "</a>");
    }

    /// Draws another picture into this one, stretched to its size. It can be made larger: `hints`
    /// are its attributes for the script.
    pub fn plot(&mut self, corner: (f64, f64), hints: &str, inside: Picture) {
        let ((x, y), Picture { width, height, content, .. }) = (corner, inside);
        let _ = writeln!(
            self.content,
            "<svg x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
             viewBox=\"0 0 {width:.2} {height:.2}\" preserveAspectRatio=\"none\" class=\"plot\" \
             aria-hidden=\"true\" {hints}>\n{content}</svg>"
        );
    }

    /// Draws a group that the script may draw anew.
    pub fn group(&mut self, class: &str, draw: impl FnOnce(&mut Picture)) {
        let _ = writeln!(self.content, "<g class=\"{class}\">");
        draw(self);
        let _ = writeln!(self.content, "</g>");
    }

    /// Returns the picture as a part of a page. On a narrow screen it can be moved, with keys too.
    pub fn finish(self, label: &str) -> String {
        let (Picture { width, height, content }, label) = (self, escaped(label));
        // A picture hides its parts from those who listen to a page; one with links must not.
        let role = if content.contains("<a ") { "group" } else { "img" };
        format!(
            "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\">\
             <svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"{role}\" aria-label=\"{label}\">\n\
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
        assert!(svg.contains("role=\"img\""));
    }

    #[test]
    fn links_are_not_hidden_by_their_picture() {
        let mut picture = Picture::new(10.0, 10.0);
        picture.link("there", "a & b", |picture| {
            picture.rectangle((0.0, 0.0), (1.0, 1.0), "c0", "");
        });
        let svg = picture.finish("bars");
        assert!(svg.contains("<a href=\"#there\" aria-label=\"a &amp; b\">\n<rect"), "{svg}");
        assert!(svg.contains("</a>\n</svg>") && !svg.contains("role=\"img\""), "{svg}");
    }

    #[test]
    fn no_two_of_sixteen_look_alike() {
        let all: std::collections::BTreeSet<String> = (0..2 * COLOURS).map(colour).collect();
        assert_eq!((all.len(), colour(16)), (2 * COLOURS, colour(0)));
    }
}

//! Pictures as SVG text: lines, bars, schedules, distributions. Nothing but what reports need.

mod axis;
mod bars;
pub mod cdf;
mod distribution;
pub mod histogram;
mod lines;
mod schedule;

pub use axis::Axis;
pub use bars::{BarChart, Bars};
pub use distribution::Distribution;
pub use lines::{LineChart, Series};
pub use schedule::{ScheduleChart, Stretch};

/// Colours that stay apart for the colour-blind and in print (Okabe and Ito).
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// Returns the colour of the `index`-th series.
fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// Text as it may stand in XML and HTML.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other => safe.push(other),
        }
    }
    safe
}

/// Returns a picture of this size with `content` and a title on top.
fn document(width: f64, height: f64, title: &str, content: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{1}\" y=\"20\" text-anchor=\"middle\" font-size=\"14\">{0}</text>\n\
         {content}</svg>\n",
        escaped(title),
        width / 2.0,
    )
}

/// Returns a piece of text.
fn text(x: f64, y: f64, anchor: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n", escaped(words))
}

fn line(from: (f64, f64), to: (f64, f64), style: &str) -> String {
    let ((x1, y1), (x2, y2)) = (from, to);
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>\n")
}

/// Returns a filled rectangle, which shows `hint` under the pointer.
fn rectangle(corner: (f64, f64), size: (f64, f64), fill: &str, hint: &str) -> String {
    let ((x, y), (width, height)) = (corner, size);
    format!(
        "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
         fill=\"{fill}\"><title>{}</title></rect>\n",
        escaped(hint)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_break_the_picture() {
        let svg = document(100.0, 50.0, "a < b & \"c\"", &text(1.0, 2.0, "end", "<script>"));
        assert!(svg.contains("<title>a &lt; b &amp; &quot;c&quot;</title>"));
        assert!(svg.contains("&lt;script&gt;") && !svg.contains("<script>"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}

//! What a reproduction found, as JSON and as text. The JSON is documented in `docs/reproduce.md`.

use diapason::chart::LineChart;
use diapason::table::{Align, Table};
use serde_json::{Value, json};
use std::path::Path;

/// A number or statement of the paper beside ours.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Stable name.
    pub id: String,
    /// Unit of both values; empty for plain numbers and words.
    pub unit: &'static str,
    /// What the paper says; null if it says nothing.
    pub paper: Value,
    /// What we found; null if it was not measured.
    pub ours: Value,
    /// Does ours support the paper, or the promise that the note states?
    pub holds: bool,
    /// What must be known to read the row.
    pub note: String,
}

/// A picture.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Name of the file without `.svg`.
    pub name: String,
    /// The picture.
    pub svg: String,
    /// What it shows, if that is lines: name and points of each.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
}

impl Figure {
    /// A picture without numbers.
    #[must_use]
    pub fn drawing(name: &str, svg: String) -> Figure {
        Figure { name: name.into(), svg, series: Vec::new() }
    }

    /// A picture of lines.
    #[must_use]
    pub fn lines(name: &str, chart: &LineChart) -> Figure {
        let series = chart.series.iter().map(|line| (line.name.clone(), line.points.clone()));
        Figure { name: name.into(), svg: chart.svg(), series: series.collect() }
    }

    fn to_json(&self) -> Value {
        let line = |(name, points): &(String, Vec<(f64, f64)>)| {
            let points: Vec<[f64; 2]> = points.iter().map(|(x, y)| [*x, rounded(*y)]).collect();
            json!({ "name": name, "points": points })
        };
        let series: Vec<Value> = self.series.iter().map(line).collect();
        json!({ "name": self.name, "series": series })
    }
}

/// Everything a reproduction found.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Its name on the command line.
    pub name: &'static str,
    /// The comparison.
    pub rows: Vec<Row>,
    /// Tables and drawings for people: heading and text.
    pub sections: Vec<(String, String)>,
    /// Pictures.
    pub figures: Vec<Figure>,
}

impl Row {
    /// A row whose values are numbers, rounded to `digits`.
    #[must_use]
    pub fn numbers(id: &str, unit: &'static str, paper: Option<f64>, ours: f64) -> Row {
        let paper = paper.map_or(Value::Null, |paper| json!(paper));
        Row {
            id: id.into(),
            unit,
            paper,
            ours: json!(rounded(ours)),
            holds: true,
            note: String::new(),
        }
    }

    /// A row whose values are words.
    #[must_use]
    pub fn words(id: &str, paper: &str, ours: &str) -> Row {
        Row {
            id: id.into(),
            unit: "",
            paper: json!(paper),
            ours: json!(ours),
            holds: true,
            note: String::new(),
        }
    }

    /// The same, holding or not.
    #[must_use]
    pub fn holds(self, holds: bool) -> Row {
        Row { holds, ..self }
    }

    /// The same with a note.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Row {
        Row { note: note.into(), ..self }
    }
}

/// Four digits after the point: more is noise, and fewer would hide it.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

impl Report {
    /// Does every row hold?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.holds)
    }

    /// The documented object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "id": row.id, "unit": row.unit, "paper": row.paper, "ours": row.ours,
                "holds": row.holds, "note": row.note,
            })
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        let figures: Vec<Value> = self.figures.iter().map(Figure::to_json).collect();
        json!({ "name": self.name, "holds": self.holds(), "rows": rows, "figures": figures })
    }

    /// Sections, then the comparison with its notes.
    #[must_use]
    pub fn render(&self, folder: Option<&Path>) -> String {
        let mut out = String::new();
        for (heading, text) in &self.sections {
            out += &format!("{heading}\n\n{}\n\n", text.trim_end());
        }
        let mut table = Table::new(&[
            ("", Align::Left),
            ("what", Align::Left),
            ("paper", Align::Right),
            ("ours", Align::Right),
            ("unit", Align::Left),
        ]);
        for row in &self.rows {
            let mark = if row.holds { "holds" } else { "BROKEN" };
            let cells = [mark, row.id.as_str(), &plain(&row.paper), &plain(&row.ours), row.unit];
            table.row(cells.map(String::from).to_vec());
        }
        out += &format!("{}: the paper's claims and ours\n\n{}\n", self.name, table.render());
        for row in self.rows.iter().filter(|row| !row.note.is_empty()) {
            out += &format!("{}: {}\n", row.id, row.note);
        }
        out + "\n" + &self.pictures(folder)
    }

    fn pictures(&self, folder: Option<&Path>) -> String {
        match folder {
            Some(folder) => {
                format!("{} pictures are in {}", self.figures.len(), folder.display())
            }
            None => format!("--out DIR writes {} pictures", self.figures.len()),
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            name: "demo",
            rows: vec![
                Row::numbers("a", "%", Some(17.0), 17.619_98),
                Row::words("b", "feasible", "not").holds(false).note("because"),
                Row::numbers("c", "", None, 0.0),
            ],
            sections: vec![("A table".into(), "x\n".into())],
            figures: vec![Figure {
                name: "f".into(),
                svg: String::new(),
                series: vec![("RM".into(), vec![(5.0, 0.123_456)])],
            }],
        }
    }

    #[test]
    fn the_fields_are_those_documented() {
        let json = report().to_json();
        assert_eq!((&json["name"], &json["holds"]), (&json!("demo"), &json!(false)));
        let first = json!({
            "id": "a", "unit": "%", "paper": 17.0, "ours": 17.62, "holds": true, "note": "",
        });
        assert_eq!(json["rows"][0], first);
        assert_eq!(json["rows"][2]["paper"], Value::Null);
        let figure =
            json!({ "name": "f", "series": [{ "name": "RM", "points": [[5.0, 0.1235]] }] });
        assert_eq!(json["figures"], json!([figure]));
    }

    #[test]
    fn people_see_what_is_broken_and_why() {
        let text = report().render(None);
        assert!(text.starts_with("A table\n\nx\n\n"));
        assert!(text.contains("BROKEN  b     feasible    not"), "{text}");
        assert!(text.contains("b: because\n") && text.contains("--out DIR writes 1 pictures"));
    }
}

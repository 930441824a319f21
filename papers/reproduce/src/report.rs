//! The results of a reproduction, as JSON and as text. The JSON is documented in
//! `docs/reproduce.md`.

use diapason::chart::LineChart;
use diapason::table::{Align, TextTable};
use serde_json::{Value, json};
use std::path::Path;

/// A number or statement of the paper beside ours.
///
/// A value that is only shown is a *figure*. [`Row::holds`] makes it a *row*, by a comparison that
/// could have come out otherwise.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub id: String,
    /// Unit of both values; empty for plain numbers and words.
    pub unit: &'static str,
    /// The paper's value; null if it has none.
    pub paper: Value,
    /// Our value; null if it was not measured.
    pub ours: Value,
    /// Whether ours supports the paper, or the promise that the note states; `None`: not compared.
    pub holds: Option<bool>,
    /// The facts needed to read the row.
    pub note: String,
}

/// A picture of a reproduction.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    /// Name of the file without `.svg`.
    pub name: String,
    pub svg: String,
    /// The lines that it shows: name and points of each.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
}

impl Picture {
    /// Returns a picture without numbers.
    #[must_use]
    pub fn drawing(name: &str, svg: String) -> Picture {
        Picture { name: name.into(), svg, series: Vec::new() }
    }

    /// Returns a picture of lines.
    #[must_use]
    pub fn lines(name: &str, chart: &LineChart) -> Picture {
        let series = chart.series.iter().map(|line| (line.name.clone(), line.points.clone()));
        Picture { name: name.into(), svg: chart.svg(), series: series.collect() }
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

/// A part of a reproduction that could not be done here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    /// The part that was left out.
    pub what: &'static str,
    pub why: String,
}

/// Everything a reproduction found.
#[derive(Clone, PartialEq, Debug)]
pub struct ReproductionReport {
    /// The reproduction's name on the command line.
    pub name: &'static str,
    /// The comparison: rows, and figures among them.
    pub rows: Vec<Row>,
    /// The parts that were left out.
    pub skipped: Vec<Skipped>,
    /// Tables and drawings for people: heading and text.
    pub sections: Vec<(String, String)>,
    pub pictures: Vec<Picture>,
}

impl Row {
    /// Two numbers, ours rounded; a figure until [`Row::holds`] compares them.
    #[must_use]
    pub fn numbers(id: &str, unit: &'static str, paper: Option<f64>, ours: f64) -> Row {
        let paper = paper.map_or(Value::Null, |paper| json!(paper));
        let (id, ours, note) = (id.into(), json!(rounded(ours)), String::new());
        Row { id, unit, paper, ours, holds: None, note }
    }

    /// Two statements, or ours alone; a figure until [`Row::holds`] compares them.
    #[must_use]
    pub fn words(id: &str, paper: Option<&str>, ours: &str) -> Row {
        let paper = paper.map_or(Value::Null, |paper| json!(paper));
        let (id, ours, note) = (id.into(), json!(ours), String::new());
        Row { id, unit: "", paper, ours, holds: None, note }
    }

    /// Returns the row with its verdict.
    #[must_use]
    pub fn holds(self, holds: bool) -> Row {
        Row { holds: Some(holds), ..self }
    }

    /// Returns the row with a note.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Row {
        Row { note: note.into(), ..self }
    }

    fn to_json(&self) -> Value {
        let Row { id, unit, paper, ours, holds, note } = self;
        match holds {
            Some(holds) => json!({
                "id": id, "unit": unit, "paper": paper, "ours": ours, "holds": holds, "note": note,
            }),
            None => json!({
                "name": id, "unit": unit, "paper": paper, "ours": ours, "note": note,
            }),
        }
    }
}

/// Four digits after the point: more is noise, and fewer would hide it.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

impl ReproductionReport {
    /// Returns a report of which no part was skipped.
    #[must_use]
    pub fn new(
        name: &'static str,
        rows: Vec<Row>,
        sections: Vec<(String, String)>,
        pictures: Vec<Picture>,
    ) -> ReproductionReport {
        ReproductionReport { name, rows, skipped: Vec::new(), sections, pictures }
    }

    /// Returns whether every row holds; `None` if all that were looked at hold, but a part was
    /// skipped or nothing was compared.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        if self.rows.iter().any(|row| row.holds == Some(false)) {
            return Some(false);
        }
        let compared = self.rows.iter().any(|row| row.holds.is_some());
        (compared && self.skipped.is_empty()).then_some(true)
    }

    /// Returns the documented object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (rows, figures): (Vec<&Row>, Vec<&Row>) =
            self.rows.iter().partition(|row| row.holds.is_some());
        let rows: Vec<Value> = rows.into_iter().map(Row::to_json).collect();
        let figures = figures.into_iter().map(Row::to_json);
        let figures = figures.chain(self.pictures.iter().map(Picture::to_json));
        let skip = |skipped: &Skipped| json!({ "what": skipped.what, "why": skipped.why });
        json!({
            "format": 1,
            "result": "reproduction",
            "name": self.name,
            "holds": self.holds(),
            "rows": rows,
            "figures": figures.collect::<Vec<Value>>(),
            "skipped": self.skipped.iter().map(skip).collect::<Vec<Value>>(),
        })
    }

    /// Sections, then rows and figures with their notes, then what was skipped.
    #[must_use]
    pub fn render(&self, folder: Option<&Path>) -> String {
        let mut out = String::new();
        for (heading, text) in &self.sections {
            out += &format!("{heading}\n\n{}\n\n", text.trim_end());
        }
        let mut table = TextTable::new(&[
            ("", Align::Left),
            ("what", Align::Left),
            ("paper", Align::Right),
            ("ours", Align::Right),
            ("unit", Align::Left),
        ]);
        for row in &self.rows {
            let mark = match row.holds {
                Some(true) => "holds",
                Some(false) => "BROKEN",
                None => "figure",
            };
            let cells = [mark, row.id.as_str(), &plain(&row.paper), &plain(&row.ours), row.unit];
            table.row(cells.map(String::from).to_vec());
        }
        out += &format!("{}: the paper's claims and ours\n\n{}\n", self.name, table.render());
        for row in self.rows.iter().filter(|row| !row.note.is_empty()) {
            out += &format!("{}: {}\n", row.id, row.note);
        }
        for Skipped { what, why } in &self.skipped {
            out += &format!("SKIPPED {what}: {why}\n");
        }
        out + "\n" + &self.saved(folder)
    }

    fn saved(&self, folder: Option<&Path>) -> String {
        match folder {
            Some(folder) => {
                format!("{} pictures are in {}", self.pictures.len(), folder.display())
            }
            None => format!("--out DIR writes {} pictures", self.pictures.len()),
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

    fn report() -> ReproductionReport {
        let rows = vec![
            Row::numbers("a", "%", Some(17.0), 17.619_98).holds(true),
            Row::words("b", Some("feasible"), "not").holds(false).note("because"),
            Row::numbers("c", "", None, 0.0).note("only shown"),
        ];
        let picture = Picture {
            name: "f".into(),
            svg: String::new(),
            series: vec![("RM".into(), vec![(5.0, 0.123_456)])],
        };
        ReproductionReport::new("demo", rows, vec![("A table".into(), "x\n".into())], vec![picture])
    }

    #[test]
    fn the_fields_are_those_documented() {
        let json = report().to_json();
        assert_eq!(diapason::formats::schema::wrong_output(&json), Vec::<String>::new());
        assert_eq!((&json["name"], &json["holds"]), (&json!("demo"), &json!(false)));
        let first = json!({
            "id": "a", "unit": "%", "paper": 17.0, "ours": 17.62, "holds": true, "note": "",
        });
        assert_eq!(json["rows"][0], first);
        assert_eq!(json["rows"].as_array().unwrap().len(), 2);
        let shown =
            json!({ "name": "c", "unit": "", "paper": null, "ours": 0.0, "note": "only shown" });
        let drawn = json!({ "name": "f", "series": [{ "name": "RM", "points": [[5.0, 0.1235]] }] });
        assert_eq!(json["figures"], json!([shown, drawn]));
        assert_eq!(json["skipped"], json!([]));
    }

    #[test]
    fn people_see_what_is_broken_and_why() {
        let text = report().render(None);
        assert!(text.starts_with("A table\n\nx\n\n"));
        assert!(text.contains("BROKEN  b     feasible    not"), "{text}");
        assert!(text.contains("figure  c "), "{text}");
        assert!(text.contains("b: because\n") && text.contains("--out DIR writes 1 pictures"));
    }

    #[test]
    fn only_what_was_compared_whole_holds() {
        let mut report = report();
        assert_eq!(report.holds(), Some(false));
        report.rows.remove(1);
        assert_eq!(report.holds(), Some(true));
        report.skipped.push(Skipped { what: "Linux", why: "no kernel".into() });
        assert_eq!(report.holds(), None);
        assert_eq!(report.to_json()["holds"], Value::Null);
        assert!(report.render(None).contains("SKIPPED Linux: no kernel\n"));
        report.skipped.clear();
        report.rows.remove(0);
        assert_eq!(report.holds(), None, "figures alone prove nothing");
    }
}

//! Shows differences: a table for each part of the result, then the two verdicts.

use super::compare::Difference;
use super::results::Results;
use crate::duration::human;
use crate::table::{Align, TextTable};
use serde_json::{Value, json};

/// The version of the format.
const FORMAT: u32 = 1;
/// Texts that explain a number. They change whenever the number does.
const EXPLANATIONS: [&str; 1] = ["basis"];
/// The longest value in a cell and the longest name, in characters.
const CELL: usize = 40;
const NAME: usize = 72;

/// Returns the differences for programs.
pub(super) fn as_json(before: &Results, after: &Results, found: &[Difference]) -> Value {
    let side =
        |it: &Results| json!({ "file": it.file, "system": it.value["system"], "holds": it.holds });
    let difference =
        |it: &Difference| json!({ "path": it.path, "before": it.before, "after": it.after });
    json!({
        "format": FORMAT,
        "result": "difference",
        "before": side(before),
        "after": side(after),
        "differences": found.iter().map(difference).collect::<Vec<Value>>(),
    })
}

/// Returns the differences for people.
pub(super) fn as_tables(before: &Results, after: &Results, found: &[Difference]) -> String {
    let mut text = String::new();
    let shown: Vec<&Difference> = found.iter().filter(|it| is_shown(it)).collect();
    let (whole, parts): (Vec<&Difference>, Vec<&Difference>) =
        shown.iter().copied().partition(|it| it.path.len() <= 1);
    let parts = parts.chunk_by(|a, b| a.path[0] == b.path[0]).map(|part| {
        let rows = part.iter().map(|it| cells(it, &it.path[1..]));
        table(&words(&part[0].path[0]), rows.collect())
    });
    let whole = table("the whole", whole.iter().map(|it| cells(it, &it.path)).collect());
    for table in [whole].into_iter().chain(parts).filter(|table| !table.is_empty()) {
        text += &format!("{table}\n");
    }
    let count = match shown.len() {
        0 => String::from("no value differs"),
        1 => String::from("1 value differs"),
        many => format!("{many} values differ"),
    };
    let verdict = |it: &Results| {
        let verdict = match it.holds {
            true if it.value["promises_nothing"] == true => "promises nothing",
            true => "holds",
            false => "does not hold",
        };
        format!("{} of {} {verdict}", it.kind, it.file)
    };
    text + &format!("{}\n{}\n{count}\n", verdict(before), verdict(after))
}

/// Returns whether people see a difference: texts that explain a number change with it, and a value
/// that is not there may be left out or be null.
#[must_use]
pub fn is_shown(it: &Difference) -> bool {
    let explains = it.path.last().is_some_and(|key| EXPLANATIONS.contains(&key.as_str()));
    let is_there = |side: &Option<Value>| side.as_ref().is_some_and(|value| !value.is_null());
    !explains && (is_there(&it.before) || is_there(&it.after))
}

/// Returns a key as words, without its unit.
fn words(key: &str) -> String {
    key.strip_suffix("_ns").unwrap_or(key).replace('_', " ")
}

/// Returns a table of differences in a part of the result.
fn table(part: &str, rows: Vec<Vec<String>>) -> String {
    let mut table = TextTable::new(&[
        (part, Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("change", Align::Right),
    ]);
    rows.into_iter().for_each(|row| table.row(row));
    table.render()
}

/// Returns a difference as four cells: its name, both sides, and the change in percent. `within` is
/// its place in its part; keys of lists add nothing to the names of their elements.
#[must_use]
pub fn cells(it: &Difference, within: &[String]) -> Vec<String> {
    let keys = within.iter().map(String::as_str).filter(|key| !matches!(*key, "items" | "ns"));
    let name = keys.map(words).collect::<Vec<String>>().join(", ");
    let name = shortened(&name, NAME);
    vec![name, side(it, it.before.as_ref()), side(it, it.after.as_ref()), change(it)]
}

/// Returns one side of a difference as people read it.
fn side(it: &Difference, value: Option<&Value>) -> String {
    let key = it.path.last().map_or("", String::as_str);
    let is_time = key == "ns" || key.ends_with("_ns");
    match value {
        None | Some(Value::Null) => String::from("-"),
        Some(Value::Bool(yes)) => String::from(if *yes { "yes" } else { "no" }),
        Some(Value::Number(number)) => match number.as_u64() {
            Some(ns) if is_time => human(ns),
            _ => number.to_string(),
        },
        Some(Value::String(text)) => shortened(text, CELL),
        Some(Value::Array(_) | Value::Object(_)) => String::from("there"),
    }
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Returns how much a number grew, in percent of what it was.
fn change(it: &Difference) -> String {
    let number = |side: &Option<Value>| side.as_ref().and_then(Value::as_f64);
    match (number(&it.before), number(&it.after)) {
        (Some(before), Some(after)) if before != 0.0 => {
            format!("{:+.1} %", (after - before) / before.abs() * 100.0)
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(file: &str, holds: bool) -> Results {
        let (file, kind) = (file.to_owned(), String::from("plan"));
        Results { file, kind, holds, value: json!({ "system": "car" }) }
    }

    fn difference(path: &[&str], before: Value, after: Value) -> Difference {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        Difference { path, before: Some(before), after: Some(after) }
    }

    #[test]
    fn numbers_have_their_change_and_verdicts_come_last() {
        let found = [
            difference(&["holds"], json!(true), json!(false)),
            difference(&["pipes", "brakes", "bound_ns"], json!(2_000_000), json!(3_000_000)),
            difference(&["pipes", "brakes", "items", "bus", "basis"], json!("a"), json!("b")),
            difference(&["pipes", "brakes", "items", "bus", "ns"], json!(4), json!(2)),
        ];
        let text = as_tables(&results("a.toml", true), &results("b.toml", false), &found);
        let expected = "\
the whole  before  after  change
---------  ------  -----  ------
holds         yes     no

pipes            before     after   change
-------------  --------  --------  -------
brakes, bound  2.000 ms  3.000 ms  +50.0 %
brakes, bus        4 ns      2 ns  -50.0 %

plan of a.toml holds
plan of b.toml does not hold
3 values differ
";
        assert_eq!(text, expected);
    }

    #[test]
    fn long_texts_are_cut_and_missing_sides_are_dashes() {
        let mut it = difference(&["findings", "number 1"], json!("x".repeat(99)), json!(null));
        assert_eq!(side(&it, it.before.as_ref()).chars().count(), CELL);
        it.after = None;
        assert_eq!((side(&it, None), change(&it)), (String::from("-"), String::new()));
    }
}

//! The keys of JSON outputs are those that the tables in `docs` name, no more and no fewer.

use crate::formats::schema::wrong_output;
use serde_json::Value;
use std::collections::BTreeSet;

type Keys = BTreeSet<String>;

/// One row of a table: the fields it is about, and the keys of their objects.
struct Documented {
    fields: Keys,
    keys: Keys,
}

/// Returns the keys among the words in backticks, but for those in parentheses, which are values.
fn keys_in(text: &str) -> Keys {
    let mut depth = 0;
    let outside = text.chars().filter(|letter| {
        depth += i32::from(*letter == '(') - i32::from(*letter == ')');
        depth == 0
    });
    let outside: String = outside.collect();
    let words = outside.split('`').skip(1).step_by(2).map(|word| word.trim_end_matches("[]"));
    let is_key = |word: &&str| {
        word.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
    };
    let words = words.filter(is_key).filter(|word| !["null", "sim"].contains(word));
    words.map(String::from).collect()
}

/// Returns the rows of the table in a section of a page. A row that begins with `…` continues the
/// one above it.
fn table(page: &str, section: &str) -> Vec<Documented> {
    let (_, text) = page.split_once(&format!("\n## {section}\n")).expect("the section is there");
    let text = text.split("\n## ").next().unwrap_or_default();
    let mut rows: Vec<Documented> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| `") || line.starts_with("| …")) {
        let (first, rest) = line[2..].split_once(" | ").expect("two columns");
        match rows.last_mut() {
            Some(above) if first.starts_with('…') => {
                above.keys.extend(keys_in(first).into_iter().chain(keys_in(rest)));
            }
            _ => rows.push(Documented { fields: keys_in(first), keys: keys_in(rest) }),
        }
    }
    rows
}

/// Returns the keys of all objects in a value; those of `of` are names.
fn keys_of(value: &Value) -> Keys {
    match value {
        Value::Array(all) => all.iter().flat_map(keys_of).collect(),
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| {
                let inner = if key == "of" { Keys::new() } else { keys_of(value) };
                [key.clone()].into_iter().chain(inner)
            })
            .collect(),
        _ => Keys::new(),
    }
}

/// Compares outputs with the table about them, in a section of a page of `docs`, and whole results
/// with their schema.
#[track_caller]
pub fn agrees(page: &str, section: &str, objects: &[Value]) {
    for output in objects.iter().filter(|output| output.get("result").is_some()) {
        assert_eq!(wrong_output(output), Vec::<String>::new());
    }
    let rows = table(page, section);
    let fields: Keys =
        objects.iter().filter_map(Value::as_object).flat_map(|it| it.keys().cloned()).collect();
    let documented: Keys = rows.iter().flat_map(|row| row.fields.iter().cloned()).collect();
    assert_eq!(fields, documented);
    let is_empty = |value: &&Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    for Documented { fields, keys } in &rows {
        for field in fields {
            let mut values = objects.iter().map(|object| &object[field]);
            assert!(!values.all(|value| is_empty(&value)), "nothing is known of {field}");
        }
        let values = fields.iter().flat_map(|field| objects.iter().map(move |it| &it[field]));
        let found: Keys = values.flat_map(keys_of).collect();
        // The words on a plain value may name other fields.
        assert!(found.is_empty() || found == *keys, "{fields:?}: {found:?}, not {keys:?}");
    }
}

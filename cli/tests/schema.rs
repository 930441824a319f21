//! The schema of descriptions, for editors: which keys there are is what the reader asks for, what
//! they mean is what `docs/description.md` says. `DIAPASON_BLESS=1` writes it anew.

use diapason::formats::schema::{Unnamed, wrong};
use diapason_system::{KnownKey, ValueKind, known_keys};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "schema/description.json";
/// Folders with descriptions that the reader accepts as TOML, and pages with parts of some.
const DESCRIPTIONS: [&str; 4] = ["../examples", "../tests", "tests/plan", "templates"];
const PAGES: [&str; 2] = ["../docs/description.md", "../docs/network.md"];
/// The headers of what a file is.
const WHOLE: [&str; 2] = ["the description", "a list of hosts"];

fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the TOML files below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(below(&path));
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// Returns whole descriptions, by their paths. Some have mistakes, but none in a key.
fn descriptions() -> Vec<(PathBuf, String)> {
    let files = DESCRIPTIONS.iter().flat_map(|folder| below(&home().join(folder)));
    let others = ["manifest.toml", "results.toml"];
    let is_other = |path: &PathBuf| others.iter().any(|name| path.ends_with(name));
    let planted = home().join("../tests/mutations");
    let files = files.filter(|path| !is_other(path) && !path.starts_with(&planted));
    files.map(|path| (path.clone(), fs::read_to_string(&path).unwrap())).collect()
}

/// Returns the samples of a page that are TOML.
fn samples(page: &str) -> Vec<String> {
    let fences = page.split("```toml\n").skip(1);
    fences.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Returns a fault of each kind: its further keys depend on that.
fn faults() -> Vec<String> {
    let fault = |what: &str| format!("[[fault]]\nat = \"1s\"\nwhat = \"{what}\"\n");
    let keys = known_keys(&fault(""));
    let of_what = keys.iter().find_map(|known| match &known.kind {
        ValueKind::Words(words) if known.key == "what" => Some(words),
        _ => None,
    });
    of_what.unwrap().iter().map(|what| fault(what)).collect()
}

/// Returns the keys of all descriptions: the kinds of each, by its table and name.
fn known() -> BTreeMap<(String, String), Vec<ValueKind>> {
    let whole = descriptions().into_iter().map(|(_, text)| text);
    let pages = PAGES.iter().map(|page| fs::read_to_string(home().join(page)).unwrap());
    let parts: Vec<String> = pages.flat_map(|page| samples(&page)).collect();
    let mut all: BTreeMap<(String, String), Vec<ValueKind>> = BTreeMap::new();
    let texts = whole.chain(parts).chain(faults());
    for KnownKey { table, key, kind } in texts.flat_map(|text| known_keys(&text)) {
        let kinds = all.entry((table.into(), key.into())).or_default();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    all
}

/// A row of a table of keys: the default, and what the key means.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    default: String,
    meaning: String,
}

/// Returns text without links and marks.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (start, word) = before.rsplit_once('[').unwrap_or((before, ""));
        plain += &format!("{start}{word}");
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    (plain + rest).replace('`', "").replace("\\|", "|").trim().to_owned()
}

/// Returns the words in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns what the page says of keys, by the table's header and the key.
fn documented(page: &str) -> BTreeMap<(String, String), Row> {
    let mut rows = BTreeMap::new();
    let (mut section, mut tables, mut is_keys) = (Vec::new(), Vec::new(), false);
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("##") {
            section = quoted(heading);
        } else if line.starts_with("| key") {
            let own = quoted(line);
            tables = if own.is_empty() { section.clone() } else { own };
            is_keys = true;
        } else if !line.starts_with('|') {
            is_keys = false;
        } else if is_keys && line.starts_with("| `") {
            let line = line.replace("\\|", "\u{1}");
            let cells: Vec<&str> = line.trim_matches('|').splitn(3, '|').collect();
            let [keys, default, meaning] = cells[..] else { continue };
            for (table, key) in tables.iter().flat_map(|table| {
                quoted(keys).into_iter().map(move |key| (table.to_string(), key.to_string()))
            }) {
                let [default, meaning] =
                    [default, meaning].map(|text| plain(&text.replace('\u{1}', "\\|")));
                rows.entry((table, key)).or_insert(Row { default, meaning });
            }
        }
    }
    rows
}

/// Returns the name of a table's part of the schema.
fn part(header: &str) -> String {
    header.trim_matches(['[', ']']).to_owned()
}

fn duration() -> Value {
    json!({ "type": "string", "pattern": "^[0-9.]+(ns|us|ms|s)$" })
}

/// Returns the schema of a value of this kind. `inner` is the part for tables of this key.
fn of_kind(kind: &ValueKind, inner: Option<&str>) -> Value {
    let list = |each: Value| json!({ "type": "array", "items": each });
    let number = |range: &RangeInclusive<u64>| {
        let (least, most) = (range.start(), range.end());
        json!({ "type": "integer", "minimum": least, "maximum": most })
    };
    let table = inner.map_or(json!({}), |part| json!({ "$ref": format!("#/$defs/{part}") }));
    match kind {
        ValueKind::Tables => list(table),
        ValueKind::Text => json!({ "type": "string" }),
        ValueKind::Words(words) => json!({ "enum": words }),
        ValueKind::Flag => json!({ "type": "boolean" }),
        ValueKind::Number(range) => number(range),
        ValueKind::Numbers(range) => list(number(range)),
        ValueKind::Integers => list(json!({ "type": "integer" })),
        ValueKind::Names => list(json!({ "type": "string" })),
        ValueKind::NameLists => list(list(json!({ "type": "string" }))),
        ValueKind::Size => json!({ "type": ["string", "integer"] }),
        ValueKind::Duration => duration(),
        ValueKind::Durations => json!({ "anyOf": [duration(), list(duration())] }),
        ValueKind::Any => table,
    }
}

/// Returns the schema of a key: its kinds, or anything if the reader looks at the type itself.
fn of_key(kinds: &[ValueKind], inner: Option<&str>) -> Value {
    let open = kinds.iter().find(|kind| **kind == ValueKind::Any);
    let mut each: Vec<Value> = match open {
        Some(any) => vec![of_kind(any, inner)],
        None => kinds.iter().map(|kind| of_kind(kind, inner)).collect(),
    };
    if each.len() == 1 { each.remove(0) } else { json!({ "anyOf": each }) }
}

fn generated() -> Value {
    let page = fs::read_to_string(home().join(PAGES[0])).unwrap();
    let (known, rows) = (known(), documented(&page));
    let headers: BTreeSet<&String> = known.keys().map(|(table, _)| table).collect();
    let mut parts: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut silent = Vec::new();
    for ((table, key), kinds) in &known {
        let is_whole = WHOLE.contains(&&**table);
        let outer = if is_whole { String::new() } else { format!("{}.", part(table)) };
        let inner = [format!("[{outer}{key}]"), format!("[[{outer}{key}]]")];
        let inner = inner.iter().find(|header| headers.contains(header)).map(|it| part(it));
        let mut schema = of_key(kinds, inner.as_deref());
        match rows.get(&(table.clone(), key.clone())) {
            Some(Row { default, meaning }) => {
                let default = if default.is_empty() { "see the reference" } else { default };
                let text = format!("{meaning}\n\nDefault: {default}");
                schema["description"] = text.trim().into();
            }
            None if inner.is_none() => silent.push(format!("{table} {key}")),
            None => {}
        }
        let name = if is_whole { String::new() } else { part(table) };
        parts.entry(name).or_default().insert(key.clone(), schema);
    }
    assert!(silent.is_empty(), "docs/description.md says nothing of {silent:#?}");
    let unknown: Vec<_> = rows.keys().filter(|key| !known.contains_key(key)).collect();
    assert!(unknown.is_empty(), "no description of the corpus has {unknown:#?}");
    let top = parts.remove("").unwrap();
    let object = |(name, keys)| {
        (
            name,
            json!({
                "type": "object", "additionalProperties": false, "properties": keys,
            }),
        )
    };
    let parts: Map<String, Value> = parts.into_iter().map(object).collect();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Description of a Diapason system, or list of hosts",
        "type": "object",
        "additionalProperties": false,
        "properties": top,
        "$defs": parts,
    });
    require(&mut schema, &rows);
    schema
}

/// Adds the keys that the page calls required, unless a description does without one.
fn require(schema: &mut Value, rows: &BTreeMap<(String, String), Row>) {
    let texts: Vec<toml::Table> =
        descriptions().iter().map(|(_, text)| text.parse().unwrap()).collect();
    for ((table, key), _) in rows.iter().filter(|(_, row)| row.default == "required") {
        let name = part(table);
        let of = |text: &toml::Table| -> Vec<toml::Table> {
            let found = text.get(&name).cloned();
            match found {
                Some(toml::Value::Array(list)) => {
                    list.into_iter().filter_map(|each| each.as_table().cloned()).collect()
                }
                Some(toml::Value::Table(table)) => vec![table],
                _ => Vec::new(),
            }
        };
        if texts.iter().flat_map(of).all(|table| table.contains_key(key)) {
            let object = &mut schema["$defs"][&name];
            let mut all = object["required"].as_array().cloned().unwrap_or_default();
            all.push(key.clone().into());
            object["required"] = all.into();
        }
    }
}

#[test]
fn the_schema_is_what_the_reader_knows_and_the_page_says() {
    let path = home().join(SCHEMA);
    let now = format!("{:#}\n", generated());
    if std::env::var_os("DIAPASON_BLESS").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == now, "{SCHEMA} is old: DIAPASON_BLESS=1 writes it anew");
}

#[test]
fn every_description_is_as_the_schema_says() {
    let text = fs::read_to_string(home().join(SCHEMA)).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    for (path, text) in descriptions() {
        let table: toml::Table = text.parse().unwrap();
        let found = wrong(&serde_json::to_value(table).unwrap(), &schema, Unnamed::AsSaid);
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
    }
    let refused = |text: &str| {
        let table: toml::Table = text.parse().unwrap();
        wrong(&serde_json::to_value(table).unwrap(), &schema, Unnamed::AsSaid).join("; ")
    };
    assert!(refused("[system]\nname = 1\n").contains(".system.name: 1 is no"));
    assert!(refused("[sytem]\n").contains("unknown key sytem"));
    assert!(refused("[system]\n").contains(".system: no name"));
    let process =
        |line: &str| refused(&format!("[[process]]\nname = \"p\"\npriority = 1\n{line}\n"));
    assert_eq!(process(""), "");
    assert!(process("priorty = 1").contains("unknown key priorty"));
    assert!(process("backoff = \"10\"").contains("is no duration"));
    assert!(process("start = \"now\"").contains("is none of"));
    assert!(process("threads = 0").contains("out of range"));
}

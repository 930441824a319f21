//! Every reproduction of a paper, in short: the rows that fail are those of a list, no more and no
//! less.
//!
//! A row that fails says something true: a paper and this system differ, or a promise is broken.
//! `papers/reproduce/known.toml` has each with its reason, so that anything new breaks the tests
//! and anything mended is struck off.

use crate::tally::{Tally, command};
use diapason::Workspace;
use serde_json::Value;
use std::collections::BTreeSet;
use toml::Table;

const KNOWN: &str = "papers/reproduce/known.toml";

/// Runs every reproduction whose step contains `part`.
pub fn steps(workspace: &Workspace, part: &str, tally: &mut Tally) {
    for name in diapason_papers::names() {
        let step = format!("reproduce {name} --quick: what fails is known");
        if step.contains(part) {
            tally.step(&step, || check(workspace, name));
        }
    }
}

fn check(workspace: &Workspace, name: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(workspace.root().join(KNOWN))
        .map_err(|error| format!("{KNOWN}: {error}"))?;
    let known = known(&text, name)?;
    let arguments = ["run", "--quiet", "--bin", "diapason", "--", "reproduce", name];
    let output = command(workspace, &arguments).args(["--quick", "--json"]).output();
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("no JSON came of it: {error}\n{said}"))?;
    let failing = failing(&report)?;
    let skipped = report["skipped"].as_array().map_or(0, Vec::len);
    let expected = match (failing.is_empty(), skipped) {
        (false, _) => 1,
        (true, 0) => 0,
        (true, _) => 4,
    };
    if output.status.code() != Some(expected) {
        return Err(format!("it ended with {}, its rows say {expected}\n{said}", output.status));
    }
    if skipped > 0 {
        println!("skipped: {}", report["skipped"]);
    }
    compare(&failing, &known)
}

/// Returns the ids of rows that fail.
fn failing(report: &Value) -> Result<BTreeSet<String>, String> {
    let rows = report["rows"].as_array().filter(|rows| !rows.is_empty());
    let rows = rows.ok_or("it compares nothing")?;
    let mut failing = BTreeSet::new();
    for row in rows {
        match (row["id"].as_str(), row["holds"].as_bool()) {
            (Some(_), Some(true)) => {}
            (Some(id), Some(false)) => drop(failing.insert(id.to_owned())),
            _ => return Err(format!("a row without `id` or `holds`: {row}")),
        }
    }
    Ok(failing)
}

/// Returns the rows of `name` that the list has: `[[row]]` with `name`, `id`, `why` and `issue`.
fn known(text: &str, name: &str) -> Result<BTreeSet<String>, String> {
    let table: Table = text.parse().map_err(|error| format!("{KNOWN}: {error}"))?;
    let rows = table.get("row").and_then(|rows| rows.as_array());
    let mut known = BTreeSet::new();
    for row in rows.into_iter().flatten() {
        let word = |key: &str| {
            let word =
                row.get(key).and_then(|value| value.as_str()).filter(|word| !word.is_empty());
            word.ok_or_else(|| format!("{KNOWN}: a row without `{key}`: {row:?}"))
        };
        if row.get("issue").is_none_or(|issue| issue.as_integer().is_none()) {
            return Err(format!("{KNOWN}: a row without the number of its `issue`: {row:?}"));
        }
        word("why")?;
        let (of, id) = (word("name")?, word("id")?);
        if !diapason_papers::names().any(|name| name == of) {
            return Err(format!("{KNOWN}: there is no reproduction `{of}`"));
        }
        if of == name {
            known.insert(id.to_owned());
        }
    }
    Ok(known)
}

/// Checks that the rows that fail are the rows that are known to fail.
fn compare(failing: &BTreeSet<String>, known: &BTreeSet<String>) -> Result<(), String> {
    let new = failing.difference(known).map(|id| format!("{id} fails, and is not in {KNOWN}"));
    let mended = known.difference(failing).map(|id| format!("{id} holds: strike it off {KNOWN}"));
    let differences: Vec<String> = new.chain(mended).collect();
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn new_failures_and_mended_rows_are_both_told() {
        assert_eq!(compare(&set(&["a"]), &set(&["a"])), Ok(()));
        let told = compare(&set(&["a", "b"]), &set(&["b", "c"])).unwrap_err();
        assert_eq!(told.lines().count(), 2);
        assert!(told.contains("a fails") && told.contains("c holds: strike it off"), "{told}");
    }

    #[test]
    fn rows_that_fail_are_read_and_rows_without_a_verdict_refused() {
        let report =
            json!({ "rows": [{ "id": "a", "holds": true }, { "id": "b", "holds": false }] });
        assert_eq!(failing(&report), Ok(set(&["b"])));
        assert!(failing(&json!({ "rows": [{ "id": "a", "holds": null }] })).is_err());
        assert!(failing(&json!({ "rows": [] })).is_err(), "nothing compared proves nothing");
    }

    #[test]
    fn every_known_row_has_a_reason_and_an_issue() {
        let row = "[[row]]\nname = \"csd\"\nid = \"a\"\nwhy = \"x\"\nissue = 15\n";
        assert_eq!(known(row, "csd"), Ok(set(&["a"])));
        assert_eq!(known(row, "fig12"), Ok(set(&[])));
        for missing in ["why = \"x\"\n", "issue = 15\n", "id = \"a\"\n"] {
            assert!(known(&row.replace(missing, ""), "fig12").is_err(), "{missing}");
        }
        assert!(known(&row.replace("csd", "cds"), "csd").is_err());
    }
}

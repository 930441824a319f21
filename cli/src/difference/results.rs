//! Reads the two sides of a comparison: descriptions are planned, other files are JSON that a
//! command printed.

use crate::failure::Failure;
use crate::input::Input;
use crate::plan::as_json;
use serde_json::Value;
use std::path::Path;

/// The newest version of the format that is understood.
const FORMAT: u64 = 1;

/// The words of one command about one system.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Results {
    /// The file that it was read from.
    pub file: String,
    /// The command's kind of result, such as `plan`.
    pub kind: String,
    pub holds: bool,
    pub value: Value,
}

impl Results {
    /// Reads a file of either form.
    pub(super) fn read(path: &Path) -> Result<Results, Failure> {
        let file = path.display().to_string();
        if path.extension().is_some_and(|ending| ending == "toml") {
            return Results::of(file, as_json(path)?);
        }
        let text = Input::Results.text(path);
        let text =
            text.map_err(|why| Failure::Input(format!("error: cannot read {file}: {why}")))?;
        let value = serde_json::from_str(&text).map_err(|why| {
            let remedy = "name a description (.toml) or what `plan`, `sim` or `run` printed with \
                          `--json`";
            Failure::Input(format!("error: {file} is no JSON: {why}\n  help: {remedy}"))
        })?;
        Results::of(file, value)
    }

    fn of(file: String, value: Value) -> Result<Results, Failure> {
        let refused = |why: String| Failure::Input(format!("error: {file}: {why}"));
        let format = value["format"].as_u64().ok_or_else(|| {
            refused(String::from("it has no `format`, so no command of Diapason printed it"))
        })?;
        if format > FORMAT {
            return Err(refused(format!(
                "its format is {format}, and this command knows formats up to {FORMAT}"
            )));
        }
        let (Some(kind), Some(holds)) = (value["result"].as_str(), value["holds"].as_bool()) else {
            return Err(refused(String::from(
                "it has no `result` or no `holds`: print it again with `plan`, `sim` or `run`",
            )));
        };
        Ok(Results { kind: kind.to_owned(), holds, file, value })
    }

    /// Refuses to compare the results of different commands.
    pub(super) fn comparable(&self, other: &Results) -> Result<(), Failure> {
        if self.kind == other.kind {
            return Ok(());
        }
        Err(Failure::Input(format!(
            "error: {} is a {}, and {} is a {}: compare results of one command",
            self.file, self.kind, other.file, other.kind
        )))
    }
}

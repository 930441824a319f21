//! The results of campaigns that are kept in the repository: `tests/results.toml`.

use diapason::{Failure, Workspace};
use std::io::Write as _;
use toml::{Table, Value};

/// The file, below the workspace's root.
const FILE: &str = "tests/results.toml";

/// A campaign that came to its end.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Run {
    /// The numbers of the checks that it belongs to.
    pub of: Vec<u64>,
    pub command: String,
    pub date: String,
    pub commit: String,
    pub core_hours: f64,
    pub result: String,
}

impl Run {
    fn parse(value: &Value) -> Result<Run, String> {
        let text = |key: &str| match value.get(key).and_then(Value::as_str) {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(format!("a run has no text `{key}`")),
        };
        let of = value.get("checks").and_then(Value::as_array).ok_or("a run has no `checks`")?;
        let number = |value: &Value| {
            let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
            number.filter(|number| (1..=25).contains(number)).ok_or("a check is 1 to 25")
        };
        Ok(Run {
            of: of.iter().map(number).collect::<Result<_, _>>()?,
            command: text("command")?,
            date: text("date")?,
            commit: text("commit")?,
            core_hours: value
                .get("core_hours")
                .and_then(Value::as_float)
                .ok_or("a run has no number `core_hours`, such as 1.5")?,
            result: text("result")?,
        })
    }

    /// Returns the numbers of its checks, as a table shows them.
    pub fn checks(&self) -> String {
        let of: Vec<String> = self.of.iter().map(u64::to_string).collect();
        of.join(", ")
    }

    fn written(&self) -> String {
        let Run { command, date, commit, core_hours, result, .. } = self;
        format!(
            "\n[[run]]\nchecks = [{}]\ncommand = {command:?}\ndate = {date:?}\n\
             commit = {commit:?}\ncore_hours = {core_hours:?}\nresult = {result:?}\n",
            self.checks()
        )
    }
}

/// Returns all runs, in the order of the file.
///
/// # Errors
/// If the file cannot be read, or a run in it lacks something.
pub fn read(workspace: &Workspace) -> Result<Vec<Run>, Failure> {
    let path = workspace.root().join(FILE);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
    parse(&text).map_err(|why| Failure::Input(format!("error: {FILE}: {why}")))
}

fn parse(text: &str) -> Result<Vec<Run>, String> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let runs = table.get("run").and_then(Value::as_array).ok_or("it has no `[[run]]`")?;
    runs.iter().map(Run::parse).collect()
}

/// Adds a run to the file.
///
/// # Errors
/// If the file cannot be written.
pub fn add(workspace: &Workspace, run: &Run) -> Result<(), Failure> {
    let path = workspace.root().join(FILE);
    let file = std::fs::OpenOptions::new().append(true).open(&path);
    file.and_then(|mut file| file.write_all(run.written().as_bytes()))
        .map_err(|error| Failure::io(format!("write {}", path.display()), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_reads_as_it_was_written() {
        let run = Run {
            of: vec![8, 25],
            command: String::from("cargo xtask campaign systems --count 9"),
            date: String::from("2026-11-26"),
            commit: String::from("12ab"),
            core_hours: 0.25,
            result: String::from("nothing was found"),
        };
        assert_eq!(parse(&run.written()), Ok(vec![run.clone()]));
        let broken = |from: &str, to: &str| parse(&run.written().replace(from, to)).unwrap_err();
        assert!(broken("25", "26").contains("1 to 25"));
        assert!(broken("commit =", "other =").contains("`commit`"));
    }
}

//! Formats that other tools read: SARIF of a plan, the schemas of JSON, and which
//! format a command prints.

pub mod sarif;
pub mod schema;

use serde_json::{Map, Value};

/// Returns the object of one of several, such as a host, with its name first.
pub(crate) fn named(noun: &str, name: &str, object: Value) -> Value {
    let mut named = Map::from_iter([(noun.to_owned(), name.into())]);
    if let Value::Object(fields) = object {
        named.extend(fields);
    }
    Value::Object(named)
}

/// How a plan is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum PlanFormat {
    /// Print tables for people to read.
    Text,
    /// Print everything that the plan computed.
    Json,
    /// The findings alone, in SARIF 2.1.0.
    Sarif,
}

/// How the report of a run is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum RunFormat {
    /// Print tables for people to read.
    Text,
    /// Print everything that the run showed.
    Json,
    /// The verdict alone: a test case for each promise, in the format of JUnit.
    Junit,
}

impl RunFormat {
    /// Returns the format that the options ask for.
    #[must_use]
    pub fn of(json: bool, format: Option<RunFormat>) -> RunFormat {
        format.unwrap_or(if json { RunFormat::Json } else { RunFormat::Text })
    }

    /// Returns whether a program reads the report: what the system says goes to standard error.
    #[must_use]
    pub fn is_for_programs(self) -> bool {
        self != RunFormat::Text
    }
}

//! Formats of findings and verdicts that other tools read: SARIF of a plan, JUnit of a run.

pub mod junit;
pub mod sarif;

/// How a plan is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum PlanFormat {
    /// Tables for people.
    Text,
    /// The whole plan.
    Json,
    /// The findings alone, in SARIF 2.1.0.
    Sarif,
}

/// How the report of a run is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum RunFormat {
    /// Tables for people.
    Text,
    /// The whole outcome.
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

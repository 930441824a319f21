//! The measurements of a simulation, besides the records of the kernel: the use of buses, the times
//! of jobs, and the times of messages on each part of their way.

use super::messages::{Seen, render_stages, stages_to_json};
use super::usage::Usage;
use crate::Failure;
use crate::chart::{Distribution, cdf, histogram};
use crate::commands::Addition;
use crate::session::{Run, Session};
use diapason_abi::Nanos;
use serde_json::Value;
use std::path::Path;

/// The measurements of a run.
pub struct Measured<'a> {
    pub usage: &'a [Usage],
    pub jobs: &'a [Distribution],
    /// Of the messages of each pipe, if that was asked for.
    pub stages: Option<&'a [Seen]>,
}

impl Measured<'_> {
    /// All of it as text and as JSON.
    pub fn addition(&self, session: &Session, run: &Run) -> Addition {
        let end = Nanos(run.outcome.end.map_or(0, |end| end.time_ns));
        let system = &session.system;
        let stages = self.stages.map(|seen| render_stages(system, seen, &session.names));
        let jobs = self.jobs.iter().map(histogram::terminal);
        let parts = stages.into_iter().chain([Usage::render(self.usage, end)]).chain(jobs);
        let text = parts.filter(|part| !part.is_empty()).collect::<Vec<String>>().join("\n");
        let buses = ("buses", Usage::to_json(self.usage, end));
        let jobs = Value::Array(self.jobs.iter().map(Distribution::to_json).collect());
        let stages = self.stages.map(|seen| ("stages", stages_to_json(system, seen)));
        let json = [buses, ("responses", jobs)].into_iter().chain(stages);
        Addition { text, json: json.map(|(name, value)| (name.to_owned(), value)).collect() }
    }
}

/// A histogram for each thread and the distribution functions of all, as files.
///
/// # Errors
/// If they cannot be written.
pub fn pictures(folder: &Path, jobs: &[Distribution]) -> Result<(), Failure> {
    let failed = |error| Failure::io(format!("write pictures into {}", folder.display()), &error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    for of in jobs {
        let name = of.name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
        let path = folder.join(format!("responses-{name}.svg"));
        std::fs::write(path, histogram::svg(of)).map_err(failed)?;
    }
    let all = cdf::svg("from release to end", jobs);
    std::fs::write(folder.join("responses.svg"), all).map_err(failed)
}

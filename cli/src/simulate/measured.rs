//! What a simulation measured, besides the records of the kernel: how buses were used, how long
//! jobs took.

use super::usage::Usage;
use crate::Failure;
use crate::chart::{Distribution, cdf, histogram};
use crate::commands::Addition;
use crate::session::Run;
use diapason_abi::Nanos;
use serde_json::Value;
use std::path::Path;

/// Both as text and as JSON.
pub fn addition(run: &Run, usage: &[Usage], jobs: &[Distribution]) -> Addition {
    let end = Nanos(run.outcome.end.map_or(0, |end| end.time_ns));
    let parts =
        std::iter::once(Usage::render(usage, end)).chain(jobs.iter().map(histogram::terminal));
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    let text = parts.join("\n");
    let buses = (String::from("buses"), Usage::to_json(usage, end));
    let jobs = Value::Array(jobs.iter().map(Distribution::to_json).collect());
    Addition { text, json: vec![buses, (String::from("responses"), jobs)] }
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

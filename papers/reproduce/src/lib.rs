//! `diapason reproduce`: the tables and figures of the papers, theirs beside ours.
//!
//! A reproduction computes a [`ReproductionReport`]: rows with the paper's number and ours, each of
//! which holds or does not, tables for people, and pictures. Nothing here depends on the time of
//! day, the speed of the host or its number of processors: every workload has a seed of its own.

#![forbid(unsafe_code)]

mod boot;
mod bridging;
mod concentrator;
pub mod counts;
mod csd;
mod decisions;
mod endpoints;
pub mod fig12;
mod kernel;
mod largest_rate;
mod links;
mod linux_twin;
mod mts;
mod parallel;
mod progress;
mod protocol;
mod report;
mod semaphores;
mod topologies;
mod tuned_pipes;
mod usb;

pub use report::{Picture, ReproductionReport, Row, Skipped};

use diapason::Failure;
use diapason::failure::{BROKEN, HOLDS};
use progress::Progress;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The exit code if nothing failed, but a part was skipped because the machine lacks something.
const INCOMPLETE: u8 = 4;

/// The request to `reproduce`.
#[derive(Clone, Debug)]
pub struct ReproduceRequest {
    /// The reproductions to make; all if empty.
    pub names: Vec<String>,
    pub effort: Effort,
    /// Prints JSON instead of tables.
    pub json: bool,
    /// Where to put the pictures, if they are wanted.
    pub out: Option<PathBuf>,
}

/// How thoroughly to work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Fewer workloads: seconds instead of minutes.
    Quick,
    /// As the papers, or enough to be sure.
    Full,
    /// Six times as long, where a run is long enough to be told by its length.
    Long,
}

type Reproduction = fn(Effort, &Progress) -> Result<ReproductionReport, Failure>;

/// Everything that can be reproduced.
const ALL: [(&str, Reproduction); 17] = [
    ("kernel", kernel::reproduce),
    ("csd", csd::reproduce),
    ("semaphores", semaphores::reproduce),
    ("decisions", decisions::reproduce),
    ("fig12", fig12::reproduce),
    ("largest-rate", largest_rate::reproduce),
    ("mts", mts::reproduce),
    ("linux-twin", linux_twin::reproduce),
    ("protocol", protocol::reproduce),
    ("tuned-pipes", tuned_pipes::reproduce),
    ("endpoints", endpoints::reproduce),
    ("topologies", topologies::reproduce),
    ("usb-latency", usb::latency),
    ("usb-throughput", usb::throughput),
    ("usb-network", links::network),
    ("usb-ring", links::ring),
    ("bridging", bridging::reproduce),
];

/// The names of all reproductions.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// Makes the reproductions and reports them.
///
/// # Errors
/// If a name is unknown, or a picture cannot be written.
pub fn reproduce(request: &ReproduceRequest) -> Result<u8, Failure> {
    let chosen = chosen(&request.names)?;
    let mut reports = Vec::new();
    for (name, run) in chosen {
        let report = run(request.effort, &Progress::new(name))?;
        if let Some(folder) = &request.out {
            save(folder, &report)?;
        }
        if !request.json {
            say(&report.render(request.out.as_deref()));
        }
        reports.push(report);
    }
    if request.json {
        let mut objects: Vec<serde_json::Value> =
            reports.iter().map(ReproductionReport::to_json).collect();
        let one = if objects.len() == 1 { objects.remove(0) } else { objects.into() };
        say(&format!("{one:#}"));
    }
    Ok(exit_code(&reports))
}

/// A row that fails counts more than a part that was skipped.
fn exit_code(reports: &[ReproductionReport]) -> u8 {
    let any = |verdict| reports.iter().any(|report| report.holds() == verdict);
    if any(Some(false)) {
        BROKEN
    } else if any(None) {
        INCOMPLETE
    } else {
        HOLDS
    }
}

/// The reproductions of these names, each once, in the order of [`ALL`].
fn chosen(names: &[String]) -> Result<Vec<(&'static str, Reproduction)>, Failure> {
    let known = |name: &&String| !ALL.iter().any(|(known, _)| known == name);
    if let Some(unknown) = names.iter().find(known) {
        let all: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        return Err(Failure::Input(format!(
            "`{unknown}` cannot be reproduced; choose from: {}",
            all.join(", ")
        )));
    }
    let wanted =
        |(name, _): &&(&str, Reproduction)| names.is_empty() || names.iter().any(|n| n == name);
    Ok(ALL.iter().filter(wanted).copied().collect())
}

fn save(folder: &Path, report: &ReproductionReport) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::io(format!("make the folder {}", folder.display()), &error))?;
    for picture in &report.pictures {
        let path = folder.join(format!("{}.svg", picture.name));
        std::fs::write(&path, &picture.svg)
            .map_err(|error| Failure::io(format!("write {}", path.display()), &error))?;
    }
    Ok(())
}

/// A line on standard output. A reader who has seen enough does not end the command.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_fails_counts_more_than_a_part_that_was_skipped() {
        let report = |holds| {
            let row = Row::numbers("a", "", None, 1.0).holds(holds);
            ReproductionReport::new("demo", vec![row], vec![], vec![])
        };
        let mut part = report(true);
        part.skipped.push(Skipped { what: "Linux", why: "no kernel".into() });
        assert_eq!(exit_code(&[report(true)]), HOLDS);
        assert_eq!(exit_code(&[report(true), part.clone()]), INCOMPLETE);
        assert_eq!(exit_code(&[report(false), part]), BROKEN);
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_are_known() {
        let refused = chosen(&["csd".into(), "cds".into()]).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        assert_eq!(
            refused.to_string(),
            "error: `cds` cannot be reproduced; choose from: kernel, csd, semaphores, decisions, \
             fig12, largest-rate, mts, linux-twin, protocol, tuned-pipes, endpoints, topologies, \
             usb-latency, usb-throughput, usb-network, usb-ring, bridging"
        );
        assert_eq!(chosen(&[]).unwrap().len(), ALL.len());
        assert_eq!(chosen(&["csd".into(), "csd".into()]).unwrap().len(), 1);
    }
}

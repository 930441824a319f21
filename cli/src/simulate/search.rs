//! `--search N`: many seeds on all cores, up to the first that breaks a promise.
//!
//! Programs live at fixed addresses, so a process simulates one system at a time; the search is
//! several processes, each with every so-manieth seed.

use crate::failure::{BROKEN, HOLDS};
use crate::{Failure, Workspace, metal};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The seeds of one process: from, to (not included), distance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds {
    from: u64,
    to: u64,
    step: u64,
}

impl Seeds {
    /// As `FROM:TO:STEP`.
    ///
    /// # Errors
    /// What would have been understood.
    pub fn parse(text: &str) -> Result<Seeds, String> {
        let numbers: Vec<u64> = text.split(':').filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [from, to, step] if step > 0 => Ok(Seeds { from, to, step }),
            _ => Err(format!("`{text}` are no seeds: write FROM:TO:STEP")),
        }
    }

    /// One after the other.
    pub fn each(self) -> impl Iterator<Item = u64> {
        (self.from..self.to).step_by(usize::try_from(self.step).unwrap_or(usize::MAX))
    }
}

impl std::fmt::Display for Seeds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.from, self.to, self.step)
    }
}

/// What a searching process prints when a seed broke a promise.
pub const BROKE: &str = "broke ";
/// What it prints before each seed, so that its own death has one.
pub const TRIES: &str = "tries ";
/// And then of each fault of that run.
pub const FAULT: &str = "fault ";
/// How findings begin that are no broken promise but a fault of ours.
pub const BUG: &str = "BUG: ";

/// A seed that broke a promise: which, and after what faults.
#[derive(PartialEq, Eq, Debug)]
struct Found {
    seed: u64,
    why: String,
    faults: Vec<String>,
}

/// What a searching process found, from what it printed.
fn found(output: &str) -> Option<Found> {
    let (seed, why) = output.lines().find_map(|line| line.strip_prefix(BROKE)?.split_once(' '))?;
    let faults = output.lines().filter_map(|line| line.strip_prefix(FAULT)).map(str::to_owned);
    Some(Found { seed: seed.parse().ok()?, why: why.to_owned(), faults: faults.collect() })
}

/// Searches `count` seeds, from `from` on, with the other arguments as they were given.
///
/// # Errors
/// If nothing could be searched.
pub fn search(system: &Path, arguments: &[String], from: u64, count: u64) -> Result<u8, Failure> {
    // Once, and not in every process.
    metal::build(&Workspace::find()?)?;
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get() as u64).min(count);
    let own = std::env::current_exe().map_err(|error| Failure::io("find myself", &error))?;
    let start = |worker| -> Result<Child, Failure> {
        let seeds = Seeds { from: from + worker, to: from + count, step: workers };
        let mut command = Command::new(&own);
        command.arg("sim").arg(system).args(arguments).args(["--seeds", &seeds.to_string()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| Failure::io("start a search", &error))
    };
    let children = (0..workers).map(start).collect::<Result<Vec<Child>, Failure>>()?;
    let mut first: Option<Found> = None;
    for child in children {
        let output = child.wait_with_output().map_err(|error| Failure::io("search", &error))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match found(&text) {
            Some(broken) if first.as_ref().is_none_or(|first| broken.seed < first.seed) => {
                first = Some(broken);
            }
            None if !output.status.success() => {
                let seed = text.lines().filter_map(|line| line.strip_prefix(TRIES)).next_back();
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let seed = seed.unwrap_or("none");
                let status = output.status;
                return Err(Failure::Ours(format!("{said}at seed {seed}: ended with {status}")));
            }
            _ => {}
        }
    }
    Ok(say(system, arguments, count, first))
}

fn say(system: &Path, arguments: &[String], count: u64, first: Option<Found>) -> u8 {
    let Some(Found { seed, why, faults }) = first else {
        println!("{count} seeds, no promise broken");
        return HOLDS;
    };
    println!("seed {seed}: {why}");
    faults.iter().for_each(|fault| println!("  {fault}"));
    let arguments: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
    let (system, arguments) = (system.display(), arguments.join(" "));
    println!("again: diapason sim {system} {arguments} --seed {seed} --explain worst");
    BROKEN
}

/// As a shell needs it: only faults have spaces.
fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("\"{word}\"") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_shared_out() {
        let seeds = |text| Seeds::parse(text).unwrap().each().collect::<Vec<u64>>();
        assert_eq!(seeds("5:12:3"), [5, 8, 11]);
        assert_eq!(seeds("6:12:3"), [6, 9]);
        assert!(Seeds::parse("5:12:0").is_err() && Seeds::parse("5").is_err());
    }

    #[test]
    fn a_finding_comes_with_its_faults() {
        let text = "broke 7 late\nfault a\nfault b c\n";
        let faults = vec![String::from("a"), String::from("b c")];
        assert_eq!(found(text), Some(Found { seed: 7, why: String::from("late"), faults }));
        assert_eq!(found("nothing"), None);
        assert_eq!([quoted("--fault"), quoted("2s crash p")], ["--fault", "\"2s crash p\""]);
    }
}

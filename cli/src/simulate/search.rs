//! `--search N`: many seeds on all cores, up to the first that breaks a promise.
//!
//! Programs live at fixed addresses, so a process simulates one system at a time; the search is
//! several processes, each with every n-th seed.

use super::SimRequest;
use super::progress::Progress;
use crate::failure::{BROKEN, Failure, HOLDS};
use crate::output::{note, say, write};
use crate::project;
use crate::witness::{Witness, Witnesses, quoted};
use crate::workspace::Workspace;
use diapason_system::System;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};

/// The seeds of one process: from, to (not included), distance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds {
    from: u64,
    to: u64,
    step: u64,
}

impl Seeds {
    /// Parses `FROM:TO:STEP`.
    ///
    /// # Errors
    /// Returns the forms that would be understood.
    pub fn parse(text: &str) -> Result<Seeds, String> {
        let numbers: Vec<u64> = text.split(':').filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [from, to, step] if step > 0 => Ok(Seeds { from, to, step }),
            _ => Err(format!("`{text}` are no seeds: write FROM:TO:STEP")),
        }
    }

    /// Returns one after the other.
    pub fn each(self) -> impl Iterator<Item = u64> {
        (self.from..self.to).step_by(usize::try_from(self.step).unwrap_or(usize::MAX))
    }
}

impl std::fmt::Display for Seeds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.from, self.to, self.step)
    }
}

/// A message from a searching process to the search: a line of JSON.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Searched {
    /// A seed begins, so that the process's own death has one.
    Tries(u64),
    /// The hash of a seed's trace.
    Trace(u64, u64),
    /// A seed broke a promise, or showed a bug of ours.
    Broke(u64, String),
    /// A fault of a run that broke a promise.
    Fault(u64, String),
    /// How close a run came to a bound.
    Close(Witness),
}

impl Searched {
    /// Prints the message for the process that searches.
    pub fn tell(&self) {
        say(&json!(self).to_string());
    }
}

/// The findings of a search.
#[derive(Debug)]
pub(crate) struct Found {
    seeds: u64,
    /// The runs that came closest to each bound.
    witnesses: Witnesses,
    /// The first seed that broke a promise, and how.
    first: Option<(u64, String)>,
    /// Seeds with the hashes of their traces, in order.
    traces: BTreeMap<u64, u64>,
    /// Seeds that broke a promise, with a fault of that run.
    faults: Vec<(u64, String)>,
}

impl Found {
    /// Returns the findings of a search through `seeds` seeds that has not begun.
    const fn none(seeds: u64, witnesses: Witnesses) -> Found {
        let traces = BTreeMap::new();
        Found { seeds, witnesses, first: None, traces, faults: Vec::new() }
    }

    /// Takes in what one process told.
    fn note(&mut self, told: Searched) {
        match told {
            Searched::Tries(_) => {}
            Searched::Trace(seed, hash) => _ = self.traces.insert(seed, hash),
            Searched::Broke(seed, why) => {
                self.first = self.first.take().into_iter().chain([(seed, why)]).min();
            }
            Searched::Fault(seed, fault) => self.faults.push((seed, fault)),
            Searched::Close(witness) => self.witnesses.note(witness),
        }
    }

    /// Says it; the exit code. Seeds behind the first that broke a promise are not told of: how far
    /// each process came is chance. For the same reason there are no witnesses then.
    ///
    /// # Errors
    /// If the witnesses should be kept and cannot.
    pub fn tell(&self, request: &SimRequest) -> Result<u8, Failure> {
        let (system, arguments) = (&request.system, request.again());
        let last = self.first.as_ref().map_or(u64::MAX, |(seed, _)| *seed);
        if request.traces {
            let told = self.traces.range(..=last);
            told.for_each(|(seed, hash)| say(&format!("trace {seed} {hash:016x}")));
        }
        let Some((seed, why)) = &self.first else {
            write(&self.witnesses.render(system));
            if request.witness {
                note(&format!("kept in {}", self.witnesses.keep(system)?.display()));
            }
            say(&format!("{} seeds, no promise broken", self.seeds));
            return Ok(HOLDS);
        };
        say(&format!("seed {seed}: {why}"));
        let own = self.faults.iter().filter(|(other, _)| other == seed);
        own.for_each(|(_, fault)| say(&format!("  {fault}")));
        let arguments: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        let (system, arguments) = (system.display(), arguments.join(" "));
        say(&format!("again: diapason sim {system} {arguments} --seed {seed} --explain worst"));
        Ok(BROKEN)
    }
}

/// Searches `count` seeds, from `from` on, with the other arguments as they were given, in `jobs`
/// processes.
///
/// # Errors
/// If nothing could be searched.
pub fn search(
    request: &SimRequest,
    systems: &[&System],
    from: u64,
    count: u64,
) -> Result<Found, Failure> {
    // Once, and not in every process.
    project::build(&Workspace::find()?, &request.system, systems)?;
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let workers = request.jobs.unwrap_or_else(cores).max(1).min(count);
    let own = std::env::current_exe().map_err(|error| Failure::io("find myself", &error))?;
    let start = |worker| -> Result<Child, Failure> {
        let seeds = Seeds { from: from + worker, to: from + count, step: workers };
        let mut command = Command::new(&own);
        command
            .arg("sim")
            .arg(&request.system)
            .args(request.again())
            .args(["--seeds", &seeds.to_string()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| Failure::io("start a search", &error))
    };
    let children = (0..workers).map(start).collect::<Result<Vec<Child>, Failure>>()?;
    let text = systems.first().map_or(0, |system| system.text_key());
    let witnesses = Witnesses::new(text, from, count, request.again());
    gather(children, Found::none(count, witnesses))
}

/// Returns the findings of all processes, when they have ended.
fn gather(children: Vec<Child>, mut found: Found) -> Result<Found, Failure> {
    let (sender, receiver) = channel();
    for child in children {
        let sender = sender.clone();
        std::thread::spawn(move || follow(child, &sender));
    }
    drop(sender);
    let mut progress = Progress::new(found.seeds, false);
    for heard in receiver {
        found.note(heard.map_err(Failure::Ours)?);
        let done = found.traces.len() as u64;
        progress.at(done, |seconds| format!("{:.1} seeds a second", done as f64 / seconds));
    }
    Ok(found)
}

/// Tells what a process prints, and if it ends otherwise than it should.
fn follow(mut child: Child, sender: &Sender<Result<Searched, String>>) {
    let lines = child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines());
    // If nobody listens any more, another process has failed, and the search with it.
    let mut tried = String::from("none");
    for told in lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()) {
        if let Searched::Tries(seed) = told {
            tried = seed.to_string();
        }
        let _ = sender.send(Ok(told));
    }
    let mut said = String::new();
    let _ = child.stderr.take().map(|mut errors| errors.read_to_string(&mut said));
    let wrong = match child.wait() {
        Ok(status) if status.success() || status.code() == Some(BROKEN.into()) => return,
        Ok(status) => format!("{said}at seed {tried}: ended with {status}"),
        Err(error) => format!("a search cannot be waited for: {error}"),
    };
    let _ = sender.send(Err(wrong));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_processes_print_comes_together_in_the_order_of_seeds() {
        let mut found = Found::none(3, Witnesses::empty());
        let one = [Searched::Trace(7, 1), Searched::Trace(9, 2), Searched::Broke(9, "job".into())];
        let other = [Searched::Trace(8, 3), Searched::Broke(8, "another".into())];
        one.into_iter().chain(other).for_each(|told| found.note(told));
        assert_eq!(found.first, Some((8, String::from("another"))));
        assert!(found.traces.keys().eq(&[7, 8, 9]));
    }

    #[test]
    fn seeds_are_shared_out() {
        let seeds = |text| Seeds::parse(text).unwrap().each().collect::<Vec<u64>>();
        assert_eq!(seeds("5:12:3"), [5, 8, 11]);
        assert_eq!(seeds("6:12:3"), [6, 9]);
        assert!(Seeds::parse("5:12:0").is_err() && Seeds::parse("5").is_err());
    }

    #[test]
    fn a_finding_comes_with_its_faults() {
        let mut found = Found::none(3, Witnesses::empty());
        let late = || Searched::Broke(7, "late\nby much".into());
        let faults = ["a", "b c"].map(|fault| Searched::Fault(7, fault.into()));
        for told in [late()].into_iter().chain(faults) {
            let line = json!(told).to_string();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Searched>(&line).unwrap(), told);
            found.note(told);
        }
        assert_eq!(found.first, Some((7, String::from("late\nby much"))));
        assert_eq!(found.faults, [(7, String::from("a")), (7, String::from("b c"))]);
        assert_eq!([quoted("--fault"), quoted("2s crash p")], ["--fault", "\"2s crash p\""]);
    }
}

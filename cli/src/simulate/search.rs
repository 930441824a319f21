//! `--search N`: many seeds on all cores, up to the first that breaks a promise.
//!
//! Programs live at fixed addresses, so a process simulates one system at a time; the search is
//! several processes, each with every so-manieth seed.

use super::progress::Progress;
use crate::failure::{BROKEN, HOLDS};
use crate::{Failure, Workspace, metal};
use std::io::{BufRead, BufReader};
use std::path::Path;
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
/// What it prints when a seed broke none.
pub const KEPT: &str = "kept";

/// What the search hears of its processes.
enum Heard {
    Kept,
    Broke(u64, String),
    Failed(String),
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
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().map_err(|error| Failure::io("start a search", &error))
    };
    let children = (0..workers).map(start).collect::<Result<Vec<Child>, Failure>>()?;
    Ok(say(system, arguments, count, gather(children, count)?))
}

/// The least seed that broke a promise, when all processes have ended.
fn gather(children: Vec<Child>, count: u64) -> Result<Option<(u64, String)>, Failure> {
    let (sender, receiver) = channel();
    for child in children {
        let sender = sender.clone();
        std::thread::spawn(move || follow(child, &sender));
    }
    drop(sender);
    let mut progress = Progress::new(count, false);
    let (mut done, mut first) = (0, None::<(u64, String)>);
    for heard in receiver {
        match heard {
            Heard::Kept => done += 1,
            Heard::Broke(seed, why) if first.as_ref().is_none_or(|(least, _)| seed < *least) => {
                first = Some((seed, why));
            }
            Heard::Broke(..) => {}
            Heard::Failed(text) => return Err(Failure::Ours(text)),
        }
        progress.at(done, |seconds| format!("{:.1} seeds a second", done as f64 / seconds));
    }
    Ok(first)
}

/// Tells what a process prints, and if it ends otherwise than it should.
fn follow(mut child: Child, sender: &Sender<Heard>) {
    let lines = child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines());
    let mut has_broken = false;
    // If nobody listens any more, another process has failed, and the search with it.
    for line in lines.map_while(Result::ok) {
        let broke = line.strip_prefix(BROKE).and_then(|rest| rest.split_once(' '));
        if let Some((seed, why)) = broke.and_then(|(seed, why)| Some((seed.parse().ok()?, why))) {
            has_broken = true;
            let _ = sender.send(Heard::Broke(seed, why.to_owned()));
        } else if line == KEPT {
            let _ = sender.send(Heard::Kept);
        }
    }
    let wrong = match child.wait() {
        Ok(status) if status.success() || has_broken => return,
        Ok(status) => format!("a search ended with {status}"),
        Err(error) => format!("a search cannot be waited for: {error}"),
    };
    let _ = sender.send(Heard::Failed(wrong));
}

fn say(system: &Path, arguments: &[String], count: u64, first: Option<(u64, String)>) -> u8 {
    let Some((seed, why)) = first else {
        println!("{count} seeds, no promise broken");
        return HOLDS;
    };
    println!("seed {seed}: {why}");
    let (system, arguments) = (system.display(), arguments.join(" "));
    println!("again: diapason sim {system} {arguments} --seed {seed} --explain worst");
    BROKEN
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
}

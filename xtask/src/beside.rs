//! Runs the steps of what boots beside each other, each in a process of its own, one for each core.
//!
//! Steps print while they run, and some change the folder they are in. Processes keep both apart:
//! the words of a step are shown when it has ended, whole.

use crate::tally::{Tally, counts};
use std::collections::VecDeque;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The beginning of the names of steps that share a folder, and so a process.
const TOGETHER: &str = "a system of one's own";

/// This program, also after a step has built it anew at its place.
const MYSELF: &str = "/proc/self/exe";

/// The result of a process.
struct Ran {
    name: String,
    said: String,
    /// Steps that passed and failed, if it came to its end.
    counts: Option<(u64, u64)>,
}

/// Runs the steps with these names, and counts them.
pub fn run(names: &[String], tally: &mut Tally) {
    let waiting = Mutex::new(units(names));
    let ended = Mutex::new(tally);
    let worker = || {
        while let Some(name) = locked(&waiting).pop_front() {
            let ran = start(&name);
            locked(&ended).take_in(ran);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(worker))));
}

fn locked<T>(it: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what each process runs. The last ones are the longest, so they begin first.
fn units(names: &[String]) -> VecDeque<String> {
    let mut units: VecDeque<String> = VecDeque::new();
    for name in names {
        let unit = if name.starts_with(TOGETHER) { TOGETHER } else { name };
        if units.front().is_none_or(|first| first != unit) {
            units.push_front(unit.to_owned());
        }
    }
    units
}

/// Runs one process to its end.
fn start(name: &str) -> Ran {
    let output = Command::new(MYSELF).args(["test", "--step", name]).output();
    let said = match &output {
        Ok(output) => {
            [&output.stderr, &output.stdout].map(|it| String::from_utf8_lossy(it)).concat()
        }
        Err(error) => format!("cannot be started: {error}"),
    };
    let counts = said.lines().rev().find_map(counts);
    Ran { name: name.to_owned(), said, counts }
}

impl Tally {
    /// Shows what a process said, without its sums, and takes these in.
    fn take_in(&mut self, ran: Ran) {
        let shown = ran.said.lines().filter(|line| counts(line).is_none() && !line.is_empty());
        shown.filter(|line| !line.starts_with("FAILED: ")).for_each(|line| println!("{line}"));
        match ran.counts {
            Some((passed, failed)) if passed + failed > 0 => self.add(&ran.name, passed, failed),
            _ => {
                println!("--- {}: FAILED, its process came to no end", ran.name);
                self.add(&ran.name, 0, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_steps_begin_first_and_those_with_one_folder_stay_together() {
        let names = ["a", "a system of one's own: b", "a system of one's own: c", "d"];
        let names = names.map(String::from);
        assert_eq!(units(&names), ["d", TOGETHER, "a"]);
    }

    #[test]
    fn sums_of_processes_are_added_and_one_without_a_sum_fails() {
        let mut tally = Tally::default();
        let ran = |said: &str, counts| Ran { name: "a".into(), said: said.into(), counts };
        tally.take_in(ran("=== a\n--- a: ok (1.0 s)\n\n1 passed, 0 failed\n", Some((1, 0))));
        assert_eq!(tally.sums(), (1, 0));
        tally.take_in(ran("panicked", None));
        assert_eq!(tally.sums(), (1, 1));
        tally.take_in(ran("0 passed, 0 failed", Some((0, 0))));
        assert_eq!(tally.sums(), (1, 2), "a name that no step has");
    }
}

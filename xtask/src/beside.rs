//! Runs the steps of what boots beside each other, each in a process of its own, one for each core.
//!
//! Steps print while they run, and some change the folder they are in. Processes keep both apart:
//! the words of a step are shown when it has ended, whole. A file lists for them what is built,
//! because asking cargo anew takes longer than many a step.

use crate::tally::{FAILED, Tally, counts};
use diapason::metal::Built;
use diapason::{Failure, Workspace};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
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

/// Runs the steps with these names on what was built, and counts them.
///
/// # Errors
/// If the list of what was built cannot be written.
pub fn run(
    workspace: &Workspace,
    built: &Built,
    names: &[String],
    tally: &mut Tally,
) -> Result<(), Failure> {
    let list = workspace.target().join("built.txt");
    std::fs::write(&list, listed(built))
        .map_err(|error| Failure::io(format!("write {}", list.display()), &error))?;
    let ended = Mutex::new(tally);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    share_out(units(names), cores, |name| {
        let ran = start(&name, &list);
        locked(&ended).take_in(ran);
    });
    Ok(())
}

/// Does all units, so many at once.
fn share_out(units: VecDeque<String>, at_once: usize, act: impl Fn(String) + Sync) {
    let waiting = Mutex::new(units);
    // The lock is let go when this returns. In the condition of a loop it would be held while the
    // loop does the unit, and nothing would ever run beside it.
    let next = || locked(&waiting).pop_front();
    let worker = || {
        while let Some(unit) = next() {
            act(unit);
        }
    };
    std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(worker))));
}

/// Returns the list of what was built: the two kernels, and each program behind its name.
fn listed(built: &Built) -> String {
    let mut list = format!("{}\n{}\n", built.kernel.display(), built.observing.display());
    for (name, path) in &built.programs {
        let _ = writeln!(list, "{name}\t{}", path.display());
    }
    list
}

/// Returns what such a list says was built.
///
/// # Errors
/// If the file cannot be read, or is no such list.
pub fn read(list: &Path) -> Result<Built, Failure> {
    let text = std::fs::read_to_string(list)
        .map_err(|error| Failure::io(format!("read {}", list.display()), &error))?;
    parse(&text).ok_or_else(|| Failure::Input(format!("error: {} lists no build", list.display())))
}

fn parse(list: &str) -> Option<Built> {
    let mut lines = list.lines();
    let (kernel, observing) = (lines.next()?.into(), lines.next()?.into());
    let program = |line: &str| {
        let (name, path) = line.split_once('\t')?;
        Some((name.to_owned(), PathBuf::from(path)))
    };
    let programs = lines.map(program).collect::<Option<_>>()?;
    Some(Built { kernel, observing, programs, ..Built::default() })
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
fn start(name: &str, list: &Path) -> Ran {
    let mut command = Command::new(MYSELF);
    let output = command.args(["test", "--step", name, "--built"]).arg(list).output();
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
        shown.filter(|line| !line.starts_with(FAILED)).for_each(|line| println!("{line}"));
        match ran.counts {
            Some((passed, failed)) if passed + failed > 0 => {
                let failures = ran.said.lines().filter_map(|line| line.strip_prefix(FAILED));
                self.add((passed, failed), failures.map(String::from));
            }
            _ => {
                println!("--- {}: FAILED, its process came to no end", ran.name);
                let failure = format!("{}: its process came to no end", ran.name);
                self.add((0, 1), std::iter::once(failure));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Condvar;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::Duration;

    #[test]
    fn long_steps_begin_first_and_those_with_one_folder_stay_together() {
        let names = ["a", "a system of one's own: b", "a system of one's own: c", "d"];
        let names = names.map(String::from);
        assert_eq!(units(&names), ["d", TOGETHER, "a"]);
    }

    #[test]
    fn two_units_run_at_once() {
        const PATIENCE: Duration = Duration::from_secs(60);
        let (running, both) = (Mutex::new(0), Condvar::new());
        let met = AtomicUsize::new(0);
        share_out(["a", "b"].map(String::from).into(), 2, |_| {
            let mut running = running.lock().unwrap();
            *running += 1;
            both.notify_all();
            let (_running, wait) =
                both.wait_timeout_while(running, PATIENCE, |running| *running < 2).unwrap();
            met.fetch_add(usize::from(!wait.timed_out()), Relaxed);
        });
        assert_eq!(met.into_inner(), 2, "one ran after the other");
    }

    #[test]
    fn a_list_of_what_was_built_is_read_as_it_was_written() {
        let program = |name: &str| (name.to_owned(), PathBuf::from(format!("/t a/{name}")));
        let built = Built {
            kernel: "/t a/kernel".into(),
            observing: "/o/kernel".into(),
            programs: [program("spin"), program("usbd")].into(),
            ..Built::default()
        };
        let read = parse(&listed(&built)).unwrap();
        assert_eq!((read.kernel, read.observing), (built.kernel, built.observing));
        assert_eq!(read.programs, built.programs);
        assert!(parse("/kernel\n").is_none(), "cut");
        assert!(parse("/kernel\n/kernel\nspin\n").is_none(), "a program without a path");
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
        let said = "=== a\n--- a: FAILED (1.0 s)\n\nFAILED: a: late\n0 passed, 1 failed\n";
        tally.take_in(ran(said, Some((0, 1))));
        let none = "a: its process came to no end";
        assert_eq!(tally.failures(), [none, none, "a: late"]);
    }
}

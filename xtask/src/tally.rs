//! Steps that are run one after the other, and counted.

use diapason::Workspace;
use diapason::failure::{BROKEN, HOLDS};
use std::process::Command;
use std::time::Instant;

/// Begins a line that says at the end which step failed, and why.
pub const FAILED: &str = "FAILED: ";

/// The choice of steps.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
enum Runs {
    #[default]
    All,
    /// No step: their names are kept.
    None(Vec<String>),
    /// Those whose name begins with this.
    Beginning(String),
}

/// The results so far.
#[derive(Default)]
pub(crate) struct Tally {
    runs: Runs,
    passed: u64,
    failed: u64,
    /// Each step that failed, with the first line of its reason.
    failures: Vec<String>,
}

impl Tally {
    /// Returns the names of the steps that `all` has. None of them runs.
    pub fn names(all: impl FnOnce(&mut Tally)) -> Vec<String> {
        let mut tally = Tally { runs: Runs::None(Vec::new()), ..Tally::default() };
        all(&mut tally);
        match tally.runs {
            Runs::None(names) => names,
            _ => Vec::new(),
        }
    }

    /// Returns a tally that runs and counts the steps alone whose name begins so.
    pub fn beginning(name: &str) -> Tally {
        Tally { runs: Runs::Beginning(name.to_owned()), ..Tally::default() }
    }

    /// Returns how many passed and failed.
    #[cfg(test)]
    pub fn sums(&self) -> (u64, u64) {
        (self.passed, self.failed)
    }

    /// Returns what failed, and why.
    #[cfg(test)]
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Runs one step and notes how it went. A step's error text is shown at once.
    pub fn step(&mut self, name: &str, step: impl FnOnce() -> Result<(), String>) {
        match &mut self.runs {
            Runs::All => {}
            Runs::None(names) => return names.push(name.to_owned()),
            Runs::Beginning(part) if name.starts_with(&**part) => {}
            Runs::Beginning(_) => return,
        }
        println!("=== {name}");
        let start = Instant::now();
        let result = step();
        let seconds = start.elapsed().as_secs_f32();
        match result {
            Ok(()) => {
                println!("--- {name}: ok ({seconds:.1} s)");
                self.passed += 1;
            }
            Err(text) => {
                println!("{}\n--- {name}: FAILED ({seconds:.1} s)", text.trim_end());
                self.failed += 1;
                let reason = text.lines().next().unwrap_or("no reason was given");
                self.failures.push(format!("{name}: {reason}"));
            }
        }
    }

    /// Takes in tests that were counted by somebody else, with what this says of the failed ones.
    pub fn add(&mut self, (passed, failed): (u64, u64), failures: impl Iterator<Item = String>) {
        self.failures.extend(failures);
        self.passed += passed;
        self.failed += failed;
    }

    /// Prints the failures again, and the sums as the last line. Returns the exit code.
    pub fn finish(&self) -> u8 {
        println!();
        self.failures.iter().for_each(|failure| println!("{FAILED}{failure}"));
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 && self.passed > 0 { HOLDS } else { BROKEN }
    }
}

/// Reads the sums from a last line, as [`Tally::finish`] prints it.
pub fn counts(line: &str) -> Option<(u64, u64)> {
    let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
    Some((passed.parse().ok()?, failed.parse().ok()?))
}

/// Returns a command of cargo, to be run in the folder of the checkout.
pub fn command(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace.root()).args(arguments);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_without_tests_does_not_pass() {
        let mut tally = Tally::default();
        assert_eq!(tally.finish(), BROKEN);
        tally.step("a", || Ok(()));
        assert_eq!(tally.finish(), HOLDS);
        tally.step("b", || Err("no\nits console".into()));
        assert_eq!(tally.finish(), BROKEN);
        assert_eq!(tally.failures, ["b: no"]);
    }

    #[test]
    fn names_are_found_without_a_run_and_a_beginning_chooses() {
        let all = |tally: &mut Tally| {
            tally.step("a: x", || Ok(()));
            tally.step("b: x", || Err("no".into()));
        };
        assert_eq!(Tally::names(all), ["a: x", "b: x"]);
        let mut tally = Tally::beginning("a");
        all(&mut tally);
        assert_eq!(tally.sums(), (1, 0));
    }

    #[test]
    fn a_last_line_has_two_sums() {
        assert_eq!(counts("12 passed, 3 failed"), Some((12, 3)));
        assert_eq!(counts("test result: ok. 12 passed; 3 failed"), None);
    }
}

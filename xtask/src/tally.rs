//! Steps that are run one after the other, and counted.

use diapason::Workspace;
use diapason::failure::{BROKEN, HOLDS};
use std::process::Command;
use std::time::Instant;

/// The results so far.
#[derive(Default)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    failures: Vec<String>,
}

impl Tally {
    /// Runs one step and notes how it went. A step's error text is shown at once.
    pub fn step(&mut self, name: &str, step: impl FnOnce() -> Result<(), String>) {
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
                self.failures.push(name.into());
            }
        }
    }

    /// Takes in tests that were counted by somebody else.
    pub fn add(&mut self, name: &str, passed: u64, failed: u64) {
        if failed > 0 {
            self.failures.push(name.into());
        }
        self.passed += passed;
        self.failed += failed;
    }

    /// Prints the failures again and the last line; the exit code.
    pub fn finish(&self) -> u8 {
        println!();
        self.failures.iter().for_each(|name| println!("FAILED: {name}"));
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 && self.passed > 0 { HOLDS } else { BROKEN }
    }
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
        tally.step("b", || Err("no".into()));
        assert_eq!(tally.finish(), BROKEN);
        assert_eq!(tally.failures, ["b"]);
    }
}

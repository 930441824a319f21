//! The house rules, as a test.
//!
//! A rule is one function over one source file (or over all); it returns the places where it is
//! broken, each with the remedy. Numbers that may only fall are in `xtask/ratchets.toml`.

pub mod binary;
pub mod boot;
mod ratchets;
mod rules;
mod source;
pub mod stack;

use crate::mutants;
use diapason::failure::{BROKEN, HOLDS};
use diapason::{Failure, Workspace};
use ratchets::Ratchets;
use source::Tree;

/// A place where a rule is broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    file: String,
    line: usize,
    text: String,
}

impl Problem {
    fn new(file: &str, line: usize, text: impl Into<String>) -> Problem {
        Problem { file: file.into(), line, text: text.into() }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

/// Runs `cargo xtask tidy`.
pub fn command(workspace: &Workspace, bless: bool) -> Result<u8, Failure> {
    let text = |error: std::io::Error| Failure::io("read the sources", &error);
    let tree = Tree::read(workspace.root()).map_err(text)?;
    if bless {
        let mut ratchets = Ratchets::read(workspace.root()).map_err(Failure::Input)?;
        let lowered = ratchets.lower(&rules::measure(&tree));
        lowered.iter().for_each(|line| println!("{line}"));
        ratchets.write(workspace.root()).map_err(text)?;
    }
    match check(workspace) {
        Ok(()) => {
            println!("tidy: {} files keep the house rules", tree.files.len());
            Ok(HOLDS)
        }
        Err(problems) => {
            println!("{problems}");
            Ok(BROKEN)
        }
    }
}

/// Applies every rule to every source, and returns the problems, one per line.
pub fn check(workspace: &Workspace) -> Result<(), String> {
    let tree = Tree::read(workspace.root()).map_err(|error| error.to_string())?;
    let ratchets = Ratchets::read(workspace.root())?;
    let mut problems = rules::broken(&tree);
    problems.extend(ratchets.exceeded(&rules::measure(&tree)));
    if problems.is_empty() {
        return mutants::planted::check(workspace);
    }
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    Err(format!("{}\ntidy: {} problems", lines.join("\n"), lines.len()))
}

//! `cargo xtask mutants`: bugs that are planted one at a time, each of which a search in the
//! simulator must find within as many seeds as its patch says, or a test of the host. One that
//! nobody notices is a promise that is missing.
//!
//! The bugs never touch the checkout: they are planted in a copy below the target folder. Without
//! any, the same searches must find nothing and the same tests pass.

pub mod patch;

use diapason::failure::{BROKEN, HOLDS};
use diapason::{Failure, Workspace};
use patch::Patch;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Seconds of the host that a search may take before it is said to hang.
const PATIENCE: &str = "900";
/// The exit code of `timeout` when it ends its command.
const HANGS: i32 = 124;

/// The result of a search.
#[derive(PartialEq, Eq, Debug)]
enum Found {
    Nothing,
    Broken(String),
}

/// The copy in which bugs are planted.
struct Scratch {
    tree: PathBuf,
    target: PathBuf,
}

/// Tests all planted bugs, or those with these names.
///
/// # Errors
/// If the copy cannot be made or built, or a patch does not apply.
pub fn command(workspace: &Workspace, names: &[String]) -> Result<u8, Failure> {
    let all = patch::all(workspace)?;
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|patch| patch.name != **name)) {
        let known: Vec<&str> = all.iter().map(|patch| &*patch.name).collect();
        let text = format!("error: no planted bug `{unknown}`: there are {}", known.join(", "));
        return Err(Failure::Input(text));
    }
    let wanted = |patch: &&Patch| names.is_empty() || names.contains(&patch.name);
    let patches: Vec<&Patch> = all.iter().filter(wanted).collect();
    let folder = workspace.target().join("mutants");
    let scratch = Scratch { tree: folder.join("tree"), target: folder.join("target") };
    scratch.refresh(workspace.root())?;
    scratch.build()?;
    let sound = scratch.control(&patches)?;
    let mut missed = 0;
    for patch in &patches {
        scratch.refresh(workspace.root())?;
        patch.apply(&scratch.tree, false).map_err(Failure::Input)?;
        scratch.build()?;
        let found = scratch.hunt(patch)?;
        missed += u64::from(found.is_none());
        let text = found.unwrap_or_else(|| format!("NOT FOUND in {} seeds", patch.seeds));
        println!("{:24} {text}\n{:24} {}", patch.name, "", patch.breaks);
    }
    scratch.refresh(workspace.root())?;
    println!("{} planted bugs, {missed} not found", patches.len());
    Ok(if missed == 0 && sound { HOLDS } else { BROKEN })
}

impl Scratch {
    /// The checkout's files as they are. Those that are equal keep their time, for cargo.
    fn refresh(&self, root: &Path) -> Result<(), Failure> {
        let listed = run(Command::new("git").current_dir(root).args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let mut wanted = BTreeSet::new();
        for file in listed.lines().filter(|file| root.join(file).is_file()) {
            let (from, to) = (root.join(file), self.tree.join(file));
            let failure = |error| Failure::io(format!("copy {}", from.display()), &error);
            let new = std::fs::read(&from).map_err(failure)?;
            if std::fs::read(&to).is_ok_and(|old| old == new) {
                wanted.insert(to);
                continue;
            }
            std::fs::create_dir_all(to.parent().unwrap_or(&self.tree)).map_err(failure)?;
            std::fs::write(&to, new).map_err(failure)?;
            wanted.insert(to);
        }
        remove_others(&self.tree, &wanted)
            .map_err(|error| Failure::io(format!("clear {}", self.tree.display()), &error))
    }

    /// The command with its kernel core. Programs are built by itself.
    fn build(&self) -> Result<(), Failure> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = run(self.inside(&mut Command::new(cargo)).args([
            "build",
            "--quiet",
            "--release",
            "-p",
            "diapason",
        ]))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Failure::Input(format!("error: a planted bug does not compile:\n{said}")))
    }

    fn inside<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target)
    }

    /// Without a bug, no search may find anything.
    fn control(&self, patches: &[&Patch]) -> Result<bool, Failure> {
        let mut searches: BTreeMap<&str, u64> = BTreeMap::new();
        for patch in patches {
            for search in &patch.searches {
                let seeds = searches.entry(search).or_default();
                *seeds = patch.seeds.max(*seeds);
            }
        }
        let mut sound = true;
        for (search, seeds) in searches {
            if let Found::Broken(why) = self.search(search, seeds)? {
                println!("without a planted bug, `{search}` finds {why}");
                sound = false;
            }
        }
        let tests: BTreeSet<&String> = patches.iter().flat_map(|patch| &patch.tests).collect();
        for test in tests {
            if let Found::Broken(why) = self.test(test)? {
                println!("without a planted bug, `cargo test {test}`: {why}");
                sound = false;
            }
        }
        Ok(sound)
    }

    /// Returns the search that finds a planted bug, and how soon.
    fn hunt(&self, patch: &Patch) -> Result<Option<String>, Failure> {
        for search in &patch.searches {
            if let Found::Broken(why) = self.search(search, patch.seeds)? {
                return Ok(Some(format!("{why}\n{:24} by `sim {search}`", "")));
            }
        }
        for test in &patch.tests {
            if let Found::Broken(why) = self.test(test)? {
                return Ok(Some(format!("{why}\n{:24} by `cargo test {test}`", "")));
            }
        }
        Ok(None)
    }

    /// A test that runs none of its cases proves nothing, so it counts as broken too.
    fn test(&self, test: &str) -> Result<Found, Failure> {
        let mut command = Command::new("timeout");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let command = self.inside(&mut command).arg(PATIENCE).arg(cargo).arg("test");
        let output = run(command.args(test.split_whitespace()).stdin(Stdio::null()))?;
        Ok(judge_test(output.status.code(), &String::from_utf8_lossy(&output.stdout)))
    }

    fn search(&self, search: &str, seeds: u64) -> Result<Found, Failure> {
        let binary = self.target.join("release/diapason");
        let mut command = Command::new("timeout");
        let command = self.inside(&mut command).arg(PATIENCE).arg(binary).arg("sim");
        let output = run(command
            .args(search.split_whitespace())
            .args(["--search", &seeds.to_string()])
            .stdin(Stdio::null()))?;
        Ok(judge(
            output.status.code(),
            &String::from_utf8_lossy(&output.stdout),
            &String::from_utf8_lossy(&output.stderr),
        ))
    }
}

/// Judges a search by its exit code and its output.
fn judge(code: Option<i32>, said: &str, complained: &str) -> Found {
    let last = |text: &str| text.trim_end().lines().next_back().unwrap_or_default().to_owned();
    match code {
        Some(0) => Found::Nothing,
        Some(HANGS) => Found::Broken(String::from("the search hangs")),
        Some(1) => {
            let why = said.lines().find(|line| line.starts_with("seed "));
            Found::Broken(why.map_or_else(|| last(said), str::to_owned))
        }
        // An invariant of the kernel, which ends the process that simulates it.
        _ => {
            let panic = complained.lines().skip_while(|line| !line.contains("panicked at"));
            let why: Vec<&str> = panic.skip(1).take(1).collect();
            Found::Broken(format!("{} {}", last(complained), why.join(" ")))
        }
    }
}

/// Judges a run of `cargo test`.
fn judge_test(code: Option<i32>, said: &str) -> Found {
    let failed = || said.lines().find(|line| line.starts_with("test ") && line.ends_with("FAILED"));
    let passed = said.lines().any(|line| line.starts_with("test ") && line.ends_with("... ok"));
    match code {
        Some(0) if passed => Found::Nothing,
        Some(0) => Found::Broken(String::from("no test has this name")),
        Some(HANGS) => Found::Broken(String::from("the test hangs")),
        _ => Found::Broken(failed().unwrap_or("it does not build").to_owned()),
    }
}

fn run(command: &mut Command) -> Result<Output, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.output().map_err(|error| Failure::io(format!("start {name}"), &error))
}

/// Removes what is below `folder` and not wanted.
fn remove_others(folder: &Path, wanted: &BTreeSet<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, wanted)?;
        } else if !wanted.contains(&path) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_by_a_promise_or_by_dying() {
        assert_eq!(judge(Some(0), "3 seeds, no promise broken\n", ""), Found::Nothing);
        let said = "seed 2: late\n  a fault\nagain: …\n";
        assert_eq!(judge(Some(1), said, ""), Found::Broken(String::from("seed 2: late")));
        let died = "thread 'main' panicked at a.rs:1:\nalarm place\nat seed 4: ended with 6\n";
        let expected = String::from("at seed 4: ended with 6 alarm place");
        assert_eq!(judge(Some(3), "", died), Found::Broken(expected));
        assert_eq!(judge(Some(124), "", ""), Found::Broken(String::from("the search hangs")));
    }

    #[test]
    fn a_test_finds_by_failing_and_one_that_is_not_there_finds_too() {
        let broken = |why: &str| Found::Broken(String::from(why));
        assert_eq!(judge_test(Some(0), "test a ... ok\n"), Found::Nothing);
        assert_eq!(judge_test(Some(0), "running 0 tests\n"), broken("no test has this name"));
        let said = "test a ... ok\ntest b ... FAILED\n";
        assert_eq!(judge_test(Some(101), said), broken("test b ... FAILED"));
        assert_eq!(judge_test(Some(101), ""), broken("it does not build"));
        assert_eq!(judge_test(Some(124), ""), broken("the test hangs"));
    }
}

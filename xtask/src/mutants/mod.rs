//! `cargo xtask mutants`: bugs that are planted one at a time. A test of the host must find each,
//! or a search in the simulator within as many seeds as its table says, or a boot in QEMU. One that
//! nobody notices is a promise that is missing.
//!
//! The bugs never touch the checkout: they are planted in a copy below the target folder. The look
//! that finds one is taken again without it, and must find nothing then.

pub mod notes;
pub mod planted;

use diapason::failure::{BROKEN, HOLDS};
use diapason::{Failure, Workspace};
use notes::{NOT_FOUND, Note};
use planted::Planted;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Seconds of the host that a search may take before it is said to hang.
const PATIENCE: &str = "900";
/// The exit code of `timeout` when it ends its command.
const HANGS: i32 = 124;

/// The result of a look.
#[derive(PartialEq, Eq, Debug)]
enum Found {
    Nothing,
    Broken(String),
    /// The sources do not compile, so nothing was looked for.
    NoBuild,
}

/// A way to look for a bug.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Look {
    /// Arguments of `cargo test`.
    Test(String),
    /// Arguments of `diapason sim`, and how many seeds.
    Search(String, u64),
    /// A part of the names of steps that boot.
    Boot(String),
}

impl Display for Look {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Look::Test(line) => write!(f, "cargo test {line}"),
            Look::Search(line, seeds) => write!(f, "diapason sim {line} --search {seeds}"),
            Look::Boot(part) => write!(f, "cargo xtask test --qemu '{part}'"),
        }
    }
}

impl Planted {
    /// Returns the ways to look for it, the cheapest first: the tests that ought to find it, then
    /// all of their packages, then what needs a build of the whole command.
    fn looks(&self) -> Vec<Look> {
        let package = |test: &String| Some(format!("-p {}", test.split_whitespace().nth(1)?));
        let packages: BTreeSet<String> = self.tests.iter().filter_map(package).collect();
        let mut lines = self.tests.clone();
        lines.extend(packages.into_iter().filter(|line| !self.tests.contains(line)));
        let mut looks: Vec<Look> = lines.into_iter().map(Look::Test).collect();
        looks.extend(self.searches.iter().map(|it| Look::Search(it.clone(), self.seeds)));
        looks.extend(self.boots.iter().cloned().map(Look::Boot));
        looks
    }
}

/// The copy in which bugs are planted.
struct Scratch {
    tree: PathBuf,
    target: PathBuf,
}

/// The bugs that are wanted, and what becomes of the result.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Asked {
    /// Only these, or those of these tables [default: all of tests/mutations].
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Write what finds each into tests/mutations/found.txt.
    #[arg(long)]
    note: bool,
    /// Run no search and nothing in QEMU: only tests of the host.
    #[arg(long)]
    tests: bool,
}

/// Looks for all planted bugs, or those that are wanted.
///
/// # Errors
/// If the copy cannot be made or built, or a bug has no place.
pub fn command(workspace: &Workspace, asked: &Asked) -> Result<u8, Failure> {
    let all = planted::all(workspace)?;
    let known = |name: &&String| all.iter().any(|it| it.name == **name || it.room == **name);
    if let Some(unknown) = asked.names.iter().find(|name| !known(name)) {
        let known: Vec<&str> = all.iter().map(|planted| &*planted.name).collect();
        let text = format!("error: no planted bug `{unknown}`: there are {}", known.join(", "));
        return Err(Failure::Input(text));
    }
    let chosen = |it: &Planted| asked.names.contains(&it.name) || asked.names.contains(&it.room);
    let mut wanted: Vec<Planted> = all.clone();
    wanted.retain(|planted| asked.names.is_empty() || chosen(planted));
    if asked.tests {
        wanted
            .iter_mut()
            .for_each(|planted| (planted.searches, planted.boots) = Default::default());
        wanted.retain(|planted| !planted.tests.is_empty());
    }
    let folder = workspace.target().join("mutants");
    let scratch = Scratch { tree: folder.join("tree"), target: folder.join("target") };
    scratch.refresh(workspace.root())?;
    let commit = crate::campaign::commit(workspace)?;
    let mut sound = BTreeMap::new();
    let mut missed = 0;
    for planted in &wanted {
        let found = match scratch.find(workspace.root(), planted, &mut sound) {
            // It does not compile, for example. The others are looked for all the same.
            Err(Failure::Input(why)) => {
                println!("{why}");
                missed += 1;
                continue;
            }
            found => found?,
        };
        missed += u64::from(found.is_none());
        let by = found.as_ref().map(|(look, _)| look.to_string());
        let said = by.clone().unwrap_or_else(|| NOT_FOUND.into());
        let why = found.map(|(_, why)| why).unwrap_or_default();
        println!("{:24} {said}\n{:24} {}\n{:24} {why}", planted.name, "", planted.breaks, "");
        if asked.note {
            let note = Note { commit: commit.clone(), by };
            notes::add(workspace, &all, BTreeMap::from([(planted.name.clone(), note)]))?;
        }
    }
    scratch.refresh(workspace.root())?;
    println!("{} planted bugs, {missed} not found", wanted.len());
    Ok(if missed == 0 { HOLDS } else { BROKEN })
}

impl Scratch {
    /// Plants a bug and looks for it. The look that finds it must find nothing without it; `sound`
    /// has the looks that were tried so.
    fn find(
        &self,
        root: &Path,
        planted: &Planted,
        sound: &mut BTreeMap<Look, bool>,
    ) -> Result<Option<(Look, String)>, Failure> {
        self.refresh(root)?;
        let wrong = |why: String| Failure::Input(format!("error: {}: {why}", planted.name));
        planted.plant(&self.tree).map_err(wrong)?;
        for look in planted.looks() {
            let why = match self.look(&look)? {
                Found::Nothing => continue,
                Found::NoBuild => return Err(wrong(String::from("it does not compile"))),
                Found::Broken(why) => why,
            };
            if !sound.contains_key(&look) {
                self.refresh(root)?;
                let without = self.look(&look)?;
                sound.insert(look.clone(), without == Found::Nothing);
            }
            if !sound[&look] {
                return Err(wrong(format!("without a planted bug, `{look}` finds something, too")));
            }
            return Ok(Some((look, why)));
        }
        Ok(None)
    }

    fn look(&self, look: &Look) -> Result<Found, Failure> {
        match look {
            Look::Test(line) => self.test(line),
            Look::Search(..) if !self.build()? => Ok(Found::NoBuild),
            Look::Search(line, seeds) => self.search(line, *seeds),
            Look::Boot(part) => self.boot(part),
        }
    }

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

    /// Builds the command with its kernel core; `false` if that fails. It builds programs itself.
    fn build(&self) -> Result<bool, Failure> {
        let line = ["build", "--quiet", "--release", "-p", "diapason"];
        Ok(self.cargo(&line)?.status.success())
    }

    fn cargo(&self, arguments: &[&str]) -> Result<Output, Failure> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new("timeout");
        let command = self.inside(&mut command).arg(PATIENCE).arg(cargo).args(arguments);
        run(command.stdin(Stdio::null()))
    }

    fn inside<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            // A bug changes a package once, so what is kept of it for the next build is waste.
            .env("CARGO_INCREMENTAL", "0")
            // These tests only read the checkout, and nobody looks at their back traces.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
    }

    /// A test that runs none of its cases proves nothing, so it counts as broken too.
    fn test(&self, test: &str) -> Result<Found, Failure> {
        let words: Vec<&str> = ["test"].into_iter().chain(test.split_whitespace()).collect();
        Ok(judge_test(&self.cargo(&words)?))
    }

    /// Runs the steps of what boots whose names contain a part.
    fn boot(&self, part: &str) -> Result<Found, Failure> {
        let output =
            self.cargo(&["run", "--quiet", "-p", "xtask", "--", "test", "--qemu", part])?;
        let said = String::from_utf8_lossy(&output.stdout);
        let failed = said.lines().find(|line| line.starts_with("FAILED: "));
        Ok(match (output.status.code(), failed) {
            (Some(0), _) => Found::Nothing,
            (Some(HANGS), _) => Found::Broken(String::from("the boot hangs")),
            (_, Some(step)) if step.contains("build of kernel") => Found::NoBuild,
            (_, Some(step)) => Found::Broken(step.to_owned()),
            (..) => Found::NoBuild,
        })
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
fn judge_test(output: &Output) -> Found {
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    let failed = || said.lines().find(|line| line.starts_with("test ") && line.ends_with("FAILED"));
    let passed = said.lines().any(|line| line.starts_with("test ") && line.ends_with("... ok"));
    match output.status.code() {
        Some(0) if passed => Found::Nothing,
        Some(0) => Found::Broken(String::from("no test has this name")),
        Some(HANGS) => Found::Broken(String::from("the test hangs")),
        _ if complained.contains("error: could not compile") => Found::NoBuild,
        _ => Found::Broken(failed().unwrap_or("the test's process died").to_owned()),
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
        use std::os::unix::process::ExitStatusExt as _;
        let judged = |code: i32, said: &str, complained: &str| {
            judge_test(&Output {
                status: std::process::ExitStatus::from_raw(code << 8),
                stdout: said.into(),
                stderr: complained.into(),
            })
        };
        let broken = |why: &str| Found::Broken(String::from(why));
        assert_eq!(judged(0, "test a ... ok\n", ""), Found::Nothing);
        assert_eq!(judged(0, "running 0 tests\n", ""), broken("no test has this name"));
        let said = "test a ... ok\ntest b ... FAILED\n";
        assert_eq!(judged(101, said, ""), broken("test b ... FAILED"));
        assert_eq!(judged(101, "", "error: could not compile `a`"), Found::NoBuild);
        assert_eq!(judged(101, "", "signal: 6"), broken("the test's process died"));
        assert_eq!(judged(124, "", ""), broken("the test hangs"));
    }
}

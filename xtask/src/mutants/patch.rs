//! A planted bug: a patch whose head says what it breaks and which test must notice.

use diapason::{Failure, Workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where they are, below the workspace's root.
pub const FOLDER: &str = "tests/mutations";

/// A planted bug, as a patch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Patch {
    /// The bug's name: that of its file.
    pub name: String,
    pub path: PathBuf,
    /// The property that it breaks.
    pub breaks: String,
    /// Within how many seeds a search must find it; 0 without a search.
    pub seeds: u64,
    /// Arguments of `diapason sim`, the description first; one search for each.
    pub searches: Vec<String>,
    /// Arguments of `cargo test`; one of these tests must fail with the bug, all pass without it.
    pub tests: Vec<String>,
}

impl Patch {
    /// Lines `Breaks: …`, and `Seeds: N` with one or more `Sim: …`, or one or more `Test: …`, up to
    /// the difference itself.
    fn parse(path: &Path, text: &str) -> Result<Patch, String> {
        let head = || text.lines().take_while(|line| !line.starts_with("diff "));
        let all = |key: &'static str| head().filter_map(move |line| line.strip_prefix(key));
        let one = |key| all(key).next().map(str::trim).ok_or(format!("it has no line `{key} …`"));
        let lines = |key| all(key).map(|line| line.trim().to_owned()).collect();
        let (searches, tests): (Vec<String>, Vec<String>) = (lines("Sim:"), lines("Test:"));
        if searches.is_empty() && tests.is_empty() {
            return Err(String::from(
                "it has neither a line `Sim: SYSTEM …` nor `Test: -p PACKAGE …`",
            ));
        }
        let seeds = match searches.is_empty() {
            true => Some(0),
            false => one("Seeds:")?.parse().ok().filter(|count| *count > 0),
        };
        let name = path.file_stem().and_then(|stem| stem.to_str()).ok_or("it has no name")?;
        Ok(Patch {
            name: name.to_owned(),
            path: path.to_owned(),
            breaks: one("Breaks:")?.to_owned(),
            seeds: seeds.ok_or("`Seeds:` is no number from 1 on")?,
            searches,
            tests,
        })
    }

    /// Changes the sources in `tree` by it; or with `check`, only looks whether that can be done.
    pub fn apply(&self, tree: &Path, check: bool) -> Result<(), String> {
        let mut command = Command::new("git");
        command.current_dir(tree).arg("apply");
        // The tree may lie inside of another repository, which git must not look for.
        command.env("GIT_CEILING_DIRECTORIES", tree.parent().unwrap_or(tree));
        if check {
            command.arg("--check");
        }
        let output = command.arg(&self.path).output().map_err(|error| format!("git: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
    }
}

/// Returns all of them, by name.
///
/// # Errors
/// One cannot be read, or says not what it must.
pub fn all(workspace: &Workspace) -> Result<Vec<Patch>, Failure> {
    let folder = workspace.root().join(FOLDER);
    let failure = |error| Failure::io(format!("read {}", folder.display()), &error);
    let entries = std::fs::read_dir(&folder).map_err(failure)?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(failure)?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "patch"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(failure)?;
        let wrong = |why| Failure::Input(format!("error: {}: {why}", path.display()));
        Patch::parse(path, &text).map_err(wrong)
    };
    paths.iter().map(read).collect()
}

/// Every patch still applies to the sources as they are.
///
/// # Errors
/// Those that do not, and why.
pub fn check(workspace: &Workspace) -> Result<(), String> {
    let patches = all(workspace).map_err(|failure| failure.to_string())?;
    let broken = |patch: &Patch| {
        let why = patch.apply(workspace.root(), true).err()?;
        let remedy = "plant the bug in the code as it is now";
        Some(format!("{FOLDER}/{}.patch: does not apply: {remedy}\n{why}", patch.name))
    };
    let broken: Vec<String> = patches.iter().filter_map(broken).collect();
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_what_and_who() {
        let text = "Breaks: a\nSeeds: 3\nSim: b.toml --faults\nSim: c.toml\n\ndiff x\nSim: d\n";
        let patch = Patch::parse(Path::new("folder/name.patch"), text).unwrap();
        assert_eq!((&*patch.name, &*patch.breaks, patch.seeds), ("name", "a", 3));
        assert_eq!(patch.searches, ["b.toml --faults", "c.toml"]);
        let without = |line: &str| Patch::parse(Path::new("n"), &text.replace(line, ""));
        assert!(without("Breaks: a").is_err() && without("3").is_err());
        assert!(without("Sim: b.toml --faults\nSim: c.toml").is_err());
        let text = "Breaks: a\nTest: -p b --test c d\n\ndiff x\n";
        let patch = Patch::parse(Path::new("n"), text).unwrap();
        assert_eq!(
            (patch.seeds, patch.searches.len(), &*patch.tests[0]),
            (0, 0, "-p b --test c d")
        );
    }

    #[test]
    fn every_patch_says_what_it_must() {
        let patches = all(&Workspace::find().unwrap()).unwrap();
        assert!(patches.len() >= 10);
    }
}

//! `cargo xtask since REV`: what a change of Diapason changes for its users.
//!
//! Both trees, this one as it is and that of the commit, judge their own examples with their own
//! command. One table then has every verdict, bound, cost, size, count and trace that differs.

use diapason::difference::{Difference, cells, differences, is_shown};
use diapason::failure::HOLDS;
use diapason::image::Image;
use diapason::metal::{self, KERNEL};
use diapason::table::{Align, TextTable};
use diapason::{Failure, Workspace, duration};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Files of numbers and hashes in a tree, a name and what it stands for in each line.
const COUNTED: [(&str, &str); 3] = [
    ("longest paths", "lib/costs/src/counted/plain.txt"),
    ("counts", "papers/reproduce/src/counts/kernel.txt"),
    ("traces", "tests/traces.txt"),
];
/// The parts of a run that are compared: others are details of what these say.
const OF_RUN: [&str; 5] = ["holds", "findings", "pipes", "chains", "responses"];
/// The folder of cargo's profile in which this program was built, and the flag that asks for it.
const PROFILE: (&str, Option<&str>) =
    if cfg!(debug_assertions) { ("debug", None) } else { ("release", Some("--release")) };
/// Where the descriptions are.
const EXAMPLES: &str = "examples";

/// The request to `since`.
#[derive(Clone, Debug, clap::Args)]
pub struct Asked {
    /// A commit, as git names it.
    revision: String,
    /// How long each example is simulated, in its own time.
    #[arg(long = "for", value_name = "TIME", default_value = "2s", value_parser = duration::parse)]
    horizon: u64,
    /// Only the examples whose name contains this.
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
}

/// A tree with a command that was built from it.
struct Side {
    root: PathBuf,
    target: PathBuf,
}

/// Prints what differs between the commit and this tree.
///
/// # Errors
/// If git does not know the commit, or one of the trees does not compile.
pub fn command(workspace: &Workspace, asked: &Asked) -> Result<u8, Failure> {
    let folder = workspace.target().join("since");
    let before = Side { root: folder.join("tree"), target: folder.join("target") };
    let commit = check_out(workspace.root(), &asked.revision, &before.root)?;
    let after = Side { root: workspace.root().into(), target: workspace.target() };
    eprintln!("building the command of {commit}, and this one");
    before.build()?;
    after.build()?;
    let names = examples(&[&before.root, &after.root]);
    let names: Vec<&String> = names.iter().filter(|name| name.contains(&asked.only)).collect();
    let mut all = differences(&before.results(&names, asked)?, &after.results(&names, asked)?);
    all.retain(is_shown);
    print!("{}", rendered(&all));
    let counted = |count: usize| match count {
        0 => String::from("nothing differs"),
        1 => String::from("1 value differs"),
        many => format!("{many} values differ"),
    };
    println!("{} examples and {commit}: {}", names.len(), counted(all.len()));
    Ok(HOLDS)
}

/// Makes the tree of a commit, beside the checkout so that nothing there changes, and returns the
/// commit's short name. Files that are equal keep their time, for cargo.
fn check_out(root: &Path, revision: &str, tree: &Path) -> Result<String, Failure> {
    let git = |folder: &Path, arguments: &[&str]| {
        let output = run(Command::new("git").current_dir(folder).args(arguments))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Failure::Input(format!("error: git knows no commit `{revision}` here: {said}")))
    };
    let commit =
        git(root, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])?;
    if !tree.join(".git").exists() {
        let (from, to) = (root.display().to_string(), tree.display().to_string());
        git(root, &["clone", "--quiet", "--shared", "--no-checkout", &from, &to])?;
    }
    git(tree, &["checkout", "--quiet", "--force", "--detach", &commit])?;
    git(tree, &["rev-parse", "--short", &commit])
}

/// Returns the names of the examples of all trees.
fn examples(trees: &[&Path]) -> BTreeSet<String> {
    let folders = trees.iter().flat_map(|tree| std::fs::read_dir(tree.join(EXAMPLES)));
    let files = folders.flatten().flatten().map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
}

impl Side {
    fn build(&self) -> Result<(), Failure> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "-p", "diapason"]).args(PROFILE.1);
        let output = run(self.inside(&mut command))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Failure::Input(format!("error: {} does not compile:\n{said}", self.root.display())))
    }

    fn inside<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target)
    }

    /// Returns everything that is compared, by what it is of.
    fn results(&self, names: &[&String], asked: &Asked) -> Result<Value, Failure> {
        let mut all = Map::new();
        let horizon = format!("{}ns", asked.horizon);
        for name in names {
            let file = format!("{EXAMPLES}/{name}.toml");
            eprintln!("{}", self.root.join(&file).display());
            if !self.root.join(&file).exists() {
                continue;
            }
            let plan = self.says(&["plan", &file, "--json"])?;
            let run = self.says(&["sim", &file, "--json", "--for", &horizon])?;
            all.insert(format!("plan {name}"), plan);
            all.insert(format!("sim {name}"), part(&run));
        }
        all.insert(String::from("kernel"), self.sizes());
        for (name, file) in COUNTED {
            let text = std::fs::read_to_string(self.root.join(file)).unwrap_or_default();
            all.insert(name.to_owned(), lines(&text));
        }
        Ok(Value::Object(all))
    }

    /// Returns what the command prints as JSON, or its words if it prints none.
    fn says(&self, arguments: &[&str]) -> Result<Value, Failure> {
        let mut command = Command::new(self.target.join(PROFILE.0).join("diapason"));
        let output = run(self.inside(&mut command).args(arguments))?;
        let refused = || {
            let said = String::from_utf8_lossy(&output.stderr);
            let why = said.lines().find(|line| line.contains("error"));
            json!({ "refused": why.unwrap_or("no output") })
        };
        Ok(serde_json::from_slice(&output.stdout).unwrap_or_else(|_| refused()))
    }

    /// Returns the bytes of the kernel that simulations built.
    fn sizes(&self) -> Value {
        let file = format!("kernel/{}/metal/{KERNEL}", metal::TARGET);
        let Ok(image) = Image::read(&self.target.join(file)) else { return Value::Null };
        let sizes = image.sizes();
        json!({ "stays": sizes.resident(), "leaves after boot": sizes.boot() })
    }
}

/// Returns the compared parts of a run, without what its pages say of single messages.
fn part(run: &Value) -> Value {
    let Value::Object(all) = run else { return run.clone() };
    let wanted = |key: &str| OF_RUN.contains(&key) || key == "refused" || key == "hosts";
    let parts = all.iter().filter(|(key, _)| wanted(key));
    let parts = parts.map(|(key, value)| match (key.as_str(), value) {
        ("hosts", Value::Array(hosts)) => (key.clone(), hosts.iter().map(part).collect()),
        _ => (key.clone(), value.clone()),
    });
    Value::Object(parts.collect())
}

/// Returns the lines of a file of numbers, each by its first word, or by what is before a colon.
fn lines(text: &str) -> Value {
    let told = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let pairs = told.filter_map(|line| line.split_once(": ").or_else(|| line.split_once(' ')));
    Value::Object(pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect())
}

fn rendered(all: &[Difference]) -> String {
    let mut table = TextTable::new(&[
        ("of", Align::Left),
        ("what", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("change", Align::Right),
    ]);
    for it in all {
        let (of, within) = it.path.split_first().map_or(("", &[][..]), |(of, rest)| (of, rest));
        table.row([vec![of.to_owned()], cells(it, within)].concat());
    }
    table.render()
}

fn run(command: &mut Command) -> Result<Output, Failure> {
    command.output().map_err(|error| Failure::io(format!("start {command:?}"), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_by_what_they_are_of() {
        let text = "# a comment\n\n0 36 0\nexamples/engine.toml: programs 4ce6 trace 759a\n";
        let expected = json!({ "0": "36 0", "examples/engine.toml": "programs 4ce6 trace 759a" });
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn a_run_is_compared_by_its_promises() {
        let host = json!({ "holds": true, "threads": [1], "pipes": [{ "pipe": "a" }] });
        let kept = json!({ "holds": true, "pipes": [{ "pipe": "a" }] });
        assert_eq!(part(&host), kept);
        assert_eq!(part(&json!({ "hosts": [host] })), json!({ "hosts": [kept] }));
    }

    #[test]
    fn a_changed_bound_is_one_row() {
        let of = |bound: u64| {
            let pipes = [json!({ "pipe": "brakes", "bound_ns": bound })];
            json!({ "plan engine": { "pipes": pipes } })
        };
        let all = differences(&of(4_000_000), &of(5_000_000));
        let expected = "\
of           what                    before     after   change
-----------  --------------------  --------  --------  -------
plan engine  pipes, brakes, bound  4.000 ms  5.000 ms  +25.0 %
";
        assert_eq!(rendered(&all), expected);
    }
}

//! `cargo xtask campaign NAME`: a long campaign, cut into shares. Each share writes one result
//! file, so a campaign that was interrupted goes on, and shares may run on several machines. The
//! result files of all shares become one report.

mod catalogue;
mod kubernetes;
mod results;
mod runner;
mod shard;
mod slurm;

pub(crate) use shard::Shard;

use crate::{checks, tally};
use catalogue::{Campaign, Line, Program, Size};
use diapason::failure::{BROKEN, HOLDS, UNPROVED};
use diapason::{Failure, Workspace};
use results::{Outcome, Results};
use runner::Ended;
use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// The word that a command writes before the one that shows a finding again.
const AGAIN: &str = "again: ";

/// The campaign that is wanted, and how much of it.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Asked {
    /// One of docs/campaigns.md, such as `systems`.
    name: String,
    /// How much is done in all shares together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// The seed of the first share.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The description that `search` simulates.
    #[arg(long, value_name = "FILE", default_value = "examples/can-concentrator.toml")]
    system: PathBuf,
    /// Into how many shares it is cut.
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    shards: u64,
    /// Run this share only, as a cluster does: the number of a share, from 0 on.
    #[arg(long, value_name = "I")]
    shard: Option<u64>,
    /// Run no share; report what result files there are.
    #[arg(long, conflicts_with = "shard")]
    merge: bool,
    /// Run nothing; print the script of a Slurm array job.
    #[arg(long, conflicts_with_all = ["shard", "merge"])]
    slurm: bool,
    /// Run nothing; print the manifest of a Kubernetes Job whose pods run this image.
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["shard", "merge", "slurm", "out"])]
    kubernetes: Option<String>,
    /// The claim of the volume that the pods write results to.
    #[arg(long, value_name = "NAME", default_value = "diapason-results", requires = "kubernetes")]
    claim: String,
    /// Add the result to tests/results.toml, once every share has one.
    #[arg(long, conflicts_with_all = ["shard", "slurm", "kubernetes"])]
    note: bool,
    /// How many shares run at once [default: one for each core].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// The folder of the result files [default: in target/campaigns, by campaign and commit].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Asked {
    /// Returns the options that say what is done in all shares together.
    fn options(&self, size: &Size) -> Vec<String> {
        let mut options = vec![format!("--seed={}", self.seed)];
        options.extend(self.count.map(|count| format!("--count={count}")));
        options.push(format!("--shards={}", self.shards));
        if self.name == "search" {
            options.push(format!("--system={}", size.system));
        }
        options
    }
}

/// Runs the short form of a campaign anew, one share for each core. Returns what its shares say if
/// it found something.
///
/// # Errors
/// Returns the report of a campaign that did not hold.
pub fn short(workspace: &Workspace, name: &str, count: u64, seed: u64) -> Result<(), String> {
    let folder = workspace.target().join("campaigns").join(format!("short-{name}"));
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("cannot remove {}: {error}", folder.display()));
        }
        _ => {}
    }
    let asked = Asked {
        name: name.into(),
        count: Some(count),
        seed,
        system: PathBuf::new(),
        shards: cores() as u64,
        shard: None,
        merge: false,
        slurm: false,
        kubernetes: None,
        claim: String::new(),
        note: false,
        jobs: None,
        out: Some(folder.clone()),
    };
    if command(workspace, &asked).map_err(|failure| failure.to_string())? == HOLDS {
        return Ok(());
    }
    let said = Shard::all(asked.shards).map(|shard| folder.join(shard.file_stem() + ".txt"));
    let said: String = said.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    Err(format!("{said}\nthe campaign `{name}` did not hold"))
}

/// Runs a campaign, a share of it, or reports it.
///
/// # Errors
/// If there is no such campaign, or a share cannot be started.
pub fn command(workspace: &Workspace, asked: &Asked) -> Result<u8, Failure> {
    let campaign = Campaign::find(&asked.name)?;
    let size = Size {
        count: asked.count.unwrap_or(campaign.usual),
        seed: asked.seed,
        system: asked.system.display().to_string(),
    };
    if campaign.usual == 0 && asked.count.is_some() {
        let text = format!("error: `{}` does all of a list\n  = help: omit --count", asked.name);
        return Err(Failure::Input(text));
    }
    let commit = commit(workspace)?;
    let Size { count, seed, .. } = size;
    let name = format!("{}-{count}-{seed}-{}-{commit}", campaign.name, asked.shards);
    if let Some(image) = &asked.kubernetes {
        println!("{:#}", kubernetes::manifest(image, &name, asked, &size));
        return Ok(HOLDS);
    }
    let folder =
        asked.out.clone().unwrap_or_else(|| workspace.target().join("campaigns").join(name));
    if asked.slurm {
        print!("{}", slurm::script(workspace.root(), &own()?, &folder, asked, &size));
        return Ok(HOLDS);
    }
    let title = title(campaign, &size, &commit);
    let results = Results::new(folder, format!("{title}, {} shares", asked.shards))?;
    let all: Vec<Shard> = Shard::all(asked.shards).collect();
    let wanted = match asked.shard {
        Some(index) => vec![
            *usize::try_from(index)
                .ok()
                .and_then(|index| all.get(index))
                .ok_or_else(|| no_such_share(index, asked.shards))?,
        ],
        None if asked.merge => Vec::new(),
        None => all.clone(),
    };
    let mut left = Vec::new();
    for shard in wanted {
        // Two trees with changes have one name, so what one of them did says nothing of the other.
        if asked.shard.is_none() && !is_clean(&commit) {
            results.forget(shard)?;
        }
        if results.read(shard)?.is_none() {
            left.push(shard);
        }
    }
    // A cluster's tasks share one folder of builds, so it is built before they begin.
    if !left.is_empty() && asked.shard.is_none() {
        build(workspace)?;
    }
    let one = |shard| share(workspace, campaign, &size, shard, &results);
    let jobs = asked.jobs.unwrap_or_else(cores);
    let jobs = if campaign.alone { 1 } else { jobs };
    runner::run(left, jobs, &results, &one, &|line| eprintln!("{line}"))?;
    if asked.shard.is_some() {
        let outcome = results.read(all[asked.shard.unwrap_or(0) as usize])?;
        return Ok(outcome.map_or(BROKEN, |outcome| if outcome.holds { HOLDS } else { BROKEN }));
    }
    let read: Result<Vec<Option<Outcome>>, Failure> =
        all.iter().map(|shard| results.read(*shard)).collect();
    let read = read?;
    let (text, code) = report(&title, &results, &read);
    println!("{text}");
    if asked.note {
        note(workspace, asked, &size, &commit, &read)?;
    }
    Ok(code)
}

/// Returns whether there is a campaign of this name.
#[cfg(test)]
pub fn exists(name: &str) -> bool {
    Campaign::find(name).is_ok()
}

/// Adds a campaign that came to its end to the results that the repository keeps.
fn note(
    workspace: &Workspace,
    asked: &Asked,
    size: &Size,
    commit: &str,
    read: &[Option<Outcome>],
) -> Result<(), Failure> {
    let refuse = |why| Failure::Input(format!("error: this result is not noted: {why}"));
    if !is_clean(commit) {
        return Err(refuse("the tree has changes that are not committed"));
    }
    let Some(ended) = read.iter().map(Option::as_ref).collect::<Option<Vec<&Outcome>>>() else {
        return Err(refuse("shares are missing"));
    };
    let seconds = ended.iter().fold(0.0, |sum, outcome| sum + outcome.seconds);
    let findings: usize = ended.iter().map(|outcome| outcome.findings.len()).sum();
    let said = |count: usize| format!("{count} findings, each of which a share can show again");
    let date = Command::new("date").args(["-u", "+%F"]).output();
    let date = date.map_err(|error| Failure::io("start date", &error))?.stdout;
    checks::add(
        workspace,
        &checks::Run {
            of: checks::of_campaign(&asked.name),
            command: format!(
                "cargo xtask campaign {} {}",
                asked.name,
                asked.options(size).join(" ")
            ),
            date: String::from_utf8_lossy(&date).trim().to_owned(),
            commit: commit.to_owned(),
            core_hours: (seconds / 36.0).round() / 100.0,
            result: if findings == 0 { "nothing was found".into() } else { said(findings) },
        },
    )
}

fn no_such_share(index: u64, of: u64) -> Failure {
    Failure::Input(format!(
        "error: there is no share {index}\n  = help: there are {of}: write --shard 0 to --shard {}",
        of - 1
    ))
}

/// Returns where this program is.
fn own() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::io("find myself", &error))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the commit of the checkout, and whether it was changed since.
pub(crate) fn commit(workspace: &Workspace) -> Result<String, Failure> {
    let mut git = Command::new("git");
    git.current_dir(workspace.root()).args(["describe", "--always", "--dirty", "--abbrev=10"]);
    let output = git.output().map_err(|error| Failure::io("start git", &error))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(if output.status.success() { said } else { String::from("unknown") })
}

/// Returns whether a commit says everything about the tree.
fn is_clean(commit: &str) -> bool {
    !commit.ends_with("-dirty") && commit != "unknown"
}

/// Runs the commands of a share.
fn share(
    workspace: &Workspace,
    campaign: &Campaign,
    size: &Size,
    shard: Shard,
    results: &Results,
) -> Result<Ended, Failure> {
    let path = results.said(shard);
    let failure = |error| Failure::io(format!("write {}", path.display()), &error);
    let said = File::create(&path).map_err(failure)?;
    let begun = Instant::now();
    let (mut holds, mut findings) = (true, Vec::new());
    for line in campaign.lines(workspace, size, shard)? {
        let from = said.metadata().map_err(failure)?.len() as usize;
        let out = said.try_clone().map_err(failure)?;
        let status = start(workspace, &line, out)?;
        match status.code() {
            Some(0) => {}
            Some(code) if code == line.program.finds() => {
                holds = false;
                let text = std::fs::read(&path).map_err(failure)?;
                findings.extend(again(&text[from.min(text.len())..], &line));
            }
            _ => return Ok(Ended::Died(format!("{line}: {status}"))),
        }
    }
    Ok(Ended::Outcome(Outcome { holds, findings, seconds: begun.elapsed().as_secs_f64() }))
}

/// Returns the commands that show findings again: those that were said, else the share's own.
fn again(said: &[u8], line: &Line) -> Vec<String> {
    let said = String::from_utf8_lossy(said);
    let told = said.lines().filter_map(|line| line.strip_prefix(AGAIN));
    let told: Vec<String> = told.map(String::from).collect();
    if told.is_empty() { vec![line.to_string()] } else { told }
}

/// Builds the command of users beside this one, with the same optimization.
fn build(workspace: &Workspace) -> Result<(), Failure> {
    let own = own()?;
    let mut cargo = tally::command(workspace, &["build", "--quiet", "--bin", "diapason"]);
    if own.parent().is_some_and(|folder| folder.ends_with("release")) {
        cargo.arg("--release");
    }
    let status = cargo.status().map_err(|error| Failure::io("start cargo", &error))?;
    if status.success() { Ok(()) } else { Err(Failure::Ours("the command does not build".into())) }
}

fn start(workspace: &Workspace, line: &Line, out: File) -> Result<ExitStatus, Failure> {
    let own = own()?;
    let program = match line.program {
        Program::Xtask => own,
        Program::Diapason => own.with_file_name("diapason"),
        Program::Cargo => std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into(),
    };
    let failure = |error| Failure::io(format!("start {}", program.display()), &error);
    let errors = out.try_clone().map_err(failure)?;
    let mut command = Command::new(&program);
    command.current_dir(workspace.root()).args(&line.arguments);
    command.envs(line.variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(out).stderr(errors).status().map_err(failure)
}

/// Returns what a campaign does, on which commit.
fn title(campaign: &Campaign, size: &Size, commit: &str) -> String {
    let Campaign { name, unit, .. } = campaign;
    let count = if size.count > 0 { format!("{} ", size.count) } else { String::new() };
    let system = if *name == "search" { format!(" of {}", size.system) } else { String::new() };
    format!("{name}{system}: {count}{unit} from seed {}, commit {commit}", size.seed)
}

/// Returns the report of all shares, and the exit code.
fn report(title: &str, results: &Results, read: &[Option<Outcome>]) -> (String, u8) {
    let ended: Vec<&Outcome> = read.iter().flatten().collect();
    let seconds = ended.iter().fold(0.0, |sum, outcome| sum + outcome.seconds);
    let mut text = format!(
        "{title}\n{} of {} shares ended, {:.3} core-hours; {}\n",
        ended.len(),
        read.len(),
        seconds / 3_600.0,
        results.folder().display()
    );
    let missing: Vec<usize> = (0..read.len()).filter(|index| read[*index].is_none()).collect();
    for index in &missing {
        let _ = writeln!(text, "share {index} has no result: run it with --shard {index}");
    }
    let mut found = 0;
    for (index, outcome) in read.iter().enumerate() {
        for finding in outcome.iter().flat_map(|outcome| &outcome.findings) {
            found += 1;
            let _ = writeln!(text, "finding in share {index}: {finding}");
        }
    }
    let code = match (found, missing.len()) {
        (0, 0) => HOLDS,
        (0, _) => UNPROVED,
        _ => BROKEN,
    };
    let verdict = match code {
        HOLDS => String::from("nothing was found"),
        UNPROVED => format!("nothing was found so far; {} shares are missing", missing.len()),
        _ => format!("{found} findings"),
    };
    (text + &verdict, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(findings: &[&str]) -> Option<Outcome> {
        let findings: Vec<String> = findings.iter().map(|it| String::from(*it)).collect();
        Some(Outcome { holds: findings.is_empty(), findings, seconds: 1_800.0 })
    }

    fn reported(read: &[Option<Outcome>]) -> (String, u8) {
        let size = Size { count: 100, seed: 3, system: String::new() };
        let folder = std::env::temp_dir().join(format!("campaign-report-{}", std::process::id()));
        let campaign = Campaign::find("systems").unwrap();
        let title = title(campaign, &size, "abc");
        let results = Results::new(folder, title.clone()).unwrap();
        let reported = report(&title, &results, read);
        std::fs::remove_dir_all(results.folder()).ok();
        reported
    }

    #[test]
    fn a_report_names_what_is_missing_and_what_was_found() {
        let (text, code) = reported(&[outcome(&[]), outcome(&[])]);
        assert!(text.contains("2 of 2 shares ended, 1.000 core-hours"), "{text}");
        assert_eq!((code, text.lines().last()), (HOLDS, Some("nothing was found")));
        let (text, code) = reported(&[outcome(&[]), None]);
        assert!(text.contains("share 1 has no result: run it with --shard 1"), "{text}");
        assert_eq!(code, UNPROVED, "what was not run does not hold");
        let (text, code) = reported(&[None, outcome(&["cargo xtask a", "cargo xtask b"])]);
        assert!(text.contains("finding in share 1: cargo xtask b"), "{text}");
        assert_eq!((code, text.lines().last()), (BROKEN, Some("2 findings")));
    }

    #[test]
    fn a_finding_without_a_command_of_its_own_is_shown_by_the_share() {
        let size = Size { count: 9, seed: 1, system: String::new() };
        let workspace = Workspace::find().unwrap();
        let usb = Campaign::find("usb").unwrap();
        let line = usb.lines(&workspace, &size, "1/3".parse().unwrap()).unwrap().remove(0);
        let own = "cargo xtask usb --cycles 3 --hostile 450 --trees 1 --seed 2";
        assert_eq!(again(b"it failed\n", &line), [own]);
        assert_eq!(again(b"x\nagain: diapason sim a\n", &line), ["diapason sim a"]);
    }
}

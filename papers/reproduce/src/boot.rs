//! Boots descriptions in QEMU for reproductions, and hands over what their programs log.

use diapason::console::Line;
use diapason::cores::{self, Processors};
use diapason::metal::{self, Built};
use diapason::outcome::{Outcome, RunVerdict};
use diapason::plan::Plan;
use diapason::qemu::{Boot, Booted, Onlooker};
use diapason::session::{FinishedRun, Session};
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace};
use diapason_system::{RunOptions, System};

/// The built kernel and programs.
pub(crate) struct Bench {
    workspace: Workspace,
    built: Built,
}

impl Bench {
    /// Builds the kernel and the programs.
    ///
    /// # Errors
    /// If there is no emulator, or something does not compile.
    pub fn new() -> Result<Bench, Failure> {
        let workspace = Workspace::find()?;
        QEMU.require(Missing::Say)?;
        let built = build(&workspace)?;
        Ok(Bench { workspace, built })
    }

    /// Returns the description at `path` below the workspace's root.
    ///
    /// # Errors
    /// If there is something wrong with it.
    pub fn describe(&self, path: &str) -> Result<System, Failure> {
        diapason::describe::describe(&self.workspace.root().join(path))
    }

    /// Boots `system` for `horizon_ns` of its own time. `hear` gets each line a process logs, and
    /// the process's place in the description.
    ///
    /// # Errors
    /// If it does not boot, or breaks a promise: then nothing it measured can be trusted.
    pub fn run(
        &self,
        system: System,
        horizon_ns: u64,
        hear: &mut dyn FnMut(u16, &str),
    ) -> Result<FinishedRun, Failure> {
        let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
        let session = Session::assemble(system, self.built.clone(), options)?;
        let run = session.run(&self.workspace, &mut |line| {
            if let Line::Log { process, text } = line {
                hear(*process, text);
            }
        })?;
        trusted(&session, run)
    }

    /// Boots the description `text` for `horizon_ns` and returns what its processes log before one
    /// of them says `DONE` as the last.
    ///
    /// # Errors
    /// As for [`Bench::run`], and if nobody says so.
    pub fn lines(&self, name: &str, text: &str, horizon_ns: u64) -> Result<Vec<String>, Failure> {
        let mut lines = Vec::new();
        let system = described(name, text)?;
        self.run(system, horizon_ns, &mut |_, text| lines.push(text.to_string()))?;
        done(name, lines)
    }

    /// Boots the description of a host with several cores, whose instructions take 2^`shift` ns,
    /// and returns what its processes log. One of them says `DONE`.
    ///
    /// # Errors
    /// As for [`Bench::lines`].
    pub fn lines_of_cores(
        &self,
        name: &str,
        text: &str,
        horizon_ns: u64,
        shift: u8,
    ) -> Result<Vec<String>, Failure> {
        let systems = diapason_system::parse_cores(name, text)
            .map_err(|wrong| Failure::Ours(format!("the description of {name}: {wrong}")))?;
        let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
        let session = |plan: Plan| {
            let core = plan.system().core.to_string();
            let session = Session::planned(plan, self.built.clone(), options, None)?;
            Ok((core, Session { shift, ..session }))
        };
        let sessions = Plan::of_cores(&systems).into_iter().map(session);
        let mut sessions = sessions.collect::<Result<Vec<_>, Failure>>()?;
        let mut lines = Vec::new();
        let side_by_side = Processors::SideBySide;
        let runs = cores::boot(&self.workspace, &mut sessions, side_by_side, &mut |_, line| {
            if let Line::Log { text, .. } = line {
                lines.push(text.clone());
            }
        })?;
        for ((_, session), run) in sessions.iter().zip(runs) {
            trusted(session, run)?;
        }
        done(name, lines)
    }

    /// Does the same while a plugin looks on, and returns what that saw, too.
    ///
    /// # Errors
    /// As for [`Bench::lines`].
    pub fn watched_lines(
        &self,
        name: &str,
        text: &str,
        horizon_ns: u64,
        onlooker: Onlooker,
    ) -> Result<(Vec<String>, String), Failure> {
        let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
        let session = Session::assemble(described(name, text)?, self.built.clone(), options)?;
        let boot = Boot { onlooker: Some(onlooker), ..session.boot() };
        let (mut outcome, mut lines) = (Outcome::default(), Vec::new());
        let booted = boot.run(&self.workspace.target(), &mut |line| {
            outcome.note(line);
            if let Line::Log { text, .. } = line {
                lines.push(text.clone());
            }
        })?;
        let Booted { ending, served, seen, .. } = booted;
        trusted(&session, FinishedRun { ending, outcome, flight: None, served })?;
        Ok((done(name, lines)?, seen.unwrap_or_default()))
    }
}

/// Returns the system of a description of ours.
fn described(name: &str, text: &str) -> Result<System, Failure> {
    diapason_system::parse(name, text)
        .map_err(|wrong| Failure::Ours(format!("the description of {name}: {wrong}")))
}

/// Returns the lines before the last, which must be `DONE`.
fn done(name: &str, mut lines: Vec<String>) -> Result<Vec<String>, Failure> {
    match lines.pop() {
        Some(last) if last == "DONE" => Ok(lines),
        last => {
            let said = last.as_deref().unwrap_or("nothing");
            Err(Failure::Ours(format!("{name} did not finish; last: {said}")))
        }
    }
}

/// Builds the kernel and the programs.
///
/// # Errors
/// If something does not compile.
pub fn build(workspace: &Workspace) -> Result<Built, Failure> {
    eprintln!("building the kernel and the programs");
    metal::build(workspace)
}

/// Returns a run that kept its promises.
///
/// # Errors
/// If it broke one: then nothing it measured can be trusted.
pub fn trusted(session: &Session, run: FinishedRun) -> Result<FinishedRun, Failure> {
    let name = &session.system.name;
    let judged = session.judge(&run);
    let findings = judged.findings().join("; ");
    match judged {
        RunVerdict::Holds => Ok(run),
        RunVerdict::Bug(text) => Err(Failure::Ours(format!("{name}: {text}"))),
        RunVerdict::Broken(_) => Err(Failure::Ours(format!("{name} did not hold: {findings}"))),
    }
}

/// Returns the numbers of a line `WORD number number …`.
#[must_use]
pub fn numbers<'a>(line: &'a str, word: &str) -> Option<Vec<u64>> {
    let mut words = line.split_ascii_whitespace();
    if words.next() != Some(word) {
        return None;
    }
    words.map(|word: &'a str| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn lines_of_numbers() {
        assert_eq!(numbers("TICK 1 23", "TICK"), Some(vec![1, 23]));
        assert_eq!(numbers("TICK", "TICK"), Some(vec![]));
        for bad in ["TOCK 1", "TICK 1 x", "TICK -1", ""] {
            assert_eq!(numbers(bad, "TICK"), None);
        }
    }
}

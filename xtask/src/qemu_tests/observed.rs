//! The observations of one boot, with the questions tests ask of it.

use diapason::Workspace;
use diapason::console::Line;
use diapason::flight;
use diapason::names::{Names, thread};
use diapason::outcome::{FaultEvent, ProcessRow, RunVerdict, ThreadRow};
use diapason::qemu::MachineEnding;
use diapason::session::{FinishedRun, Session};
use diapason::simulate::{self, Hearing, Simulation};
use diapason::surroundings::Functions;
use diapason_abi::FaultCause;
use diapason_abi::archive::Archive;
use diapason_abi::record::Record;
use diapason_abi::recorder::{Entry, EntryKind};
use diapason_core::host::{replay, with_kernel};
use diapason_pipe::measured::{Measurement, PipeReport, Reported};
use diapason_sim::{Observer, Options};

/// Processes kept apart, and every invariant of the kernel checked at every entry.
pub fn strict() -> Options {
    Options { check: true, isolate: true, ..Options::default() }
}

/// One boot of a test's system.
pub(crate) struct Observed {
    /// The end of the run, and what its records said.
    pub run: FinishedRun,
    /// The judgement on it.
    pub verdict: RunVerdict,
    /// The archive that it booted from.
    pub archive: Vec<u8>,
    pub names: Names,
    pub lines: Vec<Line>,
}

impl Observed {
    /// Boots a session and follows it to its end. Boots and checks that a machine that ended by
    /// itself has books that balance, whatever the test is about.
    pub fn boot(workspace: &Workspace, session: &Session) -> Result<Observed, String> {
        let mut lines = Vec::new();
        let run = session.run(workspace, &mut |line| lines.push(line.clone()));
        Observed::of(session, run.map_err(|failure| failure.to_string())?, lines)
    }

    /// Simulates a session, processes kept apart, and every invariant of the kernel checked at
    /// every entry.
    pub fn simulate(session: &Session) -> Result<Observed, String> {
        Observed::simulate_as(session, &strict())
    }

    /// Simulates a session; the works of the description take their longest.
    pub fn simulate_working(session: &Session) -> Result<Observed, String> {
        let works = simulate::works(session, None);
        Observed::simulate_as(session, &Options { works, ..strict() })
    }

    fn simulate_as(session: &Session, how: &Options) -> Result<Observed, String> {
        Observed::of_simulation(
            session,
            Simulation::new(session, how).with_faults(&session.system.faults),
            &mut (),
        )
    }

    /// Simulates a session among other devices than those of the description.
    pub fn simulate_among(
        session: &Session,
        functions: Functions,
        how: &Options,
    ) -> Result<Observed, String> {
        Observed::simulate_watched(session, functions, how, &mut ())
    }

    /// Simulates a session among other devices, and somebody watches.
    pub fn simulate_watched(
        session: &Session,
        functions: Functions,
        how: &Options,
        watcher: &mut impl Observer,
    ) -> Result<Observed, String> {
        Observed::of_simulation(session, Simulation::new(session, how).among(functions), watcher)
    }

    fn of_simulation(
        session: &Session,
        simulation: Simulation<'_>,
        watcher: &mut impl Observer,
    ) -> Result<Observed, String> {
        let mut lines = Vec::new();
        let keep = Hearing(|line: &Line| lines.push(line.clone()));
        let simulated = simulation.run(&mut (keep, watcher)).map_err(|failure| failure.to_string());
        Observed::of(session, simulated?.run, lines)
    }

    /// Judges a run that somebody else has booted. Fails if the kernel shows a bug of ours.
    pub fn of(session: &Session, run: FinishedRun, lines: Vec<Line>) -> Result<Observed, String> {
        let verdict = session.judge(&run);
        if let (
            RunVerdict::Bug(text),
            MachineEnding::Finished | MachineEnding::Halted | MachineEnding::SupervisorDied,
        ) = (&verdict, run.ending)
        {
            return Err(text.clone());
        }
        Ok(Observed {
            verdict,
            archive: session.archive.clone(),
            names: session.names.clone(),
            lines,
            run,
        })
    }

    /// The run must have kept every promise.
    pub fn holds(&self) -> Result<(), String> {
        match &self.verdict {
            RunVerdict::Holds => Ok(()),
            RunVerdict::Broken(_) => Err(self.verdict.findings().join("\n")),
            RunVerdict::Bug(text) => Err(text.clone()),
        }
    }

    /// The run must have broken a promise, and its findings must say so.
    pub fn breaks(&self, finding: &str) -> Result<(), String> {
        let findings = self.verdict.findings().join("; ");
        println!("{findings}");
        match self.holds().is_err() && findings.contains(finding) {
            true => Ok(()),
            false => Err(format!("nothing says `{finding}`: {findings}")),
        }
    }

    /// Returns the row of a process in the final table.
    pub fn process(&self, name: &str) -> Result<&ProcessRow, String> {
        let mut rows = self.run.outcome.processes.iter();
        let found = rows.find(|row| self.names.process(row.process) == name);
        found.ok_or_else(|| format!("the final table has no process {name}"))
    }

    /// Returns the row of a thread in the final table.
    pub fn thread(&self, process: &str, name: &str) -> Result<&ThreadRow, String> {
        let mut rows = self.run.outcome.threads.iter();
        let found = rows.find(|row| {
            self.names.process(row.process) == process && thread(row.name, row.slot) == name
        });
        found.ok_or_else(|| format!("the final table has no thread {name} of {process}"))
    }

    /// Returns the faults that ended a process, in order.
    pub fn faults(&self, process: &str) -> Vec<&FaultEvent> {
        let all = self.run.outcome.faults.iter();
        all.filter(|fault| self.names.process(fault.process) == process).collect()
    }

    /// No process may have faulted, and no line of the console may be missing.
    pub fn never_faulted(&self) -> Result<(), String> {
        let outcome = &self.run.outcome;
        match (outcome.faults.first(), &outcome.lines_lost[..]) {
            (None, []) => Ok(()),
            (fault, lost) => Err(format!("{fault:?}, lines lost: {lost:?}")),
        }
    }

    /// Returns the causes of the faults that ended a process, in order.
    pub fn causes(&self, process: &str) -> Vec<Option<FaultCause>> {
        let faults = self.faults(process).into_iter();
        faults.map(|fault| FaultCause::decode(u8::try_from(fault.cause).ok()?)).collect()
    }

    /// Returns the lines that a process logged, in order.
    pub fn log(&self, process: &str) -> Vec<&str> {
        let texts = self.lines.iter().filter_map(|line| match line {
            Line::Log { process, text } => Some((*process, text.as_str())),
            _ => None,
        });
        let own = texts.filter(|(who, _)| self.names.process(u64::from(*who)) == process);
        own.map(|(_, text)| text).collect()
    }

    /// Returns the measurements that a process reported, in order.
    pub fn measured(&self, process: &str) -> Vec<Measurement> {
        let words = self.lines.iter().filter_map(|line| match line {
            Line::Record(Record::Measured, words) => words.split_first(),
            _ => None,
        });
        let own = words.filter(|(who, _)| self.names.process(**who) == process);
        own.filter_map(|(_, words)| Some(Reported::of(words)?.said)).collect()
    }

    /// Returns how the pipe from a device to a process did, in order.
    pub fn pipe_reports(&self, process: &str) -> Vec<PipeReport> {
        self.reports_of(process, false)
    }

    /// Returns how the pipe to a device, or from one, of a process did, in order.
    pub fn reports_of(&self, process: &str, to_device: bool) -> Vec<PipeReport> {
        let pipe = |measured| match measured {
            Measurement::Pipe(report) if report.to_device == to_device => Some(report),
            _ => None,
        };
        self.measured(process).into_iter().filter_map(pipe).collect()
    }

    /// A process must have logged this very line.
    pub fn logged(&self, process: &str, text: &str) -> Result<(), String> {
        if self.log(process).contains(&text) {
            return Ok(());
        }
        Err(format!("{process} did not log `{text}`"))
    }

    /// No thread of these processes may have missed a deadline.
    pub fn never_late(&self, processes: &[&str]) -> Result<(), String> {
        let outcome = &self.run.outcome;
        for row in &outcome.threads {
            let process = self.names.process(row.process);
            if row.misses > 0 && processes.contains(&process.as_str()) {
                return Err(format!("{process} missed {} deadlines", row.misses));
            }
        }
        Ok(())
    }

    /// Returns the final table, as a person sees it.
    pub fn table(&self) -> String {
        self.run.outcome.render(&self.names)
    }

    /// Returns the flight record, which must be whole and as long as the kernel says.
    pub fn flight(&self) -> Result<Vec<Entry>, String> {
        let bytes = self.run.flight.as_ref().ok_or("the test did not ask for a flight record")?;
        let entries = flight::entries(bytes).map_err(|damage| damage.to_string())?;
        match self.run.outcome.recorded {
            Some(count) if count == entries.len() as u64 && count > 0 => Ok(entries),
            said => Err(format!("{} entries arrived, but the kernel says {said:?}", entries.len())),
        }
    }

    /// The core on the host must take the recorded decisions, to the last one.
    pub fn replays_equal(&self) -> Result<(), String> {
        let calls = self.flight()?.iter().filter(|entry| entry.kind != EntryKind::Bytes).count();
        let archive = Archive::parse(&self.archive).map_err(|reason| reason.text())?;
        let recording = self.run.flight.as_deref().unwrap_or_default();
        let replayed = with_kernel(&archive, |mut kernel| {
            kernel.lack_devices(self.run.outcome.lacking);
            replay(kernel, recording)
        });
        match replayed {
            Ok(equal) if equal == calls => Ok(()),
            Ok(equal) => Err(format!("only {equal} of {calls} entries were replayed")),
            Err(different) => Err(format!(
                "entry {} of {calls}: recorded {:?}, decided {}",
                different.entry, different.recorded, different.decided
            )),
        }
    }
}

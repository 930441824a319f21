//! One system, from its description to the end of its run.

use crate::capture::CaptureRequest;
use crate::console::Line;
use crate::describe::{describe, refused};
use crate::failure::Failure;
use crate::hardware::{Hardware, Inserted};
use crate::metal::Built;
use crate::names::Names;
use crate::outcome::{
    Assumptions, ChainPromise, Outcome, PipePromise, RaisedAlarm, RunVerdict, judge,
};
use crate::plan::{Plan, Unproved};
use crate::plugged::SLICE;
use crate::qemu::{self, Boot, MEMORY_MIB_MIN, MachineEnding, patience};
use crate::simulate::adrift;
use crate::surroundings::emulable;
use crate::workspace::Workspace;
use crate::{interrupt, plan, plugged, project};
use diapason_abi::Nanos;
use diapason_abi::archive::Location;
use diapason_system::{Restart, RunOptions, System};
use std::path::Path;

/// Bytes set aside in the machine for the flight recorder, when it is wanted.
pub const RECORD_BYTES: u32 = 64 << 20;

/// A system ready to boot.
#[derive(Debug)]
pub struct Session {
    /// The description, as it boots.
    pub system: System,
    /// The promises of the system.
    pub plan: Plan,
    /// The promises about flows from other hosts that end in this one.
    pub flows: Vec<ChainPromise>,
    /// Sentences about promises that a run of this host among others cannot see.
    pub unseen: Vec<String>,
    /// The plan holds. If it does not, every report says that the run is unproved.
    pub proved: bool,
    pub names: Names,
    /// The kernel and the programs.
    pub built: Built,
    /// The archive that the machine boots from.
    pub archive: Vec<u8>,
    /// How the run was asked for.
    pub options: RunOptions,
    /// The captures of a run that are wanted, and the clients that may take part in it.
    pub captures: CaptureRequest,
    /// How slow QEMU's processor is: see [`Boot::shift`].
    pub shift: u8,
    /// The PC that QEMU is.
    pub hardware: Hardware,
    /// How often QEMU waits for what is plugged into it.
    pub slice: Nanos,
    /// The machine runs in the time of this computer, so no time that a run shows is judged.
    pub untimed: bool,
    /// Its adapters for Ethernet interrupt sooner than they are told: QEMU's hold an interrupt
    /// back, and not the one behind it.
    pub unspaced: bool,
    /// The image that it starts from, if it is not QEMU that loads kernel and archive.
    pub inserted: Option<Inserted>,
    /// Bytes of its image that keep the console of a run, if any do.
    pub results_bytes: Option<u64>,
}

/// A run that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FinishedRun {
    /// How the machine ended.
    pub ending: MachineEnding,
    /// The outcome, from the records.
    pub outcome: Outcome,
    /// The flight record, if it was asked for.
    pub flight: Option<Vec<u8>>,
    /// A number for the requests and answers of USB devices outside the machine; it is equal for
    /// equal runs.
    pub served: Option<u64>,
}

/// Returns what a run did not measure if a signal ended it.
pub(crate) fn unmeasured_if_interrupted() -> Option<String> {
    interrupt::came().then(|| "the rest of the run: it was interrupted".into())
}

/// Returns what a run did not measure if clients could take part in it.
pub(crate) fn unmeasured_beside_clients(captures: &CaptureRequest) -> Option<String> {
    captures.can_server.map(|address| {
        format!(
            "the system alone: clients at {address} could send frames on its CAN buses, and \
             another run may differ"
        )
    })
}

#[cfg(test)]
impl Session {
    /// Returns the session of a system with nothing to boot.
    pub(crate) fn unbuilt(system: System) -> Session {
        let plan = Plan::of(&system);
        let built = Built::default();
        let options = RunOptions { horizon_ns: 1, record_bytes: 0, watch: false };
        let proved = plan.holds();
        Session::of(plan, (system, proved), built, Vec::new(), options)
    }
}

impl Session {
    /// Returns the session of a planned system, on the usual machine.
    fn of(
        plan: Plan,
        (system, proved): (System, bool),
        built: Built,
        archive: Vec<u8>,
        options: RunOptions,
    ) -> Session {
        Session {
            names: Names::of(&system),
            system,
            plan,
            flows: Vec::new(),
            unseen: Vec::new(),
            proved,
            built,
            archive,
            options,
            captures: CaptureRequest::default(),
            shift: 0,
            hardware: Hardware::USUAL,
            slice: SLICE,
            untimed: false,
            unspaced: false,
            inserted: None,
            results_bytes: None,
        }
    }

    /// Reads the description at `path`, builds kernel and programs, and puts them together.
    ///
    /// # Errors
    /// If the description is wrong, or something does not compile.
    pub fn prepare(
        workspace: &Workspace,
        path: &Path,
        options: RunOptions,
    ) -> Result<Session, Failure> {
        let system = describe(path)?;
        let built = project::build(workspace, path, &[&system])?;
        Session::assemble(system, built, options)
    }

    /// Puts a description and built programs together.
    ///
    /// # Errors
    /// If they do not fit, or the description promises what cannot be kept.
    pub fn assemble(system: System, built: Built, options: RunOptions) -> Result<Session, Failure> {
        Session::planned(Plan::of(&system), built, options, None)
    }

    /// Puts a planned description and built programs together.
    ///
    /// # Errors
    /// If they do not fit, or the plan does not hold and nobody wants the system unproved.
    pub fn planned(
        plan: Plan,
        built: Built,
        options: RunOptions,
        unproved: Option<Unproved>,
    ) -> Result<Session, Failure> {
        let cleared = plan::cleared(&plan, unproved)?;
        let archive = cleared.archive(&options, &mut |name| built.program(name));
        let archive = archive.map_err(|diagnostics| refused(&diagnostics))?;
        let described = (cleared.system().clone(), cleared.is_proved());
        Ok(Session::of(plan, described, built, archive, options))
    }

    /// Returns the machine it boots on.
    #[must_use]
    pub fn boot(&self) -> Boot<'_> {
        let memory = self.system.memory.saturating_add(u64::from(self.options.record_bytes));
        Boot {
            kernel: self.built.kernel_for(&self.options),
            archive: &self.archive,
            hardware: self.hardware,
            inserted: self.inserted.as_ref(),
            cores: 1,
            counted: true,
            controllers: qemu::controllers(&self.system),
            adapters: qemu::adapters(&self.system),
            plugged: plugged::plugs(&self.system),
            captures: self.captures.clone(),
            memory_mib: memory.div_ceil(1 << 20).max(MEMORY_MIB_MIN),
            among_others: false,
            record: self.options.record_bytes > 0,
            shift: self.shift,
            patience: patience(self.options.horizon_ns),
            onlooker: None,
        }
    }

    /// Boots it and follows it to its end; `observer` sees every console line as it arrives.
    ///
    /// # Errors
    /// If the emulator cannot be used.
    pub fn run(
        &self,
        workspace: &Workspace,
        observer: &mut dyn FnMut(&Line),
    ) -> Result<FinishedRun, Failure> {
        emulable(&self.system)?;
        let mut outcome = Outcome::default();
        let booted = self.boot().run(&workspace.target(), &mut |line| {
            outcome.note(line);
            observer(line);
        })?;
        let qemu::Booted { ending, mut flights, served, .. } = booted;
        Ok(FinishedRun { ending, outcome, flight: flights.pop(), served })
    }

    /// Returns the assumptions of the analysis that a run of this system contradicts.
    #[must_use]
    pub fn alarms(&self, run: &FinishedRun) -> Vec<RaisedAlarm> {
        let mut alarms = self.raised(run);
        alarms.retain(|alarm| !self.is_of_emulator(alarm));
        alarms
    }

    /// Returns whether an alarm is about the machine and not about the system.
    fn is_of_emulator(&self, alarm: &RaisedAlarm) -> bool {
        let is_card = |device: &u16| {
            let mut adapters = self.system.adapters.iter();
            adapters.any(|adapter| adapter.card() == Some(usize::from(*device)))
        };
        let mut devices = self.system.devices.iter().enumerate();
        self.unspaced
            && alarm.name == "interrupt-distance"
            && devices.any(|(number, device)| {
                matches!(&device.location, Location::Message { of, .. } if is_card(of))
                    && self.names.device(number as u64) == alarm.of
            })
    }

    fn raised(&self, run: &FinishedRun) -> Vec<RaisedAlarm> {
        if self.untimed {
            return Vec::new();
        }
        let mut assumptions = self.assumptions(run);
        let mut alarms = Vec::new();
        for life in run.outcome.lives() {
            alarms.extend(assumptions.against(life, &self.names));
            assumptions.chains.iter_mut().for_each(|chain| chain.after(life));
        }
        alarms
    }

    /// Returns the promises about its pipes.
    #[must_use]
    pub fn promises(&self) -> Vec<PipePromise> {
        Assumptions::of(&self.plan).pipes
    }

    /// Returns the assumptions of the analysis about this system where it ran.
    #[must_use]
    pub fn assumptions(&self, run: &FinishedRun) -> Assumptions {
        // Devices behind QEMU see a request at one stop of the clock and answer at the next.
        let stops = if run.served.is_some() { 2 } else { 0 };
        let mut assumptions = Assumptions::of(&self.plan);
        assumptions.chains.extend(self.flows.iter().cloned());
        // The program of a flow gets nothing before the flow begins.
        for socket in &mut assumptions.sockets {
            let own =
                self.flows.iter().filter(|flow| flow.begins_late && flow.process == socket.process);
            let begins = own.map(|flow| flow.patience_ns).max().unwrap_or_default();
            socket.patience_ns = socket.patience_ns.max(begins);
        }
        assumptions.slack_ns = self.slice.0 * stops;
        assumptions
    }

    /// Returns what the description promises and a run did not measure, as sentences.
    #[must_use]
    pub fn unmeasured(&self, run: &FinishedRun) -> Vec<String> {
        let clients = unmeasured_beside_clients(&self.captures);
        if self.promises_nothing(run) {
            let nothing = "the description promises nothing except that no process faults";
            return [nothing.into()].into_iter().chain(clients).collect();
        }
        let early = unmeasured_if_interrupted();
        let parts = self.assumptions(run).unmeasured(&run.outcome, &self.names);
        let times = "times: the processors of QEMU run in the time of this computer";
        let times = self.untimed.then(|| times.to_owned());
        let adrift = adrift(&self.system, &run.outcome);
        let unseen = self.unseen.iter().cloned().chain(times).chain(adrift);
        let near = self.raised(run).into_iter().filter(|alarm| self.is_of_emulator(alarm));
        let near = near.map(|alarm| format!("{}, as QEMU's adapter did not keep it", alarm.text));
        early.into_iter().chain(clients).chain(unseen).chain(near).chain(parts).collect()
    }

    /// Returns whether the description promises nothing that a run could break: no thread had a
    /// deadline, and no link, device or camera is to be served.
    #[must_use]
    pub fn promises_nothing(&self, run: &FinishedRun) -> bool {
        let has_jobs = run.outcome.threads.iter().any(|thread| thread.jobs > 0);
        let has_usb = !self.assumptions(run).usb.is_empty();
        self.plan.verdict() == plan::Verdict::PromisesNothing && !has_jobs && !has_usb
    }

    /// Judges a run of this system.
    #[must_use]
    pub fn judge(&self, run: &FinishedRun) -> RunVerdict {
        let policies = self.system.processes.iter().map(|process| process.restart);
        let may_fault: Vec<bool> = policies.map(|policy| policy != Restart::Never).collect();
        let mut outcome = run.outcome.clone();
        if self.untimed {
            outcome.each_life(|life| life.threads.iter_mut().for_each(|row| row.misses = 0));
        }
        judge(run.ending, &outcome, &self.names, &may_fault, &self.alarms(run))
    }
}

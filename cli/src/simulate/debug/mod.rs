//! `diapason sim --gdb`: a simulation that stands still for GDB, and goes back in time.
//!
//! Programs run natively between two traps, so a thread stands in one of its own functions, at a
//! call into the kernel or the runtime. Its stack, its variables and the memory of all programs are
//! what they are at that instant. A *step* is one glance at the processor, and equal runs have the
//! same steps. To go back, the run begins again and stops at an earlier step. Only reading is
//! allowed: a change would be another run.

mod halts;
mod link;
mod packet;
mod serve;

use super::simulation::{Hearing, Simulated, Simulation, line};
use super::{Cast, SimRequest};
use crate::commands::{Addition, report};
use crate::console::Line;
use crate::failure::{Failure, HOLDS};
use crate::formats::RunFormat;
use crate::live::live;
use crate::outcome::{Assumptions, Outcome};
use crate::output::tell;
use crate::qemu::RunFolder;
use crate::session::Session;
use crate::workspace::Workspace;
use crate::{interrupt, words};
use diapason_abi::record::Record;
use diapason_abi::{Nanos, layout};
use diapason_core::ThreadId;
use diapason_sim::{Glance, Observer, Said};
use diapason_system::InjectedFault;
use halts::{AlarmLook, Halt, KnownAlarms, WatchedBytes};
use link::{Door, GdbLink};
use std::net::SocketAddr;
use std::path::PathBuf;

/// How far the run goes before it stands again.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Goal {
    /// The next event; with `true`, or the next trap of a thread.
    Forward(bool),
    /// This step, where it stands for this reason.
    To(u64, Halt),
    /// The last event before this step: the run is repeated to find it.
    Back { before: u64, turns: bool, found: Option<(u64, Halt)> },
    /// The step at which an alarm begins to ring, which a look missed.
    FirstRing,
    /// The end, without GDB.
    Free,
    /// Nowhere: GDB ended the run.
    Over,
}

/// The simulation as GDB controls it.
struct Debugger<'a, F> {
    session: &'a Session,
    assumptions: Assumptions,
    link: GdbLink,
    /// GDB has asked why it stands, and hears of later stops by itself.
    greeted: bool,
    goal: Goal,
    /// The run has to begin again.
    again: bool,
    /// Steps of this repetition, and of the longest.
    step: u64,
    furthest: u64,
    /// The time at the last step.
    before: Nanos,
    outcome: Outcome,
    alarms: KnownAlarms,
    fault: Option<String>,
    watches: Vec<WatchedBytes>,
    /// The instant at which the run is to stop.
    stop: Option<Nanos>,
    cast: Cast,
    /// The thread that GDB looks at.
    thread: ThreadId,
    live: Hearing<F>,
}

impl<F: FnMut(&Line)> Debugger<'_, F> {
    /// Begins the run again if that is wanted. Returns whether it is.
    fn rewind(&mut self) -> bool {
        self.furthest = self.furthest.max(self.step);
        (self.step, self.before) = (0, Nanos::ZERO);
        self.outcome = Outcome::default();
        self.fault = None;
        self.watches.iter_mut().for_each(WatchedBytes::forget);
        std::mem::take(&mut self.again)
    }

    /// Returns what happened at this step that stops a run.
    fn event(&mut self, glance: &Glance<'_, '_>) -> Option<Halt> {
        let came = self.stop.filter(|stop| self.before < *stop && glance.now >= *stop);
        self.before = glance.now;
        let changed: Vec<bool> = self.watches.iter_mut().map(|watch| watch.look(glance)).collect();
        let mut changed = self.watches.iter().zip(changed).filter(|(_, changed)| *changed);
        let changed = changed.next().map(|(watch, _)| Halt::Watch(watch.address));
        let fault = self.fault.take().map(Halt::Said);
        let came = came.map(|stop| Halt::Said(format!("the time is {stop}")));
        let alarm = self.alarms.at(self.step).map(Halt::Said);
        alarm.or(fault).or(changed).or(came)
    }

    fn ringing(&mut self, glance: &Glance<'_, '_>) -> AlarmLook {
        let known = (&self.assumptions, &self.session.names);
        self.alarms.look(self.step, glance, &self.outcome, known)
    }

    /// Runs on to the next event. Returns why it stands now, if it does.
    fn forward(&mut self, glance: &Glance<'_, '_>, turns: bool) -> Option<Halt> {
        let mut halt = self.event(glance);
        if halt.is_none() && turns && glance.ran.is_some() {
            halt = Some(Halt::Turn);
        }
        if halt.is_none() && glance.ended {
            halt = Some(Halt::End);
        }
        if self.alarms.is_due(self.step, glance.now) {
            halt = halt.or(match self.link.interrupts() {
                Some(interrupts) => interrupts.then_some(Halt::Interrupt),
                None => {
                    self.goal = Goal::Over;
                    return None;
                }
            });
        }
        let looks = self.alarms.is_new(self.step) && halt.is_some();
        if looks || self.alarms.is_due(self.step, glance.now) {
            match self.ringing(glance) {
                AlarmLook::Quiet => {}
                AlarmLook::Rings(text) => halt = Some(Halt::Said(text)),
                AlarmLook::RangBefore => {
                    (self.goal, self.again) = (Goal::FirstRing, true);
                    return None;
                }
            }
        }
        halt
    }

    /// Looks for the last event before the step `before`, and leads there when that has come.
    fn back(&mut self, glance: &Glance<'_, '_>, before: u64, turns: bool) {
        let event = self.event(glance);
        let turned = turns && glance.ran.is_some();
        let (here, is_before) = (self.step, self.step < before);
        let Goal::Back { found, .. } = &mut self.goal else { return };
        match event {
            // Back across a change is where it has not happened yet.
            Some(halt @ Halt::Watch(_)) if here > 1 => *found = Some((here - 1, halt)),
            Some(halt) if is_before => *found = Some((here, halt)),
            None if is_before && turned => *found = Some((here, Halt::Turn)),
            _ => {}
        }
        if !is_before || glance.ended {
            let (step, halt) = found.take().unwrap_or((1, Halt::Begin));
            (self.goal, self.again) = (Goal::To(step, halt), true);
        }
    }
}

impl<F: FnMut(&Line)> Observer for Debugger<'_, F> {
    fn hear(&mut self, said: Said) {
        if self.again {
            return;
        }
        if matches!(said, Said::Boots(_)) {
            self.outcome.boot_again();
        }
        if self.step >= self.furthest {
            self.live.hear(said.clone());
        }
        let line = line(said);
        self.outcome.note(&line);
        if let Line::Record(Record::Fault, _) = line {
            self.fault = Some(words::sentence(&line, &self.session.names).trim().to_owned());
        }
    }

    fn look(&mut self, glance: &Glance<'_, '_>) {
        if self.again || matches!(self.goal, Goal::Free | Goal::Over) {
            return;
        }
        self.step += 1;
        let halt = match self.goal.clone() {
            Goal::Forward(turns) => self.forward(glance, turns),
            Goal::To(step, halt) => {
                let _ = self.event(glance);
                (self.step >= step || glance.ended).then_some(halt)
            }
            Goal::Back { before, turns, .. } => {
                self.back(glance, before, turns);
                None
            }
            Goal::FirstRing => {
                let _ = self.event(glance);
                let looks = self.alarms.is_new(self.step);
                match looks.then(|| self.ringing(glance)) {
                    Some(AlarmLook::Rings(text)) => Some(Halt::Said(text)),
                    _ => glance.ended.then_some(Halt::End),
                }
            }
            Goal::Free | Goal::Over => None,
        };
        if let Some(halt) = halt {
            self.stand(glance, &halt);
        }
    }

    fn wants_end(&self) -> bool {
        self.again || self.goal == Goal::Over || interrupt::came()
    }
}

/// Writes the commands that connect GDB: the symbols of each process, then the address.
fn write_script(
    folder: &RunFolder,
    session: &Session,
    address: SocketAddr,
) -> Result<PathBuf, Failure> {
    let mut script = String::from("set confirm off\nset remotetimeout 3600\n");
    for (index, process) in (0..).zip(&session.system.processes) {
        if let Some(path) = session.built.programs.get(&process.program) {
            let base = layout::base(index);
            script += &format!("add-symbol-file \"{}\" -o {base:#x}\n", path.display());
        }
    }
    script += &format!("target remote {address}\n");
    let file = folder.path().join("sim.gdb");
    std::fs::write(&file, script)
        .map_err(|error| Failure::io("write the debugger's commands", &error))?;
    Ok(file)
}

/// Simulates a session under GDB, and reports if GDB lets it go to its end.
///
/// # Errors
/// If there was no run, or nobody can connect.
pub(super) fn debug(
    request: &SimRequest,
    session: &Session,
    asked: &[InjectedFault],
    address: SocketAddr,
) -> Result<u8, Failure> {
    interrupt::await_signals()?;
    let format = RunFormat::of(request.json, request.format);
    let folder = RunFolder::create(&Workspace::find()?.target())?;
    let door = Door::open(address)?;
    let script = write_script(&folder, session, door.address()?)?;
    tell(&format!("waiting for GDB: gdb -q -x {}", script.display()));
    let Some(link) = door.wait()? else { return Ok(interrupt::exit_code().unwrap_or(HOLDS)) };
    let mut debugger = Debugger {
        session,
        assumptions: Assumptions::of(&session.plan),
        link,
        greeted: false,
        goal: Goal::To(1, Halt::Begin),
        again: false,
        step: 0,
        furthest: 0,
        before: Nanos::ZERO,
        outcome: Outcome::default(),
        alarms: KnownAlarms::default(),
        fault: None,
        watches: Vec::new(),
        stop: None,
        cast: Cast::default(),
        thread: ThreadId::NONE,
        live: Hearing(live(format.is_for_programs(), session.names.clone(), session.promises())),
    };
    let faults = request.faults(session, asked, request.seed);
    let how = request.options(session, request.seed);
    let Simulated { run, hash, .. } = loop {
        let simulation = Simulation::new(session, &how).with_faults(&faults).following(None);
        let simulated = simulation.run(&mut debugger)?;
        if !debugger.rewind() {
            break simulated;
        }
    };
    if debugger.goal == Goal::Over {
        tell("GDB ended the run");
        return Ok(interrupt::exit_code().unwrap_or(HOLDS));
    }
    let code = report(format, session, &run, Addition::default())?;
    tell(&format!("trace {:016x}", hash));
    Ok(code)
}

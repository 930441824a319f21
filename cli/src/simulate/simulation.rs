//! A simulation of one session, with everything that may be wanted of it besides.

use super::Listener;
use super::explain::Asked;
use super::flows::LinkLogs;
use super::messages::{Choice, Lives};
use super::part::Wishes;
use crate::capture::CaptureRequest;
use crate::console::Line;
use crate::failure::Failure;
use crate::qemu::MachineEnding;
use crate::session::{FinishedRun, Session};
use crate::surroundings::{Functions, functions, in_sight, simulable, upsets};
use crate::words;
use diapason_abi::Nanos;
use diapason_sim::{Costs, GatedBooks, Observer, Options, Said, Works};
use diapason_system::InjectedFault;

/// An observer that hears what a system says, line by line.
#[derive(Debug)]
pub struct Hearing<F>(pub F);

impl<F: FnMut(&Line)> Observer for Hearing<F> {
    fn hear(&mut self, said: Said) {
        (self.0)(&line(said));
    }
}

/// Returns what was said as a line of the console.
pub(super) fn line(said: Said) -> Line {
    let raw = |time: Nanos, text: &str| Line::Raw(words::stamped(Some(time.0), text));
    match said {
        Said::Record(record, words) => Line::Record(record, words),
        Said::Log(process, text) => Line::Log { process, text },
        Said::Note(time, text) => raw(time, &text),
        Said::Fault(time, text) => raw(time, &format!("fault: {text}")),
        Said::Stray(time, stray) => raw(time, &words::stray(&format!("#{}", stray.device), &stray)),
        Said::Boots(time) => raw(time, "the host has power again"),
    }
}

/// The works that a session's description declares; a seed draws how long each takes.
#[must_use]
pub fn works(session: &Session, seed: Option<u64>) -> Works {
    let mut works = Works::new(seed);
    for work in &session.system.works {
        works.declare(&work.name, Nanos(work.best_ns), Nanos(work.worst_ns));
    }
    works
}

/// Returns the options of a run with the clock of its description.
#[must_use]
pub fn usual(session: &Session, seed: Option<u64>) -> Options {
    let (costs, works) = (Costs::at(session.system.clock_hz), works(session, seed));
    Options { costs, works, ..Options::default() }
}

/// The result of a simulation.
pub struct Simulated {
    pub run: FinishedRun,
    /// The hash of every entry into the core.
    pub hash: u64,
    /// The fates of the messages, if they were followed.
    pub lives: Lives,
    /// The messages at its links to other hosts, if they were followed.
    pub links: LinkLogs,
    /// The frames that its adapters with gates sent, if it is a host of a list.
    pub gated: Vec<GatedBooks>,
}

/// A simulation of a session among the devices that it describes, without faults.
pub struct Simulation<'a> {
    session: &'a Session,
    how: &'a Options,
    faults: &'a [InjectedFault],
    functions: Option<Functions>,
    captures: Option<&'a CaptureRequest>,
    /// Messages are followed, and this is what will be asked for.
    follows: Option<Option<Choice>>,
}

impl<'a> Simulation<'a> {
    /// Plans a run with these options, which [`usual`] may have made.
    #[must_use]
    pub const fn new(session: &'a Session, how: &'a Options) -> Simulation<'a> {
        Simulation { session, how, faults: &[], functions: None, captures: None, follows: None }
    }

    /// Lets these things go wrong.
    #[must_use]
    pub fn with_faults(self, faults: &'a [InjectedFault]) -> Simulation<'a> {
        Simulation { faults, ..self }
    }

    /// Puts the system among these PCI functions instead of those that it describes.
    #[must_use]
    pub fn among(self, functions: Functions) -> Simulation<'a> {
        Simulation { functions: Some(functions), ..self }
    }

    /// Looks at the traffic, and writes these captures.
    #[must_use]
    pub fn capturing(self, captures: &'a CaptureRequest) -> Simulation<'a> {
        Simulation { captures: Some(captures), ..self }
    }

    /// Follows all messages; `choice` is what will be asked for.
    #[must_use]
    pub fn following(self, choice: Option<Choice>) -> Simulation<'a> {
        Simulation { follows: Some(choice), ..self }
    }

    /// Runs the session to its end, as it was asked for.
    ///
    /// # Errors
    /// If it cannot be run, or a capture not be written.
    pub fn run(self, observer: &mut impl Observer) -> Result<Simulated, Failure> {
        let Simulation { session, how, faults, functions: others, captures, follows } = self;
        let (system, mut how) = (&session.system, with_upsets(session, how, faults));
        let (listener, functions) = match others {
            Some(others) => (Listener::default(), others),
            None if captures.is_none() && follows.is_none() => {
                simulable(system)?;
                (Listener::default(), functions(system, faults))
            }
            None => {
                simulable(system)?;
                let asked = Asked { job: None, message: follows.flatten() };
                let captures = captures.cloned().unwrap_or_default();
                let follows = follows.is_some();
                let wishes = Wishes { asked, follows, captures, ..Wishes::default() };
                let (functions, sights) = in_sight(system, faults, wishes.transfers());
                (wishes.listener(session, sights, faults, &mut how)?, functions)
            }
        };
        let mut both = (listener, observer);
        let ending = drive(session, &how, functions, &mut both)?;
        let (outcome, hash, observations) = both.0.finish(&session.names)?;
        let lives = observations.lives;
        let links = LinkLogs::default();
        let (run, gated) = (simulated(ending, outcome), Vec::new());
        Ok(Simulated { run, hash: hash.0, lives, links, gated })
    }
}

/// Returns the run of a simulated machine.
pub(super) const fn simulated(ending: MachineEnding, outcome: crate::Outcome) -> FinishedRun {
    FinishedRun { ending, outcome, flight: None, served: None }
}

/// Plans the upsets of the host itself, besides.
pub(super) fn with_upsets(session: &Session, how: &Options, faults: &[InjectedFault]) -> Options {
    let mut how = how.clone();
    how.upsets.extend(upsets(&session.system, faults));
    how
}

/// Runs a session among these PCI functions.
pub(super) fn drive(
    session: &Session,
    how: &Options,
    functions: Functions,
    observer: &mut impl Observer,
) -> Result<MachineEnding, Failure> {
    let ended = diapason_sim::run(&session.archive, how, functions, observer)
        .map_err(|error| Failure::Ours(error.to_string()))?;
    how_it_ended(session, ended)
}

/// Returns an end as that of any machine.
///
/// # Errors
/// If time stood still.
pub(super) fn how_it_ended(
    session: &Session,
    ended: diapason_sim::Ended,
) -> Result<MachineEnding, Failure> {
    Ok(match ended.ending {
        diapason_sim::Ending::Finished => MachineEnding::Finished,
        diapason_sim::Ending::Halted => MachineEnding::Halted,
        diapason_sim::Ending::SupervisorDied => MachineEnding::SupervisorDied,
        diapason_sim::Ending::Stuck(device) => {
            let name = |device| session.names.device(u64::from(device));
            let what = device.map_or(String::from("a thread"), |it| format!("device {}", name(it)));
            let time = ended.time.0;
            return Err(Failure::Ours(format!("{what} keeps time from passing at {time} ns")));
        }
    })
}

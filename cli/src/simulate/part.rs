//! A part of a simulation as a command hears it: a host alone, a host among others, or a core.

use super::explain::{Asked, Explained};
use super::measured::Measured;
use super::messages::{Around, HostPart, Lives, Messages};
use super::perfetto::Perfetto;
use super::responses::Responses;
use super::usage::Usage;
use super::watch::Watch;
use super::{Called, Cast, Listener};
use crate::capture::CaptureRequest;
use crate::chart::Distribution;
use crate::commands::Addition;
use crate::failure::Failure;
use crate::names::Names;
use crate::outcome::Outcome;
use crate::session::{FinishedRun, Session};
use crate::surroundings::Sights;
use diapason_sim::{BillWriter, JobBill, Options, Trace};
use diapason_system::InjectedFault;

/// The wishes of a command for a part, besides its verdict.
#[derive(Default)]
pub(super) struct Wishes {
    /// The place of the part among the cores of its host.
    pub part: HostPart,
    /// The job or message to explain.
    pub asked: Asked,
    /// Messages of pipes are followed.
    pub follows: bool,
    pub captures: CaptureRequest,
    /// The times of jobs are drawn.
    pub pictured: bool,
    /// The drawing of threads over time, which shows messages, too.
    pub perfetto: Option<Perfetto>,
}

impl Wishes {
    /// Returns whether the bytes that transfers carry are looked at.
    pub fn transfers(&self) -> bool {
        self.captures.pcap.is_some() || self.follows
    }

    /// Returns what hears the part. `how` becomes the run in which all of it can be heard.
    ///
    /// # Errors
    /// If a capture's file cannot be made.
    pub fn listener(
        self,
        session: &Session,
        sights: Sights,
        faults: &[InjectedFault],
        how: &mut Options,
    ) -> Result<Listener, Failure> {
        let Wishes { part, asked, follows, captures, pictured, perfetto } = self;
        let around = Around { plan: &session.plan, sights: &sights, part: &part, faults };
        let messages = follows.then(|| Messages::new(&around, asked.message));
        let messages = messages.map(|it| if perfetto.is_some() { it.kept() } else { it });
        if let Some(messages) = &messages {
            how.watched = messages.watched();
        }
        Ok(Listener {
            ledger: asked.job.map(BillWriter::new),
            perfetto,
            watch: Some(Watch::begin(sights, &captures, &session.names)?),
            messages,
            responses: pictured.then(Responses::default),
            ..Listener::default()
        })
    }
}

/// The measurements of a part, besides its outcome.
pub(super) struct Observations {
    usage: Vec<Usage>,
    pub jobs: Vec<Distribution>,
    pub lives: Lives,
    bill: Option<JobBill>,
    cast: Cast,
}

impl Listener {
    /// Looks at the rest of the traffic. Cores tell each other of messages that went from one to
    /// another, so all look before the first one ends.
    ///
    /// # Errors
    /// If a capture could not be written.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        let Some(watch) = self.watch.take() else { return Ok(()) };
        self.usage = watch.finish(self.now, self.perfetto.as_mut(), self.messages.as_mut())?;
        if let Some(messages) = &self.messages {
            messages.tell_readers(self.now);
        }
        Ok(())
    }

    /// Ends a part: captures and drawings are complete. Returns the outcome, the hash of the trace,
    /// and the rest.
    ///
    /// # Errors
    /// If a capture could not be written.
    pub(super) fn finish(
        mut self,
        names: &Names,
    ) -> Result<(Outcome, Trace, Observations), Failure> {
        self.settle()?;
        let Listener { mut outcome, hash, ledger, perfetto, usage, .. } = self;
        let Listener { now, messages, responses, cast, .. } = self;
        outcome.worked.get_or_insert_default();
        outcome.truth = messages.as_ref().map(|it| it.truth(now)).unwrap_or_default();
        perfetto.into_iter().for_each(|perfetto| perfetto.close(&cast));
        let jobs = responses.map(|it| it.distributions(&cast, names)).unwrap_or_default();
        let lives = messages.map(Messages::lives).unwrap_or_default();
        let bill = ledger.and_then(BillWriter::bill);
        Ok((outcome, hash, Observations { usage, jobs, lives, bill, cast }))
    }
}

impl Observations {
    /// Returns the measurements as additions to the report of a run.
    pub fn addition(&self, session: &Session, run: &FinishedRun, stages: bool) -> Addition {
        let stages = stages.then_some(&*self.lives.seen);
        Measured { usage: &self.usage, jobs: &self.jobs, stages }.addition(session, run)
    }

    /// Returns what was asked for, the job or the message that took more of its bound.
    pub fn explained(&self, asked: Asked) -> Option<Explained<'_>> {
        let job = self.bill.as_ref().map(Explained::Job);
        let message = asked.message.and_then(|of| self.lives.of(of)).map(Explained::Message);
        let worse = |one: Explained<'_>, two: Explained<'_>| two.is_worse(one);
        job.into_iter().chain(message).reduce(|one, two| if worse(one, two) { two } else { one })
    }

    /// Returns the names of its threads, and those of the description.
    pub const fn called<'a>(&'a self, names: &'a Names) -> Called<'a> {
        (&self.cast, names)
    }
}

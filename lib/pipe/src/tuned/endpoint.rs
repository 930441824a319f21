//! The pipes of an endpoint as they are opened, changed and closed.

use super::agree::{Agreement, Failure, agree};
use super::refused::{Reason, Refused, WouldFit};
use super::suggest;
use super::wish::{Driver, Qos};
use crate::bill::Transfers;
use crate::size::Bucket;

/// Whether the processor and the bus have room for an agreement, in the place of the one before.
pub type Admission<'a, const N: usize> = dyn FnMut(&Agreement<N>) -> bool + 'a;

/// An endpoint with at most `N` pipes. Every change is made as a whole or not at all.
#[derive(Clone, Debug)]
pub struct Endpoint<const N: usize> {
    driver: Driver,
    wishes: [Option<Qos>; N],
    /// What arrives for pipes of the description, in the last places.
    standing: [Option<Bucket>; N],
    agreement: Agreement<N>,
}

impl<const N: usize> Endpoint<N> {
    /// Without pipes.
    #[must_use]
    pub fn new(driver: Driver) -> Endpoint<N> {
        let agreement = Agreement::idle(&driver);
        Endpoint { driver, wishes: [None; N], standing: [None; N], agreement }
    }

    /// With pipes that are always there, by the contract of each; those beyond `N` are left out.
    /// Their own bounds are those of the description's plan.
    #[must_use]
    pub fn beside(driver: Driver, contracts: &[Bucket]) -> Endpoint<N> {
        let mut endpoint = Endpoint::new(driver);
        let places = endpoint.standing.iter_mut().rev();
        places.zip(contracts).for_each(|(place, contract)| *place = Some(*contract));
        endpoint
    }

    /// What its device can do and its driver costs. A device that comes back may be on a bus that
    /// is fuller: pipes that are open keep what they have, for others that counts.
    pub fn set_bus(&mut self, bus: Transfers) {
        self.driver.bus = bus;
    }

    /// What is agreed at the moment.
    #[must_use]
    pub fn agreement(&self) -> &Agreement<N> {
        &self.agreement
    }

    /// What a pipe asked for.
    #[must_use]
    pub fn qos(&self, pipe: usize) -> Option<Qos> {
        *self.wishes.get(pipe)?
    }

    /// One more pipe; its number. Threads of open pipes may get other periods, their latency and
    /// buffer stay what they asked for.
    ///
    /// # Errors
    /// Why not, and what would fit; nothing has changed then.
    pub fn open(&mut self, qos: Qos, admits: &mut Admission<'_, N>) -> Result<usize, Refused> {
        let channels = usize::try_from(self.driver.attributes.max_channels).unwrap_or(N).min(N);
        // Pipes of the description have places, too.
        let room = channels.saturating_sub(self.standing.iter().flatten().count());
        let Some(pipe) = self.wishes.iter().take(room).position(Option::is_none) else {
            let reason = Reason::NoChannel { channels: channels as u32 };
            return Err(Refused { pipe: channels, reason, would_fit: WouldFit::Nothing });
        };
        self.change(pipe, qos, admits).map(|()| pipe)
    }

    /// Another quality of service for an open pipe.
    ///
    /// # Errors
    /// As [`Endpoint::open`]; the pipe keeps the one it has.
    pub fn renegotiate(
        &mut self,
        pipe: usize,
        qos: Qos,
        admits: &mut Admission<'_, N>,
    ) -> Result<(), Refused> {
        if self.qos(pipe).is_none() {
            let would_fit = WouldFit::Nothing;
            return Err(Refused { pipe, reason: Reason::NoPipe, would_fit });
        }
        self.change(pipe, qos, admits)
    }

    /// A pipe less. What others have becomes less or stays: nobody is asked. False if there is no
    /// such pipe.
    pub fn close(&mut self, pipe: usize) -> bool {
        if self.wishes.get_mut(pipe).and_then(Option::take).is_none() {
            return false;
        }
        match agree(&self.driver, &self.wishes, &self.standing) {
            Ok(agreement) if self.is_no_more(&agreement) => self.agreement = agreement,
            // What was enough for all is enough for the rest.
            _ => self.agreement.pipes[pipe] = None,
        }
        true
    }

    /// Whether every reservation is at most what it is now.
    fn is_no_more(&self, other: &Agreement<N>) -> bool {
        let (now, next) = (&self.agreement, other);
        let threads = now.pipes.iter().zip(&next.pipes);
        next.share <= now.share
            && next.receiver <= now.receiver
            && threads.into_iter().all(|(now, next)| match (now, next) {
                (Some(now), Some(next)) => next.budget <= now.budget && next.period >= now.period,
                (None, Some(_)) => false,
                (_, None) => true,
            })
    }

    fn change(
        &mut self,
        pipe: usize,
        qos: Qos,
        admits: &mut Admission<'_, N>,
    ) -> Result<(), Refused> {
        match self.try_change(pipe, qos, admits) {
            Ok((wishes, agreement)) => {
                (self.wishes, self.agreement) = (wishes, agreement);
                Ok(())
            }
            Err((failed, reason)) => {
                let mut fits = |other| self.try_change(pipe, other, &mut *admits).is_ok();
                let would_fit = suggest::nearest(&qos, &self.driver.attributes, &mut fits);
                Err(Refused { pipe: failed, reason, would_fit })
            }
        }
    }

    fn try_change(
        &self,
        pipe: usize,
        qos: Qos,
        admits: &mut Admission<'_, N>,
    ) -> Result<([Option<Qos>; N], Agreement<N>), Failure> {
        let mut wishes = self.wishes;
        wishes[pipe] = Some(qos);
        let agreement = agree(&self.driver, &wishes, &self.standing)?;
        if admits(&agreement) {
            return Ok((wishes, agreement));
        }
        let thread = agreement.pipes[pipe].map(|terms| (terms.budget, terms.period));
        Err((pipe, Reason::Processor { thread: thread.unwrap_or_default() }))
    }
}

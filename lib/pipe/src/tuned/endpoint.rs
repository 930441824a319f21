//! The pipes of an endpoint as they are opened, changed and closed.

use super::agree::{Agreement, Failure, agree};
use super::claim::{Claim, Wish};
use super::refused::{Reason, Refused, WouldFit};
use super::suggest;
use super::wish::{Driver, Qos};
use crate::size::Bucket;
use diapason_abi::pipe::Envelope;

/// Whether the processor and the bus have room for an agreement, in the place of the one before.
pub type Admission<'a, const N: usize> = dyn FnMut(&Agreement<N>) -> bool + 'a;

/// An endpoint with at most `N` pipes. Every change is made as a whole or not at all.
#[derive(Clone, Debug)]
pub struct Endpoint<const N: usize> {
    driver: Driver,
    wishes: [Option<Wish>; N],
    /// What arrives for pipes of the description, in the last places.
    standing: [Option<Claim>; N],
    agreement: Agreement<N>,
}

impl<const N: usize> Endpoint<N> {
    /// Without pipes.
    #[must_use]
    pub fn new(driver: Driver) -> Endpoint<N> {
        let agreement = Agreement::idle(&driver);
        Endpoint { driver, wishes: [None; N], standing: [None; N], agreement }
    }

    /// With pipes that are always there, by the channel and the contract of each; those beyond `N`
    /// are left out. Their own bounds are those of the description's plan.
    #[must_use]
    pub fn beside(driver: Driver, contracts: &[(u8, Bucket)]) -> Endpoint<N> {
        let mut endpoint = Endpoint::new(driver);
        let places = endpoint.standing.iter_mut().rev();
        for (place, (channel, contract)) in places.zip(contracts) {
            *place = Some(Claim { channel: Some(*channel), contract: *contract });
        }
        endpoint
    }

    /// What is agreed at the moment.
    #[must_use]
    pub fn agreement(&self) -> &Agreement<N> {
        &self.agreement
    }

    /// What a pipe asked for.
    #[must_use]
    pub fn qos(&self, pipe: usize) -> Option<Qos> {
        self.wishes.get(pipe)?.map(|wish| wish.qos)
    }

    /// One more pipe, from a channel to which nobody else listens; its number. Threads of open
    /// pipes may get other periods, their latency and buffer stay what they asked for.
    ///
    /// # Errors
    /// Why not, and what would fit; nothing has changed then.
    pub fn open(&mut self, qos: Qos, admits: &mut Admission<'_, N>) -> Result<usize, Refused> {
        self.open_wish(Wish { channel: None, qos, envelope: None }, admits)
    }

    /// One more pipe from this channel, which may have others: what comes on it comes once.
    ///
    /// # Errors
    /// As of [`Endpoint::open`].
    pub fn open_on(
        &mut self,
        channel: u8,
        qos: Qos,
        admits: &mut Admission<'_, N>,
    ) -> Result<usize, Refused> {
        self.open_wish(Wish { channel: Some(channel), qos, envelope: None }, admits)
    }

    /// One more pipe from this channel that never is more than what is declared of it.
    ///
    /// # Errors
    /// As of [`Endpoint::open`].
    pub fn open_within(
        &mut self,
        envelope: &Envelope,
        (channel, qos): (u8, Qos),
        admits: &mut Admission<'_, N>,
    ) -> Result<usize, Refused> {
        let wish = Wish { channel: Some(channel), qos, envelope: Some(*envelope) };
        self.open_wish(wish, admits)
    }

    fn open_wish(&mut self, wish: Wish, admits: &mut Admission<'_, N>) -> Result<usize, Refused> {
        let channels = usize::try_from(self.driver.attributes.max_channels).unwrap_or(N).min(N);
        // Pipes of the description have places, too.
        let room = channels.saturating_sub(self.standing.iter().flatten().count());
        let Some(pipe) = self.wishes.iter().take(room).position(Option::is_none) else {
            let reason = Reason::NoChannel { channels: channels as u32 };
            return Err(Refused { pipe: channels, reason, would_fit: WouldFit::Nothing });
        };
        self.change(pipe, wish, admits).map(|()| pipe)
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
        let Some(wish) = self.wishes.get(pipe).copied().flatten() else {
            let would_fit = WouldFit::Nothing;
            return Err(Refused { pipe, reason: Reason::NoPipe, would_fit });
        };
        self.change(pipe, Wish { qos, ..wish }, admits)
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
        wish: Wish,
        admits: &mut Admission<'_, N>,
    ) -> Result<(), Refused> {
        match self.try_change(pipe, wish, admits) {
            Ok((wishes, agreement)) => {
                (self.wishes, self.agreement) = (wishes, agreement);
                Ok(())
            }
            Err((failed, reason)) => {
                let mut fits =
                    |qos| self.try_change(pipe, Wish { qos, ..wish }, &mut *admits).is_ok();
                let would_fit = suggest::nearest(&wish.qos, &self.driver.attributes, &mut fits);
                Err(Refused { pipe: failed, reason, would_fit })
            }
        }
    }

    fn try_change(
        &self,
        pipe: usize,
        wish: Wish,
        admits: &mut Admission<'_, N>,
    ) -> Result<([Option<Wish>; N], Agreement<N>), Failure> {
        let mut wishes = self.wishes;
        wishes[pipe] = Some(wish);
        let agreement = agree(&self.driver, &wishes, &self.standing)?;
        if admits(&agreement) {
            return Ok((wishes, agreement));
        }
        let thread = agreement.pipes[pipe].map(|terms| (terms.budget, terms.period));
        Err((pipe, Reason::Processor { thread: thread.unwrap_or_default() }))
    }
}

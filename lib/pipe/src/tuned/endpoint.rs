//! The pipes of an endpoint as they are opened, changed and closed.

use super::agree::{Agreement, Failure, agree};
use super::claim::{Claim, Part, Wish};
use super::refused::{RefusedPipe, WhyRefused, WouldFit};
use super::suggest;
use super::wish::{Driver, Qos, Route};
use crate::size::Bucket;
use diapason_abi::pipe::Envelope;

/// Whether the processor and the bus have room for an agreement, in the place of the one before.
pub type Admission<'a, const N: usize> = dyn FnMut(&Agreement<N>) -> bool + 'a;

/// An endpoint with at most `N` pipes. Every change is made as a whole or not at all.
#[derive(Clone, Debug)]
pub struct PipeEndpoint<const N: usize> {
    driver: Driver,
    wishes: [Option<Wish>; N],
    /// The arrivals for pipes of the description, in the last places.
    standing: [Option<Claim>; N],
    agreement: Agreement<N>,
}

impl<const N: usize> PipeEndpoint<N> {
    /// Returns an endpoint without pipes.
    #[must_use]
    pub fn new(driver: Driver) -> PipeEndpoint<N> {
        let agreement = Agreement::idle(&driver);
        PipeEndpoint { driver, wishes: [None; N], standing: [None; N], agreement }
    }

    /// Returns the endpoint with pipes that are always there, by the channel and the contract of
    /// each; those beyond `N` are left out. Their own bounds are those of the description's plan.
    #[must_use]
    pub fn beside(driver: Driver, contracts: &[(u8, Bucket)]) -> PipeEndpoint<N> {
        let mut endpoint = PipeEndpoint::new(driver);
        let places = endpoint.standing.iter_mut().rev();
        for (place, (channel, contract)) in places.zip(contracts) {
            *place = Some(Claim { channel: Some(*channel), contract: *contract });
        }
        endpoint
    }

    /// Returns the current agreement.
    #[must_use]
    pub fn agreement(&self) -> &Agreement<N> {
        &self.agreement
    }

    /// Returns the request of a pipe.
    #[must_use]
    pub fn qos(&self, pipe: usize) -> Option<Qos> {
        self.wishes.get(pipe)?.map(|wish| wish.qos)
    }

    /// Opens one more pipe, from a channel without another listener, and returns its number.
    /// Threads of open pipes may get other periods, their latency and buffer stay what they asked
    /// for.
    ///
    /// # Errors
    /// Why not, and what would fit; nothing has changed then.
    pub fn open(&mut self, qos: Qos, admits: &mut Admission<'_, N>) -> Result<usize, RefusedPipe> {
        let part = Part::Reads;
        self.open_wish(Wish { channel: None, part, qos, envelope: None }, None, admits)
    }

    /// Opens one more pipe on this route. Its channel may have other pipes; each message comes
    /// once.
    ///
    /// # Errors
    /// Opens a pipe on a channel, like [`PipeEndpoint::open`].
    pub fn open_on(
        &mut self,
        route: Route,
        qos: Qos,
        admits: &mut Admission<'_, N>,
    ) -> Result<usize, RefusedPipe> {
        self.open_route(route, qos, None, admits)
    }

    /// Opens one more pipe on this route that never exceeds its declaration.
    ///
    /// # Errors
    /// Opens a pipe within an envelope, like [`PipeEndpoint::open`].
    pub fn open_within(
        &mut self,
        envelope: &Envelope,
        (route, qos): (Route, Qos),
        admits: &mut Admission<'_, N>,
    ) -> Result<usize, RefusedPipe> {
        self.open_route(route, qos, Some(*envelope), admits)
    }

    fn open_route(
        &mut self,
        route: Route,
        qos: Qos,
        envelope: Option<Envelope>,
        admits: &mut Admission<'_, N>,
    ) -> Result<usize, RefusedPipe> {
        let (channel, part, to) = match route {
            Route::From(channel) => (channel, Part::Reads, None),
            Route::To(channel) => (channel, Part::Writes, None),
            Route::Through(channel, to) => (channel, Part::Reads, Some(to)),
        };
        self.open_wish(Wish { channel: Some(channel), part, qos, envelope }, to, admits)
    }

    /// Opens one more pipe; if it goes on to a channel, that takes a place of its own.
    fn open_wish(
        &mut self,
        mut wish: Wish,
        to: Option<u8>,
        admits: &mut Admission<'_, N>,
    ) -> Result<usize, RefusedPipe> {
        let channels = usize::try_from(self.driver.attributes.max_channels).unwrap_or(N).min(N);
        // Pipes of the description have places, too.
        let room = channels.saturating_sub(self.standing.iter().flatten().count());
        let mut free = (0..room).filter(|place| self.wishes[*place].is_none());
        let place = free.next().filter(|_| match to.map(|to| (to, free.next())) {
            Some((to, Some(second))) => {
                wish.part = Part::Passes(to, second);
                true
            }
            Some((_, None)) => false,
            None => true,
        });
        let Some(pipe) = place else {
            let reason = WhyRefused::NoChannel { channels: channels as u32 };
            return Err(RefusedPipe { pipe: channels, reason, would_fit: WouldFit::Nothing });
        };
        self.change(pipe, wish, admits).map(|()| pipe)
    }

    /// Another quality of service for an open pipe.
    ///
    /// # Errors
    /// As [`PipeEndpoint::open`]; the pipe keeps the one it has.
    pub fn renegotiate(
        &mut self,
        pipe: usize,
        qos: Qos,
        admits: &mut Admission<'_, N>,
    ) -> Result<(), RefusedPipe> {
        let wish = self.wishes.get(pipe).copied().flatten();
        let Some(wish) = wish.filter(|wish| wish.part != Part::Carries) else {
            let would_fit = WouldFit::Nothing;
            return Err(RefusedPipe { pipe, reason: WhyRefused::NoPipe, would_fit });
        };
        self.change(pipe, Wish { qos, ..wish }, admits)
    }

    /// Closes a pipe. The terms of the others shrink or stay, so no question is needed. Returns
    /// false if there is no such pipe.
    pub fn close(&mut self, pipe: usize) -> bool {
        let carries = |wish: &&mut Option<Wish>| wish.is_some_and(|it| it.part == Part::Carries);
        let place = self.wishes.get_mut(pipe).filter(|wish| !carries(wish));
        let Some(wish) = place.and_then(Option::take) else { return false };
        if let Part::Passes(_, second) = wish.part {
            self.wishes[second] = None;
        }
        match agree(&self.driver, &self.wishes, &self.standing) {
            Ok(agreement) if self.is_no_more(&agreement) => self.agreement = agreement,
            // Terms that were enough for all are enough for the rest.
            _ => self.agreement.pipes[pipe] = None,
        }
        true
    }

    /// Returns whether every reservation is at most what it is now.
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
    ) -> Result<(), RefusedPipe> {
        match self.try_change(pipe, wish, admits) {
            Ok((wishes, agreement)) => {
                (self.wishes, self.agreement) = (wishes, agreement);
                Ok(())
            }
            Err((failed, reason)) => {
                let mut fits =
                    |qos| self.try_change(pipe, Wish { qos, ..wish }, &mut *admits).is_ok();
                let would_fit = suggest::nearest(&wish.qos, &self.driver.attributes, &mut fits);
                Err(RefusedPipe { pipe: failed, reason, would_fit })
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
        if let Part::Passes(to, second) = wish.part {
            let (channel, part, envelope) = (Some(to), Part::Carries, None);
            wishes[second] = Some(Wish { channel, part, envelope, ..wish });
        }
        let agreement = agree(&self.driver, &wishes, &self.standing)?;
        if admits(&agreement) {
            return Ok((wishes, agreement));
        }
        let thread = agreement.pipes[pipe].map(|terms| (terms.budget, terms.period));
        Err((pipe, WhyRefused::Processor { thread: thread.unwrap_or_default() }))
    }
}

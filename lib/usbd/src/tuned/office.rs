//! The questions and answers: the pipes of an endpoint, and their owners.

use super::base::{self, ATTRIBUTES};
use super::reserve::{self, Move, Terms};
use crate::places::PlaceOrder;
use crate::platform::{MessagePort, Platform, Reserve, Wakes, log};
use crate::policy::CLOCK;
use crate::presence::Presence;
use crate::told::Pipes;
use alloc::vec::Vec;
use diapason_abi::Errno;
use diapason_abi::MESSAGE_BYTES;
use diapason_abi::pipe::Envelope;
use diapason_contract::can::EACH;
use diapason_contract::tuned::names;
use diapason_pipe::size::Bucket;
use diapason_pipe::tuned::{
    Agreement, Granted, PipeAnswer, PipeCommand, PipeEndpoint, PipeRequest, Qos, RefusedPipe,
    RequestOutcome, Route, WhyRefused, WouldFit,
};

/// The endpoint of the interface.
type Ends = PipeEndpoint<EACH>;
type Agreed = Agreement<EACH>;
/// The number of the pipe that changed, or the pipe that is refused.
type Changed = Result<usize, RefusedPipe>;

/// The server's side of a place: where the program asks, and where it is answered.
struct Desk<P: Platform> {
    questions: P::Mailbox,
    answers: P::Mailbox,
}

struct Place<P: Platform> {
    desk: Desk<P>,
    /// The most that its pipe may be.
    envelope: Envelope,
    /// The place's pipe in the endpoint, and the route.
    pipe: Option<(usize, Route)>,
    /// The terms of its VCPU.
    terms: Terms,
}

/// Returns the endpoint beside the pipes of the description; `None` without what the driver costs.
fn endpoint(pipes: &Pipes) -> Option<Ends> {
    let costs = pipes.costs.as_ref()?;
    let channels = (0..).zip(pipes.interfaces.first()?.numbers());
    let contract = |(channel, number)| Some((channel, pipes.contract(number)?));
    let mut standing: Vec<(u8, Bucket)> = channels.filter_map(contract).collect();
    let output = pipes.output.as_ref();
    if let Some(output) = output {
        let written = (0..EACH as u8).filter(|channel| output.described >> channel & 1 != 0);
        standing.extend(written.map(|channel| (channel, base::acknowledged(output))));
    }
    Some(PipeEndpoint::beside(base::driver(costs, output), &standing))
}

/// The clients, and the agreements with them.
pub struct Office<P: Platform> {
    endpoint: Ends,
    /// How many channels the interface has.
    channels: u8,
    presence: Presence,
    places: Vec<Place<P>>,
}

impl<P: Platform> Office<P> {
    /// Opens the places. `None` without what the driver costs: nothing can be promised then.
    ///
    /// # Errors
    /// A mailbox of a place is not there.
    pub fn new(
        platform: &P,
        pipes: &Pipes,
        presence: Presence,
        reserve: &mut impl Reserve,
    ) -> Result<Option<Office<P>>, Errno> {
        let Some(endpoint) = endpoint(pipes) else {
            log!(P, "no tuned pipes: nobody said what they cost");
            return Ok(None);
        };
        let channels = pipes.interfaces.first().map_or(0, |first| first.channels);
        let mut all = Vec::with_capacity(pipes.places.len());
        for (number, envelope) in pipes.places.iter().copied().enumerate() {
            let names = names(number).ok_or(Errno::Absent)?;
            let questions = platform.mailbox(names.questions, Wakes::Tuning)?;
            let answers = platform.mailbox(names.answers, Wakes::Nobody)?;
            let (desk, terms) = (Desk { questions, answers }, Terms::CLOSED);
            // The reservations that an earlier server left are given back.
            let _ = reserve.set(number, terms.budget, terms.period);
            all.push(Place { desk, envelope, pipe: None, terms });
        }
        Ok(Some(Office { endpoint, channels, presence, places: all }))
    }

    /// Answers a question of each place, and returns whether there was any. `order` tells the
    /// channels who listens and writes.
    pub fn attend(
        &mut self,
        order: &mut impl FnMut(&PlaceOrder),
        reserve: &mut impl Reserve,
    ) -> bool {
        let mut any = false;
        for number in 0..self.places.len() {
            let mut bytes = [0; MESSAGE_BYTES];
            let questions = &mut self.places[number].desk.questions;
            let Some(length) = questions.receive(&mut bytes) else { continue };
            any = true;
            // Nobody knows the number of a question that makes no sense.
            let Some(request) = bytes.get(..length).and_then(PipeRequest::parse) else { continue };
            let outcome = self.answer(number, request.wanted, order, reserve);
            let answer = PipeAnswer { token: request.token, outcome };
            // A client that asks without reading answers gets no more of them.
            self.places[number].desk.answers.send(&answer.bytes());
        }
        any
    }

    fn answer(
        &mut self,
        number: usize,
        wanted: PipeCommand,
        order: &mut impl FnMut(&PlaceOrder),
        reserve: &mut impl Reserve,
    ) -> RequestOutcome {
        let done = match (wanted, self.places[number].pipe) {
            (PipeCommand::Close, _) => return self.close(number, order, reserve),
            (PipeCommand::Open(..), Some(_)) => Err(self.refuse(number, WhyRefused::AlreadyOpen)),
            (PipeCommand::Open(route, qos), None) => {
                self.open(number, (route, qos), order, reserve)
            }
            (PipeCommand::Change(_), None) => Err(self.refuse(number, WhyRefused::NoPipe)),
            (PipeCommand::Change(qos), Some((pipe, route))) => {
                let changed = self.change(number, reserve, |ends, admits| {
                    ends.renegotiate(pipe, qos, admits).map(|()| pipe)
                });
                self.begin(number, route, changed, order)
            }
        };
        match done {
            Ok(granted) => {
                let (bound, Granted { budget, period, .. }) = (granted.bound, granted);
                log!(P, "tpipe{number}: {} in {} ns, bound {} ns", budget.0, period.0, bound.0);
                RequestOutcome::Granted(granted)
            }
            Err(refused) => RequestOutcome::Refused(refused),
        }
    }

    fn refuse(&self, number: usize, reason: WhyRefused) -> RefusedPipe {
        let pipe = self.places[number].pipe.map_or(number, |(pipe, _)| pipe);
        RefusedPipe { pipe, reason, would_fit: WouldFit::Nothing }
    }

    fn open(
        &mut self,
        number: usize,
        (route, qos): (Route, Qos),
        order: &mut impl FnMut(&PlaceOrder),
        reserve: &mut impl Reserve,
    ) -> Result<Granted, RefusedPipe> {
        let mut channels = [route.comes_from(), route.goes_to()].into_iter().flatten();
        if let Some(channel) = channels.find(|it| *it >= self.channels) {
            let (channel, channels) = (channel.into(), self.channels.into());
            return Err(self.refuse(number, WhyRefused::NoSuchChannel { channel, channels }));
        }
        if !self.presence.holds() {
            return Err(self.refuse(number, WhyRefused::NoDevice));
        }
        let envelope = self.places[number].envelope;
        let opened = self.change(number, reserve, |ends, admits| {
            ends.open_within(&envelope, (route, qos), admits)
        });
        self.begin(number, route, opened, order)
    }

    /// Tells the channels about an agreement, if there is one.
    fn begin(
        &mut self,
        number: usize,
        route: Route,
        agreed: Result<usize, RefusedPipe>,
        order: &mut impl FnMut(&PlaceOrder),
    ) -> Result<Granted, RefusedPipe> {
        let pipe = agreed?;
        let (granted, qos) = (Granted::of(&self.endpoint, pipe), self.endpoint.qos(pipe));
        let Some((granted, qos)) = granted.zip(qos) else {
            return Err(self.refuse(number, WhyRefused::NoPipe));
        };
        self.places[number].pipe = Some((pipe, route));
        if let Some(channel) = route.comes_from() {
            let contract = qos.contract(&ATTRIBUTES).with_jitter(CLOCK);
            order(&PlaceOrder::Listen { place: number, channel, contract });
        }
        if let Some(channel) = route.goes_to() {
            order(&PlaceOrder::Write { place: number, channel });
        }
        Ok(granted)
    }

    /// Changes the endpoint and all reservations, or nothing.
    fn change(
        &mut self,
        number: usize,
        reserve: &mut impl Reserve,
        change: impl FnOnce(&mut Ends, &mut dyn FnMut(&Agreed) -> bool) -> Changed,
    ) -> Changed {
        let mut next = self.endpoint.clone();
        let mut admits = |agreed: &Agreed| self.moves(number, agreed).is_some();
        let pipe = change(&mut next, &mut admits)?;
        self.settle(number, next, reserve).map_err(|Terms { budget, period }| {
            let reason = WhyRefused::Processor { thread: (budget, period) };
            RefusedPipe { pipe, reason, would_fit: WouldFit::Nothing }
        })?;
        Ok(pipe)
    }

    /// Makes the reservations those of another endpoint, which is the endpoint then.
    fn settle(
        &mut self,
        number: usize,
        next: Ends,
        reserve: &mut impl Reserve,
    ) -> Result<(), Terms> {
        let moves = self.moves(number, next.agreement()).ok_or(Terms::CLOSED)?;
        let done = reserve::set(reserve, &moves);
        let standing = done.standing.iter().zip(&moves).enumerate();
        for (number, (has, it)) in standing {
            self.places[number].terms = *has;
            if done.refused.is_none() && *has != it.to {
                let Terms { budget, period } = *has;
                log!(P, "tpipe{number} keeps {} in {} ns for now", budget.0, period.0);
            }
        }
        if let Some(terms) = done.refused {
            return Err(terms);
        }
        self.endpoint = next;
        Ok(())
    }

    /// Returns the required terms of all places' VCPUs, in their order; a new pipe is that of place
    /// `number`. `None` if the kernel has no such reservation.
    fn moves(&self, number: usize, agreed: &Agreed) -> Option<Vec<Move>> {
        let owned = |pipe: usize| self.places.iter().any(|it| it.pipe.is_some_and(|p| p.0 == pipe));
        let new = || (0..EACH).find(|pipe| agreed.pipes[*pipe].is_some() && !owned(*pipe));
        let all = self.places.iter().enumerate().map(|(index, place)| {
            let mine = place.pipe.map(|(pipe, _)| pipe);
            let pipe = mine.or_else(|| if index == number { new() } else { None });
            let to = match pipe.and_then(|pipe| agreed.pipes[pipe]) {
                Some(terms) => Terms::possible(terms.budget, terms.period)?,
                None => Terms::CLOSED,
            };
            Some(Move { place: index, from: place.terms, to })
        });
        all.collect()
    }

    fn close(
        &mut self,
        number: usize,
        order: &mut impl FnMut(&PlaceOrder),
        reserve: &mut impl Reserve,
    ) -> RequestOutcome {
        let Some((pipe, _)) = self.places[number].pipe.take() else {
            return RequestOutcome::Closed;
        };
        order(&PlaceOrder::Leave { place: number });
        let mut next = self.endpoint.clone();
        next.close(pipe);
        if let Err(terms) = self.settle(number, next.clone(), reserve) {
            // Less than before, and yet refused: the others keep what they have.
            log!(P, "tpipe{number}: {} in {} ns is not set", terms.budget.0, terms.period.0);
            self.endpoint = next;
        }
        log!(P, "tpipe{number}: closed");
        RequestOutcome::Closed
    }
}

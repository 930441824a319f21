//! What is asked and answered: the pipes of an endpoint, and whose they are.

use super::Broker;
use super::base::ATTRIBUTES;
use super::reserve::{self, Move, Terms};
use crate::places::Order;
use crate::policy::CLOCK;
use alloc::vec::Vec;
use diapason_abi::MESSAGE_BYTES;
use diapason_abi::pipe::Envelope;
use diapason_canlib::agreement::CHANNELS;
use diapason_pipe::tuned::{
    Agreement, Answer, Endpoint, Granted, Outcome, Qos, Reason, Refused, Request, Route, Wanted,
    WouldFit,
};
use diapason_rt::event::Event;
use diapason_rt::{Errno, Nanos, log};
use diapason_tpipe::agreement::{Desk, desk};

/// The endpoint of the interface.
type Ends = Endpoint<CHANNELS>;
type Agreed = Agreement<CHANNELS>;

/// A program's place.
struct Place {
    desk: Desk,
    /// The most that its pipe may be.
    envelope: Envelope,
    /// Its pipe in the endpoint, and the route.
    pipe: Option<(usize, Route)>,
    /// What its VCPU has.
    terms: Terms,
}

/// Who asks, and what was agreed.
pub struct Office {
    endpoint: Ends,
    places: Vec<Place>,
}

impl Office {
    /// With these places; `asked` is raised when there is a question.
    pub fn new(endpoint: Ends, places: &[Envelope], asked: &Event) -> Result<Office, Errno> {
        let mut all = Vec::with_capacity(places.len());
        for (number, envelope) in places.iter().copied().enumerate() {
            let (desk, terms) = (desk(number, asked)?, Terms::CLOSED);
            // What an earlier server left is given back.
            let _ = desk.vcpu.set(terms.budget, terms.period);
            all.push(Place { desk, envelope, pipe: None, terms });
        }
        Ok(Office { endpoint, places: all })
    }

    /// Answer a question of each place; was there any?
    pub fn attend(&mut self, broker: &Broker) -> Result<bool, Errno> {
        let mut any = false;
        for number in 0..self.places.len() {
            let mut bytes = [0; MESSAGE_BYTES];
            let questions = self.places[number].desk.questions;
            let Ok((length, _)) = questions.receive_into(&mut bytes, Nanos::ZERO) else { continue };
            any = true;
            // Nobody knows the number of a question that makes no sense.
            let Some(request) = bytes.get(..length).and_then(Request::parse) else { continue };
            let outcome = self.answer(number, request.wanted, broker)?;
            let answer = Answer { token: request.token, outcome };
            // Who asks without reading answers gets no more of them.
            let _ = self.places[number].desk.answers.send(&answer.bytes(), 0, Nanos::ZERO);
        }
        Ok(any)
    }

    fn answer(&mut self, number: usize, wanted: Wanted, broker: &Broker) -> Result<Outcome, Errno> {
        let done = match (wanted, self.places[number].pipe) {
            (Wanted::Close, _) => return self.close(number, broker),
            (Wanted::Open(..), Some(_)) => Err(self.refuse(number, Reason::AlreadyOpen)),
            (Wanted::Open(route, qos), None) => self.open(number, route, qos, broker)?,
            (Wanted::Change(_), None) => Err(self.refuse(number, Reason::NoPipe)),
            (Wanted::Change(qos), Some((pipe, route))) => {
                let changed = self.change(number, |ends, admits| {
                    ends.renegotiate(pipe, qos, admits).map(|()| pipe)
                });
                self.begin(number, route, changed, broker)?
            }
        };
        match done {
            Ok(granted) => {
                let (bound, Granted { budget, period, .. }) = (granted.bound, granted);
                log!("tpipe{number}: {} in {} ns, bound {} ns", budget.0, period.0, bound.0);
                Ok(Outcome::Granted(granted))
            }
            Err(refused) => Ok(Outcome::Refused(refused)),
        }
    }

    fn refuse(&self, number: usize, reason: Reason) -> Refused {
        let pipe = self.places[number].pipe.map_or(number, |(pipe, _)| pipe);
        Refused { pipe, reason, would_fit: WouldFit::Nothing }
    }

    fn open(
        &mut self,
        number: usize,
        route: Route,
        qos: Qos,
        broker: &Broker,
    ) -> Result<Result<Granted, Refused>, Errno> {
        let mut channels = [route.comes_from(), route.goes_to()].into_iter().flatten();
        if let Some(channel) = channels.find(|it| usize::from(*it) >= CHANNELS) {
            let (channel, channels) = (channel.into(), CHANNELS as u32);
            return Ok(Err(self.refuse(number, Reason::NoSuchChannel { channel, channels })));
        }
        if !broker.has_device()? {
            return Ok(Err(self.refuse(number, Reason::NoDevice)));
        }
        let envelope = self.places[number].envelope;
        let opened =
            self.change(number, |ends, admits| ends.open_within(&envelope, (route, qos), admits));
        self.begin(number, route, opened, broker)
    }

    /// What was agreed, if it was: the channels are told.
    fn begin(
        &mut self,
        number: usize,
        route: Route,
        agreed: Result<usize, Refused>,
        broker: &Broker,
    ) -> Result<Result<Granted, Refused>, Errno> {
        let pipe = match agreed {
            Ok(pipe) => pipe,
            Err(refused) => return Ok(Err(refused)),
        };
        let (granted, qos) = (Granted::of(&self.endpoint, pipe), self.endpoint.qos(pipe));
        let Some((granted, qos)) = granted.zip(qos) else {
            return Ok(Err(self.refuse(number, Reason::NoPipe)));
        };
        self.places[number].pipe = Some((pipe, route));
        if let Some(channel) = route.comes_from() {
            let contract = qos.contract(&ATTRIBUTES).with_jitter(CLOCK);
            broker.order(&Order::Listen { place: number, channel, contract })?;
        }
        if let Some(channel) = route.goes_to() {
            broker.order(&Order::Write { place: number, channel })?;
        }
        Ok(Ok(granted))
    }

    /// Change the endpoint and all reservations, or nothing.
    fn change(
        &mut self,
        number: usize,
        change: impl FnOnce(&mut Ends, &mut dyn FnMut(&Agreed) -> bool) -> Result<usize, Refused>,
    ) -> Result<usize, Refused> {
        let mut next = self.endpoint.clone();
        let mut admits =
            |agreed: &Agreed| self.moves(number, agreed).is_some_and(|moves| reserve::fits(&moves));
        let pipe = change(&mut next, &mut admits)?;
        self.settle(number, next).map_err(|Terms { budget, period }| {
            let reason = Reason::Processor { thread: (budget, period) };
            Refused { pipe, reason, would_fit: WouldFit::Nothing }
        })?;
        Ok(pipe)
    }

    /// Make the reservations those of another endpoint, which is the endpoint then.
    fn settle(&mut self, number: usize, next: Ends) -> Result<(), Terms> {
        let moves = self.moves(number, next.agreement()).ok_or(Terms::CLOSED)?;
        reserve::set(&moves)?;
        for (place, done) in self.places.iter_mut().zip(&moves) {
            place.terms = done.to;
        }
        self.endpoint = next;
        Ok(())
    }

    /// What all places' VCPUs would have to be, in their order; a pipe that is new is that of place
    /// `number`. `None` if the kernel has no such reservation.
    fn moves(&self, number: usize, agreed: &Agreed) -> Option<Vec<Move>> {
        let owned = |pipe: usize| self.places.iter().any(|it| it.pipe.is_some_and(|p| p.0 == pipe));
        let new = || (0..CHANNELS).find(|pipe| agreed.pipes[*pipe].is_some() && !owned(*pipe));
        let all = self.places.iter().enumerate().map(|(index, place)| {
            let mine = place.pipe.map(|(pipe, _)| pipe);
            let pipe = mine.or_else(|| if index == number { new() } else { None });
            let to = match pipe.and_then(|pipe| agreed.pipes[pipe]) {
                Some(terms) => Terms::possible(terms.budget, terms.period)?,
                None => Terms::CLOSED,
            };
            Some(Move { vcpu: place.desk.vcpu, from: place.terms, to })
        });
        all.collect()
    }

    fn close(&mut self, number: usize, broker: &Broker) -> Result<Outcome, Errno> {
        let Some((pipe, _)) = self.places[number].pipe.take() else { return Ok(Outcome::Closed) };
        broker.order(&Order::Leave { place: number })?;
        let mut next = self.endpoint.clone();
        next.close(pipe);
        if let Err(terms) = self.settle(number, next.clone()) {
            // Less than before, and yet refused: the others keep what they have.
            log!("tpipe{number}: {} in {} ns is not set", terms.budget.0, terms.period.0);
            self.endpoint = next;
        }
        log!("tpipe{number}: closed");
        Ok(Outcome::Closed)
    }
}

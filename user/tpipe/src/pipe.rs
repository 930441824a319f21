//! A program's side of a pipe: it asks, and it is answered.

use crate::agreement::{Desk, bell, counter};
use crate::error::PipeError;
use crate::work::{Teller, TunedWork};
use diapason_abi::Nanos;
use diapason_pipe::measured::WrittenReport;
use diapason_pipe::tuned::{
    Granted, PipeAnswer, PipeCommand, PipeRequest, Qos, RequestOutcome, Route,
};
use diapason_rt::sync::Semaphore;
use diapason_rt::{thread, time};

/// The priority of the threads of pipes: each is alone on its VCPU.
const PRIORITY: u8 = 1;
/// How often a pipe that is being closed is looked at.
const POLL: Nanos = Nanos::from_millis(5);

/// The direction of a pipe, and its place in the description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    pub place: usize,
    /// The channels of the device.
    pub route: Route,
}

/// A pipe. Dropped, it stays open.
pub struct Pipe {
    endpoint: Endpoint,
    thread: &'static dyn TunedWork,
    teller: Teller,
    desk: Desk,
    /// The semaphore that its thread waits for.
    bell: Semaphore,
    token: u32,
    granted: Option<Granted>,
}

/// Opens a pipe on the route of `endpoint` with this quality of service, whose messages `thread`
/// reads, writes, or passes on. A pipe that an earlier owner of the place left open is closed
/// first.
///
/// # Errors
/// The server cannot promise that, is not there, or the thread has a pipe already.
pub fn tpipe<T: TunedWork>(
    endpoint: Endpoint,
    qos: &Qos,
    thread: &'static T,
    deadline: Nanos,
) -> Result<Pipe, PipeError> {
    let mut pipe = Pipe::new(endpoint, thread)?;
    pipe.close(deadline)?;
    pipe.open(endpoint.route, qos, deadline)?;
    Ok(pipe)
}

impl Pipe {
    /// Returns a pipe that is not open yet, and its thread, which waits.
    ///
    /// # Errors
    /// There is no such place, or the thread has a pipe already.
    pub fn new<T: TunedWork>(endpoint: Endpoint, thread: &'static T) -> Result<Pipe, PipeError> {
        let Endpoint { place, .. } = endpoint;
        if thread.base().place != place {
            return Err(PipeError::NoSuchPlace);
        }
        if !thread.base().begin() {
            return Err(PipeError::InUse);
        }
        let (desk, bell) = (counter(place)?, bell(place)?);
        thread::start(desk.vcpu, "tpipe", PRIORITY, thread)?;
        let teller = Teller::new(thread.told());
        Ok(Pipe { endpoint, thread, teller, desk, bell, token: 0, granted: None })
    }

    /// Opens the pipe.
    ///
    /// # Errors
    /// Returns the errors of [`tpipe`].
    pub fn open(&mut self, route: Route, qos: &Qos, deadline: Nanos) -> Result<Granted, PipeError> {
        if !self.thread.suits(route) {
            return Err(PipeError::NoSuchPlace);
        }
        let granted = self.negotiate(PipeCommand::Open(route, *qos), route, qos, deadline)?;
        self.endpoint.route = route;
        Ok(granted)
    }

    /// Other terms from now on. No message is lost by that.
    ///
    /// # Errors
    /// The server cannot promise that: it goes on as before.
    pub fn renegotiate(&mut self, qos: &Qos, deadline: Nanos) -> Result<Granted, PipeError> {
        self.negotiate(PipeCommand::Change(*qos), self.endpoint.route, qos, deadline)
    }

    fn negotiate(
        &mut self,
        wanted: PipeCommand,
        route: Route,
        qos: &Qos,
        deadline: Nanos,
    ) -> Result<Granted, PipeError> {
        match self.ask(wanted, deadline)? {
            RequestOutcome::Granted(granted) => {
                self.granted = Some(granted);
                self.thread.base().promise(route, Some(&granted));
                self.tell(Some((qos, &granted)));
                Ok(granted)
            }
            RequestOutcome::Refused(refused) => Err(PipeError::Refused(refused)),
            RequestOutcome::Closed => Err(PipeError::Nonsense),
        }
    }

    /// Closes it. Messages in its buffer are still handled, when no other thread wants to run.
    ///
    /// # Errors
    /// The server has not answered in time.
    pub fn close(&mut self, deadline: Nanos) -> Result<(), PipeError> {
        self.tell(None);
        // Nothing more is written, and what is under way may still get through.
        let until = self.granted.map_or(Nanos::ZERO, |granted| time::now() + granted.bound);
        while !self.thread.is_settled() && time::now() < until.min(deadline) {
            time::sleep(POLL);
        }
        // The server takes the budget back before it answers: from here on nothing is promised.
        let (base, route) = (self.thread.base(), self.endpoint.route);
        base.promise(route, None);
        let answer = self.ask(PipeCommand::Close, deadline);
        if answer == Ok(RequestOutcome::Closed) {
            self.granted = None;
            return Ok(());
        }
        base.promise(route, self.granted.as_ref());
        answer.and(Err(PipeError::Nonsense))
    }

    /// Returns its terms, if it is open.
    #[must_use]
    pub const fn granted(&self) -> Option<&Granted> {
        self.granted.as_ref()
    }

    /// Tells the pipe's thread its terms.
    fn tell(&mut self, terms: Option<(&Qos, &Granted)>) {
        self.teller.tell(terms);
        // A semaphore at its limit has been given often enough.
        let _ = self.bell.give();
    }

    /// Returns the counts of its thread's writes since it began; nothing if it only reads.
    #[must_use]
    pub fn written(&self) -> Option<WrittenReport> {
        let channel = self.endpoint.route.goes_to()?;
        let report = self.thread.written()?;
        Some(WrittenReport { place: self.endpoint.place as u8, channel, ..report })
    }

    fn ask(&mut self, wanted: PipeCommand, deadline: Nanos) -> Result<RequestOutcome, PipeError> {
        self.token = self.token.wrapping_add(1);
        let request = PipeRequest { token: self.token, wanted };
        self.desk.questions.send(&request.bytes(), 0, deadline)?;
        loop {
            let message = self.desk.answers.receive(deadline)?;
            // Answers to questions that nobody waits for any more are passed over.
            if let Some(PipeAnswer { token, outcome }) = PipeAnswer::parse(message.bytes())
                && token == self.token
            {
                return Ok(outcome);
            }
        }
    }
}

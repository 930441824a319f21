//! A program's side of a pipe: it asks, and it is answered.

use crate::agreement::{Desk, bell, counter};
use crate::error::Error;
use crate::function::{Function, Thread};
use crate::work::{Teller, Work};
use diapason_abi::Nanos;
use diapason_abi::pipe::{TunedReport, WrittenReport};
use diapason_pipe::tuned::{Answer, Granted, Outcome, Qos, Request, Route, Wanted};
use diapason_rt::sync::Semaphore;
use diapason_rt::{thread, time};

/// The priority of the threads of pipes: each is alone on its VCPU.
const PRIORITY: u8 = 1;
/// How often a pipe that is being closed is looked at.
const POLL: Nanos = Nanos::from_millis(5);

/// Which way a pipe goes, and its place in the description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// The place.
    pub place: usize,
    /// The channels of the device.
    pub route: Route,
}

/// A pipe. Dropped, it stays open.
pub struct Pipe {
    endpoint: Endpoint,
    thread: &'static dyn Work,
    teller: Teller,
    desk: Desk,
    /// What its thread waits for.
    bell: Semaphore,
    token: u32,
    granted: Option<Granted>,
    /// The longest bounds since the last report: until a message is taken by the server, if it goes
    /// to the device, and of the whole way.
    bounds: [Nanos; 2],
}

/// A pipe on the route of `endpoint` with this quality of service, whose messages `thread` reads,
/// writes, or passes on. What an earlier owner of the place left open is closed first.
///
/// # Errors
/// The server cannot promise that, is not there, or the thread has a pipe already.
pub fn tpipe<T: Work>(
    endpoint: Endpoint,
    qos: &Qos,
    thread: &'static T,
    deadline: Nanos,
) -> Result<Pipe, Error> {
    let mut pipe = Pipe::new(endpoint, thread)?;
    pipe.close(deadline)?;
    pipe.open(endpoint.route, qos, deadline)?;
    Ok(pipe)
}

/// The longest that are measured: they leave out the fastest way there is.
fn promised(granted: &Granted) -> [Nanos; 2] {
    [granted.taken, granted.bound].map(|time| time - granted.least)
}

impl Pipe {
    /// A pipe that is not open yet, and its thread, which waits.
    ///
    /// # Errors
    /// There is no such place, or the thread has a pipe already.
    pub fn new<T: Work>(endpoint: Endpoint, thread: &'static T) -> Result<Pipe, Error> {
        let Endpoint { place, .. } = endpoint;
        if thread.base().place != place {
            return Err(Error::NoSuchPlace);
        }
        if !thread.base().begin() {
            return Err(Error::InUse);
        }
        let (desk, bell) = (counter(place)?, bell(place)?);
        thread::start(desk.vcpu, "tpipe", PRIORITY, thread)?;
        let bounds = [Nanos::ZERO; 2];
        let teller = Teller::new(thread.told());
        Ok(Pipe { endpoint, thread, teller, desk, bell, token: 0, granted: None, bounds })
    }

    /// Open it.
    ///
    /// # Errors
    /// As of [`tpipe`].
    pub fn open(&mut self, route: Route, qos: &Qos, deadline: Nanos) -> Result<Granted, Error> {
        if !self.thread.suits(route) {
            return Err(Error::NoSuchPlace);
        }
        let granted = self.negotiate(Wanted::Open(route, *qos), qos, deadline)?;
        self.endpoint.route = route;
        Ok(granted)
    }

    /// Other terms from now on. No message is lost by that.
    ///
    /// # Errors
    /// The server cannot promise that: it goes on as before.
    pub fn renegotiate(&mut self, qos: &Qos, deadline: Nanos) -> Result<Granted, Error> {
        self.negotiate(Wanted::Change(*qos), qos, deadline)
    }

    fn negotiate(&mut self, wanted: Wanted, qos: &Qos, deadline: Nanos) -> Result<Granted, Error> {
        match self.ask(wanted, deadline)? {
            Outcome::Granted(granted) => {
                self.granted = Some(granted);
                let now = promised(&granted);
                self.bounds = core::array::from_fn(|at| self.bounds[at].max(now[at]));
                self.tell(Some((qos, &granted)));
                Ok(granted)
            }
            Outcome::Refused(refused) => Err(Error::Refused(refused)),
            Outcome::Closed => Err(Error::Nonsense),
        }
    }

    /// Close it. What is in its buffer is still handled, when nobody else wants to run.
    ///
    /// # Errors
    /// The server has not answered in time.
    pub fn close(&mut self, deadline: Nanos) -> Result<(), Error> {
        self.tell(None);
        // Nothing more is written, and what is under way may still get through.
        let until = self.granted.map_or(Nanos::ZERO, |granted| time::now() + granted.bound);
        while !self.thread.is_settled() && time::now() < until.min(deadline) {
            time::sleep(POLL);
        }
        match self.ask(Wanted::Close, deadline)? {
            Outcome::Closed => {
                self.granted = None;
                Ok(())
            }
            _ => Err(Error::Nonsense),
        }
    }

    /// The terms it has, if it is open.
    #[must_use]
    pub const fn granted(&self) -> Option<&Granted> {
        self.granted.as_ref()
    }

    /// Its thread is told of its terms.
    fn tell(&mut self, terms: Option<(&Qos, &Granted)>) {
        self.teller.tell(terms);
        // A semaphore at its limit has been given often enough.
        let _ = self.bell.give();
    }

    /// What `thread`, its thread, has seen, beside the most that it was promised since the last
    /// report.
    pub fn report<F: Function>(&mut self, thread: &Thread<F>) -> TunedReport {
        let [_, bound] = self.promises();
        let channel = self.endpoint.route.comes_from().unwrap_or_default();
        let slots = self.granted.map_or(0, |granted| granted.slots.into());
        TunedReport { channel, slots, bound, ..thread.report() }
    }

    /// What its thread knows of what it wrote, beside the most that was promised since the last
    /// report; nothing if it only reads.
    pub fn written(&mut self) -> Option<WrittenReport> {
        let channel = self.endpoint.route.goes_to()?;
        let report = self.thread.written()?;
        let [taken, whole] = self.promises();
        let (taken, whole) = ((report.taken.0, taken), (report.whole.0, whole));
        Some(WrittenReport { place: self.endpoint.place as u8, channel, taken, whole, ..report })
    }

    /// The most since the last report.
    fn promises(&mut self) -> [Nanos; 2] {
        let now = self.granted.as_ref().map_or([Nanos::ZERO; 2], promised);
        core::mem::replace(&mut self.bounds, now)
    }

    fn ask(&mut self, wanted: Wanted, deadline: Nanos) -> Result<Outcome, Error> {
        self.token = self.token.wrapping_add(1);
        let request = Request { token: self.token, wanted };
        self.desk.questions.send(&request.bytes(), 0, deadline)?;
        loop {
            let message = self.desk.answers.receive(deadline)?;
            // Answers to questions that nobody waits for any more are passed over.
            if let Some(Answer { token, outcome }) = Answer::parse(message.bytes())
                && token == self.token
            {
                return Ok(outcome);
            }
        }
    }
}

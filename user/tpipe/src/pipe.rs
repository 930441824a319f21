//! A program's side of a pipe: it asks, and it is answered.

use crate::agreement::{Desk, counter};
use crate::error::Error;
use crate::function::{Function, Thread};
use diapason_abi::Nanos;
use diapason_abi::pipe::TunedReport;
use diapason_pipe::tuned::{Answer, Granted, Outcome, Qos, Request, Wanted};
use diapason_rt::thread;

/// The priority of the threads of pipes: each is alone on its VCPU.
const PRIORITY: u8 = 1;

/// Where a pipe comes from, and its place in the description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// The place.
    pub place: usize,
    /// The channel of the device.
    pub channel: u8,
}

/// A pipe. Dropped, it stays open.
pub struct Pipe {
    endpoint: Endpoint,
    desk: Desk,
    token: u32,
    granted: Option<Granted>,
    /// The longest bound since the last report.
    bound: Nanos,
}

/// A pipe from `endpoint` with this quality of service, whose messages `thread` gets. What an
/// earlier owner of the place left open is closed first.
///
/// # Errors
/// The server cannot promise that, is not there, or the thread has a pipe already.
pub fn tpipe<F: Function>(
    endpoint: Endpoint,
    qos: &Qos,
    thread: &'static Thread<F>,
    deadline: Nanos,
) -> Result<Pipe, Error> {
    let mut pipe = Pipe::new(endpoint, thread)?;
    pipe.close(deadline)?;
    pipe.open(endpoint.channel, qos, deadline)?;
    Ok(pipe)
}

/// The longest that is measured: that leaves out the fastest way there is.
fn promised(granted: &Granted) -> Nanos {
    granted.bound - granted.least
}

impl Pipe {
    /// A pipe that is not open yet, and its thread, which waits.
    ///
    /// # Errors
    /// There is no such place, or the thread has a pipe already.
    pub fn new<F: Function>(endpoint: Endpoint, thread: &'static Thread<F>) -> Result<Pipe, Error> {
        let Endpoint { place, .. } = endpoint;
        if thread.place() != place {
            return Err(Error::NoSuchPlace);
        }
        if !thread.begin() {
            return Err(Error::InUse);
        }
        let desk = counter(place)?;
        thread::start(desk.vcpu, "tpipe", PRIORITY, thread)?;
        Ok(Pipe { endpoint, desk, token: 0, granted: None, bound: Nanos::ZERO })
    }

    /// Open it.
    ///
    /// # Errors
    /// As of [`tpipe`].
    pub fn open(&mut self, channel: u8, qos: &Qos, deadline: Nanos) -> Result<Granted, Error> {
        let granted = self.negotiate(Wanted::Open(channel, *qos), deadline)?;
        self.endpoint.channel = channel;
        Ok(granted)
    }

    /// Other terms from now on. No message is lost by that.
    ///
    /// # Errors
    /// The server cannot promise that: it goes on as before.
    pub fn renegotiate(&mut self, qos: &Qos, deadline: Nanos) -> Result<Granted, Error> {
        self.negotiate(Wanted::Change(*qos), deadline)
    }

    fn negotiate(&mut self, wanted: Wanted, deadline: Nanos) -> Result<Granted, Error> {
        match self.ask(wanted, deadline)? {
            Outcome::Granted(granted) => {
                self.granted = Some(granted);
                self.bound = self.bound.max(promised(&granted));
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

    /// What `thread`, its thread, has seen, beside the most that it was promised since the last
    /// report.
    pub fn report<F: Function>(&mut self, thread: &Thread<F>) -> TunedReport {
        let now = self.granted.as_ref().map_or(Nanos::ZERO, promised);
        let bound = core::mem::replace(&mut self.bound, now);
        let slots = self.granted.map_or(0, |granted| granted.slots.into());
        TunedReport { channel: self.endpoint.channel, slots, bound, ..thread.report() }
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

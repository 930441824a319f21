//! Messages of other nodes that a CAN controller with message buffers hears, by the names of
//! `[[message]]`.

use diapason_abi::{Errno, Key, Nanos};
use diapason_contract::toucan::{
    CONTROLLER_NAMES, HEARD_SETTING, HEARING, HeardTerms, IN_MESSAGES, InMessage, READERS,
};
use diapason_pipe::Reader;
use diapason_pipe::measured::{HeardReport, REPORT, next_report};
use diapason_rt::sync::Semaphore;
use diapason_rt::{log, pipe, settings, time};

/// The messages that a program reads from one controller. It measures them, and reports once a
/// second while the program receives.
pub struct Incoming {
    messages: Reader<'static, InMessage, IN_MESSAGES>,
    told: Semaphore,
    controller: u8,
    /// By place of the message at the controller.
    reports: [Option<HeardReport>; HEARING],
    due: Nanos,
}

/// A message of the description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IncomingMessage {
    place: u32,
}

/// A message that came.
#[derive(Clone, Copy, Debug)]
pub struct HeardMessage {
    pub message: IncomingMessage,
    /// When its frame ended, or up to some bits before that.
    pub ended: Nanos,
    data: [u8; 8],
    length: usize,
}

impl HeardMessage {
    /// Returns the data as its sender made it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.data.get(..self.length).unwrap_or(&self.data)
    }
}

/// Returns the terms of the message of this name.
fn find(name: &str) -> Option<HeardTerms> {
    let (key, told) = (Key::new(name), settings::read());
    HeardTerms::all(told.get(HEARD_SETTING)).find(|terms| terms.name == key)
}

impl Incoming {
    /// Opens the way from the controller that hears the message of this name. A program opens each
    /// controller once, and receives in one thread.
    ///
    /// # Errors
    /// `Absent` if the description has no such message for this process.
    pub fn open(name: &str) -> Result<Incoming, Errno> {
        Incoming::of(&find(name).ok_or(Errno::Absent)?)
    }

    /// Opens the way from the controller of this number, as [`Incoming::open`] does.
    ///
    /// # Errors
    /// `Absent` if the description has no message for this process there.
    pub fn open_controller(number: u8) -> Result<Incoming, Errno> {
        let told = settings::read();
        let mut all = HeardTerms::all(told.get(HEARD_SETTING));
        Incoming::of(&all.find(|terms| terms.controller == number).ok_or(Errno::Absent)?)
    }

    fn of(terms: &HeardTerms) -> Result<Incoming, Errno> {
        let controller = terms.controller;
        let names = CONTROLLER_NAMES.get(usize::from(controller)).ok_or(Errno::Absent)?;
        let reader = usize::from(terms.reader) % READERS;
        let messages = pipe::reader(names.heard[reader])?;
        let told = Semaphore::open(names.tell[reader])?;
        let mut reports = [None; HEARING];
        let settings = settings::read();
        let own = HeardTerms::all(settings.get(HEARD_SETTING));
        for own in own.filter(|own| own.controller == controller) {
            if let Some(place) = reports.get_mut(usize::from(own.place)) {
                *place = Some(HeardReport { number: own.number, ..HeardReport::default() });
            }
        }
        Ok(Incoming { messages, told, controller, reports, due: time::now() + REPORT })
    }

    /// Returns the message of this name.
    ///
    /// # Errors
    /// `Absent` if this process reads no such message from this controller.
    pub fn message(&self, name: &str) -> Result<IncomingMessage, Errno> {
        let terms = find(name).filter(|terms| terms.controller == self.controller);
        terms.map(|terms| IncomingMessage { place: terms.place.into() }).ok_or(Errno::Absent)
    }

    /// Waits for the next message until `until`. `Nanos::ZERO` does not wait.
    ///
    /// # Errors
    /// `TimedOut` if none came, and those of waiting for the semaphore.
    pub fn receive(&mut self, until: Nanos) -> Result<HeardMessage, Errno> {
        loop {
            let now = time::now();
            if now >= self.due {
                self.due = next_report(self.due, now);
                for report in self.reports.iter_mut().flatten() {
                    report.say(now, &mut log::measured);
                }
            }
            if let Some(message) = self.messages.pop() {
                return Ok(self.take(&message));
            }
            if now >= until {
                return Err(Errno::TimedOut);
            }
            match self.told.take(until.min(self.due)) {
                Ok(()) | Err(Errno::TimedOut) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    fn take(&mut self, message: &InMessage) -> HeardMessage {
        let InMessage { ended_ns, data, place, length } = *message;
        let ended = Nanos(ended_ns);
        if let Some(Some(report)) = self.reports.get_mut(place as usize) {
            report.came(time::now() - ended);
        }
        let message = IncomingMessage { place };
        HeardMessage { message, ended, data, length: data.len().min(length as usize) }
    }
}

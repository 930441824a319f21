//! Writing: into the pipe, and what became of it.

use crate::agreement::{DEPARTURES, Phase};
use crate::channel::{Channel, Writing};
use crate::error::Error;
use crate::format::Format;
use core::sync::atomic::{Ordering, fence};
use diapason_abi::Nanos;
use diapason_rt::time;

impl<F: Format> Channel<F> {
    /// Puts a frame into the pipe. It goes out in its turn, and again until somebody acknowledges
    /// it. Does not wait.
    ///
    /// # Errors
    /// The pipe is full, the channel does not send, or no channel sends such a frame. Nothing was
    /// written.
    pub fn write(&mut self, frame: &F::Frame) -> Result<(), Error> {
        self.refresh()?;
        let writing = self.writing()?;
        writing.may_send()?;
        let departures = &mut writing.counter.departures;
        match departures.len() {
            Err(_) => return Err(Error::Corrupt),
            Ok(DEPARTURES) => return Err(Error::Full),
            Ok(_) => {
                let departure = F::departs(frame, time::now())?;
                departures.push(&departure).map_err(|_| Error::Full)?;
            }
        }
        writing.books.wrote();
        // The server empties the pipe, a fence, and looks once more; we fill it, a fence, and look
        // whether it may have been empty. One of the two sees what the other did.
        fence(Ordering::SeqCst);
        if writing.counter.departures.len() == Ok(1) {
            writing.wake();
        }
        Ok(())
    }

    /// Writes a frame as soon as there is room, until `deadline`.
    ///
    /// # Errors
    /// As of [`Channel::write`]; the time is up.
    pub fn write_wait(&mut self, frame: &F::Frame, deadline: Nanos) -> Result<(), Error> {
        loop {
            match self.write(frame) {
                Err(Error::Full) => self.rest(deadline)?,
                result => return result,
            }
        }
    }

    /// Waits until all that was written is through on the bus.
    ///
    /// # Errors
    /// The time is up; or frames were given up since the channel was put on its bus.
    pub fn write_sync(&mut self, deadline: Nanos) -> Result<(), Error> {
        self.wait(deadline, |writing| {
            if writing.books.pending() > 0 {
                return None;
            }
            let (_, _, given_up) = writing.books.counts();
            Some(if given_up > 0 { Err(Error::GivenUp) } else { Ok(()) })
        })
    }
}

impl<F: Format> Writing<F> {
    fn may_send(&self) -> Result<(), Error> {
        match self.phase() {
            _ if !self.on_bus => Err(Error::OffBus),
            _ if self.parameters.silent => Err(Error::Silent),
            Phase::BusOff => Err(Error::BusOff),
            _ => Ok(()),
        }
    }
}

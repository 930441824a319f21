//! The traits of `embedded-can`.
//!
//! Frames go out in the order they were written. So a full pipe never gives up a waiting frame for
//! a more urgent one: `transmit` would block instead.

use crate::channel::Channel;
use crate::error::Error;
use diapason_abi::Nanos;
use diapason_can::CanFrame;
use embedded_can::{blocking, nb as not_blocking};

impl not_blocking::Can for Channel {
    type Frame = CanFrame;
    type Error = Error;

    fn transmit(&mut self, frame: &CanFrame) -> nb::Result<Option<CanFrame>, Error> {
        match self.write_wait(frame, Nanos::ZERO) {
            Ok(()) => Ok(None),
            Err(Error::TimedOut) => Err(nb::Error::WouldBlock),
            Err(error) => Err(nb::Error::Other(error)),
        }
    }

    fn receive(&mut self) -> nb::Result<CanFrame, Error> {
        match self.read() {
            Ok(message) => Ok(message.frame),
            Err(Error::NoMessage) => Err(nb::Error::WouldBlock),
            Err(error) => Err(nb::Error::Other(error)),
        }
    }
}

impl blocking::Can for Channel {
    type Frame = CanFrame;
    type Error = Error;

    fn transmit(&mut self, frame: &CanFrame) -> Result<(), Error> {
        self.write_wait(frame, Nanos::FOREVER)
    }

    fn receive(&mut self) -> Result<CanFrame, Error> {
        self.read_wait(Nanos::FOREVER).map(|message| message.frame)
    }
}

//! The formats of frames that a channel can have. A channel with CAN FD has frames of both, and
//! larger records.

use crate::agreement::{Departure, FdDeparture, FdReceivedFrame, ReceivedFrame};
use crate::error::Error;
use diapason_abi::Nanos;
use diapason_can::{AnyFrame, CanFrame, Id};
use diapason_contract::can::ChannelNames;
use diapason_state::Plain;

/// A format of frames, by the records that carry them.
pub trait Format: 'static {
    type Frame: Copy;
    /// The record of a frame that came, and that of one to be sent.
    type Arrival: Plain;
    type Departure: Plain;

    /// Returns the names of the pipe from a channel and of that to it.
    fn pipes(names: &ChannelNames) -> (&'static str, &'static str);

    /// Returns the frame of a record, if it is one, with its times.
    fn arrived(record: &Self::Arrival) -> Option<(Self::Frame, ReceivedFrame)>;

    /// Returns the record of a frame that is written now.
    ///
    /// # Errors
    /// No channel sends such a frame.
    fn departs(frame: &Self::Frame, now: Nanos) -> Result<Self::Departure, Error>;

    fn id(frame: &Self::Frame) -> Id;
}

/// The format of a channel without CAN FD.
#[derive(Clone, Copy, Debug)]
pub enum Classic {}

/// The format of a channel with CAN FD: its frames are of either.
#[derive(Clone, Copy, Debug)]
pub enum Flexible {}

impl Format for Classic {
    type Frame = CanFrame;
    type Arrival = ReceivedFrame;
    type Departure = Departure;

    fn pipes(names: &ChannelNames) -> (&'static str, &'static str) {
        names.pipes(false)
    }

    fn arrived(record: &ReceivedFrame) -> Option<(CanFrame, ReceivedFrame)> {
        Some((record.frame()?, *record))
    }

    fn departs(frame: &CanFrame, now: Nanos) -> Result<Departure, Error> {
        Ok(Departure::at(frame, now))
    }

    fn id(frame: &CanFrame) -> Id {
        frame.id()
    }
}

impl Format for Flexible {
    type Frame = AnyFrame;
    type Arrival = FdReceivedFrame;
    type Departure = FdDeparture;

    fn pipes(names: &ChannelNames) -> (&'static str, &'static str) {
        names.pipes(true)
    }

    fn arrived(record: &FdReceivedFrame) -> Option<(AnyFrame, ReceivedFrame)> {
        Some((record.frame()?, record.head))
    }

    fn departs(frame: &AnyFrame, now: Nanos) -> Result<FdDeparture, Error> {
        match frame {
            AnyFrame::Fd(frame) if !frame.is_fast() => Err(Error::Slow),
            frame => Ok(FdDeparture::at(frame, now)),
        }
    }

    fn id(frame: &AnyFrame) -> Id {
        frame.id()
    }
}

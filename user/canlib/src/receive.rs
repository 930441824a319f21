//! Reading: what comes, after the filters.

use crate::agreement::{LOST_BEFORE, OUTSIDE, ReceivedFrame};
use crate::channel::Channel;
use crate::error::Error;
use crate::format::Format;
use diapason_abi::Nanos;
use diapason_can::{CanFrame, Filter};
use diapason_pipe::clock::Delay;
use diapason_pipe::measured::ReadMessage;
use diapason_rt::time;

/// Most takings of a semaphore in one call.
const STALE: usize = 64;

/// A frame that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimedFrame<T = CanFrame> {
    pub frame: T,
    /// The frame with its times, as the server wrote it.
    pub arrival: ReceivedFrame,
}

impl<F: Format> Channel<F> {
    /// Reads only what one of these filters passes; without any, everything.
    ///
    /// # Errors
    /// They are more than [`FILTERS`](crate::FILTERS).
    pub fn set_acceptance_filter(&mut self, filters: &[Filter]) -> Result<(), Error> {
        self.filters.set(filters)
    }

    /// Returns the oldest message that came. Does not wait.
    ///
    /// # Errors
    /// Returns `NoMessage` if none has come.
    pub fn read(&mut self) -> Result<TimedFrame<F::Frame>, Error> {
        self.take().ok_or_else(|| {
            // Given for what has been read by now. A client that only looks would pile it up.
            for _ in 0..STALE {
                if self.ready.take(Nanos::ZERO).is_err() {
                    break;
                }
            }
            Error::NoMessage
        })
    }

    /// Returns the oldest message that came, or waits for one until `deadline`.
    ///
    /// # Errors
    /// Returns `TimedOut` if none came.
    pub fn read_wait(&mut self, deadline: Nanos) -> Result<TimedFrame<F::Frame>, Error> {
        loop {
            if let Some(message) = self.take() {
                return Ok(message);
            }
            self.rest(deadline)?;
        }
    }

    /// Frames that the pipe had no room for: its reader was too slow.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.arrivals.lost()
    }

    /// Returns the most that ever waited in the pipe.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.arrivals.peak()
    }

    fn take(&mut self) -> Option<TimedFrame<F::Frame>> {
        let message = self.next();
        self.look(time::now());
        message
    }

    /// Returns the next message that passes the filters. All messages that came are measured.
    fn next(&mut self) -> Option<TimedFrame<F::Frame>> {
        loop {
            let arrival = self.arrivals.pop()?;
            let Some((frame, arrival)) = F::arrived(&arrival) else { continue };
            self.read.read(&passed(&arrival, time::now()));
            if self.filters.pass(F::id(&frame)) {
                return Some(TimedFrame { frame, arrival });
            }
        }
    }
}

/// Returns the measurement of a message that was read now.
fn passed(arrival: &ReceivedFrame, now: Nanos) -> ReadMessage {
    let ReceivedFrame { time, taken, flags, moved, inexact, .. } = *arrival;
    let [beyond, inexact] = [moved, inexact].map(|time| Nanos(time.into()));
    ReadMessage {
        time: Nanos(time),
        taken: Nanos(taken),
        read: now,
        moved: Delay { beyond, inexact },
        outside: flags & OUTSIDE != 0,
        lost_before: flags & LOST_BEFORE != 0,
    }
}

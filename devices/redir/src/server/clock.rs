//! The plugin's connection: it says where the guest stands still, and waits for an answer.

use super::RunError;
use super::socket::{accept, is_gone};
use diapason_abi::Nanos;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// The answers to the plugin; `plugin/clock.c` has the same letters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// Go on to the next slice.
    Go,
    /// Let QEMU take in what was sent, then ask once more at the same time.
    Again,
    /// Exit with this status.
    End(u8),
}

/// The guest stands still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop {
    /// The number of the guest.
    pub guest: usize,
    pub now: Nanos,
    /// How much of the time so far its processors had nothing to do. With `shift=0` the rest is
    /// the number of instructions they executed.
    pub idle: Nanos,
}

/// The connection to the clock.
pub(crate) struct Clock(UnixStream);

impl Clock {
    /// Accepts the connection of the plugin, which must come within `patience`.
    pub fn accept(listener: &UnixListener, patience: Duration) -> Result<Clock, RunError> {
        let stream = accept(listener, patience)?;
        let ready =
            stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(patience)));
        ready.map_err(|error| RunError::Io("use a socket", error))?;
        Ok(Clock(stream))
    }

    /// Waits until the guest stands still; `None` if QEMU has ended. `expected` is for the message
    /// if it does neither.
    pub fn wait(&mut self, expected: Nanos) -> Result<Option<Stop>, RunError> {
        let (mut now, mut idle) = ([0; 8], [0; 8]);
        match self.0.read_exact(&mut now).and_then(|()| self.0.read_exact(&mut idle)) {
            Ok(()) => {
                let [now, idle] = [now, idle].map(|time| Nanos(u64::from_le_bytes(time)));
                Ok(Some(Stop { guest: 0, now, idle }))
            }
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(RunError::Silent(expected))
            }
            Err(error) => Err(RunError::Io("hear the clock plugin", error)),
        }
    }

    /// Answers. That QEMU has ended meanwhile is for the next [`Clock::wait`] to say.
    pub fn answer(&mut self, answer: Answer) -> Result<(), RunError> {
        let written = match answer {
            Answer::Go => self.0.write_all(b"g"),
            Answer::Again => self.0.write_all(b"a"),
            Answer::End(status) => self.0.write_all(&[b'e', status]),
        };
        match written {
            Err(error) if !is_gone(&error) => Err(RunError::Io("answer the clock plugin", error)),
            _ => Ok(()),
        }
    }
}

//! The plugin's connection: it says where the guest stands still, and waits for an answer.

use super::RunError;
use super::socket::{accept, is_gone};
use super::wires::AdapterFrame;
use diapason_abi::Nanos;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// The answers to the plugin; `plugin/clock.c` has the same letters.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Go on to the next slice, in which these frames arrive.
    Go(Vec<AdapterFrame>),
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
    /// How much of the time so far its processors had nothing to do. With `shift=0` and one
    /// processor, the rest is the number of instructions it executed.
    pub idle: Nanos,
    /// Frames of Ethernet so far that found no room in their adapter.
    pub refused: u64,
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

    /// Waits until the guest stands still; `None` if QEMU has ended. Returns the frames that it
    /// sent since the last time, too. `expected` is for the message if it does neither.
    pub fn wait(&mut self, expected: Nanos) -> Result<Option<(Stop, Vec<AdapterFrame>)>, RunError> {
        match self.read() {
            Ok(stop) => Ok(Some(stop)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(RunError::Silent(expected))
            }
            Err(error) => Err(RunError::Io("hear the clock plugin", error)),
        }
    }

    fn read(&mut self) -> io::Result<(Stop, Vec<AdapterFrame>)> {
        let [now, idle, refused] = [self.number()?, self.number()?, self.number()?];
        let stop = Stop { guest: 0, now: Nanos(now), idle: Nanos(idle), refused };
        let count = self.half()?;
        let frames = (0..count).map(|_| {
            let (at, adapter, length) = (Nanos(self.number()?), self.half()?, self.half()?);
            let mut bytes = vec![0; length as usize];
            self.0.read_exact(&mut bytes)?;
            Ok(AdapterFrame { adapter: adapter as usize, at, bytes })
        });
        Ok((stop, frames.collect::<io::Result<_>>()?))
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn half(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.0.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Answers. That QEMU has ended meanwhile is for the next [`Clock::wait`] to say.
    pub fn answer(&mut self, answer: &Answer) -> Result<(), RunError> {
        let written = match answer {
            Answer::Go(frames) => self.0.write_all(&go(frames)),
            Answer::Again => self.0.write_all(b"a"),
            Answer::End(status) => self.0.write_all(&[b'e', *status]),
        };
        match written {
            Err(error) if !is_gone(&error) => Err(RunError::Io("answer the clock plugin", error)),
            _ => Ok(()),
        }
    }
}

/// Returns the bytes of the answer [`Answer::Go`].
fn go(frames: &[AdapterFrame]) -> Vec<u8> {
    let half = |number: usize| (number as u32).to_le_bytes();
    let mut bytes = vec![b'g'];
    bytes.extend(half(frames.len()));
    for frame in frames {
        bytes.extend(frame.at.0.to_le_bytes());
        bytes.extend(half(frame.adapter));
        bytes.extend(half(frame.bytes.len()));
        bytes.extend(&frame.bytes);
    }
    bytes
}

//! The errors of tuned pipes.

use core::fmt;
use diapason_abi::Errno;
use diapason_pipe::tuned::RefusedPipe;

/// Why a pipe is not as it was to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipeError {
    /// The server cannot promise that: why, and what it could. Nothing has changed.
    Refused(RefusedPipe),
    /// The server has not answered in time.
    TimedOut,
    /// The description has no such place, or the pipe is of another.
    NoSuchPlace,
    /// The thread has a pipe already.
    InUse,
    /// The answer is to another question.
    Nonsense,
    System(Errno),
}

impl From<Errno> for PipeError {
    fn from(errno: Errno) -> PipeError {
        match errno {
            Errno::TimedOut | Errno::WouldBlock => PipeError::TimedOut,
            Errno::Absent => PipeError::NoSuchPlace,
            errno => PipeError::System(errno),
        }
    }
}

impl fmt::Display for PipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PipeError::Refused(refused) => write!(f, "{refused}"),
            PipeError::TimedOut => write!(f, "the server has not answered in time"),
            PipeError::NoSuchPlace => write!(f, "there is no such place for a pipe"),
            PipeError::InUse => write!(f, "the thread has a pipe already"),
            PipeError::Nonsense => write!(f, "the server answers something else"),
            PipeError::System(errno) => write!(f, "the kernel refuses: {errno:?}"),
        }
    }
}

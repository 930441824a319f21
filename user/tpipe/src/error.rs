//! The errors of tuned pipes.

use core::fmt;
use diapason_abi::Errno;
use diapason_pipe::tuned::Refused;

/// Why a pipe is not as it was to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The server cannot promise that: why, and what it could. Nothing has changed.
    Refused(Refused),
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

impl From<Errno> for Error {
    fn from(errno: Errno) -> Error {
        match errno {
            Errno::TimedOut | Errno::WouldBlock => Error::TimedOut,
            Errno::Absent => Error::NoSuchPlace,
            errno => Error::System(errno),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(refused) => write!(f, "{refused}"),
            Error::TimedOut => write!(f, "the server has not answered in time"),
            Error::NoSuchPlace => write!(f, "there is no such place for a pipe"),
            Error::InUse => write!(f, "the thread has a pipe already"),
            Error::Nonsense => write!(f, "the server answers something else"),
            Error::System(errno) => write!(f, "the kernel refuses: {errno:?}"),
        }
    }
}

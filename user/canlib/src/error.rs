//! The errors, and their kinds in `embedded-can`.

use core::fmt;
use diapason_abi::Errno;
use embedded_can::ErrorKind;

/// Why a call did not do what it should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The server has no channel of this number.
    NoSuchChannel,
    NoMessage,
    /// The time is up.
    TimedOut,
    /// The pipe to the channel is full: frames come out as the bus takes them.
    Full,
    /// The channel was opened to be read only.
    ReceiveOnly,
    Silent,
    /// The channel takes no part in its bus: it was never told to, or told to leave.
    OffBus,
    /// The channel takes part: it must leave its bus first.
    OnBus,
    /// The channel's controller went bus-off, and frames were given up: [`crate::Channel::bus_on`]
    /// again.
    BusOff,
    /// Some of the frames were given up: the channel was closed under them.
    GivenUp,
    /// A frame of CAN FD without the switch of the bit rate: it would be longer than what bounds of
    /// pipes count.
    Slow,
    /// The interface has no such bit rate.
    NoSuchRate,
    /// More filters than there is room for.
    TooManyFilters,
    /// The memory shared with the server makes no sense any more.
    Corrupt,
    System(Errno),
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Error {
        match errno {
            Errno::TimedOut | Errno::WouldBlock => Error::TimedOut,
            Errno::Absent => Error::NoSuchChannel,
            errno => Error::System(errno),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::NoSuchChannel => "there is no such channel",
            Error::NoMessage => "nothing has come",
            Error::TimedOut => "the time is up",
            Error::Full => "the pipe to the channel is full: wait",
            Error::ReceiveOnly => "the channel was opened to be read only",
            Error::Silent => "the channel only listens",
            Error::OffBus => "the channel takes no part in its bus: put it on the bus first",
            Error::OnBus => "the channel takes part in its bus: take it off first",
            Error::BusOff => "the controller went bus-off: put it on the bus again",
            Error::GivenUp => "frames were given up: the channel was closed under them",
            Error::Slow => "frames of CAN FD go with the switch of the bit rate only",
            Error::NoSuchRate => "the interface has no such bit rate",
            Error::TooManyFilters => "more filters than a channel has",
            Error::Corrupt => "the memory shared with the server makes no sense",
            Error::System(errno) => return write!(f, "the kernel refuses: {errno:?}"),
        })
    }
}

impl core::error::Error for Error {}

impl embedded_can::Error for Error {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

//! A channel with CAN FD or without, as a C program has it: the flags of opening say which.

use diapason_abi::Nanos;
use diapason_can::Filter;
use diapason_canlib::{AnyFrame, Channel, Error, FdChannel, Status, TimedFrame};

/// A channel of either kind.
pub enum AnyChannel {
    Classic(Channel),
    Fd(FdChannel),
}

/// Does the same with a channel of either kind.
macro_rules! either {
    ($channel:expr, $name:ident => $body:expr) => {
        match $channel {
            AnyChannel::Classic($name) => $body,
            AnyChannel::Fd($name) => $body,
        }
    };
}

impl AnyChannel {
    /// Opens a channel to be read only.
    pub fn listen(number: usize, fd: bool) -> Result<AnyChannel, Error> {
        match fd {
            true => FdChannel::listen_fd(number).map(AnyChannel::Fd),
            false => Channel::listen(number).map(AnyChannel::Classic),
        }
    }

    /// Opens a channel of the caller's own.
    pub fn open(number: usize, fd: bool, deadline: Nanos) -> Result<AnyChannel, Error> {
        match fd {
            true => FdChannel::open_fd(number, deadline).map(AnyChannel::Fd),
            false => Channel::open(number, deadline).map(AnyChannel::Classic),
        }
    }

    /// Returns whether the channel has CAN FD.
    pub const fn is_fd(&self) -> bool {
        matches!(self, AnyChannel::Fd(_))
    }

    /// Sets the bit rate and the sample point of a channel that is off its bus.
    pub fn set_bus_params(&mut self, rate: u32, point: u16) -> Result<(), Error> {
        either!(self, channel => channel.set_bus_params(rate, point))
    }

    /// Makes the channel only listen, or send as well.
    pub fn set_silent(&mut self, silent: bool) -> Result<(), Error> {
        either!(self, channel => channel.set_silent(silent))
    }

    /// Takes part in the bus until it is told to leave. Waits for that until `deadline`.
    pub fn bus_on(&mut self, deadline: Nanos) -> Result<(), Error> {
        either!(self, channel => channel.bus_on(deadline))
    }

    /// Leaves the bus. Waits for that until `deadline`.
    pub fn bus_off(&mut self, deadline: Nanos) -> Result<(), Error> {
        either!(self, channel => channel.bus_off(deadline))
    }

    /// Writes a frame. With a deadline it waits for room until then.
    pub fn write(&mut self, frame: &AnyFrame, deadline: Option<Nanos>) -> Result<(), Error> {
        match (self, frame, deadline) {
            (AnyChannel::Fd(channel), frame, None) => channel.write(frame),
            (AnyChannel::Fd(channel), frame, Some(deadline)) => channel.write_wait(frame, deadline),
            (AnyChannel::Classic(channel), AnyFrame::Classic(frame), None) => channel.write(frame),
            (AnyChannel::Classic(channel), AnyFrame::Classic(frame), Some(deadline)) => {
                channel.write_wait(frame, deadline)
            }
            (AnyChannel::Classic(_), AnyFrame::Fd(_), _) => Err(Error::Slow),
        }
    }

    /// Waits until `deadline` for all that was written to be through on the bus.
    pub fn write_sync(&mut self, deadline: Nanos) -> Result<(), Error> {
        either!(self, channel => channel.write_sync(deadline))
    }

    /// Reads the oldest message. With a deadline it waits for one until then.
    pub fn read(&mut self, deadline: Option<Nanos>) -> Result<TimedFrame<AnyFrame>, Error> {
        match self {
            AnyChannel::Classic(channel) => {
                let read = match deadline {
                    Some(deadline) => channel.read_wait(deadline),
                    None => channel.read(),
                };
                let any = |it: TimedFrame| TimedFrame {
                    frame: AnyFrame::Classic(it.frame),
                    arrival: it.arrival,
                };
                read.map(any)
            }
            AnyChannel::Fd(channel) => match deadline {
                Some(deadline) => channel.read_wait(deadline),
                None => channel.read(),
            },
        }
    }

    /// Counts messages that the program found missing.
    pub fn missed(&mut self, messages: u64) {
        either!(self, channel => channel.missed(messages));
    }

    /// Returns how the channel is, as far as the server has said.
    pub fn read_status(&mut self) -> Result<Status, Error> {
        either!(self, channel => channel.read_status())
    }

    /// Returns how the channel is after its controller was asked, by `deadline`.
    pub fn request_chip_status(&mut self, deadline: Nanos) -> Result<Status, Error> {
        either!(self, channel => channel.request_chip_status(deadline))
    }

    /// Reads only what one of these filters passes.
    pub fn set_acceptance_filter(&mut self, filters: &[Filter]) -> Result<(), Error> {
        either!(self, channel => channel.set_acceptance_filter(filters))
    }
}

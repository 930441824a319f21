//! Why a pipe is not given, in numbers, and what would be.

use crate::bill::{BillRefusal, Time};
use core::fmt;
use diapason_abi::Nanos;

/// The reason for the refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhyRefused {
    /// All channels are in use.
    NoChannel {
        /// How many there are.
        channels: u32,
    },
    /// There is no such pipe.
    NoPipe,
    /// The pipe is open: it can be changed or closed.
    AlreadyOpen,
    /// The device is not there.
    NoDevice,
    /// The device has no such channel.
    NoSuchChannel {
        /// The one asked for.
        channel: u32,
        /// The number of channels that the device has.
        channels: u32,
    },
    /// A latency, throughput, execution time or burst of zero.
    Nothing,
    /// The buffer does not hold one message.
    SmallBuffer {
        buffer: u64,
        /// Bytes of a message.
        packet: u64,
    },
    /// No pipe of this endpoint has so large a buffer.
    LargeBuffer { buffer: u64, most: u64 },
    /// The pipes together, or one to a channel, want more than the device can do, in bits a second.
    Device { wanted: u64, given: u64 },
    /// Latency less than what it takes whatever period the thread may have.
    Latency {
        wanted: Nanos,
        /// The sum of the fixed parts.
        fixed: Nanos,
    },
    /// The buffer can overflow whatever the thread's period.
    Overflow {
        /// Slots that the buffer has.
        slots: u64,
        /// Slots that are needed.
        needed: u64,
    },
    /// The device can hold fewer messages than may wait in it.
    DeviceBuffer {
        /// The room of the buffer.
        holds: u64,
        /// The amount that may wait.
        needed: u64,
    },
    /// The description lets this pipe not listen to the channel, or not write to it.
    Undeclared {
        /// The one asked for.
        channel: u32,
    },
    /// More messages a second than the description lets it have.
    Rate {
        /// The requested amount, rounded up.
        wanted: u64,
        declared: u64,
    },
    /// More messages at once than the description lets it have.
    Burst { wanted: u64, declared: u64 },
    /// A larger C than the description lets its thread have.
    Budget { wanted: Nanos, declared: Nanos },
    /// A stage is too slow.
    Stage(BillRefusal),
    /// The processor has no room for all threads of the endpoint.
    Processor {
        /// C and T of the thread that was asked for.
        thread: (Nanos, Nanos),
    },
}

/// The nearest thing that would be given, all else as asked for and at the same rate of messages
/// unless it is the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WouldFit {
    /// This latency, with as many bits in it as gives the same rate.
    Latency(Nanos),
    /// A buffer of so many bytes, and the execution time for it in proportion.
    Buffer(u64),
    /// Bits in the latency that was asked for.
    Tput(u64),
    /// Nothing that was tried.
    Nothing,
}

/// A pipe that is not given. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefusedPipe {
    /// The endpoint's pipe that it fails for: the new one, or one that is open.
    pub pipe: usize,
    pub reason: WhyRefused,
    /// The nearest request that fits.
    pub would_fit: WouldFit,
}

impl fmt::Display for WhyRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            WhyRefused::NoChannel { channels } => {
                write!(f, "all {channels} channels are in use")
            }
            WhyRefused::NoPipe => write!(f, "there is no such pipe"),
            WhyRefused::AlreadyOpen => write!(f, "the pipe is open: change or close it"),
            WhyRefused::NoDevice => write!(f, "the device is not there"),
            WhyRefused::NoSuchChannel { channel, channels } => {
                write!(f, "there is no channel {channel}, only {channels}")
            }
            WhyRefused::LargeBuffer { buffer, most } => {
                write!(f, "a buffer of {buffer} bytes, but there are {most} for a pipe")
            }
            WhyRefused::Nothing => {
                write!(f, "latency, throughput, execution time and burst must not be zero")
            }
            WhyRefused::SmallBuffer { buffer, packet } => {
                write!(f, "a buffer of {buffer} bytes, but a message has {packet}")
            }
            WhyRefused::Device { wanted, given } => {
                write!(f, "{wanted} bit/s in all, but the device can do {given}")
            }
            WhyRefused::Latency { wanted, fixed } => {
                let (wanted, fixed) = (Time(wanted), Time(fixed));
                write!(f, "a latency of {wanted}, but {fixed} with any period of its thread")
            }
            WhyRefused::Overflow { slots, needed } => {
                write!(f, "{slots} slots, but {needed} are needed with any period of its thread")
            }
            WhyRefused::DeviceBuffer { holds, needed } => {
                write!(f, "{needed} messages may wait in the device, which holds {holds}")
            }
            WhyRefused::Undeclared { channel } => {
                write!(f, "the description does not let it use channel {channel} in this way")
            }
            WhyRefused::Rate { wanted, declared } => {
                write!(f, "{wanted} messages a second, but the description lets it have {declared}")
            }
            WhyRefused::Burst { wanted, declared } => {
                write!(f, "{wanted} messages at once, but the description lets it have {declared}")
            }
            WhyRefused::Budget { wanted, declared } => {
                let (wanted, declared) = (Time(wanted), Time(declared));
                write!(f, "its thread needs {wanted}, but the description lets it have {declared}")
            }
            WhyRefused::Stage(refusal) => write!(f, "{refusal}"),
            WhyRefused::Processor { thread: (budget, period) } => {
                let (budget, period) = (Time(budget), Time(period));
                write!(f, "no room on the processor: the thread needs {budget} in each {period}")
            }
        }
    }
}

impl fmt::Display for WouldFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            WouldFit::Latency(latency) => write!(f, "a latency of {} would fit", Time(latency)),
            WouldFit::Buffer(bytes) => write!(f, "a buffer of {bytes} bytes would fit"),
            WouldFit::Tput(bits) => write!(f, "{bits} bits in that time would fit"),
            WouldFit::Nothing => write!(f, "nothing near would fit"),
        }
    }
}

impl fmt::Display for RefusedPipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pipe {}: {}; {}", self.pipe, self.reason, self.would_fit)
    }
}

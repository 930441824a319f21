//! The abilities of a device, the costs of its driver, and the requests of users.

use crate::bill::{Drain, Interrupts, StageTimes, Telling, Transfers};
use crate::size::Bucket;
use diapason_abi::Nanos;

/// The abilities of a device: the entry of the driver's information base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Most pipes at a time.
    pub max_channels: u32,
    /// Most bits of all pipes together …
    pub max_tput: u64,
    /// … in so much time, which is also the least time between two messages.
    pub min_latency: Nanos,
    /// Messages that the device holds for all pipes.
    pub buffer: u64,
    /// Smallest and largest message in bytes; a slot of a pipe's buffer holds the largest.
    pub packet: (u64, u64),
    /// Most slots of a pipe's buffer.
    pub max_slots: u64,
}

/// How the share of the endpoint's I/O VCPU may grow, in millionths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    pub least: u32,
    /// The most that the device may take.
    pub most: u32,
    /// T of the Main VCPUs it works for, all the same.
    pub period: Nanos,
}

/// A driver's own thread between bottom half and pipes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receiver {
    /// The work of the thread.
    pub work: StageTimes,
    /// The time at which the thread passes messages on.
    pub telling: Telling,
    /// T of its Main VCPU.
    pub period: Nanos,
    /// C with few pipes, and at most.
    pub budget: (Nanos, Nanos),
}

/// The knowledge about the threads of pipes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReaderThreads {
    /// Longest time of a wake-up.
    pub wake: Nanos,
    /// Places in its list of replenishments.
    pub chunks: u32,
}

/// The way of messages to the device: those of each pipe have a ring, out of which a thread of the
/// driver takes them ([`crate::bill::Pump`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outward {
    /// The rest of that thread after each look, and the work of a look.
    pub look: (Nanos, Nanos),
    /// Share, in millionths, and T of its I/O VCPU.
    pub io: (u32, Nanos),
    /// The longest time of a transfer, and how many are open at once.
    pub transfers: (Nanos, u64),
    /// Messages that are taken out of rings and have no transfer yet, at most.
    pub ahead: u64,
    /// Channels that are written at most, those of the description included.
    pub channels: u64,
    /// Slots of a ring.
    pub slots: u64,
    /// How the device sends.
    pub drain: Drain,
    /// The messages that come back from a written channel.
    pub acknowledged: Bucket,
}

/// An endpoint: its device, and what its driver costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Driver {
    /// The abilities of the device.
    pub attributes: Attributes,
    pub bus: Transfers,
    pub interrupts: Interrupts,
    /// The work of the bottom half, and when it passes results on.
    pub bottom_half: (StageTimes, Telling),
    /// The shares that it runs on.
    pub io: Shares,
    /// The driver's thread, if it has one.
    pub receiver: Option<Receiver>,
    /// The threads of pipes.
    pub reader: ReaderThreads,
    /// The way to the device, if there is one.
    pub output: Option<Outward>,
}

/// The direction of messages, by channels of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// From this one to the program.
    From(u8),
    /// From the program to this one.
    To(u8),
    /// From the first through the program's thread to the second.
    Through(u8, u8),
}

impl Route {
    /// Returns the channel that messages come from.
    #[must_use]
    pub const fn comes_from(self) -> Option<u8> {
        match self {
            Route::From(channel) | Route::Through(channel, _) => Some(channel),
            Route::To(_) => None,
        }
    }

    /// Returns the channel that they go to.
    #[must_use]
    pub const fn goes_to(self) -> Option<u8> {
        match self {
            Route::To(channel) | Route::Through(_, channel) => Some(channel),
            Route::From(_) => None,
        }
    }
}

/// The quality of service that a pipe is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Qos {
    /// Longest time from arrival at the device until the thread is done with a message; to a
    /// device, from the write, or the arrival, until the message is known to be through.
    pub latency: Nanos,
    /// Bits in so much time.
    pub tput: u64,
    /// The size of the pipe's buffer in bytes.
    pub buffer: u64,
    /// Longest time in which the thread processes, or writes, a full buffer.
    pub execution: Nanos,
    /// Messages that may come, or are written, at once; at least 1.
    pub burst: u64,
}

/// Returns the T of [USB 2023]: with L = λ·W, a buffer of `amount` is full after this time at
/// `rate` per `per`. Amount and rate are in the same unit. It sizes nothing: see
/// [`PipeEndpoint`](super::PipeEndpoint).
#[must_use]
pub const fn little(amount: u64, rate: u64, per: Nanos) -> Nanos {
    if rate == 0 {
        return Nanos::FOREVER;
    }
    let time = amount as u128 * per.0 as u128 / rate as u128;
    if time > u64::MAX as u128 { Nanos::FOREVER } else { Nanos(time as u64) }
}

impl Qos {
    /// Slots of the buffer.
    pub(super) fn slots(&self, attributes: &Attributes) -> u64 {
        self.buffer.checked_div(attributes.packet.1).unwrap_or(0)
    }

    /// Returns the contract of the arrivals: all of the smallest size.
    #[must_use]
    pub const fn contract(&self, attributes: &Attributes) -> Bucket {
        let packet = attributes.packet.0;
        let bits = if packet == 0 { 8 } else { packet.saturating_mul(8) };
        Bucket {
            burst: self.burst,
            messages: self.tput,
            per: Nanos(self.latency.0.saturating_mul(bits)),
            jitter: Nanos::ZERO,
        }
    }

    /// Messages a second in the long run, rounded up.
    pub(super) fn rate(&self, attributes: &Attributes) -> u64 {
        let contract = self.contract(attributes);
        per_second(contract.messages, contract.per)
    }

    /// Time per message, rounded up.
    pub(super) fn each(&self, attributes: &Attributes) -> Nanos {
        Nanos(self.execution.0.div_ceil(self.slots(attributes).max(1)))
    }

    /// Returns the longest period in which what may be written at once is as much as is to be
    /// written.
    pub(super) fn per_burst(&self, attributes: &Attributes) -> Nanos {
        let Bucket { messages, per, .. } = self.contract(attributes);
        little(self.burst, messages, per)
    }

    /// Returns the contract of a writing thread that runs once in each `period`, at any time in it.
    /// It writes at most the rate in the long run, and at once at most its debt of one period.
    pub(super) fn written(&self, period: Nanos, attributes: &Attributes) -> Bucket {
        let contract = self.contract(attributes);
        let owed = u128::from(period.0) * u128::from(contract.messages);
        let owed = owed.div_ceil(u128::from(contract.per.0.max(1)));
        let burst = u64::try_from(owed).unwrap_or(u64::MAX).saturating_add(1);
        Bucket { burst, jitter: period, ..contract }
    }

    /// T by Little's law.
    pub(super) fn little(&self) -> Nanos {
        little(self.buffer.saturating_mul(8), self.tput, self.latency)
    }
}

impl Attributes {
    /// Bits a second of messages that keep a contract in the long run, rounded up.
    pub(super) fn bits_of(&self, contract: &Bucket) -> u64 {
        let bits = contract.messages.saturating_mul(self.packet.0.max(1).saturating_mul(8));
        per_second(bits, contract.per)
    }

    /// Bits a second that the device can do, rounded up.
    pub(super) fn bits_per_second(&self) -> u64 {
        per_second(self.max_tput, self.min_latency)
    }
}

/// Returns the rate of `count` in `time`, per second and rounded up.
fn per_second(count: u64, time: Nanos) -> u64 {
    let second = u128::from(count) * 1_000_000_000;
    u64::try_from(second.div_ceil(u128::from(time.0.max(1)))).unwrap_or(u64::MAX)
}

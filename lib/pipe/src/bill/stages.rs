//! The stages of a pipe, as its bill needs them.

use super::service::Service;
use crate::size::Bucket;
use diapason_abi::Nanos;

/// Transfers between the device and the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfers {
    /// Longest time of one, and of up to `run` in a row: from when the first could begin (it was
    /// requested, the one before it has ended, and a message is there) until the last byte is in
    /// memory. In a row means that each could begin when the one before it ended.
    pub worst: Nanos,
    /// Transfers in a row that `worst` is for: one at least.
    pub run: u64,
    /// Shortest time between the beginnings of two, and from the beginning of one to its end.
    pub least: Nanos,
    /// Requests the driver keeps queued.
    pub queued: u64,
    /// Most messages in one. It takes those that wait when it begins, up to this.
    pub messages: u64,
    /// The device ends full transfers with an empty one, if nothing else waits. Only for transfers
    /// of several messages.
    pub empties: bool,
    /// The time from the beginning of one to that of the next, if the bus has a place for each,
    /// with a message or without; `run` is one then. `None`: the next one begins as soon as it can.
    pub paced: Option<Nanos>,
}

impl Transfers {
    /// Returns transfers of one message each, that begin as soon as they can.
    #[must_use]
    pub const fn of_one(worst: Nanos, least: Nanos, queued: u64) -> Transfers {
        Transfers { worst, run: 1, least, queued, messages: 1, empties: false, paced: None }
    }
}

/// How ended transfers are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupts {
    /// Longest time from the end of a transfer to its interrupt. A thread that polls has its
    /// period here.
    pub moderation: Nanos,
    /// Least distance of two, if it is enforced; zero if it is not.
    pub gap: Nanos,
    /// Longest time from an interrupt until its bottom half is told: kernel paths that cannot be
    /// preempted, and top halves. See [`top_half`].
    pub top_half: Nanos,
    /// They also tell of transfers that are not those of the pipe.
    pub shared: bool,
}

/// An interrupt that takes the processor for `cost`, at most once per `gap`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterruptDemand {
    pub gap: Nanos,
    pub cost: Nanos,
}

/// Returns the longest time until a top half has run: the least w = B + Σ ⌈w/τ⌉·h over all sources
/// of the core, its own among them. `None` if they take the whole processor.
#[must_use]
pub const fn top_half(section: Nanos, sources: &[InterruptDemand]) -> Option<Nanos> {
    let mut time = section.0 as u128 + 1;
    loop {
        let (mut next, mut at) = (section.0 as u128, 0);
        while at < sources.len() {
            let InterruptDemand { gap, cost } = sources[at];
            if gap.0 <= cost.0 {
                return None;
            }
            next += time.div_ceil(gap.0 as u128) * cost.0 as u128;
            at += 1;
        }
        if next <= time {
            return Some(Nanos(next as u64));
        }
        if next >= u64::MAX as u128 {
            return None;
        }
        time = next;
    }
}

/// Longest execution times of a stage. Work that a holder of its locks runs meanwhile belongs to
/// these times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StageTimes {
    /// The work of a wake-up, whatever it finds.
    pub activation: Nanos,
    /// Per transfer, that it is requested again included.
    pub transfer: Nanos,
    pub message: Nanos,
}

impl StageTimes {
    /// Returns the work per transfer and per message, without any for a wake-up.
    #[must_use]
    pub const fn new(transfer: Nanos, message: Nanos) -> StageTimes {
        StageTimes { activation: Nanos::ZERO, transfer, message }
    }

    /// Returns the same, but with some work: a thread that has next to none waits for the processor
    /// like any other.
    pub(super) const fn some(self) -> StageTimes {
        match self {
            StageTimes { activation: Nanos(0), transfer: Nanos(0), message: Nanos(0) } => {
                StageTimes { activation: Nanos(1), ..self }
            }
            _ => self,
        }
    }
}

/// When a stage passes on what it handled: messages, and requests that are queued again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Telling {
    Each,
    /// Once the stage has handled everything that had ended when it began.
    All,
}

/// A thread of the driver on a server of its own, that handles all channels of the endpoint.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// The work of the stage.
    pub work: StageTimes,
    /// The time at which the stage passes on what it handled.
    pub telling: Telling,
    pub service: &'a dyn Service,
}

/// When a user's thread is done with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taking {
    /// The thread takes one message at a time and is done with it before it takes the next.
    Each,
    /// The thread takes all there is, and is done with it only when it is done with all of it.
    All,
    /// The thread takes messages as with [`Taking::Each`], but nobody wakes it: when there is no
    /// message, it sleeps and looks again.
    Looking {
        /// It sleeps so long.
        every: Nanos,
        /// The longest time from the end of its sleep until it is ready.
        ready: Nanos,
    },
}

/// The thread of the pipe, on a server of its own.
#[derive(Clone, Copy)]
pub struct User<'a> {
    /// Longest time per message.
    pub message: Nanos,
    /// Longest time per wake-up. The driver wakes it when it passes messages on to it.
    pub wake: Nanos,
    /// The time at which the thread is done with a message.
    pub taking: Taking,
    pub service: &'a dyn Service,
}

/// An input pipe from the device to the user.
#[derive(Clone, Copy)]
pub struct Stages<'a> {
    /// Transfers from the device.
    pub bus: Transfers,
    pub interrupts: Interrupts,
    /// The stage that handles ended transfers.
    pub bottom_half: Stage<'a>,
    /// The thread that distributes messages and queues requests, if that is not the bottom half.
    pub receiver: Option<Stage<'a>>,
    /// The thread that takes the messages.
    pub user: User<'a>,
}

/// The traffic that may arrive: a contract for each channel of the endpoint. All limits hold
/// together.
#[derive(Clone, Copy, Debug)]
pub struct Traffic<'a> {
    pub channels: &'a [&'a [Bucket]],
    /// The index of the pipe itself among them.
    pub own: usize,
    /// The messages of other endpoints as the bottom half handles them, if it has work for each.
    /// They use neither the transfers of the pipe nor what its other stages have.
    pub beside: &'a [&'a [Bucket]],
}

impl<'a> Traffic<'a> {
    /// Returns a device with one channel, given as a list of its only contract.
    #[must_use]
    pub const fn alone(channel: &'a [&'a [Bucket]]) -> Traffic<'a> {
        Traffic::among(channel, 0)
    }

    /// Returns the traffic of an endpoint of which the bottom half handles all messages.
    #[must_use]
    pub const fn among(channels: &'a [&'a [Bucket]], own: usize) -> Traffic<'a> {
        Traffic { channels, own, beside: &[] }
    }

    /// Returns the contract of the pipe, as a list.
    pub(super) fn of_the_pipe(&self) -> Option<&'a [&'a [Bucket]]> {
        self.channels.get(self.own..)?.get(..1)
    }
}

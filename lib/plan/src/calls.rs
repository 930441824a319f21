//! The cost of calls of a server and its clients.

use diapason_abi::{CallNumber, Nanos};
use diapason_costs::KernelTimes;
use diapason_costs::counted::Costs;

/// How a message comes from one thread to the next.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Mailed,
    /// By a semaphore that counts.
    Counted,
    /// As a value that is taken once in a period.
    Sampled,
}

/// The cost of calls, with everything they lead to.
#[derive(Clone, Copy)]
pub(crate) struct Calls(Costs);

impl Calls {
    pub(crate) fn new(costs: &KernelTimes) -> Calls {
        Calls(Costs::at(costs.clock_hz()))
    }

    pub(crate) fn of(&self, call: CallNumber) -> Nanos {
        self.each(call)
    }

    fn each(&self, call: CallNumber) -> Nanos {
        self.0.call(call)
    }

    /// Returns the cost of an activation of the server's bottom half: it waits, locks, unlocks, and
    /// wakes so many readers.
    pub(crate) fn of_bottom_half(&self, wakes: u64) -> Nanos {
        let own = [CallNumber::EventWait, CallNumber::SemLock, CallNumber::SemUnlock];
        let own = own.iter().fold(Nanos::ZERO, |sum, call| sum + self.each(*call));
        own + Nanos(self.each(CallNumber::SemUnlock).0 * wakes)
    }

    /// Returns the cost of a wait for the next message.
    pub(crate) fn takes(&self, step: Step) -> Nanos {
        self.each(match step {
            Step::Mailed => CallNumber::MboxReceive,
            Step::Counted => CallNumber::SemLock,
            Step::Sampled => CallNumber::JobWait,
        })
    }

    /// Returns a thread hands a message over. A value is published without a call.
    pub(crate) fn gives(&self, step: Step) -> Nanos {
        match step {
            Step::Mailed => self.each(CallNumber::MboxSend),
            Step::Counted => self.each(CallNumber::SemUnlock),
            Step::Sampled => Nanos::ZERO,
        }
    }

    /// Returns the cost of a write: the message goes into the ring, and the server is told.
    pub(crate) fn of_writer(&self) -> Nanos {
        self.each(CallNumber::MboxSend)
    }

    /// Returns the most that the writer of any pipe to a device does to tell its server of a
    /// message.
    pub(crate) fn writes(&self) -> Nanos {
        self.of_writer().max(self.gives(Step::Counted))
    }

    /// Returns the cost of a message of a link for its program: it waits twice at most and rings
    /// twice, for the message and for the end of one that it sent, to its link and to the next.
    pub(crate) fn of_link(&self) -> Nanos {
        let each = self.takes(Step::Counted) + self.gives(Step::Counted);
        each + each
    }

    /// Returns the cost of a datagram for the program that sends it: it waits, and gives the server
    /// a sign.
    pub(crate) fn of_datagram(&self) -> Nanos {
        let waits = self.takes(Step::Counted) + self.each(CallNumber::SleepUntil);
        waits + self.gives(Step::Counted)
    }

    /// Returns the cost of a reader's wait for its semaphore.
    pub(crate) fn of_reader(&self) -> Nanos {
        self.each(CallNumber::SemLock)
    }
}

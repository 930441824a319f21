//! What the calls of a server and its clients cost.

use super::counts::Costs;
use diapason_abi::{CallNumber, Nanos};
use diapason_core::Cause;
use diapason_system::UsbModel;

/// How a message comes from one thread to the next.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// By a mailbox.
    Mailed,
    /// By a semaphore that counts.
    Counted,
    /// As a value that is taken once in a period.
    Sampled,
}

/// What calls cost, with whatever they lead to.
pub(super) struct Calls(diapason_sim::Costs);

impl Calls {
    pub(super) fn new(costs: &Costs) -> Calls {
        Calls(diapason_sim::Costs::at(costs.clock_hz()))
    }

    fn each(&self, call: CallNumber) -> Nanos {
        let cause = Cause::Syscall(call as u64, [0; 5]);
        let path = |stays| {
            let cost = self.0.of(&cause, stays);
            cost.before + cost.after + self.0.user()
        };
        self.0.time(path(true).max(path(false)))
    }

    /// An activation of the server's bottom half: it waits, locks, unlocks, and wakes a reader of
    /// each channel, and one in each place for a tuned pipe.
    pub(super) fn of_bottom_half(&self, places: u64) -> Nanos {
        let own = [CallNumber::EventWait, CallNumber::SemLock, CallNumber::SemUnlock];
        let own = own.iter().fold(Nanos::ZERO, |sum, call| sum + self.each(*call));
        let wakes = UsbModel::UsbCan.channels() + places;
        own + Nanos(self.each(CallNumber::SemUnlock).0 * wakes)
    }

    /// A thread waits for the next message.
    pub(super) fn takes(&self, step: Step) -> Nanos {
        self.each(match step {
            Step::Mailed => CallNumber::MboxReceive,
            Step::Counted => CallNumber::SemLock,
            Step::Sampled => CallNumber::JobWait,
        })
    }

    /// A thread hands a message over. A value is published without a call.
    pub(super) fn gives(&self, step: Step) -> Nanos {
        match step {
            Step::Mailed => self.each(CallNumber::MboxSend),
            Step::Counted => self.each(CallNumber::SemUnlock),
            Step::Sampled => Nanos::ZERO,
        }
    }

    /// A reader waits for its semaphore.
    pub(super) fn of_reader(&self) -> Nanos {
        self.each(CallNumber::SemLock)
    }
}

//! A thread of the server: the VCPU that it runs on, and what its work is called in descriptions.

use crate::can::{PENDING, TOGETHER};
use crate::link;
use crate::source::{PipeSource, SOURCES};
use diapason_abi::Nanos;

/// A thread of the server, with its VCPU and its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// The thread's VCPU in the description.
    pub vcpu: &'static str,
    pub thread: &'static str,
    /// The thread's work in the description: all that it does each time it is woken, under the lock
    /// of its branch.
    pub work: &'static str,
    /// The work that each message is beside that, if the description has such a work: then
    /// messages are no part of `work`. Empty if it cannot be told apart. A message of a link is
    /// two of them: one when a client asks for its transfer, and one when that has ended.
    pub each: &'static str,
    /// The work that each transfer is beside its messages, where one transfer may have several. A
    /// description has it and `each`, or none of the two. Empty if each message has a transfer.
    pub transfer: &'static str,
    /// The shortest time between two of its interrupts: the description's interval is a little
    /// shorter.
    pub moderation: Nanos,
    /// Interrupts are handled so much later, for controllers that ignore moderation: none
    /// interrupts again before that. The thread that hears asks rests so long before it listens
    /// again.
    pub pace: Nanos,
    /// The semaphore by which clients ask for something: a second thread on the same VCPU hears it.
    pub asked: Option<&'static str>,
    /// The semaphores that are given to clients when there is something new, if they are the same
    /// for all threads of this kind.
    pub ready: &'static [&'static str],
}

impl Home {
    pub(crate) const fn new(vcpu: &'static str, thread: &'static str, work: &'static str) -> Home {
        let (moderation, pace) = (Nanos::ZERO, Nanos::ZERO);
        Home {
            vcpu,
            thread,
            work,
            each: "",
            transfer: "",
            moderation,
            pace,
            asked: None,
            ready: &[],
        }
    }

    pub(crate) const fn each(self, each: &'static str) -> Home {
        Home { each, ..self }
    }

    pub(crate) const fn transfer(self, transfer: &'static str) -> Home {
        Home { transfer, ..self }
    }

    pub(crate) const fn moderated(self, moderation: Nanos) -> Home {
        Home { moderation, ..self }
    }

    pub(crate) const fn asked(self, asked: &'static str) -> Home {
        Home { asked: Some(asked), ..self }
    }

    pub(crate) const fn ready(self, ready: &'static [&'static str]) -> Home {
        Home { ready, ..self }
    }

    /// Returns another thread that works in the same way.
    pub(crate) const fn called(
        self,
        vcpu: &'static str,
        thread: &'static str,
        work: &'static str,
    ) -> Home {
        Home { vcpu, thread, work, ..self }
    }

    /// Returns the longest time, in ns, for which its thread holds the lock: its work, and that of
    /// as many messages as can have come if all that was queued has ended. `worst` has the longest
    /// time of each work that the description has, and `has_pipe` says which sources have pipes.
    pub fn held(
        &self,
        worst: impl Fn(&str) -> Option<u64>,
        has_pipe: impl Fn(&PipeSource) -> bool,
    ) -> u64 {
        let sources = || SOURCES.iter().filter(|source| source.home.vcpu == self.vcpu);
        let queued = |source: &PipeSource| source.attributes.transfer.1 as u64;
        let most = match sources().next() {
            // A device may have a pipe in each direction.
            Some(first) => {
                let piped = sources().filter(|source| has_pipe(source));
                piped.map(queued).sum::<u64>().max(queued(first))
            }
            // A transfer of a link has one message.
            None if self.transfer.is_empty() => link::TOGETHER,
            // Transfers of a CAN interface have several messages, or one as those of `gs_usb`.
            None => PENDING * TOGETHER,
        };
        let each = (!self.each.is_empty()).then(|| worst(self.each)).flatten();
        // Where a transfer may have several messages, the description has both works or none.
        let (transfer, each) = match self.transfer {
            "" => (0, each.unwrap_or(0)),
            transfer => worst(transfer).zip(each).unwrap_or((0, 0)),
        };
        let own = worst(self.work).unwrap_or(0);
        let transfers = transfer.saturating_mul(PENDING);
        own.saturating_add(transfers).saturating_add(each.saturating_mul(most))
    }

    /// Returns how many threads run on its VCPU, each doing its work under the lock of its branch.
    #[must_use]
    pub const fn threads(&self) -> usize {
        1 + self.asked.is_some() as usize
    }

    /// Interrupts are handled as much later as they are apart.
    pub(crate) const fn paced(self, moderation: Nanos) -> Home {
        Home { moderation, pace: moderation, ..self }
    }
}

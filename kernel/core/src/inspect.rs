//! Questions a watcher on the host asks of the core: what keeps a thread from running, what budget
//! a VCPU has, how much of its pools is in use. The metal has no use for them.

use crate::ids::{ThreadId, VcpuId};
use crate::kernel::Kernel;
use crate::objects::thread::{State, Wait};
use crate::objects::vcpu::Server;
use crate::pool::FREE;
use diapason_abi::Nanos;
use diapason_abi::archive::PERIOD_MAX;

/// Where a thread stands at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The thread does not exist, or has ended.
    Absent,
    /// The thread wants to run, and may.
    Ready,
    /// The thread wants to run, and its VCPU has no budget.
    WithoutBudget,
    /// The thread waits for a mutex that this thread owns.
    BehindOwner(ThreadId),
    /// The thread waits for something else.
    Waiting(Wait),
}

/// How much of each of the kernel's pools is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stock {
    /// Threads, those included that nobody has joined yet.
    pub threads: usize,
    pub semaphores: usize,
    pub conditions: usize,
    pub mailboxes: usize,
    /// Timers, interrupts and notifications.
    pub events: usize,
    /// VCPUs, those of the description included.
    pub vcpus: usize,
    pub attached: usize,
    /// Frames of memory that somebody has.
    pub frames: u32,
}

impl Stock {
    /// Returns whether more of any object is in use than in `other`.
    #[must_use]
    pub fn exceeds(&self, other: &Stock) -> bool {
        self.threads > other.threads
            || self.semaphores > other.semaphores
            || self.conditions > other.conditions
            || self.mailboxes > other.mailboxes
            || self.events > other.events
            || self.vcpus > other.vcpus
            || self.attached > other.attached
            || self.frames > other.frames
    }
}

/// The messages in a mailbox, and the threads at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MailboxState {
    pub messages: usize,
    /// Whether the next message finds a receiver or room.
    pub takes: bool,
    /// Threads that wait until there is room for their message.
    pub senders: usize,
}

impl Kernel<'_> {
    /// Returns the state of the mailbox with this number in the description, if there is one.
    #[must_use]
    pub fn mailbox_state(&self, number: u16) -> Option<MailboxState> {
        let id = self.mailboxes.ids().find(|id| id.index() == number)?;
        let (messages, free) = self.mailbox_slots(id);
        let waits =
            |thread: &ThreadId| self.standing_of(*thread) == Standing::Waiting(Wait::Send(id));
        Some(MailboxState {
            messages: messages.into(),
            takes: free > 0 || !self.mailboxes[id].receivers.is_empty(),
            senders: self.threads.ids().filter(waits).count(),
        })
    }

    /// Returns the objects in use now.
    #[must_use]
    pub fn stock(&self) -> Stock {
        let attached = |s| self.segments[s].attached.count_ones() as usize;
        Stock {
            threads: self.threads.ids().filter(|t| self.threads[*t].state != State::Free).count(),
            semaphores: self
                .semaphores
                .ids()
                .filter(|s| self.semaphores[*s].handle != FREE)
                .count(),
            conditions: self
                .conditions
                .ids()
                .filter(|c| self.conditions[*c].handle != FREE)
                .count(),
            mailboxes: self.mailboxes.ids().filter(|m| self.mailboxes[*m].handle != FREE).count(),
            events: self.events.ids().filter(|e| self.events[*e].handle != FREE).count(),
            vcpus: self.vcpus.ids().filter(|v| self.vcpus[*v].handle != FREE).count(),
            attached: self.segments.ids().map(attached).sum(),
            frames: u32::from(self.frames.len()) - self.free_frames(),
        }
    }

    /// Returns the reason that keeps a thread from running, if there is one.
    #[must_use]
    pub fn standing_of(&self, thread: ThreadId) -> Standing {
        let t = &self.threads[thread];
        match (t.state, t.wait) {
            (State::Free | State::Ended, _) => Standing::Absent,
            (State::Ready | State::Parked, Wait::Mutex(mutex))
                if self.semaphores[mutex].owner.is_some() =>
            {
                Standing::BehindOwner(self.semaphores[mutex].owner)
            }
            (State::Blocked, wait) => Standing::Waiting(wait),
            _ if t.vcpu.is_some() && !self.has_budget(t.vcpu) => Standing::WithoutBudget,
            _ => Standing::Ready,
        }
    }

    /// Returns whether this VCPU runs on its own budget when it wants to run.
    fn has_budget(&self, id: VcpuId) -> bool {
        self.scheduler.eligible >> (self.vcpus[id].rank % 64) & 1 == 1
    }

    /// Returns the budget of a VCPU at `now`. Returns `None` if the VCPU does not exist, or is an
    /// I/O VCPU that has served nobody: it has no period yet, and so no budget.
    #[must_use]
    pub fn budget_of(&self, id: VcpuId, now: Nanos) -> Option<Nanos> {
        let v = &self.vcpus[id];
        let s = &self.scheduler;
        let used = if s.payer == id { now - s.paid_since + s.owed } else { Nanos::ZERO };
        let served = !matches!(&v.server, Server::Io(server, _) if server.period() > PERIOD_MAX);
        (v.generation > 0 && served).then(|| v.available(now) - used)
    }

    /// The VCPU that pays for what runs; none: nobody pays.
    #[must_use]
    pub fn payer(&self) -> VcpuId {
        self.scheduler.payer
    }
}

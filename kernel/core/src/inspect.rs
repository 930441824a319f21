//! Questions a watcher on the host asks of the core: what keeps a thread from running, what budget
//! a VCPU has. The metal has no use for them.

use crate::kernel::Kernel;
use crate::thread::{State, ThreadId, Wait};
use crate::vcpu::VcpuId;
use diapason_abi::Nanos;

/// Where a thread stands at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It does not exist, or has ended.
    Absent,
    /// It wants to run, and may.
    Ready,
    /// It wants to run, and its VCPU has no budget.
    WithoutBudget,
    /// It waits for a mutex that this thread owns.
    BehindOwner(ThreadId),
    /// It waits for something else.
    Waiting(Wait),
}

impl Kernel<'_> {
    /// What keeps a thread from running, if something does.
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

    /// Does this VCPU run on its own budget if it wants to?
    fn has_budget(&self, id: VcpuId) -> bool {
        self.scheduler.eligible >> (self.vcpus[id].rank % 64) & 1 == 1
    }

    /// What a VCPU may use at `now`; `None` if it does not exist.
    #[must_use]
    pub fn budget_of(&self, id: VcpuId, now: Nanos) -> Option<Nanos> {
        let v = &self.vcpus[id];
        let running = self.scheduler.payer == id;
        let used = if running { now - self.scheduler.paid_since } else { Nanos::ZERO };
        (v.generation > 0).then(|| v.available(now) - used)
    }

    /// The VCPU that pays for what runs; none: nobody pays.
    #[must_use]
    pub fn payer(&self) -> VcpuId {
        self.scheduler.payer
    }
}

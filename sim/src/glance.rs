//! A host between two steps of its processor, for a debugger: registers of its threads, memory of
//! its programs, and the state of its kernel. Looking changes nothing.

use crate::machine::Simulated;
use diapason_abi::Nanos;
use diapason_abi::record::Record;
use diapason_core::{Kernel, ThreadId};

/// The registers of a thread that stands between two stretches of its code. A function preserves
/// these; what the others hold there means nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadRegisters {
    /// The place where the thread goes on.
    pub rip: u64,
    pub rsp: u64,
    pub rbx: u64,
    pub rbp: u64,
    /// ThreadRegisters r12 to r15.
    pub r12_to_r15: [u64; 4],
}

/// One look at a host while nothing runs.
pub struct Glance<'a, 'k> {
    pub now: Nanos,
    pub kernel: &'a Kernel<'k>,
    /// The thread whose turn it is; none while the processor idles.
    pub running: ThreadId,
    /// The thread that ran up to a trap since the last glance, if one did.
    pub ran: Option<ThreadId>,
    /// The run ends here.
    pub ended: bool,
    pub(crate) machine: &'a Simulated,
}

impl Glance<'_, '_> {
    /// Returns the registers of a thread. One that never started has none.
    #[must_use]
    pub fn registers(&self, thread: ThreadId) -> Option<ThreadRegisters> {
        let context = self.machine.contexts.get(usize::from(thread.index()))?;
        (context.rip != 0).then(|| context.registers())
    }

    /// Copies memory of a program. Returns false if the program may not read all of it.
    #[must_use]
    pub fn read(&self, address: u64, to: &mut [u8]) -> bool {
        self.machine.peek(address, to)
    }

    /// Returns a sum over all memory of programs but that of this process, and over the segments
    /// that it does not show.
    #[must_use]
    pub fn sum_beside(&self, process: u16) -> u64 {
        self.machine.sum_beside(process)
    }

    /// Says how the run went up to now for every thread, VCPU, device and process, in the records
    /// of its end. Time since the last entry into the kernel is not in them.
    pub fn accounts(&self, mut emit: impl FnMut(Record, &[u64])) {
        let (kernel, now) = (self.kernel, self.now);
        for id in kernel.threads.ids().filter(|id| kernel.threads[*id].generation > 0) {
            let (t, jobs) = (&kernel.threads[id], kernel.jobs_at(id, now));
            let (process, slot) = (u64::from(t.process.index()), u64::from(t.slot));
            let (done, misses, response) = (jobs.done, jobs.misses, jobs.response_max.0);
            let words = [process, slot, t.name, t.used.0, done, misses, response, jobs.skipped];
            emit(Record::Thread, &words);
        }
        let jobs = kernel.threads.ids().filter_map(|id| kernel.job_account(id, now));
        jobs.for_each(|words| emit(Record::Job, &words));
        for id in kernel.vcpus.ids() {
            if let (Some(used), Some(terms)) = (kernel.account_of(id), kernel.terms_of(id)) {
                emit(Record::Vcpu, &used);
                emit(Record::VcpuTerms, &terms);
            }
        }
        kernel.interrupts().for_each(|words| emit(Record::Irq, &words));
    }
}

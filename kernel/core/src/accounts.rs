//! The accounts of a run: the same records, whatever machine it ran on.

use crate::ids::ThreadId;
use crate::kernel::Kernel;
use diapason_abi::Nanos;
use diapason_abi::record::Record;

impl Kernel<'_> {
    /// The run is over: charge what has run since the last entry, and say how it went for every
    /// thread, VCPU, device and process that took part.
    pub fn final_accounts(&mut self, now: Nanos, mut emit: impl FnMut(Record, &[u64])) {
        let running = self.running();
        self.scheduler.switch(&mut self.threads, running, now);
        self.close_accounts(now);
        for id in self.threads.ids() {
            let t = &self.threads[id];
            if t.generation == 0 {
                continue;
            }
            let jobs = self.jobs_at(id, now);
            let (process, slot) = (u64::from(t.process.index()), u64::from(t.slot));
            let (done, misses, response) = (jobs.done, jobs.misses, jobs.response_max.0);
            let words = [process, slot, t.name, t.used.0, done, misses, response, jobs.skipped];
            emit(Record::Thread, &words);
        }
        for id in self.threads.ids() {
            if let Some(words) = self.job_account(id, now) {
                emit(Record::Job, &words);
            }
        }
        for id in self.vcpus.ids() {
            if let (Some(used), Some(terms)) = (self.account_of(id), self.terms_of(id)) {
                emit(Record::Vcpu, &used);
                emit(Record::VcpuTerms, &terms);
            }
        }
        self.interrupts().for_each(|words| emit(Record::Irq, &words));
        for id in self.processes.ids() {
            let p = &self.processes[id];
            let (starts, faults) = (u64::from(p.starts), u64::from(p.faults));
            let pages = u64::from(p.heap.count);
            emit(Record::Process, &[u64::from(id.index()), starts, faults, pages, p.state as u64]);
        }
    }

    /// Returns what VCPUs paid that ended and whose places others took.
    #[must_use]
    pub fn retired(&self) -> Nanos {
        self.promise.retired
    }

    /// Returns what VCPUs paid for time that others were spared.
    #[must_use]
    pub fn levied(&self) -> Nanos {
        self.promise.levied
    }

    /// The words of `Record::Job` for a thread that has a VCPU and jobs.
    #[must_use]
    pub fn job_account(&self, thread: ThreadId, now: Nanos) -> Option<[u64; 4]> {
        let t = &self.threads[thread];
        let jobs = self.jobs_at(thread, now);
        let words = [t.process.index(), t.slot, t.vcpu.index()].map(u64::from);
        let [process, slot, vcpu] = words;
        (t.vcpu.is_some() && jobs.cost_max > Nanos::ZERO).then_some([
            process,
            slot,
            vcpu,
            jobs.cost_max.0,
        ])
    }
}

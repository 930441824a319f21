//! Why a job took as long as it did: its whole life from release to end, as items that add up.
//!
//! The processor does one thing at a time, so every instant of a job is one item: it ran, or
//! something else did (or nothing), while something kept the job's thread from running.

use crate::history::{History, HistorySpan};
use crate::observe::{Moment, Observer};
use diapason_abi::Nanos;
use diapason_core::{Decision, Kernel, ThreadId};

/// The life of one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobBill {
    /// The thread of the job.
    pub thread: ThreadId,
    pub job: u64,
    /// The release of the job.
    pub release: Nanos,
    pub end: Nanos,
    /// The time from the release to the deadline.
    pub deadline: Nanos,
    /// The events in between, in order, without gaps.
    pub items: Vec<HistorySpan>,
}

impl JobBill {
    /// From release to end.
    #[must_use]
    pub fn response(&self) -> Nanos {
        self.end - self.release
    }

    /// Returns whether it used more of its deadline than `other` did of its own.
    fn is_worse_than(&self, other: &JobBill) -> bool {
        let product = |a: Nanos, b: Nanos| u128::from(a.0) * u128::from(b.0);
        let (mine, theirs) = (self.response(), other.response());
        product(mine, other.deadline) > product(theirs, self.deadline)
    }
}

/// The job that a bill is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BilledJob {
    /// The one that needed most of the time it had.
    Worst,
    /// This job (from 1) of the thread in this process (by number) and slot.
    Job(u16, u16, u64),
}

/// Keeps what happened since the oldest job under way, and writes the bill that is wanted.
pub struct BillWriter {
    wanted: BilledJob,
    history: History,
    /// By thread: its job under way, if it has one: number and release.
    jobs: Vec<Option<(u64, Nanos)>>,
    bill: Option<JobBill>,
}

impl BillWriter {
    /// For the bill that is wanted.
    #[must_use]
    pub fn new(wanted: BilledJob) -> BillWriter {
        BillWriter { wanted, history: History::default(), jobs: Vec::new(), bill: None }
    }

    /// Returns the bill, if there was such a job.
    #[must_use]
    pub fn bill(self) -> Option<JobBill> {
        self.bill
    }

    /// Keeps the bill of a job that has ended, if it is the wanted one.
    fn ended(
        &mut self,
        kernel: &Kernel<'_>,
        thread: ThreadId,
        job: u64,
        release: Nanos,
        end: Nanos,
    ) {
        let t = &kernel.threads[thread];
        let is_it = match self.wanted {
            BilledJob::Worst => true,
            BilledJob::Job(process, slot, number) => {
                (t.process.index(), t.slot, job) == (process, slot, number)
            }
        };
        if !is_it {
            return;
        }
        let bare =
            JobBill { thread, job, release, end, deadline: t.jobs.deadline, items: Vec::new() };
        if self.bill.as_ref().is_none_or(|bill| bare.is_worse_than(bill)) {
            let items = self.history.items(thread, release, end);
            self.bill = Some(JobBill { items, ..bare });
        }
    }

    /// Compares every thread's jobs with what they were.
    fn look(&mut self, read: Nanos, kernel: &Kernel<'_>) {
        self.jobs.resize(kernel.threads.ids().count(), None);
        for id in kernel.threads.ids() {
            let jobs = &kernel.threads[id].jobs;
            let slot = usize::from(id.index());
            if let Some((job, release)) = self.jobs[slot]
                && jobs.done >= job
            {
                self.ended(kernel, id, job, release, read);
            }
            let under_way = jobs.period > Nanos::ZERO;
            self.jobs[slot] = under_way.then_some((jobs.done + 1, jobs.release));
        }
    }

    /// Forgets what no job under way needs.
    fn prune(&mut self, now: Nanos) {
        let releases = self.jobs.iter().flatten().map(|(_, release)| *release);
        let oldest = releases.min().unwrap_or(now).min(now);
        self.history.forget(oldest);
    }
}

impl Observer for BillWriter {
    fn moment(&mut self, from: Nanos, to: Nanos, what: Moment) {
        self.history.moment(from, to, what);
    }

    fn decided(&mut self, read: Nanos, now: Nanos, kernel: &Kernel<'_>, decision: &Decision) {
        self.look(read, kernel);
        self.history.decided(read, now, kernel, decision);
        self.prune(now);
    }
}

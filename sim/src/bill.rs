//! Why a job took as long as it did: its whole life from release to end, as items that add up.
//!
//! The processor does one thing at a time, so every instant of a job is one item: it ran, or
//! something else did (or nothing), while something kept the job's thread from running.

use crate::observe::{Moment, Observer};
use diapason_abi::Nanos;
use diapason_core::{Cause, Decision, Kernel, Standing, ThreadId};
use std::collections::VecDeque;

/// What the processor did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// It ran a thread.
    Thread(ThreadId),
    /// It ran the kernel, for this reason.
    Kernel(Cause),
    /// Nothing.
    Idle,
}

/// A part of a job's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// When it began.
    pub from: Nanos,
    /// When it ended.
    pub to: Nanos,
    /// What the processor did.
    pub doing: Doing,
    /// Where the job's thread stood.
    pub standing: Standing,
}

/// The life of one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bill {
    /// Whose job.
    pub thread: ThreadId,
    /// Which, from 1.
    pub job: u64,
    /// When it was released.
    pub release: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// How long it had.
    pub deadline: Nanos,
    /// What happened in between, in order, without gaps.
    pub items: Vec<Item>,
}

impl Bill {
    /// From release to end.
    #[must_use]
    pub fn response(&self) -> Nanos {
        self.end - self.release
    }

    /// Later than `other`, measured by the time each had?
    fn is_worse_than(&self, other: &Bill) -> bool {
        let product = |a: Nanos, b: Nanos| u128::from(a.0) * u128::from(b.0);
        let (mine, theirs) = (self.response(), other.response());
        product(mine, other.deadline) > product(theirs, self.deadline)
    }
}

/// Which job a bill is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// The one that needed most of the time it had.
    Worst,
    /// This job (from 1) of the thread in this process (by number) and slot.
    Job(u16, u16, u64),
}

/// Most items kept for one job; more, and the job has no bill.
const ITEMS_MAX: usize = 1 << 20;

/// A stretch of the processor's time, with where every thread stood.
struct Stretch {
    from: Nanos,
    to: Nanos,
    doing: Doing,
    standings: Vec<Standing>,
}

/// Keeps what happened since the oldest job under way, and writes the bill that is wanted.
pub struct Ledger {
    wanted: Wanted,
    stretches: VecDeque<Stretch>,
    standings: Vec<Standing>,
    /// By thread: its job under way, if it has one: number and release.
    jobs: Vec<Option<(u64, Nanos)>>,
    bill: Option<Bill>,
}

impl Ledger {
    /// For the bill that is wanted.
    #[must_use]
    pub fn new(wanted: Wanted) -> Ledger {
        Ledger {
            wanted,
            stretches: VecDeque::new(),
            standings: Vec::new(),
            jobs: Vec::new(),
            bill: None,
        }
    }

    /// The bill, if there was such a job.
    #[must_use]
    pub fn bill(self) -> Option<Bill> {
        self.bill
    }

    fn stretch(&mut self, from: Nanos, to: Nanos, doing: Doing) {
        if to > from {
            let standings = self.standings.clone();
            self.stretches.push_back(Stretch { from, to, doing, standings });
        }
    }

    /// The time up to `from` that nobody reported was idle.
    fn fill(&mut self, from: Nanos) {
        let end = self.stretches.back().map_or(from, |last| last.to);
        self.stretch(end, from, Doing::Idle);
    }

    fn write(&self, thread: ThreadId, job: u64, release: Nanos, end: Nanos, had: Nanos) -> Bill {
        let slot = usize::from(thread.index());
        let mut items: Vec<Item> = Vec::new();
        for s in self.stretches.iter().filter(|s| s.to > release && s.from < end) {
            let (from, to) = (s.from.max(release), s.to.min(end));
            let standing = s.standings.get(slot).copied().unwrap_or(Standing::Absent);
            match items.last_mut() {
                Some(last) if (last.doing, last.standing) == (s.doing, standing) => last.to = to,
                _ => items.push(Item { from, to, doing: s.doing, standing }),
            }
        }
        Bill { thread, job, release, end, deadline: had, items }
    }

    /// A job has ended: is it the one?
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
            Wanted::Worst => true,
            Wanted::Job(process, slot, number) => {
                (t.process.index(), t.slot, job) == (process, slot, number)
            }
        };
        if !is_it {
            return;
        }
        let bare = Bill { thread, job, release, end, deadline: t.jobs.deadline, items: Vec::new() };
        if self.bill.as_ref().is_none_or(|bill| bare.is_worse_than(bill)) {
            self.bill = Some(self.write(thread, job, release, end, t.jobs.deadline));
        }
    }

    /// Compare every thread's jobs with what they were.
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

    /// Forget what no job under way needs.
    fn prune(&mut self, now: Nanos) {
        let releases = self.jobs.iter().flatten().map(|(_, release)| *release);
        let oldest = releases.min().unwrap_or(now).min(now);
        while self.stretches.len() > 1
            && (self.stretches[0].to <= oldest || self.stretches.len() > ITEMS_MAX)
        {
            self.stretches.pop_front();
        }
    }
}

impl Observer for Ledger {
    fn moment(&mut self, from: Nanos, to: Nanos, what: Moment) {
        self.fill(from);
        let doing = match what {
            Moment::Runs(thread) => Doing::Thread(thread),
            Moment::Kernel(cause) => Doing::Kernel(cause),
        };
        self.stretch(from, to, doing);
    }

    fn decided(&mut self, read: Nanos, now: Nanos, kernel: &Kernel<'_>, _: &Decision) {
        self.look(read, kernel);
        self.standings.clear();
        self.standings.extend(kernel.threads.ids().map(|id| kernel.standing_of(id)));
        self.prune(now);
    }
}

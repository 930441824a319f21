//! The schedule itself: periodic or sporadic tasks in CSD queues, event by event, until a deadline
//! is missed.
//!
//! It knows nothing of tests or bounds, and is what they are held against. Scheduling is free here:
//! give it tasks inflated with what scheduling costs.

use crate::{Allocation, CsdTask};
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// A stretch of time in which one task ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeSlice {
    pub task: usize,
    pub start: Nanos,
    pub end: Nanos,
}

/// A missed deadline of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MissedDeadline {
    pub task: usize,
    /// The release of the job.
    pub released: Nanos,
    /// The deadline of the job.
    pub deadline: Nanos,
}

/// When tasks are released. Times are absolute, and those of a task at least a period apart.
pub trait Releases {
    /// Returns the first release of a task.
    fn first(&mut self, task: usize) -> Nanos;
    /// Returns the release after that at `previous`, of a task with this period.
    fn next(&mut self, task: usize, previous: Nanos, period: Nanos) -> Nanos;
}

/// Everything is released at once, and then as often as possible.
#[derive(Clone, Copy, Debug)]
pub struct Synchronous;

impl Releases for Synchronous {
    fn first(&mut self, _task: usize) -> Nanos {
        Nanos::ZERO
    }

    fn next(&mut self, _task: usize, previous: Nanos, period: Nanos) -> Nanos {
        previous + period
    }
}

/// Periodic releases with these first ones.
#[derive(Clone, Debug)]
pub struct Phases(pub Vec<Nanos>);

impl Releases for Phases {
    fn first(&mut self, task: usize) -> Nanos {
        self.0[task]
    }

    fn next(&mut self, _task: usize, previous: Nanos, period: Nanos) -> Nanos {
        previous + period
    }
}

/// How long to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The end of it.
    pub horizon: Nanos,
    /// True to stop when nothing is left to do before the next release.
    pub until_idle: bool,
}

/// The result of a simulation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimulationResult {
    /// The first missed deadline; nothing was simulated after it.
    pub miss: Option<MissedDeadline>,
    /// When the simulation ended.
    pub end: Nanos,
}

/// A task's job that is not done yet.
#[derive(Clone, Copy)]
struct Job {
    released: Nanos,
    deadline: Nanos,
    left: Nanos,
}

struct Machine<'a> {
    tasks: &'a [CsdTask],
    queues: Vec<usize>,
    dp_queues: usize,
    jobs: Vec<Option<Job>>,
    upcoming: Vec<Nanos>,
}

/// Runs `tasks` in the queues of `allocation` and shows each slice to `watch`.
///
/// # Panics
/// If the allocation is for another number of tasks.
pub fn run(
    tasks: &[CsdTask],
    allocation: &Allocation,
    releases: &mut impl Releases,
    span: Span,
    mut watch: impl FnMut(TimeSlice),
) -> SimulationResult {
    assert_eq!(tasks.len(), allocation.tasks(), "an allocation of these tasks");
    let mut machine = Machine {
        tasks,
        queues: (0..tasks.len()).map(|task| allocation.queue_of(task)).collect(),
        dp_queues: allocation.dp().len(),
        jobs: alloc::vec![None; tasks.len()],
        upcoming: (0..tasks.len()).map(|task| releases.first(task)).collect(),
    };
    let mut now = Nanos::ZERO;
    loop {
        if let Some(miss) = machine.missed(now) {
            return SimulationResult { miss: Some(miss), end: now };
        }
        if now >= span.horizon {
            return SimulationResult { miss: None, end: now };
        }
        machine.release(now, releases);
        let Some(task) = machine.most_urgent() else {
            if span.until_idle && now > Nanos::ZERO {
                return SimulationResult { miss: None, end: now };
            }
            now = machine.next_release().min(span.horizon);
            continue;
        };
        let end = machine.run(task, now, span.horizon);
        watch(TimeSlice { task, start: now, end });
        now = end;
    }
}

impl Machine<'_> {
    /// Returns the unfinished job whose deadline passed first.
    fn missed(&self, now: Nanos) -> Option<MissedDeadline> {
        let pending = self.jobs.iter().enumerate().filter_map(|(task, job)| Some((task, (*job)?)));
        let late = pending.filter(|(_, job)| job.deadline <= now);
        let (task, job) = late.min_by_key(|(_, job)| job.deadline)?;
        Some(MissedDeadline { task, released: job.released, deadline: job.deadline })
    }

    fn release(&mut self, now: Nanos, releases: &mut impl Releases) {
        for (index, task) in self.tasks.iter().enumerate() {
            while self.upcoming[index] <= now {
                let released = self.upcoming[index];
                let deadline = released + task.period;
                if task.cost > Nanos::ZERO {
                    self.jobs[index] = Some(Job { released, deadline, left: task.cost });
                }
                self.upcoming[index] = releases.next(index, released, task.period);
            }
        }
    }

    fn most_urgent(&self) -> Option<usize> {
        let ready = self.jobs.iter().enumerate().filter_map(|(task, job)| Some((task, (*job)?)));
        let urgency = |(task, job): &(usize, Job)| {
            let queue = self.queues[*task];
            let key = if queue < self.dp_queues { job.deadline.0 } else { *task as u64 };
            (queue, key, *task)
        };
        ready.min_by_key(urgency).map(|(task, _)| task)
    }

    fn next_release(&self) -> Nanos {
        self.upcoming.iter().copied().min().unwrap_or(Nanos::FOREVER)
    }

    /// Runs a ready task until something happens; deadlines count as something.
    fn run(&mut self, task: usize, now: Nanos, horizon: Nanos) -> Nanos {
        let deadlines = self.jobs.iter().flatten().map(|job| job.deadline).min();
        let Some(job) = &mut self.jobs[task] else { return now };
        let event = self.upcoming.iter().copied().min().unwrap_or(Nanos::FOREVER);
        let event = event.min(deadlines.unwrap_or(Nanos::FOREVER)).min(horizon);
        let end = event.min(now + job.left);
        job.left = job.left - (end - now);
        if job.left == Nanos::ZERO {
            self.jobs[task] = None;
        }
        end
    }
}

//! How long every job took from its release to its end, thread by thread.

use crate::chart::Distribution;
use crate::names::Names;
use crate::simulate::explain::Cast;
use diapason_abi::Nanos;
use diapason_core::{Kernel, ThreadId};

/// The jobs of one thread.
#[derive(Clone, Default, Debug)]
struct Jobs {
    /// The job under way, if there is one: number and release.
    open: Option<(u64, Nanos)>,
    responses: Vec<u64>,
    deadline: Nanos,
}

/// The jobs of all threads.
#[derive(Clone, Default, Debug)]
pub(crate) struct Responses(Vec<Jobs>);

impl Responses {
    /// Notes whose job has ended, given the kernel as it is after an entry at `read`.
    pub fn look(&mut self, read: Nanos, kernel: &Kernel<'_>) {
        self.0.resize_with(kernel.threads.ids().count(), Jobs::default);
        for (id, thread) in kernel.threads.ids().zip(&mut self.0) {
            let jobs = &kernel.threads[id].jobs;
            if let Some((job, release)) = thread.open
                && jobs.done >= job
            {
                thread.responses.push((read - release).0);
            }
            let periodic = jobs.period > Nanos::ZERO;
            thread.open = periodic.then_some((jobs.done + 1, jobs.release));
            if periodic {
                thread.deadline = jobs.deadline;
            }
        }
    }

    /// Returns the distributions of threads that had jobs, with their deadlines as bounds.
    #[must_use]
    pub fn distributions(self, cast: &Cast, names: &Names) -> Vec<Distribution> {
        let with_jobs =
            self.0.into_iter().enumerate().filter(|(_, jobs)| !jobs.responses.is_empty());
        let distribution = |(index, jobs): (usize, Jobs)| {
            let name = cast.name(ThreadId::new(index as u16), names);
            Distribution::new(name, jobs.responses, Some(jobs.deadline.0))
        };
        with_jobs.map(distribution).collect()
    }
}

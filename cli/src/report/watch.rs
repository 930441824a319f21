//! The page's further needs of a simulated run: the running threads in a short window of it.

use crate::simulate::Cast;
use diapason_abi::Nanos;
use diapason_core::{Decision, Kernel, ThreadId};
use diapason_sim::{Moment, Observer};
use diapason_system::{ServerSpec, System};

/// The part of a run whose schedule is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub from: Nanos,
    pub to: Nanos,
}

impl Window {
    /// Four of the longest periods of all systems from the middle of the run on, at most 50 ms.
    pub fn of<'s>(systems: impl Iterator<Item = &'s System>, horizon_ns: u64) -> Window {
        let periods =
            systems.flat_map(|system| &system.vcpus).filter_map(|vcpu| match vcpu.server {
                ServerSpec::Main { period_ns, .. } => Some(period_ns),
                ServerSpec::Io { .. } => None,
            });
        let longest = periods.max().unwrap_or(10_000_000).clamp(1_000_000, 12_500_000);
        let from = Nanos(horizon_ns / 2);
        Window { from, to: from + Nanos(longest * 4) }
    }
}

/// Somebody or the kernel ran.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// The thread; the kernel if none.
    pub thread: Option<ThreadId>,
    pub from: Nanos,
    pub to: Nanos,
}

/// The observer of a run.
pub(crate) struct Watch {
    pub window: Window,
    pub stretches: Vec<Stretch>,
    pub cast: Cast,
}

impl Watch {
    /// Returns a watch of this window that has seen nothing.
    pub fn new(window: Window) -> Watch {
        Watch { window, stretches: Vec::new(), cast: Cast::default() }
    }
}

impl Observer for Watch {
    fn moment(&mut self, from: Nanos, to: Nanos, what: Moment) {
        let Window { from: begin, to: end } = self.window;
        let (from, to) = (from.max(begin), to.min(end));
        if from >= to {
            return;
        }
        let thread = match what {
            Moment::Runs(thread) => Some(thread),
            Moment::Kernel(_) => None,
        };
        match self.stretches.last_mut() {
            Some(last) if last.thread == thread && last.to == from => last.to = to,
            _ => self.stretches.push(Stretch { thread, from, to }),
        }
    }

    fn decided(&mut self, _read: Nanos, now: Nanos, kernel: &Kernel<'_>, _: &Decision) {
        if now >= self.window.from && now <= self.window.to {
            self.cast.refresh(kernel);
        }
    }
}

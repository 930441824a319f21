//! What the page needs of a simulated run: its outcome, and who ran in a short window of it.

use crate::console::Line;
use crate::outcome::Outcome;
use crate::simulate::Cast;
use diapason_abi::Nanos;
use diapason_core::{Decision, Kernel, ThreadId};
use diapason_sim::{Moment, Observer, Said};
use diapason_system::{Server, System};

/// The part of a run whose schedule is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub from: Nanos,
    pub to: Nanos,
}

impl Window {
    /// Four of the longest periods from the middle of the run on, at most 50 ms.
    pub fn of(system: &System, horizon_ns: u64) -> Window {
        let periods = system.vcpus.iter().filter_map(|vcpu| match vcpu.server {
            Server::Main { period_ns, .. } => Some(period_ns),
            Server::Io { .. } => None,
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

/// Watches a run.
pub struct Watch {
    pub window: Window,
    pub outcome: Outcome,
    pub stretches: Vec<Stretch>,
    pub cast: Cast,
}

impl Watch {
    pub fn new(window: Window) -> Watch {
        let (outcome, cast) = (Outcome::default(), Cast::default());
        Watch { window, outcome, stretches: Vec::new(), cast }
    }
}

impl Observer for Watch {
    fn hear(&mut self, said: Said) {
        match said {
            Said::Record(record, words) => self.outcome.note(&Line::Record(record, words)),
            Said::Log(process, text) => self.outcome.note(&Line::Log { process, text }),
            Said::Fault(time, text) => self.outcome.injected.push((time.0, text)),
            Said::Stray(time, stray) => self.outcome.strays.push((time.0, stray)),
            Said::Boots(_) => self.outcome.boot_again(),
            Said::Note(..) => {}
        }
    }

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

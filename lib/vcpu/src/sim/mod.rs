//! One processor of VCPUs, event by event: what the theorems are attacked on.
//!
//! A [`System`] is main and I/O VCPUs and how they are ranked; a list of [`Arrival`]s is what the
//! world does to it; [`System::run`] gives a [`Run`]: every slice of the processor, and every job.
//! No clock and no chance: equal arguments, equal runs. Chance comes from [`Random`], with a seed.
//!
//! **Ranking.** Every VCPU is in a queue; the first `dp_queues` queues are ordered by deadline
//! (`e + T` of the chunk, or of the grant), the next and last one by period. So RMS is no DP queue,
//! EDF is one and nothing else, CSD-x is `x − 1`. An I/O VCPU is in the queue of the main VCPU
//! whose period it has inherited, and wins ties.
//!
//! **Kernel.** A [`Happening::Section`] is a path that cannot be preempted, run by whoever has the
//! processor then (a system call): until it ends, or its VCPU has no work left, nobody else runs.
//! If [`System::overrun`] is set the budget is not enforced in it either. A [`Happening::TopHalf`]
//! takes the processor for its cost and is charged to nobody; it waits for the end of a section.
//!
//! The servers are type parameters ([`MainServer`], [`IoServer`]), so that rules which do not hold
//! can be shown not to. One slice never spans two chunks, so each has one release.
//!
//! ```
//! use diapason_vcpu::sim::{Arrival, Happening, Main, System};
//! use diapason_vcpu::SporadicServer;
//! use diapason_abi::Nanos;
//!
//! let server = |c, t| SporadicServer::new(Nanos(c), Nanos(t), 8, Nanos::ZERO);
//! let mut system: System = System::rate_monotonic();
//! system.mains.push(Main::new(server(4, 7)));
//! system.mains.push(Main::new(server(2, 10)));
//! let work = |at, main, units| Arrival::new(Nanos(at), Happening::Work { main, units: Nanos(units)
//! }); let run = system.run(&[work(0, 0, 4), work(0, 1, 2)], Nanos(20));
//! assert_eq!(run.jobs[1].done, Some(Nanos(6)));
//! ```

mod engine;
mod policy;

pub use diapason_random::Random;
pub use policy::{IoServer, MainServer};

use crate::{Pibs, SporadicServer};
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// A VCPU, as an index of [`System::mains`] or [`System::ios`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Who {
    Main(usize),
    Io(usize),
}

/// A main VCPU: its server, and where it is scheduled.
#[derive(Clone, Debug)]
pub struct Main<M = SporadicServer> {
    pub server: M,
    /// The VCPU's queue, from 0; must be at most [`System::dp_queues`].
    pub queue: usize,
    /// Whether the VCPU runs without budget when nobody with budget is ready (S5).
    pub background: bool,
}

impl<M> Main<M> {
    /// In the first queue, no background use.
    pub fn new(server: M) -> Main<M> {
        Main { server, queue: 0, background: false }
    }
}

/// A processor and what is on it, at time 0.
#[derive(Clone, Debug)]
pub struct System<M = SporadicServer, I = Pibs> {
    pub mains: Vec<Main<M>>,
    pub ios: Vec<I>,
    /// How many queues are ordered by deadline; the queue after them is ordered by period.
    pub dp_queues: usize,
    /// Whether budgets are enforced only at the end of a section.
    pub overrun: bool,
    /// Whether bottom halves are served in the order of arrival, against P4.
    pub fifo: bool,
    /// Whether an arrival at the instant a queue becomes empty finds its VCPU blocked.
    pub block_first: bool,
}

impl<M, I> System<M, I> {
    /// Returns an empty processor with one queue by period.
    #[must_use]
    pub fn rate_monotonic() -> System<M, I> {
        System {
            mains: Vec::new(),
            ios: Vec::new(),
            dp_queues: 0,
            overrun: false,
            fifo: false,
            block_first: true,
        }
    }

    /// Returns an empty processor with one queue by deadline.
    #[must_use]
    pub fn earliest_deadline_first() -> System<M, I> {
        System { dp_queues: 1, ..System::rate_monotonic() }
    }
}

impl<M: MainServer, I: IoServer> System<M, I> {
    /// Simulates from 0 to `horizon`. `arrivals` are sorted by time; those of one instant happen
    /// in the order of the list. An arrival that names a VCPU that does not exist is ignored.
    #[must_use]
    pub fn run(self, arrivals: &[Arrival], horizon: Nanos) -> Run<M, I> {
        engine::Engine::new(self, horizon).run(arrivals)
    }
}

/// Something the world does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    pub at: Nanos,
    pub what: Happening,
}

impl Arrival {
    /// Returns the arrival of `what` at `at`.
    #[must_use]
    pub fn new(at: Nanos, what: Happening) -> Arrival {
        Arrival { at, what }
    }
}

/// The event that an [`Arrival`] brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happening {
    /// Work for a main VCPU, done in the order of arrival.
    Work {
        /// Index of the VCPU.
        main: usize,
        units: Nanos,
    },
    /// A bottom half for an I/O VCPU.
    BottomHalf {
        /// Index of the I/O VCPU.
        io: usize,
        units: Nanos,
        /// Index of the main VCPU it is done for.
        beneficiary: usize,
    },
    /// The next VCPU to run cannot be preempted for this long.
    Section(Nanos),
    /// The processor is taken for this long.
    TopHalf(Nanos),
}

/// A part of time in which one VCPU used one chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// The VCPU that had the processor.
    pub who: Who,
    pub from: Nanos,
    pub to: Nanos,
    /// `e` of what was used; later than `from` if it was used in advance, by an overrun or by an
    /// I/O VCPU going on with the rest of a grant.
    pub released: Nanos,
    /// The VCPU's period then: an I/O VCPU's is inherited.
    pub period: Nanos,
    pub queue: usize,
    /// Whether this was background use, charged to nothing.
    pub background: bool,
}

impl Slice {
    /// Returns how long it is.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}

/// A piece of work and what became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// The VCPU that does it.
    pub who: Who,
    /// For whom: the VCPU itself, or a bottom half's beneficiary.
    pub beneficiary: usize,
    pub arrived: Nanos,
    pub units: Nanos,
    /// The time at which the job was done, if it was.
    pub done: Option<Nanos>,
}

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct Run<M = SporadicServer, I = Pibs> {
    /// All use of the processor by VCPUs, in order.
    pub slices: Vec<Slice>,
    /// Top halves, as `(from, to)`, in order.
    pub top_halves: Vec<(Nanos, Nanos)>,
    /// All jobs, in the order of arrival.
    pub jobs: Vec<Job>,
    /// Time in which nobody ran.
    pub idle: Nanos,
    /// The system at the end, with the counters of its servers.
    pub system: System<M, I>,
}

impl<M, I> Run<M, I> {
    /// Returns how long `who` ran in `[from, to)`, background included.
    #[must_use]
    pub fn used(&self, who: Who, from: Nanos, to: Nanos) -> Nanos {
        let inside = |s: &&Slice| s.who == who && s.from < to && s.to > from;
        let lengths = self.slices.iter().filter(inside).map(|s| s.to.min(to) - s.from.max(from));
        lengths.fold(Nanos::ZERO, |sum, length| sum + length)
    }
}

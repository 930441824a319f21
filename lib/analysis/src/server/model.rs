//! The users of one core: Main VCPUs, I/O VCPUs, the kernel, and interrupts.

use super::arith::Utilization;
use super::level::Wakings;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// Where a ready VCPU waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Queue {
    /// A dynamic-priority queue, earliest deadline first inside; lower numbers go first.
    Dp(u8),
    /// The fixed-priority queue, below every DP queue; shortest period first inside.
    Fp,
}

/// A Main VCPU: a Sporadic Server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct MainVcpu {
    /// C: time it may run in every period.
    pub budget: Nanos,
    pub period: Nanos,
    /// Length of its list of replenishments.
    pub chunks: u32,
    /// The queue in which the VCPU waits when ready.
    pub queue: Queue,
}

/// An I/O VCPU: a PIBS server that runs at the priority of the Main VCPU it works for.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct IoVcpu {
    /// U: its share of the processor.
    pub share: Utilization,
    /// No grant is longer than the share of this much time, whatever the beneficiary's period.
    pub cap: Nanos,
    /// Indices of the Main VCPUs it works for.
    pub serves: Vec<usize>,
    /// In any time of this length it is woken `wakes` times at most. Enters only where each wake-up
    /// costs something: a context switch, or a nanosecond of rounding if U is not one divided by a
    /// whole number.
    pub wake_gap: Nanos,
    /// See `wake_gap`; at least 1. More than one where it is woken for several reasons, each of
    /// which keeps its distance: two of them may come together.
    pub wakes: u32,
    /// The work of its wake-ups, where [`System::knowing`] has found that none waits for a grant.
    /// `None`: nothing is known but its share.
    pub woken: Option<Woken>,
}

/// The work of an I/O VCPU that never waits for a grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Woken {
    /// The most that it uses of its budget for a wake-up.
    pub used: Nanos,
    /// The most wake-ups that come while it works for one before them, and are done on its grant.
    pub joined: u64,
    /// The longest time from a wake-up until all is done that it brought.
    pub done: Nanos,
}

/// A source of interrupts: a top half, an interrupt between cores, a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct InterruptSource {
    /// Smallest time between two interrupts (τ).
    pub gap: Nanos,
    /// Longest time one of them takes (h).
    pub cost: Nanos,
    /// The part of it that is charged to the budget of whoever runs.
    pub charged: Nanos,
}

/// Time that a budget loses to the kernel: the part of a path that is charged to the next thread,
/// beyond what the kernel spares it. All zero for a kernel that charges nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Losses {
    /// One beginning: a part of the list becomes usable, or a grant does, and its VCPU is chosen.
    pub begin: Nanos,
    /// One preemption by something more urgent: the way there and the way back.
    pub preemption: Nanos,
    /// One path that is longer than those, such as the end of a process; once in a period.
    pub rare: Nanos,
}

/// Everything that shares one core.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SharedCore {
    /// The Main VCPUs. Of equal periods the smaller index goes first.
    pub mains: Vec<MainVcpu>,
    /// The I/O VCPUs. They go before Main VCPUs of the same period.
    pub ios: Vec<IoVcpu>,
    /// B: the longest kernel path that cannot be preempted.
    pub kernel_section: Nanos,
    /// Interrupts on this core.
    pub sources: Vec<InterruptSource>,
    /// κ: cost of one context switch.
    pub switch: Nanos,
    /// ω: most by which a budget is exceeded before its end is enforced. An overrun is taken from
    /// the next replenishment, so it counts once for each VCPU.
    pub overrun: Nanos,
    /// VCPUs may be made while the system runs. They rank by their periods among those described
    /// here, so of no response more is known than the kernel promises: R := T.
    pub open: bool,
    /// Losses of budgets to the kernel. Bills count only the rest.
    pub losses: Losses,
}

/// A description that makes no sense: the caller's mistake, as opposed to a system that does not
/// fit. The index is the VCPU's or the source's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nonsense {
    /// A Main VCPU with a budget or a period of zero: give it some.
    NothingReserved(usize),
    /// A Main VCPU with more budget than period: at most the period fits.
    BudgetOverPeriod(usize, Nanos),
    /// A replenishment list without a place: it needs at least one.
    NoChunks(usize),
    /// A period of more than [`PERIOD_MAX`], some 73 years.
    AbsurdPeriod(usize),
    /// An I/O VCPU that works for nobody: name a Main VCPU.
    ServesNobody(usize),
    /// An I/O VCPU that works for a Main VCPU that does not exist.
    ServesUnknown(usize, usize),
    /// The share of an I/O VCPU is less than a nanosecond of its shortest period (or of its cap):
    /// the smallest cap and period that give it one.
    EmptyQuantum(usize, Nanos),
    /// An I/O VCPU or an interrupt without a least distance.
    NoGap(usize),
    /// A Main VCPU of which the kernel takes more than half of the budget: the least budget that
    /// makes sense.
    BudgetLost(usize, Nanos),
    /// An I/O VCPU of which the kernel takes more than half of a grant: the least grant that makes
    /// sense.
    GrantLost(usize, Nanos),
}

/// Longest period of a VCPU that is taken seriously.
pub const PERIOD_MAX: Nanos = Nanos(1 << 61);

/// The analysis covers every period that a server can have.
const _: () = assert!(diapason_vcpu::PERIOD_MAX.0 <= PERIOD_MAX.0);

impl InterruptSource {
    /// Returns a source whose interrupts no budget pays.
    #[must_use]
    pub const fn free(gap: Nanos, cost: Nanos) -> InterruptSource {
        InterruptSource { gap, cost, charged: Nanos::ZERO }
    }
}

impl MainVcpu {
    /// Returns a VCPU in the FP queue, with the usual list of eight replenishments.
    #[must_use]
    pub const fn new(budget: Nanos, period: Nanos) -> MainVcpu {
        MainVcpu { budget, period, chunks: 8, queue: Queue::Fp }
    }

    /// Puts the VCPU into another queue.
    #[must_use]
    pub const fn in_queue(self, queue: Queue) -> MainVcpu {
        MainVcpu { queue, ..self }
    }
}

impl IoVcpu {
    /// Returns an I/O VCPU without a cap, which wakes up as often as it likes.
    #[must_use]
    pub fn new(share: Utilization, serves: Vec<usize>) -> IoVcpu {
        IoVcpu { share, cap: Nanos::FOREVER, serves, wake_gap: Nanos(1), wakes: 1, woken: None }
    }

    /// Returns the most wake-ups in a window.
    #[must_use]
    pub fn wakeups(&self, window: Nanos) -> u64 {
        window.0.div_ceil(self.wake_gap.0.max(1)).saturating_mul(self.wakes.into())
    }

    /// Returns what is known of its wake-ups as others see it.
    pub(super) fn wakings(&self) -> Option<Wakings> {
        let gap = self.wake_gap.0.max(1);
        self.woken.map(|woken| Wakings { gap, used: woken.used.0, joined: woken.joined })
    }

    /// Returns the least distance of two of its wake-ups.
    #[must_use]
    pub fn least_gap(&self) -> Nanos {
        if self.wakes == 1 { self.wake_gap } else { Nanos(1) }
    }

    /// Q(T) = ⌊U · min(T, cap)⌋.
    #[must_use]
    pub fn quantum(&self, period: Nanos) -> Nanos {
        Nanos(self.share.of(period.min(self.cap).0))
    }
}

impl SharedCore {
    /// Main and I/O VCPUs on a core whose kernel takes no time.
    #[must_use]
    pub fn new(mains: Vec<MainVcpu>, ios: Vec<IoVcpu>) -> SharedCore {
        SharedCore { mains, ios, ..SharedCore::default() }
    }

    /// Checks whether the description makes sense; every test asks this first.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), Nonsense> {
        self.check_numbers()?;
        self.check_losses()
    }

    /// Checks the numbers alone: whether budgets are worth having is asked of those that are
    /// described, not of those that a search tries.
    pub(super) fn check_numbers(&self) -> Result<(), Nonsense> {
        for (index, main) in self.mains.iter().enumerate() {
            if main.budget == Nanos::ZERO || main.period == Nanos::ZERO {
                return Err(Nonsense::NothingReserved(index));
            }
            if main.period > PERIOD_MAX {
                return Err(Nonsense::AbsurdPeriod(index));
            }
            if main.budget > main.period {
                return Err(Nonsense::BudgetOverPeriod(index, main.period));
            }
            if main.chunks == 0 {
                return Err(Nonsense::NoChunks(index));
            }
        }
        for (index, io) in self.ios.iter().enumerate() {
            self.check_io(index, io)?;
        }
        let silent = self.sources.iter().position(|source| source.gap == Nanos::ZERO);
        silent.map_or(Ok(()), |index| Err(Nonsense::NoGap(index)))
    }

    fn check_io(&self, index: usize, io: &IoVcpu) -> Result<(), Nonsense> {
        let known = |main: &usize| *main < self.mains.len();
        if let Some(main) = io.serves.iter().find(|main| !known(main)) {
            return Err(Nonsense::ServesUnknown(index, *main));
        }
        let Some(quantum) = self.least_quantum(io) else {
            return Err(Nonsense::ServesNobody(index));
        };
        if quantum == Nanos::ZERO {
            return Err(Nonsense::EmptyQuantum(index, Nanos(io.share.time_for(1))));
        }
        if io.wake_gap == Nanos::ZERO { Err(Nonsense::NoGap(index)) } else { Ok(()) }
    }

    /// The shortest grant an I/O VCPU can get; `None` if it works for nobody.
    pub(super) fn least_quantum(&self, io: &IoVcpu) -> Option<Nanos> {
        let periods = io.serves.iter().filter_map(|main| self.mains.get(*main));
        periods.map(|main| io.quantum(main.period)).min()
    }

    /// Returns the time that a VCPU takes from others in one period: its budget, and two context
    /// switches for each replenishment.
    pub(super) fn cost(&self, main: &MainVcpu) -> u64 {
        let switches = self.switch.0.saturating_mul(2).saturating_mul(u64::from(main.chunks));
        main.budget.0.saturating_add(switches)
    }

    /// Returns the order in which VCPUs take precedence: DP queues, then the FP queue by period.
    /// Inside a DP queue it means nothing but "shortest period first".
    #[must_use]
    pub fn precedence(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.mains.len()).collect();
        order.sort_by_key(|index| {
            let main = &self.mains[*index];
            (main.queue, main.period, *index)
        });
        order
    }
}

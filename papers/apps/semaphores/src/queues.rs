//! The cost of decisions in the dissertation's list and in the kernel's ranks, as plain structures:
//! `QUEUE n order structure block unblock select`, instructions, the most of three states.
//!
//! The most urgent of `n` tasks becomes ready and blocks again, while all others are ready, or
//! every second one, or only the least urgent.

#![no_std]
#![no_main]

use core::hint::black_box;
use diapason_queues::{DeadlineList, PeriodList, Ranks, TASKS_MAX, Task};
use diapason_rt::{Arguments, entry, log};
use diapason_semaphores::stamp;

entry!(main);

/// The others that are ready: those whose number is a multiple of it, from the last.
const STATES: [usize; 3] = [1, 2, TASKS_MAX];
/// The numbers of tasks.
const LENGTHS: [usize; 10] = [5, 10, 15, 20, 25, 30, 35, 40, 45, 50];

/// The names of the measured structures.
const NAMES: [(&str, &str); 4] = [("dp", "list"), ("dp", "ranks"), ("fp", "list"), ("fp", "ranks")];

/// The other ready tasks, and the cost of measuring itself.
#[derive(Clone, Copy)]
struct State {
    every: usize,
    empty: u64,
}

/// The cost of three operations.
#[derive(Clone, Copy, Default)]
struct Cost {
    block: u64,
    unblock: u64,
    select: u64,
}

/// The operations of a structure.
struct Operations<S> {
    structure: S,
    block: fn(&mut S, Task),
    unblock: fn(&mut S, Task),
    select: fn(&S) -> Task,
}

fn main(_: Arguments) {
    let empty = (0..16).map(|_| timed(|| ())).min().unwrap_or(0);
    for n in LENGTHS {
        let mut most = [Cost::default(); 4];
        for every in STATES {
            let costs = measure_all(n, State { every, empty });
            most.iter_mut().zip(costs).for_each(|(most, cost)| most.most(cost));
        }
        for ((order, structure), cost) in NAMES.iter().zip(most) {
            log!("QUEUE {n} {order} {structure} {} {} {}", cost.block, cost.unblock, cost.select);
        }
    }
    log!("DONE");
}

/// Returns all four of [`NAMES`], in a state.
fn measure_all(n: usize, state: State) -> [Cost; 4] {
    let mut periods = [0; TASKS_MAX];
    (0..).zip(&mut periods).for_each(|(task, period)| *period = 1_000 + task);
    let periods = periods.get(..n).unwrap_or(&[]);
    let ranks = |select| Operations {
        structure: Ranks::new(periods),
        block: Ranks::block,
        unblock: |ranks: &mut Ranks, task| ranks.unblock(task, deadline(task)),
        select,
    };
    let by_deadline = Operations {
        structure: DeadlineList::new(n),
        block: DeadlineList::block,
        unblock: |list, task| list.unblock(task, deadline(task)),
        select: DeadlineList::select,
    };
    let by_period = Operations {
        structure: PeriodList::new(periods),
        block: PeriodList::block,
        unblock: PeriodList::unblock,
        select: PeriodList::select,
    };
    [
        by_deadline.measure(n, state),
        ranks(Ranks::by_deadline).measure(n, state),
        by_period.measure(n, state),
        ranks(Ranks::by_period).measure(n, state),
    ]
}

/// Later tasks have earlier deadlines among the others, which is the worst order for a search
/// through them, and the first task the earliest of all.
fn deadline(task: Task) -> u64 {
    if task == 0 { 1 } else { 1_000 - u64::from(task) }
}

impl<S> Operations<S> {
    #[inline(never)]
    fn measure(mut self, n: usize, state: State) -> Cost {
        let State { every, empty } = state;
        for task in (1..n).filter(|task| (n - 1 - task).is_multiple_of(every)) {
            (self.unblock)(&mut self.structure, task as Task);
        }
        let task = black_box(0);
        let unblock = timed(|| (self.unblock)(&mut self.structure, task));
        let first = timed(|| {
            black_box((self.select)(&self.structure));
        });
        let block = timed(|| (self.block)(&mut self.structure, task));
        let second = timed(|| {
            black_box((self.select)(&self.structure));
        });
        let select = first.max(second);
        Cost { block: block - empty, unblock: unblock - empty, select: select - empty }
    }
}

/// Instructions of something, and of reading the counter.
#[inline(always)]
fn timed(what: impl FnOnce()) -> u64 {
    let begin = stamp();
    what();
    stamp() - begin
}

impl Cost {
    fn most(&mut self, other: Cost) {
        self.block = self.block.max(other.block);
        self.unblock = self.unblock.max(other.unblock);
        self.select = self.select.max(other.select);
    }
}

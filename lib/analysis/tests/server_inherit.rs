//! The time of others that a VCPU pays for: by hand, and against a simulation of helping.

use diapason_abi::Nanos;
use diapason_analysis::server::inherit::{Budgets, Section, Sharing, Unbounded, extra_demand};
use diapason_analysis::server::{MainVcpu, Queue, SharedCore};
use diapason_vcpu::SporadicServer;
use diapason_vcpu::sim::Random;

fn system(periods: &[u64]) -> SharedCore {
    let mains = periods.iter().map(|period| MainVcpu::new(Nanos(*period), Nanos(*period)));
    SharedCore::new(mains.collect(), vec![])
}

fn section(vcpu: usize, mutex: usize, length: u64) -> Section {
    Section { vcpu, mutex, length: Nanos(length), times: 1, inside: None }
}

fn extra(system: &SharedCore, sections: &[Section], budgets: Budgets) -> Vec<u64> {
    let extra = extra_demand(system, sections, budgets, Nanos(100)).unwrap();
    extra.into_iter().map(|nanos| nanos.0).collect()
}

#[test]
fn the_longest_section_of_those_below() {
    let sections = [section(0, 0, 5), section(1, 0, 3), section(2, 0, 7), section(2, 1, 9)];
    assert_eq!(extra(&system(&[10, 20, 30]), &sections, Budgets::Last), [7, 7, 0]);
    let twice = [Section { times: 2, ..section(0, 0, 5) }, section(1, 0, 3)];
    assert_eq!(extra(&system(&[10, 20]), &twice, Budgets::Last), [6, 0]);
}

#[test]
fn a_section_in_a_loop_of_a_section_in_a_loop_is_run_so_often() {
    let outer = Section { times: 2, ..section(0, 0, 60) };
    let inner = Section { times: 3, inside: Some(0), ..section(0, 1, 5) };
    let sections = [outer, inner, section(1, 1, 7)];
    assert_eq!(extra(&system(&[100, 200]), &sections, Budgets::Last), [2 * 3 * 7, 0]);
}

#[test]
fn budgets_that_end_let_those_above_be_helped() {
    let sections = [section(0, 0, 5), section(1, 0, 3)];
    let mut system = system(&[50, 100]);
    system.mains[0].chunks = 2;
    // Two replenishments in each of three periods that overlap a window of 100.
    assert_eq!(extra(&system, &sections, Budgets::MayEnd), [3, 6 * 5]);
    // Under EDF each is above and below the other by turns, budgets or not.
    for main in &mut system.mains {
        (main.queue, main.chunks) = (Queue::Dp(0), 1);
    }
    assert_eq!(extra(&system, &sections, Budgets::Last), [3 + 2 * 3, 5 + 3 * 5]);
}

#[test]
fn chains_add_up_and_cycles_are_refused() {
    // 0 takes m0; 1 takes m1 inside m0; 2 takes m2 inside m1; 3 takes m2.
    let nested = |index| Some(index);
    let sections = [
        section(0, 0, 1),
        section(1, 0, 10),
        Section { inside: nested(1), ..section(1, 1, 4) },
        section(2, 1, 20),
        Section { inside: nested(3), ..section(2, 2, 6) },
        section(3, 2, 300),
    ];
    let system = system(&[10, 20, 30, 40]);
    assert_eq!(extra(&system, &sections, Budgets::Last), [330, 320, 300, 0]);
    let mut cycle = sections.to_vec();
    cycle.push(Section { inside: nested(5), ..section(3, 0, 1) });
    assert!(matches!(
        extra_demand(&system, &cycle, Budgets::Last, Nanos(1)),
        Err(Unbounded::Cycle(_))
    ));
    let wrong = [Section { inside: nested(0), ..section(0, 1, 1) }];
    let found = extra_demand(&system, &wrong, Budgets::Last, Nanos(1));
    assert_eq!(found, Err(Unbounded::WrongNest(0)));
    let unknown = extra_demand(&system, &[section(9, 0, 1)], Budgets::Last, Nanos(1));
    assert_eq!(unknown, Err(Unbounded::UnknownVcpu(0)));
}

/// A step of a thread; each takes one tick, locks and unlocks take none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Run,
    Lock(usize),
    Unlock(usize),
}

/// Random nested sections in the order of the mutexes, and the same as a program.
fn program(vcpu: usize, random: &mut Random, sections: &mut Vec<Section>) -> Vec<Step> {
    let mut steps = vec![];
    for _ in 0..random.below(3) {
        steps.extend(vec![Step::Run; random.below(3) as usize]);
        nest(vcpu, None, 0, random, sections, &mut steps);
    }
    steps.push(Step::Run);
    steps
}

const MUTEXES: usize = 3;

fn nest(
    vcpu: usize,
    inside: Option<usize>,
    least: usize,
    random: &mut Random,
    sections: &mut Vec<Section>,
    steps: &mut Vec<Step>,
) {
    let mutex = random.between(least as u64, MUTEXES as u64 - 1) as usize;
    let index = sections.len();
    sections.push(Section { inside, ..section(vcpu, mutex, 0) });
    let begin = steps.len();
    steps.push(Step::Lock(mutex));
    steps.extend(vec![Step::Run; random.between(1, 3) as usize]);
    if mutex + 1 < MUTEXES && random.one_in(2) {
        nest(vcpu, Some(index), mutex + 1, random, sections, steps);
        steps.extend(vec![Step::Run; random.below(2) as usize]);
    }
    steps.push(Step::Unlock(mutex));
    let ran = steps[begin..].iter().filter(|step| **step == Step::Run).count();
    sections[index].length = Nanos(ran as u64);
}

/// Threads, one per VCPU, fixed priorities by index, helping.
struct Core<'a> {
    programs: &'a [Vec<Step>],
    servers: Vec<SporadicServer>,
    /// Where each thread is; `None` without a job.
    at: Vec<Option<usize>>,
    began: Vec<u64>,
    owner: [Option<usize>; MUTEXES],
    waits: Vec<Option<usize>>,
    /// The time that each paid for others in its present job, and the most in any job.
    paid: Vec<u64>,
    most: Vec<u64>,
    longest: u64,
}

impl Core<'_> {
    fn arrive(&mut self, thread: usize, now: u64) {
        if self.at[thread].is_none() {
            (self.at[thread], self.began[thread], self.paid[thread]) = (Some(0), now, 0);
            self.servers[thread].wake(Nanos(now));
            // The first step may be a lock, which is taken when the thread first runs.
        }
    }

    /// One tick: the most urgent VCPU with budget runs its thread, or the owner that it waits for.
    fn tick(&mut self, now: u64) {
        let ready = |thread: &usize| {
            self.at[*thread].is_some() && self.servers[*thread].available(Nanos(now)) > Nanos::ZERO
        };
        let Some(payer) = (0..self.at.len()).find(ready) else { return };
        let runner = loop {
            let mut runner = payer;
            while let Some(mutex) = self.waits[runner] {
                runner = self.owner[mutex].expect("a mutex waited for has an owner");
            }
            // Locks come before the tick; one that is taken makes a wait, and somebody else run.
            if !self.locks(runner) {
                break runner;
            }
        };
        self.servers[payer].charge(Nanos(1), Nanos(now + 1));
        if runner != payer {
            self.paid[payer] += 1;
        }
        let at = self.at[runner].expect("who runs has a job");
        self.at[runner] = Some(at + 1);
        self.unlocks(runner);
        if self.at[runner] == Some(self.programs[runner].len()) {
            self.longest = self.longest.max(now + 1 - self.began[runner]);
            self.most[runner] = self.most[runner].max(self.paid[runner]);
            self.at[runner] = None;
            self.servers[runner].block(Nanos(now + 1));
        }
    }

    /// Takes the locks that come next; whether the thread now waits.
    fn locks(&mut self, thread: usize) -> bool {
        while let Some(Step::Lock(mutex)) = self.next(thread) {
            if self.owner[mutex].is_some() {
                self.waits[thread] = Some(mutex);
                return true;
            }
            self.owner[mutex] = Some(thread);
            self.at[thread] = self.at[thread].map(|at| at + 1);
        }
        false
    }

    /// Gives back what comes next; the most urgent waiter gets it.
    fn unlocks(&mut self, thread: usize) {
        while let Some(Step::Unlock(mutex)) = self.next(thread) {
            self.at[thread] = self.at[thread].map(|at| at + 1);
            let heir = self.waits.iter().position(|waits| *waits == Some(mutex));
            self.owner[mutex] = heir;
            if let Some(heir) = heir {
                self.waits[heir] = None;
                self.at[heir] = self.at[heir].map(|at| at + 1);
            }
        }
    }

    fn next(&self, thread: usize) -> Option<Step> {
        self.programs[thread].get(self.at[thread]?).copied()
    }
}

/// Observed and promised extra demand of random programs; returns how often they were equal.
fn helping(seed: u64, budgets: fn(usize) -> Budgets) -> (u64, u64) {
    let mut random = Random::new(seed);
    let (mut equal, mut paid) = (0, 0);
    for _ in 0..600 {
        let periods = [10, 14, 20, 30];
        let mut sections = vec![];
        let mut programs = vec![];
        for vcpu in 0..periods.len() {
            programs.push(program(vcpu, &mut random, &mut sections));
        }
        let mut system = system(&periods);
        let ending = (0..).zip(&mut system.mains).filter(|(at, _)| budgets(*at) == Budgets::MayEnd);
        ending.for_each(|(_, main)| main.budget = Nanos(random.between(1, 6)));
        let servers = system.mains.iter();
        let servers = servers.map(|m| SporadicServer::new(m.budget, m.period, 8, Nanos::ZERO));
        let count = periods.len();
        let mut core = Core {
            programs: &programs,
            servers: servers.collect(),
            at: vec![None; count],
            began: vec![0; count],
            owner: [None; MUTEXES],
            waits: vec![None; count],
            paid: vec![0; count],
            most: vec![0; count],
            longest: 0,
        };
        for now in 0..400 {
            for thread in 0..count {
                // Those below begin more often, so that there is somebody to help.
                if random.one_in(12 - 2 * thread as u64) {
                    core.arrive(thread, now);
                }
            }
            core.tick(now);
        }
        let window = Nanos(core.longest);
        let sharing = Sharing::new(system, sections).unwrap();
        let bound: Vec<Nanos> =
            (0..count).map(|vcpu| sharing.extra(vcpu, &budgets, window)).collect();
        for (most, bound) in core.most.iter().zip(&bound) {
            assert!(*most <= bound.0, "{:?} > {bound:?}: {programs:?}", core.most);
            equal += u64::from(*most == bound.0 && *most > 0);
            paid += u64::from(*most > 0);
        }
    }
    (equal, paid)
}

#[test]
fn nobody_pays_for_more_than_the_bound() {
    let (equal, paid) = helping(1, |_| Budgets::Last);
    assert!(equal > 0 && paid > 300, "the bound is reached: {equal} of {paid}");
    let (_, paid) = helping(2, |_| Budgets::MayEnd);
    assert!(paid > 500, "{paid}");
    let mixed = |vcpu| if vcpu % 2 == 0 { Budgets::Last } else { Budgets::MayEnd };
    let (_, paid) = helping(3, mixed);
    assert!(paid > 400, "{paid}");
}

#[test]
fn only_budgets_that_may_end_are_helped_from_below() {
    let sections = [section(0, 0, 5), section(1, 0, 7), section(2, 0, 3)];
    let mut system = system(&[50, 60, 100]);
    system.mains.iter_mut().for_each(|main| main.chunks = 1);
    let sharing = Sharing::new(system, sections.to_vec()).unwrap();
    let last = |which: usize| {
        let budgets = move |vcpu| if vcpu == which { Budgets::Last } else { Budgets::MayEnd };
        sharing.extra(2, &budgets, Nanos(100)).0
    };
    // The other one comes back in each period that overlaps a window of 100.
    assert_eq!((last(0), last(1)), (3 * 7, 3 * 5));
}

//! The tests and rules of [USB 2023] under the same attack: how often they fail, for comparison.

use super::generate;
use crate::server::{IoVcpu, MainVcpu, SharedCore, Utilization, equation_one, first_failure, wide};
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_vcpu::sim::{self, Arrival, Happening, IoServer, Random};

/// PIBS as [USB 2023] has it: inheritance raises the priority, and the budget of a longer period
/// is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaperPibs {
    share: Utilization,
    period: Nanos,
    eligible: Nanos,
    left: Nanos,
    used: Nanos,
}

impl PaperPibs {
    /// Returns a stopped server.
    #[must_use]
    pub fn new(share: Utilization) -> PaperPibs {
        let (period, eligible) = (Nanos::FOREVER, Nanos::ZERO);
        PaperPibs { share, period, eligible, left: Nanos::ZERO, used: Nanos::ZERO }
    }

    fn quantum(&self) -> Nanos {
        Nanos(self.share.of(self.period.0))
    }

    fn settle(&mut self) {
        self.eligible += Nanos(self.share.time_for(self.used.0));
        self.used = Nanos::ZERO;
    }
}

impl IoServer for PaperPibs {
    fn period(&self) -> Nanos {
        self.period
    }
    fn available(&self, now: Nanos) -> Nanos {
        if self.left > Nanos::ZERO {
            self.left
        } else if self.eligible <= now {
            self.quantum()
        } else {
            Nanos::ZERO
        }
    }
    fn eligible_at(&self) -> Nanos {
        if self.left > Nanos::ZERO { Nanos::ZERO } else { self.eligible }
    }
    fn eligibility(&self) -> Nanos {
        self.eligible
    }
    fn deadline(&self) -> Nanos {
        self.eligible + self.period
    }
    fn wake(&mut self, now: Nanos, period: Nanos) {
        self.period = period;
        if self.eligible <= now {
            self.eligible = now;
            self.left = self.quantum();
        }
    }
    fn inherit(&mut self, _now: Nanos, period: Nanos) {
        self.period = period;
    }
    fn stop(&mut self, _now: Nanos) {
        self.settle();
    }
    fn charge(&mut self, used: Nanos, _now: Nanos) {
        if self.left == Nanos::ZERO {
            self.left = self.quantum();
        }
        self.left = self.left - used;
        self.used += used;
        if self.left == Nanos::ZERO {
            self.settle();
        }
    }
}

/// The results of the tests of [USB 2023].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PaperReport {
    pub drawn: u64,
    /// Accepted by [USB 2023, eq. 1].
    pub equation_one: u64,
    /// Accepted by the wider closed form.
    pub wide: u64,
    /// Accepted by the exact test.
    pub exact: u64,
    /// Accepted by a closed form and not by the exact test, which must not be.
    pub closed_only: u64,
    /// Accepted systems in which a budget came later than its period, with the PIBS of
    /// [USB 2023] and with ours.
    pub late_with_theirs: u64,
    pub late_with_ours: u64,
    /// The most it came too late with theirs.
    pub latest: Nanos,
}

/// Draws systems, and runs those that [USB 2023, eq. 1] accepts with its rules and with ours.
#[must_use]
pub fn papers(seed: u64, systems: u64, runs: u32) -> PaperReport {
    let mut random = Random::new(seed);
    let mut report = PaperReport::default();
    while report.equation_one < systems {
        let system = drawn(&mut random);
        if system.check().is_err() {
            continue;
        }
        report.drawn += 1;
        let (narrow, wide) = (equation_one(&system).holds(), wide(&system).holds());
        let exact = first_failure(&system) == Ok(None);
        report.wide += u64::from(wide);
        report.exact += u64::from(exact);
        report.closed_only += u64::from((narrow || wide) && !exact);
        if narrow {
            report.equation_one += 1;
            fight(&system, runs, &mut random, &mut report);
        }
    }
    report
}

fn fight(system: &SharedCore, runs: u32, random: &mut Random, report: &mut PaperReport) {
    let (mut theirs, mut ours) = (Nanos::ZERO, Nanos::ZERO);
    for _ in 0..runs {
        let world = if random.one_in(2) {
            raised(system, random)
        } else {
            generate::world(system, 0, random)
        };
        let good = super::simulated(system);
        let mut bad = sim::System::<_, PaperPibs>::rate_monotonic();
        bad.mains.clone_from(&good.mains);
        bad.ios = system.ios.iter().map(|io| PaperPibs::new(io.share)).collect();
        bad.fifo = true;
        let bad = bad.run(&world, generate::HORIZON);
        let good = good.run(&world, generate::HORIZON);
        let late = |main: &sim::Main| main.server.counters().late_max - main.server.period();
        theirs = bad.system.mains.iter().map(late).fold(theirs, Nanos::max);
        ours = good.system.mains.iter().map(late).fold(ours, Nanos::max);
    }
    report.late_with_theirs += u64::from(theirs > Nanos::ZERO);
    report.late_with_ours += u64::from(ours > Nanos::ZERO);
    report.latest = report.latest.max(theirs);
}

/// Much work for the least urgent, then a little for the most urgent, and all Main VCPUs at once.
fn raised(system: &SharedCore, random: &mut Random) -> Vec<Arrival> {
    let at = Nanos(random.between(0, 20));
    let mut arrivals = vec![];
    for (io, server) in system.ios.iter().enumerate() {
        let by_period = |main: &&usize| system.mains[**main].period;
        let least = server.serves.iter().max_by_key(by_period);
        let most = server.serves.iter().min_by_key(by_period);
        for (beneficiary, units) in
            least.into_iter().map(|main| (*main, 64)).chain(most.map(|main| (*main, 1)))
        {
            let units = Nanos(units);
            arrivals.push(Arrival::new(at, Happening::BottomHalf { io, units, beneficiary }));
        }
    }
    for (main, server) in system.mains.iter().enumerate() {
        arrivals.push(Arrival::new(at, Happening::Work { main, units: server.budget }));
    }
    arrivals
}

/// Few VCPUs with very different periods, and an I/O VCPU that works for two of them.
fn drawn(random: &mut Random) -> SharedCore {
    let count = random.between(2, 4);
    let mains = (0..count).map(|_| {
        let period = if random.one_in(3) { random.between(40, 100) } else { random.between(6, 20) };
        MainVcpu::new(Nanos(random.between(1, 1 + period / (count + 1))), Nanos(period))
    });
    let mut system = SharedCore::new(mains.collect(), vec![]);
    for _ in 0..random.between(1, 2) {
        let serves = (0..2).map(|_| random.below(count) as usize).collect();
        let ppm = 1_000_000 / [5, 6, 8, 10][random.below(4) as usize];
        let Some(share) = Utilization::from_ppm(ppm) else { continue };
        system.ios.push(IoVcpu::new(share, serves));
    }
    system
}

//! Random systems that a closed form admits, and random worlds around them.

use diapason_abi::Nanos;
use diapason_vcpu::admission::{Load, Overheads, Reservation, Test};
use diapason_vcpu::sim::{Arrival, Happening, Main, Random, System};
use diapason_vcpu::{PERIOD_MAX, Pibs, SporadicServer};

/// How the processor is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ranking {
    RateMonotonic,
    Deadlines,
    Csd,
}

/// A system, its kernel, and what happens to it.
#[derive(Clone, Debug)]
pub struct Case {
    pub ranking: Ranking,
    pub system: System,
    pub overheads: Overheads,
    /// The smallest distance of top halves; `FOREVER` without.
    pub distance: Nanos,
    /// For each I/O VCPU the main VCPUs it works for.
    pub beneficiaries: Vec<Vec<usize>>,
    /// For each main VCPU: backlogged from here to the end, if at all, and whether it was idle
    /// before.
    pub saturated: Vec<Option<(Nanos, bool)>>,
    pub arrivals: Vec<Arrival>,
    pub horizon: Nanos,
}

impl Case {
    /// One that `ranking`'s closed form admits; `kernel` with sections, overruns and top halves.
    pub fn random(random: &mut Random, ranking: Ranking, kernel: bool) -> Case {
        let (overheads, distance) = overheads(random, kernel);
        let mut system = System::rate_monotonic();
        system.overrun = kernel;
        system.block_first = random.one_in(2);
        let mut case = Case {
            ranking,
            system,
            overheads,
            distance,
            beneficiaries: vec![],
            saturated: vec![],
            arrivals: vec![],
            horizon: Nanos::ZERO,
        };
        while case.system.mains.is_empty() {
            case.fill(random);
        }
        case.assign_queues(random);
        case.world(random);
        case
    }

    fn fill(&mut self, random: &mut Random) {
        let test = match self.ranking {
            Ranking::Deadlines => Test::Deadline,
            _ => Test::Wide,
        };
        let mut load = Load::new(self.overheads);
        for _ in 0..random.between(1, 5) {
            let longest = if random.one_in(3) { 40 } else { 120 };
            let period = Nanos(random.between(20, longest));
            let asked = Nanos(random.between(1, period.0 / 2));
            let ask = |budget| load.admit_main(test, Reservation { budget, period });
            let (budget, admitted) = match ask(asked) {
                Ok(load) => (asked, load),
                Err(refusal) if refusal.fits > Nanos::ZERO => {
                    (refusal.fits, ask(refusal.fits).expect("what fits is admitted"))
                }
                Err(_) => continue,
            };
            load = admitted;
            let limit = if random.one_in(2) { 8 } else { random.between(2, 4) };
            let server = SporadicServer::new(budget, period, limit as usize, Nanos::ZERO);
            let background = random.one_in(6);
            self.system.mains.push(Main { background, ..Main::new(server) });
        }
        let ios = if self.system.mains.is_empty() { 0 } else { random.below(3) };
        for _ in 0..ios {
            load = self.one_io(random, load, test);
        }
    }

    fn one_io(&mut self, random: &mut Random, load: Load, test: Test) -> Load {
        let shares = [50_000, 62_500, 100_000, 125_000, 200_000, 250_000];
        let share = match random.below(4) {
            0 => random.between(50_000, 400_000) as u32,
            _ => shares[random.below(6) as usize],
        };
        let Ok(admitted) = load.admit_io(test, share) else { return load };
        let mut who = vec![random.below(self.system.mains.len() as u64) as usize];
        if random.one_in(3) {
            who.push(random.below(self.system.mains.len() as u64) as usize);
        }
        let period = |i: &usize| self.system.mains[*i].server.period();
        let smallest = who.iter().map(period).min().unwrap();
        let cap = if random.one_in(2) { smallest } else { PERIOD_MAX };
        self.system.ios.push(Pibs::new(share, cap, Nanos::ZERO));
        self.beneficiaries.push(who);
        admitted
    }

    /// CSD: queues in the order of periods, cut at random.
    fn assign_queues(&mut self, random: &mut Random) {
        match self.ranking {
            Ranking::RateMonotonic => {}
            Ranking::Deadlines => self.system.dp_queues = 1,
            Ranking::Csd => {
                let dp = random.between(1, 3);
                self.system.dp_queues = dp as usize;
                let mut cuts: Vec<u64> = (0..dp).map(|_| random.between(15, 125)).collect();
                cuts.sort_unstable();
                for main in &mut self.system.mains {
                    let period = main.server.period().0;
                    main.queue = cuts.iter().filter(|cut| **cut < period).count();
                }
            }
        }
    }

    fn world(&mut self, random: &mut Random) {
        let periods = self.system.mains.iter().map(|main| main.server.period());
        self.horizon = Nanos(5 * periods.max().unwrap().0);
        let instant = random.below(60);
        for main in 0..self.system.mains.len() {
            self.main_work(random, main, instant);
        }
        for io in 0..self.system.ios.len() {
            self.io_work(random, io);
        }
        self.kernel_work(random, instant);
        self.arrivals.sort_by_key(|arrival| arrival.at);
    }

    fn main_work(&mut self, random: &mut Random, main: usize, instant: u64) {
        let server = &self.system.mains[main].server;
        let (budget, period) = (server.budget(), server.period());
        let style = random.below(4);
        let mut at = match random.below(3) {
            0 => 0,
            1 => instant,
            _ => random.below(period.0),
        };
        let start = if random.one_in(2) { at } else { at + random.below(3 * period.0) };
        if style < 2 {
            self.saturated.push(Some((Nanos(start), start == at)));
        } else {
            self.saturated.push(None);
        }
        while at < self.horizon.0 && (style >= 2 || at < start) {
            let (units, gap) = match (style, random.below(3)) {
                (2, _) => (budget.0, period.0),
                (_, 0) => (random.between(1, 2 * budget.0), random.between(1, 2 * period.0)),
                _ => (random.between(1, 1 + budget.0 / 3), random.between(1, 1 + period.0 / 3)),
            };
            self.arrive(at, Happening::Work { main, units: Nanos(units) });
            at += gap;
        }
        if style < 2 {
            self.arrive(start, Happening::Work { main, units: self.horizon });
        }
    }

    fn io_work(&mut self, random: &mut Random, io: usize) {
        let mut at = random.below(2) * random.below(30);
        let crumbs = random.one_in(2);
        while at < self.horizon.0 {
            let all = &self.beneficiaries[io];
            let beneficiary = all[random.below(all.len() as u64) as usize];
            let grant = self.system.ios[io].cap().0.min(120);
            let (most, gap) = if crumbs { (2, 8) } else { (1 + grant / 4, grant) };
            let units = Nanos(random.between(1, most));
            self.arrive(at, Happening::BottomHalf { io, units, beneficiary });
            at += random.between(1, gap);
        }
    }

    /// Often with a section that began just before the instant at which many arrive.
    fn kernel_work(&mut self, random: &mut Random, instant: u64) {
        let mut at = if random.one_in(2) { instant.saturating_sub(1) } else { random.below(20) };
        while self.overheads.section > Nanos::ZERO && at < self.horizon.0 {
            self.arrive(at, Happening::Section(self.overheads.section));
            at += random.between(3, 30);
        }
        let mut at = if random.one_in(2) { instant } else { random.below(20) };
        while self.overheads.top_halves > Nanos::ZERO && at < self.horizon.0 {
            self.arrive(at, Happening::TopHalf(self.overheads.top_halves));
            let loose = if random.one_in(2) { 0 } else { random.below(40) };
            at += self.distance.0 + loose;
        }
    }

    fn arrive(&mut self, at: u64, what: Happening) {
        self.arrivals.push(Arrival::new(Nanos(at), what));
    }
}

fn overheads(random: &mut Random, kernel: bool) -> (Overheads, Nanos) {
    if !kernel {
        return (Overheads::NONE, Nanos::FOREVER);
    }
    let section = Nanos(random.between(0, 4));
    let overheads = Overheads { section, overrun: section, ..Overheads::NONE };
    if random.one_in(2) {
        return (overheads, Nanos::FOREVER);
    }
    let distance = Nanos(random.between(10, 80));
    (overheads.with_top_half(Nanos(random.between(1, 4)), distance), distance)
}

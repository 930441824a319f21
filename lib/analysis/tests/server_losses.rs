//! Streams on servers of which the kernel takes a part: a server that begins, or comes back, first
//! runs a path of the kernel on its own budget. No delay is longer than promised, and with a
//! promise that leaves this out some are.

use diapason_abi::Nanos;
use diapason_analysis::server::{
    BudgetServer, Losses, MainVcpu, Nonsense, SharedCore, Stream, Supply, admit, first_failure,
};
use diapason_random::Random;
use diapason_vcpu::SporadicServer;

const END: u64 = 1_500;

/// A server below another one, the stream it is for, and what the kernel takes.
#[derive(Debug)]
struct Set {
    above: (u64, u64),
    own: (u64, u64),
    list: u32,
    stream: Stream,
    losses: Losses,
}

impl Set {
    fn random(random: &mut Random) -> Set {
        let between = |random: &mut Random, low, high| low + random.below(high - low + 1);
        let period = between(random, 30, 90);
        let losses = Losses {
            begin: Nanos(between(random, 1, 2)),
            preemption: Nanos(random.below(2)),
            ..Losses::default()
        };
        Set {
            above: (between(random, 9, 14), between(random, 30, 60)),
            own: (between(random, 9, 24).min(period), period),
            list: between(random, 2, 4) as u32,
            stream: Stream {
                work: Nanos(between(random, 1, 6)),
                period: Nanos(between(random, 8, 80)),
                jitter: Nanos(random.below(2) * random.below(60)),
            },
            losses,
        }
    }

    fn system(&self, losses: Losses) -> SharedCore {
        let main = |(budget, period), chunks| MainVcpu {
            chunks,
            ..MainVcpu::new(Nanos(budget), Nanos(period))
        };
        let mains = vec![main(self.above, 3), main(self.own, self.list)];
        SharedCore { losses, ..SharedCore::new(mains, vec![]) }
    }

    fn supply(&self, losses: Losses) -> Option<Supply> {
        let system = self.system(losses);
        admit(&system).ok()?;
        // The more urgent one stays the more urgent one.
        (self.above.1 <= self.own.1).then_some(())?;
        Supply::of(&system, 1)
    }

    /// Returns the longest delay in one world.
    fn run(&self, random: &mut Random) -> u64 {
        let lists = [3, self.list as usize];
        let mut vcpus = [self.above, self.own].map(|(budget, period)| Vcpu {
            server: SporadicServer::new(Nanos(budget), Nanos(period), 8, Nanos::ZERO),
            jobs: vec![],
            path: 0,
            begun: false,
        });
        for (vcpu, list) in vcpus.iter_mut().zip(lists) {
            let (budget, period) = (vcpu.server.budget(), vcpu.server.period());
            vcpu.server = SporadicServer::new(budget, period, list, Nanos::ZERO);
        }
        let (phase, busy) = (random.below(self.stream.period.0), random.below(3));
        let (bunched, jitter) = (random.below(2) == 1, self.stream.jitter.0);
        let nominal = (phase..END).step_by(self.stream.period.0 as usize);
        let mut arrivals: Vec<u64> = nominal
            .map(|at| match bunched {
                true => at + jitter.min((40 - at % 40) % 40),
                false => at + random.below(jitter + 1),
            })
            .collect();
        arrivals.sort_unstable();
        let (mut longest, mut running) = (0, None);
        for now in 0..2 * END {
            if busy == 2 || busy == 1 && random.one_in(7) {
                vcpus[0].arrive(now, 1 + random.below(3));
            }
            for _ in arrivals.iter().filter(|at| **at == now) {
                vcpus[1].arrive(now, self.stream.work.0);
            }
            let chosen = vcpus.iter().position(|vcpu| vcpu.can_run(now));
            if let Some(chosen) = chosen {
                if running != Some(chosen) || !vcpus[chosen].begun {
                    vcpus[chosen].come(&self.losses);
                }
                let done = vcpus[chosen].tick(now);
                longest = longest.max(done.filter(|_| chosen == 1).unwrap_or(0));
            }
            running = chosen;
        }
        vcpus[1].jobs.iter().fold(longest, |longest, (at, _)| longest.max(2 * END - at))
    }
}

struct Vcpu {
    server: SporadicServer,
    /// When each came, and what is left of it.
    jobs: Vec<(u64, u64)>,
    /// Time that is left of a path of the kernel.
    path: u64,
    /// The VCPU has run since it was woken or got budget.
    begun: bool,
}

impl Vcpu {
    fn arrive(&mut self, now: u64, work: u64) {
        self.server.wake(Nanos(now));
        self.jobs.push((now, work));
    }

    fn can_run(&self, now: u64) -> bool {
        !self.jobs.is_empty() && self.server.available(Nanos(now)) > Nanos::ZERO
    }

    fn come(&mut self, losses: &Losses) {
        self.path += if self.begun { losses.preemption.0 } else { losses.begin.0 };
        self.begun = true;
    }

    /// One tick; the delay of a job that is done with it.
    fn tick(&mut self, now: u64) -> Option<u64> {
        self.server.charge(Nanos(1), Nanos(now + 1));
        let mut done = None;
        if self.path > 0 {
            self.path -= 1;
        } else {
            self.jobs[0].1 -= 1;
            if self.jobs[0].1 == 0 {
                done = Some(now + 1 - self.jobs.remove(0).0);
            }
        }
        if self.jobs.is_empty() {
            self.server.block(Nanos(now + 1));
            self.begun = false;
        } else if self.server.available(Nanos(now + 1)) == Nanos::ZERO {
            self.begun = false;
        }
        done
    }
}

#[test]
fn no_stream_is_later_than_promised_by_what_is_left_of_its_budget() {
    let mut random = Random::new(5);
    let (mut bounded, mut conform, mut late, mut noticed) = (0, 0, 0, 0);
    while bounded < 1_500 {
        let set = Set::random(&mut random);
        let Some(supply) = set.supply(set.losses) else { continue };
        let Some(bound) = supply.delay(&set.stream) else { continue };
        bounded += 1;
        conform += u32::from(supply.conforms(&set.stream));
        let careless = set.supply(Losses::default()).unwrap().delay(&set.stream).unwrap();
        for _ in 0..4 {
            let longest = set.run(&mut random);
            assert!(longest <= bound.0, "{longest} > {bound:?} {set:?}");
            late += u32::from(longest > careless.0);
        }
        noticed += u32::from(careless < bound);
    }
    println!("{bounded} streams, {conform} conform, {late} runs later than without losses");
    assert!(conform > 100 && late > 50 && noticed == bounded, "{conform} {late} {noticed}");
}

#[test]
fn what_is_lost_is_counted_by_who_may_come_between() {
    let main =
        |budget, period| MainVcpu { chunks: 2, ..MainVcpu::new(Nanos(budget), Nanos(period)) };
    let losses = Losses { begin: Nanos(3), preemption: Nanos(5), ..Losses::default() };
    let mains = vec![main(100, 1_000), main(200, 2_500), main(50, 1_000)];
    let system = SharedCore { losses, ..SharedCore::new(mains, vec![]) };
    // Two beginnings of its own; two in each period of those above it.
    assert_eq!(system.lost_of(0), Nanos(2 * 3));
    assert_eq!(system.lost_of(2), Nanos(2 * 3 + 2 * 5));
    assert_eq!(system.lost_of(1), Nanos(2 * 3 + (3 + 3) * 2 * 5));
    let supply = Supply::of(&system, 1).unwrap();
    assert_eq!(BudgetServer::budget(&supply), Nanos(200 - 66));
}

#[test]
fn a_budget_of_which_the_kernel_takes_more_than_half_is_refused_with_the_least_that_will_do() {
    let losses = Losses { begin: Nanos(10), rare: Nanos(4), ..Losses::default() };
    let system = |budget| {
        let main = MainVcpu { chunks: 2, ..MainVcpu::new(Nanos(budget), Nanos(1_000)) };
        SharedCore { losses, ..SharedCore::new(vec![main], vec![]) }
    };
    assert_eq!(first_failure(&system(47)), Err(Nonsense::BudgetLost(0, Nanos(48))));
    assert_eq!(first_failure(&system(48)), Ok(None));
}

/// A private VCPU may rank above any that is described, and takes what the kernel has left.
#[test]
fn where_vcpus_may_be_made_later_only_the_period_is_known() {
    let mains = vec![MainVcpu::new(Nanos(2), Nanos(20)), MainVcpu::new(Nanos(3), Nanos(30))];
    let closed = SharedCore::new(mains, vec![]);
    let open = SharedCore { open: true, ..closed.clone() };
    let supplies = [closed, open].map(|system| Supply::of(&system, 1).unwrap());
    let [closed, open] = supplies.map(|supply| [supply.response(Nanos(3)), supply.any(Nanos(3))]);
    assert_eq!(closed, [Nanos(5), Nanos(30 - 3 + 5)]);
    assert_eq!(open, [Nanos(30), Nanos(30 - 3 + 30 + 2)]);
}

//! The cheapest queues that hold: of all ways to cut the VCPUs, by rising period, into up to two
//! queues by deadline above the one by period, the first in order of cost that the test admits.
//!
//! The cost of a queue by deadline is in every switch ([`KernelTimes::switch`]), so the order is
//! known before any test: by the length of the longest such queue, then by their number. Rate
//! monotonic comes first, one queue of all (EDF) among the last; hence the answer never costs more
//! than either.

use diapason_abi::archive::VCPUS_MAX;
use diapason_analysis::server::{Queue, System, dp_queues, first_failure};
use diapason_costs::KernelTimes;

/// Lengths of the queues by deadline; the rest of the VCPUs are in the queue by period.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Lengths {
    first: usize,
    second: usize,
}

/// The cheapest allocation that holds, as the queue of each Main VCPU; `None` if there is none
/// among those looked at: two queues by deadline for as many VCPUs as the kernel takes, one beyond.
#[must_use]
pub fn cheapest(system: &System, costs: &KernelTimes) -> Option<Vec<Queue>> {
    let mut by_period: Vec<usize> = (0..system.mains.len()).collect();
    by_period.sort_by_key(|index| system.mains[*index].period);
    let mut trial = system.clone();
    candidates(by_period.len()).into_iter().find_map(|lengths| {
        allot(&mut trial, &by_period, lengths);
        let before = trial.switch;
        trial.switch = costs.switch(dp_queues(&trial));
        trial.overrun = trial.overrun + trial.switch - before;
        trial.kernel_section = trial.kernel_section + trial.switch - before;
        let holds = first_failure(&trial).ok()?.is_none();
        holds.then(|| trial.mains.iter().map(|main| main.queue).collect())
    })
}

/// Every allocation to try, cheapest first.
fn candidates(count: usize) -> Vec<Lengths> {
    if count > usize::from(VCPUS_MAX) {
        let ends = [0, count];
        return ends.map(|first| Lengths { first, second: 0 }).to_vec();
    }
    let mut all = Vec::new();
    for first in 0..=count {
        let most = if first == 0 { 0 } else { count - first };
        all.extend((0..=most).map(|second| Lengths { first, second }));
    }
    // Among equal costs, the one with most VCPUs in queues by deadline admits most.
    all.sort_by_key(|l| {
        let queues = usize::from(l.first > 0) + usize::from(l.second > 0);
        (l.first.max(l.second), queues, usize::MAX - (l.first + l.second))
    });
    all
}

fn allot(system: &mut System, by_period: &[usize], lengths: Lengths) {
    for (place, index) in by_period.iter().enumerate() {
        system.mains[*index].queue = if place < lengths.first {
            Queue::Dp(0)
        } else if place < lengths.first + lengths.second {
            Queue::Dp(1)
        } else {
            Queue::Fp
        };
    }
}

/// The lines for `[scheduling]` that ask for `queues`, by the names of the Main VCPUs.
#[must_use]
pub fn lines(queues: &[Queue], names: &[&str]) -> String {
    let count = queues.iter().filter_map(|queue| match queue {
        Queue::Dp(number) => Some(usize::from(*number) + 1),
        Queue::Fp => None,
    });
    let mut lists: Vec<Vec<&str>> = vec![Vec::new(); count.max().unwrap_or(0)];
    for (queue, name) in queues.iter().zip(names) {
        if let Queue::Dp(number) = queue {
            lists[usize::from(*number)].push(name);
        }
    }
    if lists.len() == 1 && lists[0].len() == names.len() {
        return "dynamic = \"all\"".to_owned();
    }
    format!("dynamic = {lists:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_abi::Nanos;
    use diapason_analysis::server::MainVcpu;
    use diapason_costs::{KERNEL, KernelTimes};

    fn system(servers: &[(u64, u64)]) -> System {
        let ms = |n: u64| Nanos(n * 1_000_000);
        let mains = servers.iter().map(|(c, t)| MainVcpu::new(ms(*c), ms(*t))).collect();
        System::new(mains, Vec::new())
    }

    const FAST: KernelTimes = KernelTimes::new(KERNEL, 10_000_000_000);

    #[test]
    fn rate_monotonic_if_that_holds() {
        let queues = cheapest(&system(&[(1, 4), (1, 5), (1, 20)]), &FAST).unwrap();
        assert_eq!(queues, [Queue::Fp; 3]);
        assert_eq!(lines(&queues, &["a", "b", "c"]), "dynamic = []");
    }

    #[test]
    fn no_more_than_needed_goes_by_deadline() {
        // By period alone the second is late (2 + 2 · 2 > 5), the third never is.
        let queues = cheapest(&system(&[(2, 40), (2, 4), (2, 5)]), &FAST).unwrap();
        assert_eq!(queues, [Queue::Fp, Queue::Dp(0), Queue::Dp(0)]);
        assert_eq!(lines(&queues, &["c", "a", "b"]), "dynamic = [[\"a\", \"b\"]]");
    }

    #[test]
    fn everything_by_deadline_if_nothing_less_will_do() {
        let queues = cheapest(&system(&[(2, 4), (2, 5), (1, 11)]), &FAST).unwrap();
        assert_eq!(queues, [Queue::Dp(0); 3]);
        assert_eq!(lines(&queues, &["a", "b", "c"]), "dynamic = \"all\"");
        assert_eq!(cheapest(&system(&[(2, 4), (3, 5)]), &FAST), None);
    }

    #[test]
    fn the_answer_is_the_first_of_all_that_hold() {
        let costs = KernelTimes::new(KERNEL, 1_000_000_000);
        let mut seed = 0x9e37_79b9_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..60 {
            let servers: Vec<(u64, u64)> = (0..5)
                .map(|_| {
                    let period = 3 + random(40);
                    (1 + random(period.div_ceil(4)), period)
                })
                .collect();
            let system = system(&servers);
            let mut cost_of_best = None;
            let mut by_period: Vec<usize> = (0..5).collect();
            by_period.sort_by_key(|index| system.mains[*index].period);
            for first in 0..=5 {
                for second in 0..=5 - first {
                    let mut trial = system.clone();
                    allot(&mut trial, &by_period, Lengths { first, second });
                    trial.switch = costs.switch(dp_queues(&trial));
                    if first_failure(&trial) == Ok(None) {
                        let cost = trial.switch;
                        cost_of_best =
                            Some(cost_of_best.map_or(cost, |best: Nanos| best.min(cost)));
                    }
                }
            }
            let ours = cheapest(&system, &costs).map(|queues| {
                let mut trial = system.clone();
                trial.mains.iter_mut().zip(queues).for_each(|(main, queue)| main.queue = queue);
                costs.switch(dp_queues(&trial))
            });
            assert_eq!(ours, cost_of_best, "{servers:?}");
        }
    }
}

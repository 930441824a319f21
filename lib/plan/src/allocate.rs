//! The cheapest queues that hold: of all ways to cut the VCPUs, by rising period, into up to two
//! queues by deadline above the one by period, the first in order of cost that the test admits.
//!
//! The cost of a queue by deadline is in every switch ([`KernelTimes::switch`]), so the order is
//! known before any test: by the length of the longest such queue, then by their number. Rate
//! monotonic comes first, one queue of all (EDF) among the last; hence the answer never costs more
//! than either.

use crate::core::core;
use diapason_abi::archive::VCPUS_MAX;
use diapason_analysis::server::{Queue, first_failure};
use diapason_system::{ServerSpec, System};

/// Lengths of the queues by deadline; the rest of the VCPUs are in the queue by period.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Lengths {
    first: usize,
    second: usize,
}

/// Returns the cheapest allocation that holds, as the queue of each Main VCPU; `None` if there is
/// none among those looked at: two queues by deadline for as many VCPUs as the kernel takes, one
/// beyond.
///
/// Each candidate is judged as the description that asks for it would be. The kernel's costs follow
/// from the queues: those of a switch, and its longest path.
#[must_use]
pub fn cheapest(described: &System) -> Option<Vec<Queue>> {
    let by_period = mains_by_period(described);
    let mut trial = described.clone();
    candidates(by_period.len()).into_iter().find_map(|lengths| {
        allot(&mut trial, &by_period, lengths);
        let core = core(&trial, &trial.kernel_times());
        let holds = first_failure(&core.system).ok()?.is_none();
        holds.then(|| core.system.mains.iter().map(|main| main.queue).collect())
    })
}

/// Returns the numbers of the Main VCPUs, those with the shortest periods first.
fn mains_by_period(described: &System) -> Vec<usize> {
    let period = |number: &usize| match described.vcpus[*number].server {
        ServerSpec::Main { period_ns, .. } => period_ns,
        ServerSpec::Io { .. } => u64::MAX,
    };
    let is_main = |number: &usize| period(number) < u64::MAX;
    let mut mains: Vec<usize> = (0..described.vcpus.len()).filter(is_main).collect();
    mains.sort_by_key(period);
    mains
}

/// Returns every allocation to try, cheapest first.
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

/// Puts every VCPU into the queue that it has with queues by deadline of these lengths.
fn allot(described: &mut System, by_period: &[usize], lengths: Lengths) {
    let queues = u8::from(lengths.first > 0) + u8::from(lengths.second > 0);
    described.scheduling.dp_queues = queues;
    for (place, number) in by_period.iter().enumerate() {
        described.vcpus[*number].queue = if place < lengths.first {
            0
        } else if place < lengths.first + lengths.second {
            1
        } else {
            queues
        };
    }
    for number in 0..described.vcpus.len() {
        if let ServerSpec::Io { serves, .. } = &described.vcpus[number].server {
            let served = serves.iter().map(|main| described.vcpus[usize::from(*main)].queue);
            described.vcpus[number].queue = served.min().unwrap_or(queues);
        }
    }
}

/// Returns the lines for `[scheduling]` that ask for `queues`, by the names of the Main VCPUs.
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
    use diapason_system::parse;

    const FAST: u64 = 10_000_000_000;
    const NONE: &str = "dynamic = []";
    const ALL: &str = "dynamic = \"all\"";

    /// Returns a description of VCPUs `v0`, `v1` … with these budgets and periods in ms, as
    /// `queues` says.
    fn described(servers: &[(u64, u64)], queues: &str) -> System {
        let head = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n";
        let mut text = format!("{head}[scheduling]\n{queues}\n");
        for (number, (budget, period)) in servers.iter().enumerate() {
            text += &format!(
                "[[vcpu]]\nname = \"v{number}\"\nbudget = \"{budget}ms\"\n\
                 period = \"{period}ms\"\n"
            );
        }
        parse("s.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    /// Returns the line of the cheapest queues of these VCPUs, which have the queues `now`.
    fn line(servers: &[(u64, u64)], now: &str, clock_hz: u64) -> Option<String> {
        let names: Vec<String> = (0..servers.len()).map(|number| format!("v{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut system = described(servers, now);
        system.clock_hz = clock_hz;
        let queues = cheapest(&system)?;
        Some(lines(&queues, &names))
    }

    #[test]
    fn rate_monotonic_if_that_holds() {
        assert_eq!(line(&[(1, 4), (1, 5), (1, 20)], ALL, FAST).unwrap(), "dynamic = []");
    }

    #[test]
    fn no_more_than_needed_goes_by_deadline() {
        // By period alone the second is late (2 + 2 · 2 > 5), the third never is.
        let servers = [(2, 40), (2, 4), (2, 5)];
        assert_eq!(line(&servers, ALL, FAST).unwrap(), "dynamic = [[\"v1\", \"v2\"]]");
    }

    #[test]
    fn everything_by_deadline_if_nothing_less_will_do() {
        assert_eq!(line(&[(2, 4), (2, 5), (1, 11)], NONE, FAST).unwrap(), "dynamic = \"all\"");
        assert_eq!(line(&[(2, 4), (3, 5)], ALL, FAST), None);
    }

    /// A description with the queues that were found holds, and costs no more than any other that
    /// holds. The queues that it has now make no difference.
    #[test]
    fn the_answer_holds_and_nothing_cheaper_does() {
        const CLOCK: u64 = 1_000_000_000;
        let judged = |system: &System| {
            let core = core(system, &system.kernel_times());
            (first_failure(&core.system) == Ok(None)).then_some(core.system.switch)
        };
        let mut seed = 0x9e37_79b9_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut found = 0;
        for _ in 0..60 {
            let servers: Vec<(u64, u64)> = (0..5)
                .map(|_| {
                    let period = 3 + random(40);
                    (1 + random(period.div_ceil(4)), period)
                })
                .collect();
            let now = [NONE, ALL][random(2) as usize];
            let mut trial = described(&servers, now);
            let by_period = mains_by_period(&trial);
            let pairs = (0..=5).flat_map(|first| (0..=5 - first).map(move |s| (first, s)));
            let cheapest_of_all = pairs.filter_map(|(first, second)| {
                allot(&mut trial, &by_period, Lengths { first, second });
                judged(&trial)
            });
            let cheapest_of_all = cheapest_of_all.min();
            let ours = line(&servers, now, CLOCK).map(|line| {
                found += 1;
                let wanted = described(&servers, &line);
                judged(&wanted).unwrap_or_else(|| panic!("{servers:?} with {line} does not hold"))
            });
            assert_eq!(ours, cheapest_of_all, "{servers:?}");
        }
        assert!(found > 20, "only {found} of 60 have queues that hold");
    }
}

//! Chains behind a device, with threads that take the newest once in a period, against their bound.

use crate::case::within;
use crate::machine::{Machine, Server, Vcpu};
use diapason_abi::Nanos;
use diapason_analysis::server::{MainVcpu, SharedCore, Supply, admit};
use diapason_pipe::bill::{Before, ChainStage, Hop, Relay, Stuck, relay};
use diapason_pipe::size::Bucket;
use diapason_random::Random;
use diapason_vcpu::SporadicServer;
use std::collections::VecDeque;

/// Threads of the chain and others as (C, T); work per message of each, how often it samples, how
/// long a message takes to the first, and what arrives.
#[derive(Debug)]
struct Case {
    work: Vec<u64>,
    sampled: Vec<Option<u64>>,
    vcpus: Vec<(u64, u64)>,
    chunks: u32,
    before: (u64, u64),
    contract: Vec<Bucket>,
}

/// The observations of each thread.
struct Seen {
    done: Vec<u64>,
    waiting: Vec<u64>,
}

const END: u64 = 400;

impl Case {
    fn random(random: &mut Random) -> Case {
        let hops = random.between(1, 4) as usize;
        let contract = vec![
            Bucket {
                burst: random.between(1, 6),
                messages: 1,
                per: Nanos(random.between(8, 40)),
                jitter: Nanos(random.below(2) * random.below(20)),
            },
            Bucket::periodic(Nanos(random.between(1, 6))).with_burst(random.between(1, 4)),
        ];
        let shortest = random.below(6);
        let samples = |random: &mut Random| random.one_in(3).then(|| random.between(8, 50));
        Case {
            work: (0..hops).map(|_| random.between(1, 3)).collect(),
            sampled: (0..hops).map(|hop| samples(random).filter(|_| hop > 0)).collect(),
            vcpus: (0..hops + random.index(3))
                .map(|_| (random.between(1, 6), random.between(10, 40)))
                .collect(),
            chunks: if random.one_in(3) { 3 } else { 8 },
            before: (shortest, shortest + random.below(30)),
            contract,
        }
    }

    fn bound(&self) -> Option<Result<Relay, Stuck>> {
        let main = |(budget, period): &(u64, u64)| MainVcpu {
            chunks: self.chunks,
            ..MainVcpu::new(Nanos(*budget), Nanos(*period))
        };
        let system = SharedCore::new(self.vcpus.iter().map(main).collect(), vec![]);
        admit(&system).ok()?;
        let supplies: Vec<_> = (0..self.work.len()).map(|i| Supply::of(&system, i)).collect();
        let hop = |((message, supply), sampled): ((&u64, &'_ Option<_>), &Option<u64>)| {
            let service: &'_ Supply = supply.as_ref()?;
            let sampled = sampled.map(Nanos);
            Some((Nanos(*message), service.clone(), sampled))
        };
        let parts = self.work.iter().zip(&supplies).zip(&self.sampled).map(hop);
        let parts = parts.collect::<Option<Vec<_>>>()?;
        let hops = parts.iter().map(|(message, service, sampled)| Hop {
            link: ChainStage { message: *message, service },
            sampled: *sampled,
        });
        let (shortest, longest) = (Nanos(self.before.0), Nanos(self.before.1));
        let before = Before { shortest, longest, first: Nanos::FOREVER };
        Some(relay(&hops.collect::<Vec<_>>(), &self.contract, before))
    }

    /// Returns when each message is at the device, and when it is there for the first thread.
    fn come(&self, random: &mut Random) -> VecDeque<(u64, u64)> {
        let greedy = !random.one_in(4);
        let times = within(&self.contract, random.below(30), END, greedy, random);
        let (shortest, longest) = self.before;
        let (mood, mut last) = (random.below(3), 0);
        // Some are held as long as may be, and then come with those that are not.
        let hold = |random: &mut Random| match mood {
            0 => longest,
            1 => random.between(shortest, longest),
            _ => {
                if random.one_in(3) {
                    longest
                } else {
                    shortest
                }
            }
        };
        let come = times.into_iter().map(|at| {
            last = last.max(at + hold(random));
            (at, last)
        });
        come.collect()
    }

    fn run(&self, random: &mut Random) -> Seen {
        let hops = self.work.len();
        let mut coming = self.come(random);
        let arrived: Vec<u64> = coming.iter().map(|(at, _)| *at).collect();
        let vcpu = |(budget, period): &(u64, u64)| {
            let (budget, period) = (Nanos(*budget), Nanos(*period));
            let server = SporadicServer::new(budget, period, self.chunks as usize, Nanos::ZERO);
            Vcpu::new(Server::Main(server))
        };
        let mut machine = Machine::new(self.vcpus.iter().map(vcpu).collect(), false);
        let phases: Vec<u64> =
            self.sampled.iter().map(|period| random.below(period.unwrap_or(1))).collect();
        // For each thread, numbers of messages that wait, each standing for all before it.
        let mut queues: Vec<VecDeque<usize>> = vec![VecDeque::new(); hops];
        let mut newest: Vec<Option<usize>> = vec![None; hops];
        let mut held: Vec<Option<usize>> = vec![None; hops];
        let mut passed = vec![0; hops];
        let mut seen = Seen { done: vec![0; hops], waiting: vec![0; hops] };
        let (others, mut next, end) = (random.below(3), 0, 3 * END);
        for now in 0..end {
            while coming.pop_front_if(|(_, at)| *at <= now).is_some() {
                queues[0].push_back(next);
                next += 1;
            }
            for (index, vcpu) in machine.vcpus.iter_mut().enumerate() {
                let Some(work) = self.work.get(index) else {
                    let busy = others == 0 || others == 1 && random.one_in(9);
                    vcpu.left = if busy && vcpu.left == 0 { 7 } else { vcpu.left };
                    continue;
                };
                if let Some(period) = self.sampled[index] {
                    if now % period == phases[index] {
                        assert_eq!(vcpu.left, 0, "a look is passed over: {self:#?}");
                        (vcpu.left, held[index]) = (*work, newest[index]);
                    }
                } else if vcpu.left == 0 && !queues[index].is_empty() {
                    vcpu.left = *work;
                }
                seen.waiting[index] = seen.waiting[index].max(queues[index].len() as u64);
            }
            machine.tell(now);
            let Some(who) = machine.tick(now, 0).filter(|who| *who < hops) else { continue };
            let message = match self.sampled[who] {
                Some(_) => held[who],
                None => queues[who].pop_front(),
            };
            let Some(message) = message else { continue };
            // It and all before it that a newer value stands for.
            for at in arrived.iter().take(message + 1).skip(passed[who]) {
                seen.done[who] = seen.done[who].max(now + 1 - at);
            }
            passed[who] = passed[who].max(message + 1);
            if who + 1 < hops {
                match self.sampled[who + 1] {
                    Some(_) => newest[who + 1] = Some(message),
                    None => queues[who + 1].push_back(message),
                }
            }
        }
        for (hop, passed) in passed.iter().enumerate() {
            let late = arrived.iter().skip(*passed).map(|at| end - at);
            seen.done[hop] = late.fold(seen.done[hop], u64::max);
        }
        seen
    }
}

#[derive(Default)]
struct Tally {
    tightness: Vec<u64>,
    sampling: u32,
    /// Those that take longer than they could without the wait for a look.
    caught: u32,
    skips: u32,
    full: u32,
}

fn campaign(seed: u64, sets: u64, runs: u64) {
    let (mut tally, mut index) = (Tally::default(), 0);
    while (tally.tightness.len() as u64) < sets {
        index += 1;
        let mut random = Random::stream(seed, index);
        let case = Case::random(&mut random);
        let bound = match case.bound() {
            Some(Ok(bound)) => bound,
            Some(Err(why)) => {
                tally.skips += u32::from(matches!(why, Stuck::Skips(..)));
                continue;
            }
            None => continue,
        };
        tally.sampling += u32::from(bound.sampled.is_some());
        let mut longest = 0;
        for _ in 0..runs {
            let seen = case.run(&mut random);
            for (hop, reach) in bound.reaches().iter().enumerate() {
                let told = || format!("thread {hop}, {reach:?}\n{case:#?}");
                assert!(seen.done[hop] <= reach.done.0, "{} late: {}", seen.done[hop], told());
                let waiting = seen.waiting[hop];
                assert!(waiting <= reach.waiting, "{waiting} waiting: {}", told());
                tally.full += u32::from(waiting == reach.waiting);
            }
            longest = longest.max(seen.done[case.work.len() - 1]);
        }
        let look = bound.sampled.unwrap_or(bound.end().done);
        let sampled = bound.sampled.is_some();
        tally.caught += u32::from(sampled && longest > (bound.end().done - look).0);
        tally.tightness.push(1000 * longest / bound.end().done.0);
    }
    let Tally { tightness: mut seen, sampling, caught, skips, full } = tally;
    seen.sort_unstable();
    let (median, most) = (seen[seen.len() / 2], seen[seen.len() - 1]);
    println!(
        "relays: {sets} sets, {sampling} with state messages, {caught} of them later than without \
         the wait for a look ({skips} refused for looks passed over), {full} places full; \
         observed/bound in per mille, min / median / max: {} / {median} / {most}",
        seen[0]
    );
    assert!(
        sampling > 0 && caught > 0 && skips > 0 && full > 0 && most > 850,
        "the attack has no teeth"
    );
}

#[test]
fn relays_keep_their_bound() {
    campaign(1, 1_000, 4);
}

#[test]
#[ignore = "minutes: the campaigns of docs/pipes-proofs.md"]
fn ten_thousand_relays() {
    campaign(2, 10_000, 20);
}

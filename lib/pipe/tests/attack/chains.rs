//! Chains of threads that pass messages on, against the bound of each link added, and of all
//! together.

use crate::case::within;
use crate::machine::{Machine, Server, Vcpu};
use diapason_abi::Nanos;
use diapason_analysis::server::{MainVcpu, SharedCore, Supply, admit};
use diapason_pipe::bill::{ChainBound, ChainStage, chain};
use diapason_pipe::size::Bucket;
use diapason_random::Random;
use diapason_vcpu::SporadicServer;
use std::collections::VecDeque;

/// Links and others as (C, T), work per message of each link, and what arrives.
#[derive(Debug)]
struct Chain {
    work: Vec<u64>,
    vcpus: Vec<(u64, u64)>,
    chunks: u32,
    contract: Vec<Bucket>,
}

impl Chain {
    fn random(random: &mut Random) -> Chain {
        let links = random.between(2, 4) as usize;
        let contract = vec![
            Bucket {
                burst: random.between(1, 8),
                messages: 1,
                per: Nanos(random.between(8, 40)),
                jitter: Nanos(random.below(2) * random.below(20)),
            },
            Bucket::periodic(Nanos(random.between(1, 6))).with_burst(random.between(1, 4)),
        ];
        let count = links + random.index(3);
        let vcpus = (0..count).map(|_| (random.between(1, 6), random.between(10, 40))).collect();
        Chain {
            work: (0..links).map(|_| random.between(1, 3)).collect(),
            vcpus,
            chunks: if random.one_in(3) { 3 } else { 8 },
            contract,
        }
    }

    fn bound(&self) -> Option<ChainBound> {
        let main = |(budget, period): &(u64, u64)| MainVcpu {
            chunks: self.chunks,
            ..MainVcpu::new(Nanos(*budget), Nanos(*period))
        };
        let system = SharedCore::new(self.vcpus.iter().map(main).collect(), vec![]);
        admit(&system).ok()?;
        let supplies: Vec<_> = (0..self.work.len()).map(|i| Supply::of(&system, i)).collect();
        let links = self.work.iter().zip(&supplies).map(|(message, supply)| {
            Some(ChainStage { message: Nanos(*message), service: supply.as_ref()? })
        });
        chain(&links.collect::<Option<Vec<_>>>()?, &self.contract, Nanos::ZERO).ok()
    }

    /// Returns the longest time of a message.
    fn run(&self, random: &mut Random) -> u64 {
        let end = 400;
        let greedy = !random.one_in(4);
        let times = within(&self.contract, random.below(30), end, greedy, random);
        let vcpu = |(budget, period): &(u64, u64)| {
            let (budget, period) = (Nanos(*budget), Nanos(*period));
            let server = SporadicServer::new(budget, period, self.chunks as usize, Nanos::ZERO);
            Vcpu::new(Server::Main(server))
        };
        let mut machine = Machine::new(self.vcpus.iter().map(vcpu).collect(), false);
        let mut queues = vec![VecDeque::new(); self.work.len() + 1];
        let mut coming = times.into_iter().peekable();
        let (others, mut longest) = (random.below(3), 0);
        for now in 0..2 * end {
            while coming.next_if(|at| *at <= now).is_some() {
                queues[0].push_back(now);
            }
            for (index, vcpu) in machine.vcpus.iter_mut().enumerate().filter(|(_, v)| v.left == 0) {
                match self.work.get(index) {
                    Some(work) if !queues[index].is_empty() => vcpu.left = *work,
                    Some(_) => {}
                    None if others == 0 || others == 1 && random.one_in(9) => vcpu.left = 7,
                    None => {}
                }
            }
            machine.tell(now);
            let Some(who) = machine.tick(now, 0).filter(|who| *who < self.work.len()) else {
                continue;
            };
            let message = queues[who].pop_front().expect("it worked on one");
            queues[who + 1].push_back(message);
            if who + 1 == self.work.len() {
                longest = longest.max(now + 1 - message);
            }
        }
        let waiting = queues[..self.work.len()].iter().flatten();
        waiting.map(|arrived| 2 * end - arrived).fold(longest, u64::max)
    }
}

fn campaign(seed: u64, sets: u64, runs: u64) {
    let (mut seen, mut index, mut shorter) = (vec![], 0, 0);
    while (seen.len() as u64) < sets {
        index += 1;
        let mut random = Random::stream(seed, index);
        let chain = Chain::random(&mut random);
        let Some(bound) = chain.bound() else { continue };
        assert!(bound.together <= bound.sum);
        shorter += u32::from(bound.together < bound.sum);
        let longest = (0..runs).map(|_| chain.run(&mut random)).max().unwrap_or(0);
        assert!(longest <= bound.together.0, "{longest} > {bound:?}\n{chain:#?}");
        seen.push(1000 * longest / bound.together.0);
    }
    seen.sort_unstable();
    let (median, most) = (seen[seen.len() / 2], seen[seen.len() - 1]);
    println!(
        "chains: {sets} sets, {shorter} shorter together than added; observed/bound in per mille, \
         min / median / max: {} / {median} / {most}",
        seen[0]
    );
    assert!(shorter > 0 && most > 700, "the attack has no teeth");
}

#[test]
fn chains_keep_their_bound() {
    campaign(1, 300, 6);
}

#[test]
#[ignore = "minutes: the campaigns of docs/pipes-proofs.md"]
fn ten_thousand_chains() {
    campaign(2, 10_000, 20);
}

//! A device alone, with requests that come back as late as a round allows: no message waits longer
//! than the bound.

use super::super::rounds::{BackToBack, Sampling};
use super::super::steps::{Demand, longest_delay};
use super::*;
use crate::size::{Bucket, arrivals};
use diapason_random::Random;

/// One interface and what comes.
struct Case {
    bus: Transfers,
    round: u64,
    contract: Vec<Bucket>,
}

impl Case {
    fn random(random: &mut Random) -> Case {
        let run = if random.one_in(2) { 1 } else { random.between(2, 3) };
        let messages = random.between(1, 5);
        let bus = Transfers {
            worst: Nanos(random.between(run, 6)),
            run,
            least: Nanos(1),
            queued: random.between(1, 6),
            messages,
            empties: messages > 1 && random.one_in(2),
            paced: None,
        };
        let slow = Bucket {
            burst: random.between(1, 8),
            messages: random.between(1, 3),
            per: Nanos(random.between(2, 24)),
            jitter: Nanos::ZERO,
        };
        let fast = Bucket {
            burst: random.between(1, 3),
            messages: 1,
            per: Nanos(random.between(1, 3)),
            jitter: Nanos::ZERO,
        };
        let contract = if random.one_in(3) { vec![slow] } else { vec![slow, fast] };
        let round = bus.worst.0 + random.between(0, 60);
        Case { bus, round, contract }
    }

    /// Returns the bound, the one before it, and that for transfers in a row.
    fn bounds(&self) -> Option<(u64, u64, u64)> {
        let channels: &[&[Bucket]] = &[&self.contract];
        let messages = Messages { channels, ahead: Nanos::ZERO };
        let demand: &Demand<'_> = &[(Nanos(1), &messages)];
        let round = Nanos(self.round);
        let in_a_row = longest_delay(&BackToBack(self.bus), demand).ok()?;
        let sampling = Sampling { queued: self.bus.queued, round, bus: self.bus };
        let known = longest_delay(&sampling, demand).ok()?;
        let wait = Scarce { bus: self.bus, round, messages, in_a_row }.wait(known);
        Some((wait.0, known.0, in_a_row.0))
    }

    /// Returns arrivals that keep the contract: early ones, in bursts, or with pauses.
    fn arrivals(&self, random: &mut Random, end: u64) -> Vec<u64> {
        let mut times: Vec<u64> = vec![];
        let (mut pause, chance) = (0, random.pick(&[3, 12, 60, 100_000]));
        for now in 0..end {
            if now < pause {
                continue;
            }
            loop {
                let mut windows = times.iter().rev().zip(2..);
                let kept = |(then, count): (&u64, u64)| {
                    arrivals(&self.contract, Nanos(now - then)) >= count
                };
                if !windows.all(kept) {
                    break;
                }
                times.push(now);
                if random.one_in(chance) {
                    pause = now + random.below(40);
                    break;
                }
            }
        }
        times
    }

    /// Returns the longest wait of a message until a transfer could begin that takes it.
    fn longest(&self, times: &[u64], random: &mut Random) -> u64 {
        let Transfers { worst, run, queued, messages, empties, .. } = self.bus;
        let always_worst = random.one_in(2);
        let mut back: Vec<u64> = vec![0; queued as usize];
        let mut taken = 0;
        let (mut ended, mut row) = (0, vec![]);
        let (mut empty_next, mut longest) = (false, 0);
        while taken < times.len() {
            back.sort_unstable();
            let ready = back[0].max(ended);
            let empty = empty_next && times[taken] > ready;
            let could = if empty { ready } else { ready.max(times[taken]) };
            // A row goes on if the transfer could begin when the one before it ended.
            if could > ended {
                row.clear();
            }
            row.push(could);
            // The rest of a run finds its time, too: each takes some.
            let ends = row.iter().rev().zip(1_u64..);
            let latest = ends.map(|(first, count)| {
                let runs = count.div_ceil(run);
                first + worst.0 * runs - (runs * run - count)
            });
            let latest = latest.min().unwrap_or(could);
            let end = if always_worst { latest } else { random.between(could + 1, latest) };
            let begin = if random.one_in(2) { could } else { random.between(could, end - 1) };
            let there = times[taken..].iter().take_while(|at| **at <= begin).count() as u64;
            let count = there.min(messages);
            for at in &times[taken..taken + count as usize] {
                longest = longest.max(could.saturating_sub(*at));
            }
            taken += count as usize;
            empty_next = empties && count == messages;
            let round = self.round - random.below(2) * random.below(2) * random.below(self.round);
            (back[0], ended) = (end.max(could + round), end);
        }
        longest
    }
}

#[test]
fn no_message_waits_longer_and_some_wait_almost_as_long() {
    let mut random = Random::new(0x5ca2ce);
    let (mut shorter, mut close, mut cases) = (0, 0, 0);
    while cases < 3_000 {
        let case = Case::random(&mut random);
        let Some((wait, known, in_a_row)) = case.bounds() else { continue };
        cases += 1;
        let mut longest = 0;
        for _ in 0..6 {
            let times = case.arrivals(&mut random, 300);
            longest = longest.max(case.longest(&times, &mut random));
        }
        let Case { bus, round, contract } = &case;
        assert!(longest <= wait, "{longest} > {wait}: {bus:?}, round {round}, {contract:?}");
        assert!(wait <= known.max(in_a_row));
        if in_a_row < wait && wait < known {
            shorter += 1;
            close += u64::from(longest * 5 >= wait * 4);
        }
    }
    let found = format!("{shorter} are shorter, {close} of these are reached to four fifths");
    assert!(shorter > 500 && close > 50, "{found}");
}

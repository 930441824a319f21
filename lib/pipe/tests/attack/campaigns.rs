//! Random admitted endpoints against random traffic.

use crate::case::Case;
use crate::pipe::Outcome;
use diapason_pipe::bill::{Bill, What};
use diapason_random::Random;

/// What a campaign saw.
#[derive(Default)]
pub struct Tally {
    sets: u64,
    refused: u64,
    messages: u64,
    /// Observed against bound of each pipe in each set, in per mille.
    tightness: Vec<u64>,
    slots: Vec<u64>,
}

impl Tally {
    fn show(&mut self, name: &str) {
        let spread = |values: &mut Vec<u64>| {
            values.sort_unstable();
            let at = |part: usize| values.get(values.len() * part / 100).copied().unwrap_or(0);
            format!("{} / {} / {} / {}", at(0), at(50), at(99), values.last().unwrap_or(&0))
        };
        println!(
            "{name}: {} sets ({} without a bill), {} messages; observed/bound in per mille, min / \
             median / p99 / max: latency {}, slots {}",
            self.sets,
            self.refused,
            self.messages,
            spread(&mut self.tightness),
            spread(&mut self.slots)
        );
    }
}

/// Hold a run against the bills of the channels that keep their contract.
fn judge(
    case: &Case,
    bills: &[Bill],
    outcome: &Outcome,
    end: u64,
    loud: Option<usize>,
) -> Vec<u64> {
    let mut longest = vec![0; bills.len()];
    for message in &outcome.messages {
        let channel = message.channel;
        if loud == Some(channel) {
            continue;
        }
        let bill = &bills[channel];
        let age = |then: Option<u64>| then.unwrap_or(end) - message.arrived;
        let item = |what| bill.item(what).map_or(0, |item| item.value.0);
        let told = || format!("{message:?}\n{bill}\n{case:#?}");
        assert!(age(message.sampled) <= item(What::Request), "not sampled in time: {}", told());
        let before = bill.total.0 - item(What::User);
        assert!(age(message.in_ring) <= before, "late in the ring: {}", told());
        assert!(age(message.done) <= bill.total.0, "late: {}", told());
        longest[channel] = longest[channel].max(age(message.done));
    }
    for (channel, peak) in outcome.peaks.iter().enumerate() {
        let fits = *peak as u64 <= bills[channel].slots;
        assert!(fits || loud == Some(channel), "{channel}: {peak} slots\n{case:#?}");
    }
    if loud.is_none() {
        let device = outcome.device_peak as u64;
        assert!(device <= bills[0].device, "{device} in the device\n{}\n{case:#?}", bills[0]);
    }
    longest
}

const LENGTH: u64 = 300;

/// `sets` admitted endpoints with `runs` runs each.
pub fn within_contract(name: &str, seed: u64, sets: u64, runs: u64) {
    let mut tally = Tally::default();
    let mut index = 0;
    while tally.sets < sets {
        index += 1;
        let mut random = Random::stream(seed, index);
        let case = Case::random(&mut random);
        let Some(supplies) = case.supplies() else { continue };
        let Ok(bills) = case.bills(&supplies) else {
            tally.refused += 1;
            continue;
        };
        tally.sets += 1;
        let mut longest = vec![0; bills.len()];
        let mut peaks = vec![0; bills.len()];
        for _ in 0..runs {
            let outcome = case.run(&mut random, LENGTH, None);
            tally.messages += outcome.messages.len() as u64;
            let seen = judge(&case, &bills, &outcome, LENGTH * 3 / 2, None);
            longest.iter_mut().zip(seen).for_each(|(most, seen)| *most = seen.max(*most));
            let seen = outcome.peaks.iter();
            peaks.iter_mut().zip(seen).for_each(|(most, seen)| *most = (*seen).max(*most));
        }
        for ((bill, longest), peak) in bills.iter().zip(longest).zip(peaks) {
            tally.tightness.push(1000 * longest / bill.total.0);
            tally.slots.push(1000 * peak as u64 / bill.slots);
        }
    }
    tally.show(name);
}

#[test]
fn no_pipe_within_contract_is_late_or_loses() {
    within_contract("quick", 1, 400, 6);
}

/// `cargo test --release -p diapason-pipe --test attack -- --ignored --nocapture`
#[test]
#[ignore = "minutes: the campaign of docs/pipes.md"]
fn ten_thousand_admitted_sets() {
    within_contract("within contract", 2, 10_000, 20);
}

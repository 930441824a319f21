//! Random admitted endpoints against random traffic.

use crate::case::Case;
use crate::pipe::Outcome;
use diapason_pipe::bill::{Bill, What, equation_nine};
use diapason_random::Random;

/// The results of a campaign.
#[derive(Default)]
struct Tally {
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

/// Holds a run against the bills; of the pipe whose thread is too `slow`, only up to its ring.
pub fn judge(
    case: &Case,
    bills: &[Bill],
    outcome: &Outcome,
    end: u64,
    slow: Option<usize>,
) -> Vec<u64> {
    let mut longest = vec![0; bills.len()];
    for message in &outcome.messages {
        let channel = message.channel;
        let Some(bill) = bills.get(channel) else { continue };
        let age = |then: Option<u64>| then.unwrap_or(end) - message.arrived;
        let item = |what| bill.item(what).map_or(0, |item| item.value.0);
        let told = || format!("{message:?}\n{bill}\n{case:#?}");
        assert!(age(message.sampled) <= item(What::Request), "not sampled in time: {}", told());
        let before = bill.total.0 - item(What::User) - item(What::Look);
        assert!(age(message.in_ring) <= before, "late in the ring: {}", told());
        if slow == Some(channel) {
            continue;
        }
        assert!(age(message.done) <= bill.total.0, "late: {}", told());
        longest[channel] = longest[channel].max(age(message.done));
    }
    for (channel, peak) in outcome.peaks.iter().enumerate() {
        let fits = *peak as u64 <= bills[channel].slots;
        assert!(fits || slow == Some(channel), "{channel}: {peak} slots\n{case:#?}");
    }
    let device = outcome.device_peak as u64;
    assert!(device <= bills[0].device, "{device} in the device\n{}\n{case:#?}", bills[0]);
    longest
}

/// Judges so many runs of a case with arrivals for so long. Returns the longest of each pipe.
pub fn longest(
    case: &Case,
    bills: &[Bill],
    random: &mut Random,
    (runs, length): (u64, u64),
) -> Vec<u64> {
    let mut longest = vec![0; bills.len()];
    for _ in 0..runs {
        let outcome = case.run(random, length, None);
        let seen = judge(case, bills, &outcome, length * 3 / 2, None);
        longest.iter_mut().zip(seen).for_each(|(most, seen)| *most = seen.max(*most));
    }
    longest
}

const LENGTH: u64 = 300;

/// Admitted endpoints with their bills, without end.
struct Cases {
    seed: u64,
    index: u64,
    refused: u64,
    draw: fn(&mut Random) -> Case,
}

impl Cases {
    fn new(seed: u64) -> Cases {
        Cases::of(seed, Case::random)
    }

    fn of(seed: u64, draw: fn(&mut Random) -> Case) -> Cases {
        Cases { seed, index: 0, refused: 0, draw }
    }

    fn next(&mut self) -> (Case, Vec<Bill>, Random) {
        loop {
            self.index += 1;
            let mut random = Random::stream(self.seed, self.index);
            let case = (self.draw)(&mut random);
            let Some(supplies) = case.supplies() else { continue };
            match case.bills(&supplies) {
                Ok(bills) => return (case, bills, random),
                Err(_) => self.refused += 1,
            }
        }
    }
}

/// `sets` admitted endpoints with `runs` runs each; with `slow`, one thread in each is too slow.
fn campaign(name: &str, cases: Cases, sets: u64, runs: u64, slow: bool) {
    let (mut tally, mut cases) = (Tally::default(), cases);
    while tally.sets < sets {
        let (case, bills, mut random) = cases.next();
        if slow && bills.len() == 1 {
            continue;
        }
        tally.sets += 1;
        let slow = slow.then(|| random.index(bills.len()));
        let mut longest = vec![0; bills.len()];
        let mut peaks = vec![0; bills.len()];
        for _ in 0..runs {
            let outcome = case.run(&mut random, LENGTH, slow);
            tally.messages += outcome.messages.len() as u64;
            let seen = judge(&case, &bills, &outcome, LENGTH * 3 / 2, slow);
            longest.iter_mut().zip(seen).for_each(|(most, seen)| *most = seen.max(*most));
            let seen = outcome.peaks.iter();
            peaks.iter_mut().zip(seen).for_each(|(most, seen)| *most = (*seen).max(*most));
        }
        for (pipe, bill) in bills.iter().enumerate().filter(|(pipe, _)| slow != Some(*pipe)) {
            tally.tightness.push(1000 * longest[pipe] / bill.total.0);
            tally.slots.push(1000 * peaks[pipe] as u64 / bill.slots);
        }
    }
    tally.refused = cases.refused;
    tally.show(name);
}

#[test]
fn no_pipe_within_contract_is_late_or_loses() {
    campaign("within contract", Cases::new(1), 300, 6, false);
}

#[test]
fn messages_of_another_endpoint_make_no_pipe_later_than_its_bill() {
    campaign("another endpoint beside", Cases::of(11, Case::shared), 300, 6, false);
}

#[test]
fn a_thread_that_is_too_slow_harms_no_other_pipe() {
    campaign("one too slow", Cases::new(3), 150, 6, true);
}

#[test]
fn a_bill_without_the_messages_beside_is_exceeded() {
    let mut cases = Cases::of(13, Case::shared);
    let mut exceeded = 0;
    for _ in 0..300 {
        let (case, _, mut random) = cases.next();
        let alone = Case { beside: Vec::new(), ..case.clone() };
        let supplies = case.supplies().expect("it was admitted");
        let Ok(bills) = alone.bills(&supplies) else { continue };
        let outcome = case.run(&mut random, LENGTH, None);
        let late = outcome.messages.iter().any(|message| {
            let age = message.done.map(|done| done - message.arrived);
            bills.get(message.channel).is_some_and(|bill| age > Some(bill.total.0))
        });
        exceeded += u32::from(late);
    }
    assert!(exceeded > 0);
}

/// `cargo test --release -p diapason-pipe --test attack -- --ignored --nocapture`
#[test]
#[ignore = "minutes: the campaigns of docs/pipes-proofs.md"]
fn ten_thousand_admitted_sets() {
    campaign("within contract", Cases::new(2), 10_000, 20, false);
    campaign("one too slow", Cases::new(4), 2_000, 20, true);
    campaign("another endpoint beside", Cases::of(12, Case::shared), 10_000, 20, false);
}

/// The wrong bills that runs exceed.
#[derive(Default, Debug)]
struct Caught {
    moderation: u32,
    bus: u32,
    equation_nine: u32,
    little: u32,
    /// The time of a run is that of many more transfers.
    row: u32,
}

/// A bill that leaves something out is found out: the attack can tell right from wrong.
#[test]
fn wrong_bills_are_caught() {
    let (mut caught, mut cases) = (Caught::default(), Cases::new(5));
    for _ in 0..500 {
        let (case, bills, mut random) = cases.next();
        let supplies = case.supplies().expect("it was admitted");
        for _ in 0..4 {
            let outcome = case.run(&mut random, LENGTH, None);
            for (pipe, bill) in bills.iter().enumerate() {
                let own = outcome.messages.iter().filter(|message| message.channel == pipe);
                let ages = own.filter_map(|message| Some(message.done? - message.arrived));
                let longest = ages.max().unwrap_or(0);
                let without = |what| bill.item(what).map_or(0, |item| bill.total.0 - item.value.0);
                let stages = case.stages(&supplies, pipe);
                let paper = equation_nine(&stages, case.setup.bus.worst);
                let bucket = case.contracts[pipe][0];
                let period = case.setup.readers[pipe].vcpu.1;
                let little = (period * bucket.messages).div_ceil(bucket.per.0);
                let moderated = case.setup.moderation > 0;
                let to_ring = outcome.messages.iter().filter(|message| message.channel == pipe);
                let to_ring =
                    to_ring.filter_map(|message| Some(message.in_ring? - message.arrived));
                let user = bill.item(What::User).map_or(0, |item| item.value.0);
                let unmoderated = without(What::Moderation) - user;
                let late = moderated && to_ring.max() > Some(unmoderated);
                caught.moderation += u32::from(late);
                caught.bus += u32::from(longest > without(What::Request) - case.setup.bus.worst.0);
                let waited = outcome.messages.iter().filter(|message| message.channel == pipe);
                let waited = waited.filter_map(|message| Some(message.sampled? - message.arrived));
                let hasty = case.clone().in_a_row(64).bills(&supplies);
                let wait = hasty.ok().and_then(|bills| bills[pipe].item(What::Request));
                caught.row += u32::from(wait.is_some_and(|wait| waited.max() > Some(wait.value.0)));
                caught.equation_nine += u32::from(longest > paper.0);
                caught.little += u32::from(outcome.peaks[pipe] as u64 > little);
            }
        }
    }
    println!("{caught:?}");
    let Caught { moderation, bus, equation_nine, little, row } = caught;
    let all = [moderation, bus, equation_nine, little, row];
    assert!(all.iter().all(|caught| *caught > 0), "{caught:?}");
}

//! Bottom halves whose work is known: what delays them and the thread of the pipe counts once.

use crate::campaigns::longest;
use crate::case::{Case, Supplies};
use diapason_abi::Nanos;
use diapason_analysis::server::{BottomHalf, IoSupply, SharedCore, Supply};
use diapason_pipe::bill::*;
use diapason_random::Random;

const LENGTH: u64 = 400;

impl Case {
    /// Returns an endpoint whose bottom half works for each wake-up, and for nothing else.
    fn known(random: &mut Random, by_deadline: bool) -> Case {
        let mut case = Case::random(random);
        let setup = &mut case.setup;
        (setup.receiver, setup.known, setup.by_deadline) = (None, true, by_deadline);
        setup.bottom_half.telling = Telling::All;
        let activation = Nanos(random.between(1, 4));
        setup.bottom_half.work = StageTimes { activation, ..StageTimes::default() };
        setup.moderation = random.between(5, 14);
        setup.gap = setup.moderation;
        setup.bus = Transfers { messages: 64, ..Transfers::of_one(Nanos(1), Nanos(1), 64) };
        let period = random.between(16, 50);
        for reader in &mut setup.readers {
            reader.taking = Taking::Each;
            reader.vcpu = (random.between(3, 10), period);
        }
        setup.io = (random.pick(&[2, 3, 4]), period);
        if by_deadline && random.one_in(2) {
            // A section counts for each VCPU of the queue, and is seldom seen so often.
            (setup.section, setup.top_half) = (0, 0);
        }
        setup.others =
            (0..random.below(4)).map(|_| (random.between(1, 12), random.between(8, 90))).collect();
        case
    }

    /// Returns the servers of `system`, if no wake-up of the bottom half waits for a grant.
    pub fn knowing(&self, mut system: SharedCore) -> Option<Supplies> {
        let work = self.setup.bottom_half.work.activation;
        let sources: Vec<InterruptDemand> = system.sources.iter().map(demand).collect();
        let told = top_half(Nanos(self.setup.section), &sources)?;
        let gap = Nanos(self.setup.gap.checked_sub(told.0).filter(|gap| *gap > 0)?);
        system.ios[0].wake_gap = gap;
        let known = system.knowing(0, work)?;
        let io = BottomHalf::of(IoSupply::inherited(&known, 0)?).knowing(known.clone(), 0);
        let readers = (0..self.setup.readers.len()).map(|reader| Supply::of(&known, reader));
        let readers = readers.collect::<Option<Vec<Supply>>>()?;
        let mut supplies = Supplies { io, receiver: None, readers };
        let brought = self.bills(&supplies).ok()?[0].value(What::BottomHalf);
        let readers = supplies.readers.into_iter().enumerate();
        let readers = readers.map(|(place, reader)| reader.behind(&known, place, 0, brought));
        supplies.readers = readers.collect();
        Some(supplies)
    }
}

fn demand(source: &diapason_analysis::server::InterruptSource) -> InterruptDemand {
    InterruptDemand { gap: source.gap, cost: source.cost }
}

/// The results of a campaign.
#[derive(Default, Debug)]
struct Tally {
    /// Pipes whose bound counts once what delays both stages.
    conformant: u32,
    /// Those of them with a message that took nine tenths of its bound.
    near: u32,
    /// Those with a message that a wrong bound does not cover.
    wrong: u32,
}

/// Returns a wrong bound of each pipe: the thread's own response behind the top half, as if there
/// were no bottom half.
fn without_half(case: &Case, supplies: Supplies) -> Vec<u64> {
    let mut system = case.system();
    system.ios.clear();
    let readers = (0..supplies.readers.len()).map(|place| Supply::of(&system, place));
    let Some(readers) = readers.collect() else { return Vec::new() };
    let bills = case.bills(&Supplies { readers, ..supplies });
    let wrong = |bill: &Bill| (bill.total - bill.value(What::BottomHalf)).0;
    bills.iter().flatten().map(wrong).collect()
}

/// Judges `sets` endpoints with `runs` runs each.
fn campaign(seed: u64, sets: u64, runs: u64, by_deadline: bool) -> Tally {
    let (mut tally, mut index, mut done) = (Tally::default(), 0, 0);
    while done < sets {
        index += 1;
        let mut random = Random::stream(seed, index);
        let case = Case::known(&mut random, by_deadline);
        let Some(supplies) = case.supplies() else { continue };
        let Ok(bills) = case.bills(&supplies) else { continue };
        done += 1;
        let longest = longest(&case, &bills, &mut random, (runs, LENGTH));
        let hasty = without_half(&case, supplies);
        for ((bill, longest), hasty) in bills.iter().zip(longest).zip(hasty) {
            if bill.item(What::User).is_none_or(|user| user.basis != Basis::Conformant) {
                continue;
            }
            tally.conformant += 1;
            tally.near += u32::from(longest * 10 >= bill.total.0 * 9);
            tally.wrong += u32::from(longest > hasty);
        }
    }
    println!("{sets} sets, by deadline {by_deadline}: {tally:?}");
    tally
}

/// `cargo test --release -p diapason-pipe --test attack -- --ignored --nocapture`
#[test]
#[ignore = "minutes: the campaigns of docs/pipes-proofs.md"]
fn twenty_thousand_known_bottom_halves() {
    for by_deadline in [false, true] {
        campaign(32, 20_000, 30, by_deadline);
    }
}

#[test]
fn what_delays_both_stages_counts_once() {
    for (sets, by_deadline) in [(200, false), (1_000, true)] {
        let tally = campaign(31, sets, 6, by_deadline);
        assert!(tally.conformant > 100 && tally.wrong > 0, "{tally:?}");
    }
}

//! How often a bottom half wakes its readers, however late it is, and what that does to bounds of
//! readers whose lists of replenishments are short.

use crate::campaigns::judge;
use crate::case::Case;
use diapason_abi::Nanos;
use diapason_pipe::bill::*;
use diapason_pipe::size::{Bucket, arrivals};
use diapason_random::Random;

const LENGTH: u64 = 400;
/// Times that may be closer together than the interrupts that they belong to.
const VISITS: u64 = 2;

impl Case {
    /// Returns an endpoint with a bottom half that may be late by several interrupts, and with
    /// readers whose lists are short.
    fn late(random: &mut Random) -> Case {
        let mut case = Case::random(random);
        let setup = &mut case.setup;
        setup.receiver = None;
        setup.bottom_half.telling = Telling::All;
        let activation = Nanos(random.between(1, 3));
        setup.bottom_half.work = StageTimes { activation, ..StageTimes::default() };
        setup.moderation = random.between(2, 6);
        setup.gap = setup.moderation;
        setup.bus = Transfers { messages: 64, ..Transfers::of_one(Nanos(1), Nanos(1), 64) };
        let period = random.between(16, 40);
        for reader in &mut setup.readers {
            (reader.taking, reader.message) = (Taking::Each, 1);
            reader.vcpu = (random.between(period / 4, period / 2), period);
        }
        setup.io = (random.pick(&[3, 4, 5]), period);
        setup.chunks = random.within(3, 8);
        setup.by_deadline = random.one_in(3);
        let others = (0..random.between(1, 2)).map(|_| {
            let period = random.between(8, 40);
            (random.between(1, period / 3), period)
        });
        setup.others = others.collect();
        let bucket = |random: &mut Random| Bucket {
            burst: random.between(1, 2),
            messages: 1,
            per: Nanos(random.between(6, 30)),
            jitter: Nanos(0),
        };
        case.contracts.iter_mut().for_each(|contract| *contract = vec![bucket(random)]);
        case
    }

    /// Returns the most times in a closed window that a bottom half wakes the reader with this
    /// bill, if so many visits may be for messages that ended before the window.
    fn tellings(&self, (pipe, bill): (usize, &Bill), window: u64, visits: u64) -> u64 {
        let value = |what| bill.value(what).0;
        let least = self.setup.bus.least.0;
        let interrupts = |ahead: u64| 1 + (window + ahead) / self.setup.gap;
        let messages = |ahead: u64| arrivals(&self.contracts[pipe], Nanos(window + ahead));
        let before = bill.total.0 - value(What::User) - least;
        let late = interrupts(value(What::TopHalf) + value(What::BottomHalf));
        let ended = messages(value(What::Request) + value(What::Bus) - least);
        let soon = ended.min(interrupts(value(What::TopHalf)));
        late.min(messages(before)).min(visits.saturating_add(soon))
    }
}

/// The results of a campaign.
#[derive(Default, Debug)]
struct Tally {
    /// Windows with as many wake-ups as there can be, which would be more if visits did not merge.
    full: u64,
    /// Windows with more than there would be if one visit less were counted.
    wrong: u64,
    /// Pipes whose reader waits for a place or finds one.
    places: u32,
    /// Those of them with a message that took half of its bound.
    near: u32,
}

impl Tally {
    /// Holds the times at which a reader was woken against its bill, in every window.
    fn count(&mut self, case: &Case, (pipe, bill): (usize, &Bill), told: &[u64]) {
        for (first, from) in told.iter().enumerate() {
            for (count, to) in (1..).zip(&told[first..]).take(24) {
                let most = |visits| case.tellings((pipe, bill), to - from, visits);
                assert!(count <= most(VISITS), "{pipe}: {told:?}\n{bill}\n{case:#?}");
                self.full += u64::from(count == most(VISITS) && count < most(u64::MAX));
                self.wrong += u64::from(count > most(VISITS - 1));
            }
        }
    }
}

fn campaign(seed: u64, sets: u64, runs: u64) -> Tally {
    let (mut tally, mut index, mut done) = (Tally::default(), 0, 0);
    while done < sets {
        index += 1;
        let mut random = Random::stream(seed, index);
        let case = Case::late(&mut random);
        let Some(supplies) = case.supplies() else { continue };
        let Ok(bills) = case.bills(&supplies) else { continue };
        let half = bills[0].value(What::BottomHalf).0;
        if half <= 2 * case.setup.gap {
            continue;
        }
        done += 1;
        let mut longest = vec![0; bills.len()];
        for _ in 0..runs {
            let outcome = case.run(&mut random, LENGTH, None);
            for (pipe, told) in outcome.told.iter().enumerate() {
                tally.count(&case, (pipe, &bills[pipe]), told);
            }
            let seen = judge(&case, &bills, &outcome, LENGTH * 3 / 2, None);
            longest.iter_mut().zip(seen).for_each(|(most, seen)| *most = seen.max(*most));
        }
        for (bill, longest) in bills.iter().zip(longest) {
            let user = bill.item(What::User).map(|item| item.basis);
            if !matches!(user, Some(Basis::Conformant | Basis::Places { .. })) {
                continue;
            }
            tally.places += 1;
            tally.near += u32::from(longest * 2 >= bill.total.0);
        }
    }
    println!("{sets} sets: {tally:?}");
    tally
}

/// `cargo test --release -p diapason-pipe --test attack -- --ignored --nocapture`
#[test]
#[ignore = "minutes: the campaigns of docs/pipes-proofs.md"]
fn ten_thousand_late_bottom_halves() {
    campaign(34, 10_000, 20);
}

#[test]
fn a_late_bottom_half_wakes_no_reader_more_often_than_twice_at_once() {
    let tally = campaign(33, 300, 8);
    assert!(tally.full > 0 && tally.wrong > 0 && tally.near > 0, "{tally:?}");
}

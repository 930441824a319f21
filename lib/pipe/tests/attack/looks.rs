//! Readers that nobody wakes: each looks for messages itself, and sleeps when it finds none.

use crate::campaigns::judge;
use crate::case::Case;
use diapason_abi::Nanos;
use diapason_pipe::bill::*;
use diapason_random::Random;

const LENGTH: u64 = 400;

impl Case {
    /// Returns an endpoint whose readers look for messages themselves.
    fn looking(random: &mut Random) -> Case {
        let mut case = Case::random(random);
        for reader in &mut case.setup.readers {
            let every = Nanos(random.between(2, 40));
            reader.taking = Taking::Looking { every, ready: Nanos::ZERO };
            reader.wake = random.between(0, 2);
        }
        case.setup.by_deadline = random.one_in(3);
        case
    }
}

/// The results of a campaign.
#[derive(Default, Debug)]
struct Tally {
    /// Pipes whose reader never waits for budget.
    conformant: u32,
    /// Pipes with a message that took three quarters of its bound.
    near: u32,
    /// Those with a message that took longer than if the reader were woken.
    later: u32,
}

/// Judges `sets` endpoints with `runs` runs each.
fn campaign(seed: u64, sets: u64, runs: u64) -> Tally {
    let (mut tally, mut index, mut done) = (Tally::default(), 0, 0);
    while done < sets {
        index += 1;
        let mut random = Random::stream(seed, index);
        let case = Case::looking(&mut random);
        let Some(supplies) = case.supplies() else { continue };
        let Ok(bills) = case.bills(&supplies) else { continue };
        done += 1;
        let mut longest = vec![0; bills.len()];
        for _ in 0..runs {
            let outcome = case.run(&mut random, LENGTH, None);
            let seen = judge(&case, &bills, &outcome, LENGTH * 3 / 2, None);
            longest.iter_mut().zip(seen).for_each(|(most, seen)| *most = seen.max(*most));
        }
        for (bill, longest) in bills.iter().zip(longest) {
            let user = bill.item(What::User).map(|user| user.basis);
            tally.conformant += u32::from(user == Some(Basis::Conformant));
            tally.near += u32::from(longest * 4 >= bill.total.0 * 3);
            tally.later += u32::from(longest > (bill.total - bill.value(What::Look)).0);
        }
    }
    println!("{sets} sets: {tally:?}");
    tally
}

/// `cargo test --release -p diapason-pipe --test attack -- --ignored --nocapture`
#[test]
#[ignore = "minutes: the campaigns of docs/pipes-proofs.md"]
fn twenty_thousand_readers_that_look() {
    campaign(52, 20_000, 30);
}

#[test]
fn a_reader_that_looks_keeps_its_bound() {
    let tally = campaign(51, 400, 6);
    assert!(tally.conformant > 20 && tally.near > 0 && tally.later > 0, "{tally:?}");
}

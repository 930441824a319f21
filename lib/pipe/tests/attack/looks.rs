//! Readers that nobody wakes: each looks for messages itself, and sleeps when it finds none.

use crate::campaigns::longest;
use crate::case::Case;
use crate::pipe::{Driver, Endpoint, Mood, Reader, Setup};
use diapason_abi::Nanos;
use diapason_pipe::bill::*;
use diapason_pipe::size::Bucket;
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
        let longest = longest(&case, &bills, &mut random, (runs, LENGTH));
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

/// Returns an endpoint with one message in a long time, whose reader has this budget in 40 and
/// looks every 8.
fn seldom(budget: u64) -> Case {
    let taking = Taking::Looking { every: Nanos(8), ready: Nanos::ZERO };
    let driver = Driver { work: StageTimes::new(Nanos(1), Nanos::ZERO), telling: Telling::All };
    let setup = Setup {
        bus: Transfers::of_one(Nanos(1), Nanos(1), 8),
        moderation: 0,
        gap: 0,
        top_half: 0,
        section: 0,
        bottom_half: driver,
        io: (4, 40),
        receiver: None,
        readers: vec![Reader { message: 1, wake: 1, taking, vcpu: (budget, 40) }],
        others: vec![],
        chunks: 8,
        by_deadline: false,
        known: false,
    };
    Case { setup, contracts: vec![vec![Bucket::periodic(Nanos(400))]], beside: vec![] }
}

/// Returns the bill of its pipe, and the longest that a message takes, whenever it comes.
fn alone(case: &Case) -> (Result<Bill, BillRefusal>, u64) {
    let supplies = case.supplies().expect("the exact test admits it");
    let each = (40..160).map(|at| {
        let run = Endpoint::new(&case.setup, Mood::WORST, Random::new(1)).run(&[(at, 0)], 400);
        run.messages[0].done.unwrap_or(400) - at
    });
    (case.bills(&supplies).map(|bills| bills[0]), each.max().unwrap_or(0))
}

/// Looks that find nothing use up the budget of a reader that has little: it has none left for
/// them, though a message in 400 needs next to nothing.
#[test]
fn looks_that_find_nothing_take_budget() {
    let (bill, late) = alone(&seldom(3));
    assert!(matches!(bill, Err(BillRefusal::TooSlow { what: What::User, .. })), "{bill:?}");
    let (bill, seen) = alone(&seldom(7));
    let bill = bill.expect("it has a bill");
    assert!(late > seen && seen <= bill.total.0, "{late}, {seen} of {bill}");
}

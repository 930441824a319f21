//! The tests against the schedule, on random sets.
//!
//! The long campaign is `long_attack`, ignored in the normal run: a million sets for each number
//! of queues. `cargo test --release -p diapason-csd --test attack -- --ignored`.

use diapason_csd::attack::{self, AttackPlan, AttackTally};

/// Attacks on two threads; the sum does not depend on how the work is split.
fn attack(plan: AttackPlan, sets: u64) -> AttackTally {
    let half = sets / 2;
    std::thread::scope(|scope| {
        let first = scope.spawn(|| attack::range(&plan, 0..half));
        attack::range(&plan, half..sets).plus(first.join().unwrap())
    })
}

fn stands(tally: &AttackTally) {
    println!("{tally:?}");
    assert_eq!((tally.exact_missed, tally.exact_pessimistic), (0, 0), "{tally:?}");
    assert!(tally.undecided * 100 <= tally.sets, "{tally:?}");
    // Both verdicts were put to the test often enough to mean something.
    assert!(tally.exact * 10 > tally.sets && tally.exact * 10 < tally.sets * 9, "{tally:?}");
}

#[test]
fn the_exact_test_agrees_with_the_schedule_in_both_directions() {
    for queues in 1..=4 {
        stands(&attack(AttackPlan::small(1, queues), 600));
    }
}

#[test]
fn the_printed_test_is_right_up_to_csd_2_and_wrong_from_csd_3_on() {
    for queues in 1..=2 {
        assert_eq!(attack(AttackPlan::small(2, queues), 300).printed_missed, 0);
    }
    assert!(attack(AttackPlan::small(2, 3), 1_000).printed_missed > 0);
}

#[test]
#[ignore = "minutes: four million sets"]
fn long_attack() {
    for queues in 1..=4 {
        stands(&attack(AttackPlan::small(3, queues), 1_000_000));
    }
}

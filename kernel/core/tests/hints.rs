//! Hints: a thread that wakes and will lock a held mutex does not run first, only to make room
//! again at its lock call; the holder runs at once (EMERALDS' semaphores without the extra switch).

use crate::support::script::Script;
use crate::support::stage::{golden, play};
use crate::support::*;

/// Returns how often somebody else came to run, without the hints in a script and with them.
fn switches(script: &str, micros: u64) -> (usize, usize) {
    let plain = script.replace("sleep 5 hint m", "sleep 5").replace("lock m hint n", "lock m");
    assert_ne!(plain, script);
    let count = |text: &str| play(&Script::parse(text), micros * 1_000, 0, |s| s.switches());
    (count(&plain), count(script))
}

#[test]
fn the_switch_to_a_thread_that_would_only_wait_is_saved() {
    let script = "
        mutex m
        h 20: sleep 5 hint m; lock m; run 1; unlock m
        l 10: lock m; run 8; unlock m; run 1";
    let plain = script.replace("hint m", "");
    golden(&plain, 20, "0 h\n 0 l\n 5 h\n 5 l for h\n 8 h\n 9 l\n 10 nobody");
    golden(script, 20, "0 h\n 0 l\n 5 l for h\n 8 h\n 9 l\n 10 nobody");
    assert_eq!(switches(script, 20), (6, 4));
}

#[test]
fn it_is_saved_on_budgets_too() {
    let script = "
        main H 5 20
        main L 5 40
        mutex m
        h 20 on H: sleep 5 hint m; lock m; run 1; unlock m
        l 10 on L: sleep 1; lock m; run 7; unlock m";
    golden(
        script,
        30,
        "0 h on H
         0 l on L
         0 nobody
         1 l on L
         5 l for h on H  -- already on the budget of h, so no later than without a hint
         8 h on H
         9 l on L
         9 nobody",
    );
    assert_eq!(switches(script, 30), (8, 6));
}

/// [EMERALDS 1998, figure 5.5]: between the wake of `h` and its lock call, a more urgent thread
/// takes the mutex.
#[test]
fn a_mutex_taken_between_wake_and_lock_saves_the_switch_as_well() {
    let script = "
        main X 2 20
        main H 6 40
        mutex m
        x 10 on X: sleep 6; lock m; run 3; unlock m
        h 10 on H: sleep 5 hint m; run 2; lock m; run 1; unlock m";
    golden(
        script,
        30,
        "0 x on X
         0 h on H
         0 nobody
         5 h on H        -- m is free
         6 x on X
         8 x for h on H  -- no budget is left of X, but h needs m
         9 h on H
        11 nobody
        26 x on X
        26 nobody",
    );
    assert_eq!(switches(script, 30), (10, 8));
}

#[test]
fn a_holder_that_cannot_run_does_not_hold_up_who_has_a_hint() {
    let script = "
        mutex m
        x 30: sleep 3; lock m; sleep 9; run 1; unlock m
        h 20: sleep 5 hint m; run 1; lock m; run 1; unlock m
        l 10: run 20";
    golden(
        script,
        30,
        "0 x
         0 h
         0 l
         3 x
         3 l
         5 h      -- x holds m, but sleeps
         6 l
         9 x
        10 h
        11 l
        23 nobody",
    );
}

/// Case B of [EMERALDS 1998, §5.4.3]: a more urgent thread locks first, and sleeps with the mutex.
/// The hint saves no switch then, and holds nobody up: `h` uses the time that it would lose if it
/// were kept back until the mutex is free.
#[test]
fn a_more_urgent_thread_that_locks_first_and_sleeps_leaves_the_time_to_who_has_a_hint() {
    let script = "
        mutex m
        x 30: sleep 6; lock m; sleep 9; run 1; unlock m
        h 20: sleep 5 hint m; run 3; lock m; run 1; unlock m
        l 10: run 20";
    golden(
        script,
        30,
        "0 x
         0 h
         0 l
         5 h      -- m is free
         6 x      -- it locks m, and sleeps
         6 h
         8 l      -- h waits for m
         9 x
        10 h
        11 l
        25 nobody",
    );
}

#[test]
fn while_who_has_it_runs_a_hint_counts_for_nothing() {
    let script = "
        mutex m
        h 20: sleep 5 hint m; run 4; lock m; run 1; unlock m
        x 10: lock m; sleep 7; run 1; unlock m";
    golden(
        script,
        20,
        "0 h
         0 x
         0 nobody
         5 h
         9 x for h   -- at 7 it woke, but h was under way
        10 h
        11 x
        11 nobody",
    );
}

#[test]
fn a_hint_follows_the_chain_of_its_mutex() {
    let script = "
        mutex m
        mutex n
        h 30: sleep 5 hint m; lock m; run 1; unlock m
        b 20: sleep 1; lock m; lock n; run 1; unlock n; unlock m
        c 10: lock n; run 7; unlock n";
    golden(
        script,
        30,
        "0 h
         0 b
         0 c
         1 b
         1 c for b
         5 c for h
         7 b for h
         8 h
         9 b
         9 c
         9 nobody",
    );
}

#[test]
fn of_two_locks_in_a_row_the_second_is_hinted_by_the_first() {
    let script = "
        mutex m
        mutex n
        h 30: sleep 5; lock m hint n; lock n; run 1; unlock n; unlock m
        a 20: sleep 1; lock m; run 6; unlock m
        b 10: lock n; run 5; unlock n";
    golden(
        script,
        30,
        "0 h
         0 a
         0 b
         1 a
         5 h
         5 a for h
         7 b for h  -- m is h's, who would only lock n
        11 h
        12 a
        12 b
        12 nobody",
    );
    assert_eq!(switches(script, 30), (11, 10));
}

#[test]
fn a_time_out_hints_the_next_lock_as_well() {
    let script = "
        mutex m
        mutex n
        h 30: sleep 5; lock m within 1 hint n; lock n; run 1; unlock n
        a 20: sleep 1; lock m; run 6; unlock m
        b 10: lock n; run 5; unlock n";
    golden(
        script,
        30,
        "0 h
         0 a
         0 b
         1 a
         5 h
         5 a for h
         6 b for h
        10 h
        11 a
        12 b
        12 nobody",
    );
}

#[test]
fn a_hint_to_a_mutex_of_ones_own_is_none() {
    let script = "
        mutex m
        h 20: lock m; sleep 5 hint m; run 2; unlock m
        l 10: run 9";
    golden(script, 20, "0 h\n 0 l\n 5 h\n 7 l\n 11 nobody");
}

#[test]
fn a_circle_closed_by_a_hint_holds_nobody_up() {
    let script = "
        mutex m
        mutex n
        h 20: lock n; sleep 5 hint m; run 2; unlock n; lock m; unlock m
        l 10: lock m; lock n; run 1; unlock n; unlock m";
    golden(
        script,
        20,
        "0 h
         0 l
         0 nobody   -- l waits for n, whose owner sleeps
         5 h
         7 l for h  -- h lets n go, and waits for m
         8 h
         8 l
         8 nobody",
    );
}

#[test]
fn a_hint_to_a_mutex_deleted_meanwhile_is_none() {
    let script = "
        mutex m
        d 30: sleep 3; delete m
        h 20: sleep 5 hint m; run 1
        l 10: lock m; run 9";
    golden(script, 20, "0 d\n 0 h\n 0 l\n 3 d\n 3 l\n 5 h\n 6 l\n 10 nobody");
}

#[test]
fn a_hint_to_a_semaphore_is_none() {
    let script = "
        semaphore s 0
        h 20: sleep 5 hint s; run 1
        l 10: run 9";
    golden(script, 20, "0 h\n 0 l\n 5 h\n 6 l\n 10 nobody");
}

#[test]
fn a_hint_is_used_up_by_the_lock_and_by_the_next_wait() {
    let script = "
        mutex m
        h 20: sleep 5 hint m; nap 2; run 1
        l 10: lock m; run 9; unlock m";
    golden(
        script,
        20,
        "0 h
         0 l
         5 l for h  -- a wrong hint: h is kept back until m is free
         9 h
         9 l
         9 nobody
        11 h
        12 nobody",
    );
}

#[test]
fn any_word_is_a_hint_and_changes_no_result() {
    let plan = Plan::new().process("a", 30).process("b", 20).mutex("m");
    for word in [0, 1, 0x1234, FOREVER - 1, FOREVER, key("m")] {
        run(&plan, |sys| {
            let m = sys.open(Call::SemCreate, "m");
            let thread = sys.running();
            sys.blocks(Call::SleepUntil, &[5, word]);
            sys.lock(m);
            sys.until(5);
            assert_eq!((sys.running(), sys.result(thread)), (thread, Some(Ok(0))));
            sys.blocks(Call::SleepUntil, &[9, m]);
            sys.until(9);
            assert_ne!(sys.running(), thread, "a right one is followed");
        });
    }
}

#[test]
fn a_hint_to_what_one_may_not_lock_is_none() {
    let plan = Plan::new().process("a", 20).process("b", 30).mutex("m").only(1);
    run(&plan, |sys| {
        let b = sys.running();
        sys.blocks(Call::SleepUntil, &[5]);
        let m = sys.open(Call::SemCreate, "m");
        sys.lock(m);
        sys.until(5);
        assert_eq!(sys.running(), b);
        sys.blocks(Call::SleepUntil, &[9, m]);
        sys.until(9);
        assert_eq!(sys.running(), b, "it waits for nobody of a");
    });
}

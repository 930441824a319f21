//! Helping: a thread that waits for a mutex keeps its place, and the holder runs in it, on its
//! budget. Traces as in `vcpus`: `l for h on H` means that `l` runs in the place of `h`, and `H`
//! pays.

use crate::support::stage::golden;

#[test]
fn a_holder_runs_in_the_place_and_on_the_budget_of_who_waits() {
    let script = "
        main H 6 20
        main M 8 40
        main L 4 80
        mutex m
        h 10 on H: sleep 3; lock m; run 1; unlock m
        m 10 on M: sleep 2; run 8
        l 10 on L: lock m; run 5; unlock m; run 1";
    golden(
        script,
        90,
        "0 h on H
         0 m on M
         0 l on L
         2 m on M
         3 h on H
         3 l for h on H   -- 3 of 5 are left
         6 h on H
         7 m on M
        14 l on L         -- 2 of its 4 are used
        15 nobody
        42 m on M
        42 nobody",
    );
}

#[test]
fn a_holder_without_budget_goes_on_with_the_waiters() {
    let script = "
        main H 6 20
        main L 2 80
        mutex m
        h 10 on H: sleep 5; lock m; run 1; unlock m
        l 10 on L: lock m; run 4; unlock m; run 1";
    golden(
        script,
        85,
        "0 h on H
         0 l on L
         2 nobody        -- L is used up inside the section
         5 h on H
         5 l for h on H
         7 h on H        -- waits as long as the section, whatever L's period is
         8 nobody
        80 l on L
        81 nobody",
    );
}

#[test]
fn a_waiter_without_budget_waits_for_its_own_and_for_nothing_else() {
    let script = "
        main H 2 20
        main L 9 80
        mutex m
        h 10 on H: sleep 1; run 1; lock m; run 2; unlock m
        l 10 on L: lock m; run 8; unlock m; run 10";
    golden(
        script,
        45,
        "0 h on H
         0 l on L
         1 h on H
         2 l for h on H  -- with the rest of H
         3 l on L        -- and then on its own
        11 nobody
        21 h on H
        23 nobody
        41 h on H
        41 nobody",
    );
}

#[test]
fn a_chain_across_vcpus_runs_on_the_first() {
    let script = "
        main A 9 20
        main B 2 30
        main C 2 40
        mutex m
        mutex n
        a 10 on A: sleep 4; lock m; run 1; unlock m
        b 10 on B: sleep 2; lock m; run 1; lock n; run 1; unlock n; unlock m
        c 10 on C: lock n; run 5; unlock n";
    golden(
        script,
        45,
        "0 a on A
         0 b on B
         0 c on C
         2 b on B
         3 c for b on B  -- c and b have used up what is their own by now
         4 a on A
         4 c for a on A  -- two steps on
         6 b for a on A
         7 a on A
         8 nobody
        32 b on B
        32 nobody
        40 c on C
        40 nobody",
    );
}

#[test]
fn unreserved_holders_are_helped_too() {
    let script = "
        main H 4 20
        main L 6 20
        mutex m
        h 10 on H: sleep 2; lock m; run 1; unlock m
        l 10 on L: sleep 1; run 8
        u 10: lock m; run 3; unlock m; run 1";
    golden(
        script,
        30,
        "0 h on H
         0 l on L
         0 u
         1 l on L
         2 h on H
         2 u for h on H
         4 h on H
         5 l on L
        10 u
        11 nobody
        21 l on L
        23 nobody",
    );
}

#[test]
fn who_sleeps_with_a_mutex_is_awaited_in_no_place() {
    let script = "
        main W 5 20
        main L 50 100
        mutex m
        w 10 on W: sleep 2; lock m; run 1; unlock m
        l 10 on L: sleep 3; run 40
        u 10: lock m; sleep 10; run 1; unlock m";
    golden(
        script,
        60,
        "0 w on W
         0 l on L
         0 u
         0 nobody
         2 w on W
         2 nobody        -- u holds m and sleeps
         3 l on L
        10 u for w on W  -- its alarm interrupts l, since w waits for it
        11 w on W
        12 l on L
        45 u
        45 nobody",
    );
}

#[test]
fn a_time_out_in_a_chain_counts_for_who_waits_behind_it() {
    let script = "
        main W 5 20
        main L 50 100
        mutex m
        mutex n
        w 10 on W: sleep 2; lock m; run 1; unlock m
        l 10 on L: sleep 3; run 40
        u 10: lock m; lock n within 8; run 1; unlock m
        v 20: lock n; sleep 50";
    golden(
        script,
        20,
        "0 w on W
         0 l on L
         0 v
         0 u
         0 nobody
         2 w on W
         2 nobody
         3 l on L
         8 u for w on W
         9 w on W
        10 l on L",
    );
}

#[test]
fn a_yield_in_the_place_of_another_changes_no_order() {
    let script = "
        mutex m
        h 20: sleep 1; lock m; run 1; unlock m
        l 10: lock m; yield; run 1; yield; run 1; unlock m; run 1
        k 10: run 5";
    golden(
        script,
        20,
        "0 h
         0 l
         0 k
         1 h
         1 l for h
         3 h
         4 k        -- it was its turn
         8 l
         9 nobody",
    );
}

#[test]
fn who_waits_for_a_deleted_mutex_learns_it_in_its_turn() {
    let script = "
        mutex m
        x 30: sleep 3; delete m; run 1; sleep 9
        h 20: sleep 1; lock m; run 1
        l 10: lock m; run 5; unlock m";
    golden(
        script,
        20,
        "0 x
         0 h
         0 l
         1 h
         1 l for h
         3 x
         4 h
         5 l
         7 nobody
         9 x
         9 nobody",
    );
}

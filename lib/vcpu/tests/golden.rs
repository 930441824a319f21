//! Traces a reader can check with a pencil: each line is what happens, and the state after it.

use diapason_abi::Nanos;
use diapason_vcpu::{Pibs, SporadicServer};

/// Runs the lines of `text`, each `TIME OPERATION [ARGUMENTS] => STATE [-- REMARK]`, and compares
/// the states.
fn check<S>(server: &mut S, text: &str, operate: fn(&mut S, Nanos, &str, &[u64]) -> String) {
    let mut lines = 0;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (event, rest) = line.split_once("=>").expect("a line has an arrow");
        let state_words = rest.split("--").next().unwrap().split_whitespace();
        let expected = state_words.collect::<Vec<_>>().join(" ");
        let mut words = event.split_whitespace();
        let now = Nanos(words.next().unwrap().parse().unwrap());
        let operation = words.next().unwrap();
        let arguments: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
        let state = operate(server, now, operation, &arguments);
        assert_eq!(state, expected, "after: {line}");
        lines += 1;
    }
    assert!(lines > 0, "an empty trace shows nothing");
}

/// `E:A` for each chunk, then what is available.
fn sporadic(server: &mut SporadicServer, now: Nanos, operation: &str, a: &[u64]) -> String {
    match operation {
        "wake" => server.wake(now),
        "use" => server.charge(Nanos(a[0]), now),
        "block" => server.block(now),
        "set" => server.set(Nanos(a[0]), Nanos(a[1]), now),
        "wait" => {}
        other => panic!("{other} is no operation"),
    }
    assert!(server.is_consistent(), "{server:?}");
    let chunks: Vec<String> =
        server.chunks().map(|c| format!("{}:{}", c.eligible.0, c.amount.0)).collect();
    format!("{} | {} until {}", chunks.join(" "), server.available(now).0, server.deadline().0)
}

/// Eligibility, what is available, deadline, inherited period.
fn pibs(server: &mut Pibs, now: Nanos, operation: &str, a: &[u64]) -> String {
    match operation {
        "wake" => server.wake(now, Nanos(a[0])),
        "inherit" => server.inherit(now, Nanos(a[0])),
        "use" => server.charge(Nanos(a[0]), now),
        "stop" => server.stop(),
        "set" => server.set(a[0] as u32, Nanos(a[1])),
        "wait" => {}
        other => panic!("{other} is no operation"),
    }
    let (available, due) = (server.available(now).0, server.deadline().0);
    format!("e {} | {available} until {due} as {}", server.eligibility().0, server.period().0)
}

fn server(budget: u64, period: u64, limit: usize) -> SporadicServer {
    SporadicServer::new(Nanos(budget), Nanos(period), limit, Nanos::ZERO)
}

fn io(share: u32, cap: u64) -> Pibs {
    Pibs::new(share, Nanos(cap), Nanos::ZERO)
}

#[test]
fn each_use_returns_a_period_after_its_eligibility() {
    let text = "
        2 wake    => 2:4        | 4 until 12  -- S2: the budget was there before
        4 use 1   => 2:4        | 3 until 12  -- preempted until 3: no matter
        4 block   => 2:3 12:1   | 3 until 12  -- S3: at 2 + 10, not at 4 + 10
        6 wake    => 6:3 12:1   | 3 until 16  -- S2
        9 use 3   => 12:1 16:3  | 0 until 22  -- gone
       12 wait    => 12:1 16:3  | 1 until 22
       13 use 1   => 16:3 22:1  | 0 until 26
       13 block   => 16:3 22:1  | 0 until 26
       30 wake    => 30:4       | 4 until 40";
    check(&mut server(4, 10, 8), text, sporadic);
}

#[test]
fn several_chunks_become_eligible_while_backlogged() {
    let text = "
        0 wake  => 0:3 | 3 until 10
        1 use 1 => 0:3 | 2 until 10
        1 block => 0:2 10:1 | 2 until 10
        2 wake  => 2:2 10:1 | 2 until 12
        4 use 2 => 10:1 12:2 | 0 until 20
       12 wait  => 10:1 12:2 | 3 until 20
       14 use 2 => 12:2 20:1 | 1 until 22
       15 use 1 => 20:1 22:2 | 0 until 30";
    let mut vcpu = server(3, 10, 8);
    check(&mut vcpu, text, sporadic);
    let counters = vcpu.counters();
    assert_eq!((counters.overrun_max.0, counters.merges, counters.late_max.0), (0, 0, 3));
}

#[test]
fn a_full_list_makes_the_rest_wait_for_the_next_chunk() {
    let text = "
        0 wake  => 0:3 | 3 until 10
        1 use 1 => 0:3 | 2 until 10
        1 block => 0:2 10:1 | 2 until 10
        2 wake  => 2:2 10:1 | 2 until 12
        3 use 1 => 2:2 10:1 | 1 until 12
        3 block => 10:2 12:1 | 0 until 20
        4 wake  => 10:2 12:1 | 0 until 20
       11 use 1 => 10:2 12:1 | 1 until 20
       11 block => 12:2 20:1 | 0 until 22
       20 wake  => 20:3 | 3 until 30";
    let mut vcpu = server(3, 10, 2);
    check(&mut vcpu, text, sporadic);
    assert_eq!(vcpu.counters().merges, 2);
}

#[test]
fn the_rest_waits_for_the_first_of_several_chunks() {
    let text = "
        0 wake  => 0:10 | 10 until 20
        1 use 1 => 0:10 | 9 until 20
        1 block => 0:9 20:1 | 9 until 20
        2 wake  => 2:9 20:1 | 9 until 22
        3 use 1 => 2:9 20:1 | 8 until 22
        3 block => 2:8 20:1 22:1 | 8 until 22
        4 wake  => 4:8 20:1 22:1 | 8 until 24
        5 use 1 => 4:8 20:1 22:1 | 7 until 24
        5 block => 20:8 22:1 24:1 | 0 until 40";
    let mut vcpu = server(10, 20, 3);
    check(&mut vcpu, text, sporadic);
    assert_eq!(vcpu.counters().merges, 1);
}

#[test]
fn an_overrun_is_taken_from_the_next_chunk() {
    let text = "
        0 wake  => 0:3 | 3 until 10
        5 use 5 => 10:3 | 0 until 20
        5 block => 10:3 | 0 until 20
        7 wake  => 10:3 | 0 until 20
       10 wait  => 10:3 | 1 until 20
       11 use 1 => 20:3 | 0 until 30
       40 use 20 => 80:3 | 0 until 90";
    let mut vcpu = server(3, 10, 8);
    check(&mut vcpu, text, sporadic);
    assert_eq!(vcpu.counters().overrun_max.0, 17);
}

#[test]
fn a_debt_stays_with_its_chunk_while_blocked() {
    let text = "
        0 wake  => 0:3 | 3 until 10
        4 use 4 => 10:3 | 0 until 20
        4 block => 10:3 | 0 until 20
       15 wake  => 15:2 20:1 | 2 until 25
       17 use 2 => 20:1 25:2 | 0 until 30";
    let mut vcpu = server(3, 10, 2);
    check(&mut vcpu, text, sporadic);
    assert_eq!(vcpu.counters().overrun_max.0, 1);
    assert_eq!(vcpu.counters().merges, 0);
}

#[test]
fn changing_to_and_fro_gains_nothing() {
    let text = "
        0 wake     => 0:4 | 4 until 10
        2 use 2    => 0:4 | 2 until 10
        2 set 3 10 => 0:2 10:1 | 2 until 10
        2 set 4 10 => 0:2 10:1 12:1 | 2 until 10
        4 use 2    => 10:1 12:3 | 0 until 20
        4 set 4 5  => 9:4 | 0 until 14
        9 wait     => 9:4 | 4 until 14
       13 use 4    => 14:4 | 0 until 19
       13 set 4 20 => 14:4 | 0 until 34
       18 use 4    => 34:4 | 0 until 54";
    check(&mut server(4, 10, 8), text, sporadic);
}

#[test]
fn a_grant_is_paid_back_by_waiting() {
    // U = 1/10.
    let text = "
        5 wake 50   => e 5 | 5 until 55 as 50
        8 use 3     => e 5 | 2 until 55 as 50
        8 stop      => e 35 | 2 until 55 as 50
        9 wake 50   => e 35 | 2 until 59 as 50
       11 use 2     => e 55 | 0 until 105 as 50
       11 stop      => e 55 | 0 until 105 as 50
       20 wake 50   => e 55 | 0 until 105 as 50
       55 wait      => e 55 | 5 until 105 as 50
       70 use 5     => e 105 | 0 until 155 as 50
       70 stop      => e 105 | 0 until 155 as 50
      200 wake 50   => e 200 | 5 until 250 as 50";
    let mut vcpu = io(100_000, 1000);
    check(&mut vcpu, text, pibs);
    let counters = vcpu.counters();
    assert_eq!((counters.overrun_max.0, counters.lockout_max.0, counters.late_max.0), (0, 35, 15));
}

#[test]
fn a_raise_clamps_the_grant_and_leaves_no_eligibility_behind() {
    // P3: of the 10 granted for the period 100, nothing is left to use at the urgency of 20.
    let text = "
        0 wake 100   => e 0 | 10 until 100 as 100
        6 wait       => e 0 | 10 until 100 as 100
        6 inherit 20 => e 6 | 2 until 26 as 20
        7 use 1      => e 6 | 1 until 26 as 20
        7 inherit 100 => e 6 | 1 until 26 as 100
        8 use 1      => e 26 | 0 until 126 as 100
       26 wait       => e 26 | 10 until 126 as 100
       29 use 3      => e 26 | 7 until 126 as 100
       29 inherit 20 => e 56 | 2 until 49 as 20";
    check(&mut io(100_000, 1000), text, pibs);
}

#[test]
fn no_grant_is_larger_than_the_cap_entitles_to() {
    let text = "
        0 wake 100 => e 0 | 2 until 100 as 100
        2 use 2    => e 20 | 0 until 120 as 100
        3 use 1    => e 30 | 0 until 130 as 100";
    let mut vcpu = io(100_000, 20);
    check(&mut vcpu, text, pibs);
    assert_eq!(vcpu.counters().overrun_max.0, 1);
}

#[test]
fn a_new_share_gives_nothing_that_was_not_due() {
    let text = "
        0 wake 100        => e 0 | 10 until 100 as 100
        5 use 5           => e 0 | 5 until 100 as 100
        5 set 20000 1000  => e 50 | 2 until 100 as 100
        5 set 500000 1000 => e 50 | 2 until 100 as 100
        7 use 2           => e 54 | 0 until 154 as 100";
    check(&mut io(100_000, 1000), text, pibs);
}

#[test]
fn an_empty_slot_never_has_budget() {
    let mut main = SporadicServer::EMPTY;
    main.wake(Nanos(5));
    main.charge(Nanos(1), Nanos(6));
    assert_eq!((main.available(Nanos(9)), main.eligible_at()), (Nanos::ZERO, Nanos::FOREVER));
    assert!(main.is_consistent());
    let mut io = Pibs::EMPTY;
    io.wake(Nanos(5), Nanos(10));
    assert_eq!(io.available(Nanos(9)), Nanos::ZERO);
}

#[test]
fn the_servers_are_small() {
    assert!(size_of::<SporadicServer>() <= 200, "{}", size_of::<SporadicServer>());
    assert!(size_of::<Pibs>() <= 96, "{}", size_of::<Pibs>());
}

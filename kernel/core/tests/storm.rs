//! The storm in a test: no panic, no broken invariant, no leak, no late neighbour; and the same
//! seed is the same storm. `DIAPASON_STORM_CALLS` and `DIAPASON_STORM_SEED` make it longer or
//! another one, for example with
//! `DIAPASON_STORM_CALLS=50000000 cargo test --release -p diapason-core --test all storm::`.

use crate::support::storm::{Tally, with_storm};
use crate::support::*;
use std::time::Instant;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Checks after every entry if that is affordable, else now and then.
fn check_every(calls: u64) -> u64 {
    if calls <= 1_000_000 { 1 } else { 997 }
}

fn rage(seed: u64, calls: u64) -> Tally {
    with_storm(seed, false, |storm| {
        storm.shell.check_every = check_every(calls);
        storm.rage(calls)
    })
}

#[test]
fn nothing_a_program_does_breaks_the_kernel() {
    let calls = setting("DIAPASON_STORM_CALLS", 300_000);
    let seed = setting("DIAPASON_STORM_SEED", 0x0d1a_9a50);
    println!("storm: seed {seed}, {calls} calls");
    let start = Instant::now();
    let tally = rage(seed, calls);
    let rate = calls as f64 / start.elapsed().as_secs_f64();
    println!("storm: {rate:.0} calls per second, {} restarts", tally.starts);
    for (call, times) in &tally.shortcuts {
        println!("  {times:>9} {} by short ways", call.name());
    }
    for call in Call::ALL {
        println!("  {:>9} {}", tally.good[*call as usize], call.name());
    }
    for errno in Errno::ALL {
        println!("  {:>9} {errno:?}", tally.errors[errno as usize]);
    }
    for cause in FaultCause::ALL {
        println!("  {:>9} {cause:?}", tally.faults[*cause as usize]);
    }
    if calls >= 300_000 {
        reaches_everything(&tally);
    }
}

/// A storm that reaches only the shallows proves nothing.
fn reaches_everything(tally: &Tally) {
    let never = [Call::ThreadExit, Call::Fail, Call::ProcKill];
    for call in Call::ALL.iter().filter(|call| !never.contains(call)) {
        assert!(tally.good[*call as usize] > 0, "{} never succeeded", call.name());
    }
    let short = [Call::Yield, Call::SemLock, Call::SemUnlock, Call::CvSignal];
    for call in short.iter().chain(&[Call::MboxSend, Call::MboxReceive, Call::MboxCall]) {
        assert!(tally.shortcuts.contains_key(call), "{} never by a short way", call.name());
    }
    for errno in Errno::ALL {
        assert!(tally.errors[errno as usize] > 0, "{errno:?} never came back");
    }
    for cause in FaultCause::ALL {
        assert!(tally.faults[*cause as usize] > 0, "{cause:?} never happened");
    }
}

#[test]
fn the_same_seed_is_the_same_storm() {
    for seed in 1..4 {
        let (first, second) = (rage(seed, 10_000), rage(seed, 10_000));
        assert_eq!(first, second);
        assert_ne!(first.hash, rage(seed + 100, 10_000).hash);
    }
}

#[test]
fn many_short_storms_end_without_a_leak() {
    for seed in 1_000..1_040 {
        rage(seed, 1_000);
    }
}

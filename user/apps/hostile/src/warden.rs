//! The warden: restarts the hostile processes it supervises, ends those that are stuck, and stops
//! the storm when its number of calls is reached.
//!
//! Arguments: the number of calls. It reports with one line, `STORM calls=N lives=N stuck=N`.

#![no_std]
#![no_main]

use core::sync::atomic::Ordering::Relaxed;
use diapason_abi::Key;
use diapason_hostile::{CallTally, PROCESSES};
use diapason_rt::mailbox::{Mailbox, receive_fault};
use diapason_rt::{Arguments, Nanos, entry, log, process, time};

entry!(main);

/// The warden's wards, by the number each counts under.
const WARDS: [(usize, &str); 4] = [(0, "storm-a"), (1, "storm-b"), (2, "storm-c"), (3, "storm-d")];
/// A process that makes no call for this long is stuck: all of its threads wait for ever.
const STUCK: Nanos = Nanos::from_millis(1);

fn main(Arguments([target, ..]): Arguments) {
    let tally = CallTally::open();
    let Ok(faults) = Mailbox::open("warden.faults") else { panic!("no mailbox") };
    let mut before = [0; PROCESSES];
    let mut stuck = 0;
    let mut round = time::now() + STUCK;
    while tally.calls.load(Relaxed) < target {
        if let Ok(report) = receive_fault(&faults, round) {
            let _ = process::create(Key(report.key));
        } else {
            stuck += revive(tally, &mut before);
            round = time::now() + STUCK;
        }
    }
    for (_, name) in WARDS {
        let _ = process::kill(Key::new(name));
    }
    let lives: u64 = tally.lives.iter().map(|lives| lives.load(Relaxed)).sum();
    log!("STORM calls={} lives={lives} stuck={stuck}", tally.calls.load(Relaxed));
}

/// Ends and restarts every ward that made no call since the last round; how many there were.
fn revive(tally: &CallTally, before: &mut [u64; PROCESSES]) -> u64 {
    let mut stuck = 0;
    for (index, name) in WARDS {
        let calls = tally.each[index].load(Relaxed);
        if calls == before[index] {
            let _ = process::kill(Key::new(name));
            if process::create(Key::new(name)).is_ok() {
                stuck += 1;
            }
        }
        before[index] = calls;
    }
    stuck
}

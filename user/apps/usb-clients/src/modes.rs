//! Changes the mode of the cameras to and fro, and says how long each change took: from when the
//! server took the ask until the last stream that began had its first interval.
//!
//! Arguments: after how many changes it ends with a verdict (0: never), and the time in ms from one
//! ask to the next.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::modes::{BUSY, DONE, ModeAnswer, Modes, NO_MODE};

entry!(main);

/// The modes that it changes between: the first two of the description.
const MODES: u32 = 2;
/// An answer that takes longer is none.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// The changes so far.
#[derive(Default)]
struct Tally {
    changes: u64,
    /// Asks without an answer, or with another one than that the mode runs.
    failed: u64,
    longest: Nanos,
}

impl Tally {
    fn note(&mut self, mode: u32, answer: Result<ModeAnswer, Errno>) {
        match answer {
            Ok(answer) if answer.answer == DONE => {
                let took = Nanos(answer.begun - answer.taken);
                self.changes += 1;
                self.longest = self.longest.max(took);
                match took {
                    // The camera of a stream that would begin is not there.
                    Nanos::ZERO => log!("MODE {mode}, and no stream began"),
                    _ => log!("MODE {mode} after {} us", took.0 / 1_000),
                }
            }
            Ok(answer) => {
                self.failed += 1;
                log!("MODE {mode}: {}", word(answer.answer));
            }
            Err(errno) => {
                self.failed += 1;
                log!("MODE {mode}: {errno:?}");
            }
        }
    }
}

const fn word(answer: u32) -> &'static str {
    match answer {
        BUSY => "another change is under way",
        NO_MODE => "there is no such mode",
        _ => "a camera failed, or sends nothing",
    }
}

fn main(Arguments([changes, pause, ..]): Arguments) {
    if let Err(errno) = change(changes, Nanos::from_millis(pause)) {
        log!("modes: {errno:?}");
    }
}

fn change(changes: u64, pause: Nanos) -> Result<(), Errno> {
    let mut modes = Modes::open()?;
    let (mut tally, mut mode, mut asked) = (Tally::default(), 0, 0);
    let mut next = time::now();
    while changes == 0 || asked < changes {
        next += pause;
        time::sleep_until(next);
        mode = (mode + 1) % MODES;
        asked += 1;
        let answer = modes.change(mode, time::now() + PATIENCE);
        tally.note(mode, answer);
    }
    let Tally { changes, failed, longest } = tally;
    let verdict = if failed == 0 { "WHOLE" } else { "NOT WHOLE" };
    log!("MODES {verdict} {changes} changes, longest {} us", longest.0 / 1_000);
    Ok(())
}

//! Reads the keyboard of the USB server: each key goes down and up, then the next of the alphabet.
//!
//! Once a second it says `KEYS keys wrong`: keys that went down and up since the start, and news
//! that did not fit. Arguments: after how many seconds it ends with a verdict (0: never); 1 if keys
//! are to be shown and may be any.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::keyboard::{KEYS, KeyChange, READY, RECORDS};
use diapason_usblib::{Reader, inlet};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// Usages of A and Z.
const ALPHABET: (u32, u32) = (4, 29);

/// The keys so far.
#[derive(Default)]
struct Tally {
    keys: u64,
    wrong: u64,
    any: bool,
    /// The last key that came up, and the one that is down.
    last: Option<u32>,
    down: Option<u32>,
}

fn main(Arguments([seconds, any, ..]): Arguments) {
    if let Err(errno) = read(seconds, any != 0) {
        log!("keyboard: not read: {errno:?}");
    }
}

fn read(seconds: u64, any: bool) -> Result<(), Errno> {
    let (mut inlet, ready) = inlet::<KeyChange, RECORDS>(KEYS, READY)?;
    let mut tally = Tally { any, ..Tally::default() };
    let (mut report_at, mut reports) = (time::now() + REPORT, 0);
    while seconds == 0 || reports < seconds {
        match ready.take(report_at) {
            Ok(()) => drain(&mut inlet, &mut tally),
            Err(Errno::TimedOut) => {
                log!("KEYS {} {}", tally.keys, tally.wrong + inlet.lost());
                report_at += REPORT;
                reports += 1;
            }
            Err(errno) => return Err(errno),
        }
    }
    let fine = tally.wrong + inlet.lost() == 0 && tally.keys > 0;
    log!("KEYS {} {} keys", if fine { "WHOLE" } else { "NOT WHOLE" }, tally.keys);
    Ok(())
}

fn drain(inlet: &mut Reader<KeyChange, RECORDS>, tally: &mut Tally) {
    for _ in 0..RECORDS {
        let Some(key) = inlet.pop() else { return };
        count(&key, tally);
    }
}

fn count(key: &KeyChange, tally: &mut Tally) {
    if tally.any {
        log!("key {} {}", key.usage, if key.down == 1 { "down" } else { "up" });
    }
    let next = |last: u32| if last == ALPHABET.1 { ALPHABET.0 } else { last + 1 };
    let due = tally.any || tally.last.is_none_or(|last| next(last) == key.usage);
    match (key.down, tally.down) {
        (1, None) if due => tally.down = Some(key.usage),
        (0, Some(down)) if down == key.usage => {
            (tally.down, tally.last) = (None, Some(down));
            tally.keys += 1;
        }
        _ => tally.wrong += 1,
    }
}

//! A channel that is read: its frames are counted, and gaps are found.

use crate::tally::Tally;
use diapason_canlib::agreement::{MESSAGE, RECORDS};
use diapason_canlib::{Channel, Error, Format, TimedFrame};
use diapason_rt::{Nanos, log, time};

/// How often it looks whether anything came.
const LOOK: Nanos = Nanos::from_secs(1);

/// Reads a channel for some seconds, and says whether everything came. `insists` is the second from
/// which silence counts, or 0. A frame that is not `whole` counts as one out of order.
///
/// # Errors
/// The channel cannot be read.
///
/// # Panics
/// If silence counts, and a second passes without a frame, or the next one is missing.
pub fn read<F: Format>(
    mut channel: Channel<F>,
    number: u64,
    (seconds, insists): (u64, u64),
    whole: impl Fn(&F::Frame) -> bool,
) -> Result<(), Error> {
    let mut tally = Tally::default();
    let (mut look_at, mut looks) = (time::now() + LOOK, 0);
    let mut before = 0;
    while seconds == 0 || looks < seconds {
        match channel.read_wait(look_at) {
            Ok(first) => {
                count(&mut channel, &mut tally, &first, &whole);
                drain(&mut channel, &mut tally, &whole);
                assert!(insists == 0 || tally.is_whole(), "a frame that is not the next one");
            }
            Err(Error::TimedOut) => {}
            Err(error) => return Err(error),
        }
        if time::now() >= look_at {
            look_at += LOOK;
            looks += 1;
            let silent = insists > 0 && looks > insists && tally.frames == before;
            assert!(!silent, "a second without a frame");
            before = tally.frames;
        }
    }
    let lost = channel.lost();
    let fine = tally.is_whole() && lost == 0;
    let verdict = if fine { "WHOLE" } else { "NOT WHOLE" };
    log!("CAN {number} {verdict} {} frames, dropped {lost}, {}", tally.frames, tally.faults);
    Ok(())
}

fn drain<F: Format>(
    channel: &mut Channel<F>,
    tally: &mut Tally,
    whole: &impl Fn(&F::Frame) -> bool,
) {
    // At most what fits: a writer that never stops must not keep it here.
    for _ in 1..RECORDS {
        let Ok(message) = channel.read() else { return };
        count(channel, tally, &message, whole);
    }
}

fn count<F: Format>(
    channel: &mut Channel<F>,
    tally: &mut Tally,
    message: &TimedFrame<F::Frame>,
    whole: &impl Fn(&F::Frame) -> bool,
) {
    time::work(MESSAGE, || {
        tally.faults.disordered += u64::from(!whole(&message.frame));
        channel.missed(tally.count(&message.arrival));
    });
}

//! Sends every CAN message that the description has of this process, each in its period. The data
//! is the number of the message. If all come at once, as often as declared, the thread has periodic
//! jobs: each sends the messages that are due at its release.
//!
//! Arguments: the number of the controller, how many us lie between the first releases of two
//! messages (0: all come at once), and how many times too often each message is sent (0: not).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_canlib::{Outgoing, OutgoingMessage};
use diapason_contract::toucan::MESSAGES;
use diapason_rt::thread::{self, Jobs};
use diapason_rt::{Arguments, Errno, Nanos, entry, heap, log, time};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// When everything has started.
const START: Nanos = Nanos::from_millis(20);
/// The work for one message, as descriptions name it.
const MAKE: &str = "message.make";

/// How the thread waits for the next messages.
enum Waits {
    /// For the release of the next job, the step after the one of this time.
    Jobs(Jobs, Nanos, Nanos),
    /// For the next message, whenever it is due.
    Sleep,
}

impl Waits {
    /// Returns periodic jobs that begin at `START` with the longest step that meets all messages.
    fn jobs(all: &[Option<Sending>]) -> Waits {
        let step = all.iter().flatten().fold(0, |step, one| common(step, one.period.0));
        let step = Nanos(step.max(1));
        Waits::Jobs(thread::periodic(START, step, step), step, START)
    }

    /// Waits until messages are due, of which the first is at `first`. Returns until when.
    fn wait(&mut self, first: Nanos) -> Nanos {
        let Waits::Jobs(jobs, step, release) = self else {
            time::sleep_until(first);
            return first;
        };
        while *release < first {
            release.0 += step.0 * (1 + jobs.wait());
        }
        *release
    }
}

/// Returns the greatest common divisor.
fn common(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// A message, and when it is sent next.
#[derive(Clone, Copy)]
struct Sending {
    message: OutgoingMessage,
    period: Nanos,
    bytes: usize,
    next: Nanos,
    number: u64,
}

fn main(Arguments([controller, apart, often, ..]): Arguments) {
    if let Err(errno) = send(controller as u8, Nanos::from_micros(apart), often.max(1)) {
        log!("no messages: {errno:?}");
    }
}

fn send(controller: u8, apart: Nanos, often: u64) -> Result<(), Errno> {
    let mut out = Outgoing::open_controller(controller)?;
    let mut all: [Option<Sending>; MESSAGES] = [None; MESSAGES];
    let mut next = START;
    let mut places = all.iter_mut();
    out.each_message(|message, period, bytes| {
        if let Some(place) = places.next() {
            let period = Nanos((period.0 / often).max(1));
            *place = Some(Sending { message, period, bytes, next, number: 0 });
            next += apart;
        }
    });
    let is_even = apart == Nanos::ZERO && often == 1;
    let mut waits = if is_even { Waits::jobs(&all) } else { Waits::Sleep };
    let mut is_full = false;
    loop {
        let Some(first) = all.iter().flatten().map(|one| one.next).min() else { return Ok(()) };
        let now = waits.wait(first);
        for one in all.iter_mut().flatten().filter(|one| one.next <= now) {
            let data = one.number.to_le_bytes();
            let data = time::work(MAKE, || data.get(..one.bytes).unwrap_or(&[]));
            match out.put(one.message, data, one.next) {
                Ok(()) => one.number += 1,
                Err(Errno::Full) if is_full => {}
                Err(Errno::Full) => {
                    is_full = true;
                    log!("messages find no room");
                }
                Err(errno) => return Err(errno),
            }
            one.next += one.period;
        }
        out.wake();
    }
}

//! Opens a tuned pipe while the system runs, is refused what cannot be, changes it, and closes it.
//!
//! Each step is one line in the log, and once a second it says how its pipe does. Arguments: the
//! place of its pipe, the channel, messages a second that it expects, and after how many seconds it
//! ends with a verdict.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod numbers;

use diapason_rt::{Arguments, Nanos, entry, heap, log, time};
use diapason_tpipe::{Endpoint, Error, Granted, Pipe, Qos, Route, Thread};
use numbers::Numbers;

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// The threads of all places; one of them is this program's.
static THREADS: [Thread<Numbers>; 5] = [
    Thread::new(0, Numbers::new()),
    Thread::new(1, Numbers::new()),
    Thread::new(2, Numbers::new()),
    Thread::new(3, Numbers::new()),
    Thread::new(4, Numbers::new()),
];

/// The server answers within this time.
const ANSWER: Nanos = Nanos::from_secs(5);
/// How often it says how it goes.
const REPORT: Nanos = Nanos::from_secs(1);
/// Until the device is there it asks again after this time.
const AGAIN: Nanos = Nanos::from_millis(200);

/// Bytes of a message, and messages that fit into the buffer: the article's pipe.
const FRAME: u64 = 16;
const SLOTS: u64 = 128;

/// What it wants: every message within `latency`, `rate` of them a second, 3 us for each.
fn wish(rate: u64, latency: Nanos) -> Qos {
    Qos {
        latency,
        tput: rate * FRAME * 8 * latency.0 / 1_000_000_000,
        buffer: SLOTS * FRAME,
        execution: Nanos::from_micros(3 * SLOTS),
        burst: 8,
    }
}

fn main(Arguments([place, channel, rate, seconds]): Arguments) {
    if let Err(error) = work(place as usize, channel as u8, rate, seconds) {
        log!("it ends: {error}");
    }
}

fn work(place: usize, channel: u8, rate: u64, seconds: u64) -> Result<(), Error> {
    let thread = THREADS.get(place).ok_or(Error::NoSuchPlace)?;
    let route = Route::From(channel);
    let endpoint = Endpoint { place, route };
    let mut pipe = Pipe::new(endpoint, thread)?;
    let usual = wish(rate, Nanos::from_millis(50));
    loop {
        match pipe.open(route, &usual, time::now() + ANSWER) {
            Ok(granted) => break say("opened", &granted),
            Err(Error::Refused(refused)) => log!("not yet: {refused}"),
            Err(error) => return Err(error),
        }
        time::sleep(AGAIN);
    }
    let impossible = wish(rate, Nanos::from_micros(900));
    refused(&mut pipe, "at once", &impossible)?;
    refused(&mut pipe, "more than the device has", &wish(20_000, usual.latency))?;
    let heavy = Qos { execution: Nanos::from_millis(8), ..usual };
    refused(&mut pipe, "more than declared", &heavy)?;
    let quick = wish(rate, Nanos::from_millis(25));
    say("changed", &pipe.renegotiate(&quick, time::now() + ANSWER)?);
    for _ in 0..seconds {
        time::sleep(REPORT);
        log!("{}", pipe.report(thread));
    }
    pipe.close(time::now() + ANSWER)?;
    let (missing, strange) = thread.function().faults();
    let seen = thread.report();
    let fine = missing + strange + seen.lost + seen.overruns + seen.outside == 0;
    let verdict = if fine && seen.messages > 0 { "WHOLE" } else { "NOT WHOLE" };
    log!("closed: {verdict}, {} messages, {missing} missing, {strange} strange", seen.messages);
    Ok(())
}

fn say(what: &str, granted: &Granted) {
    let us = |time: Nanos| time.0.div_ceil(1_000);
    let Granted { budget, period, bound, little, equation_nine, slots, .. } = *granted;
    log!("{what}: C {} us, T {} us, bound {} us, {slots} slots", us(budget), us(period), us(bound));
    log!("the article: T {} us, bound {} us", us(little), us(equation_nine));
}

/// What must not be given.
fn refused(pipe: &mut Pipe, what: &str, qos: &Qos) -> Result<(), Error> {
    match pipe.renegotiate(qos, time::now() + ANSWER) {
        Ok(_) => log!("{what}: given, which cannot be"),
        Err(Error::Refused(refused)) => {
            log!("{what}: {}", refused.reason);
            log!("but {}", refused.would_fit);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

//! Opens a tuned pipe while the system runs, is refused what cannot be, changes it, and closes it.
//!
//! Each step is one line in the log. Arguments: the place of its pipe, the channel, messages a
//! second that it expects, and after how many seconds it ends with a verdict.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod numbers;

use diapason_rt::{Arguments, Nanos, entry, heap, log, time};
use diapason_tpipe::{Endpoint, Granted, Pipe, PipeError, Qos, Route, TunedThread, WhyRefused};
use diapason_tuned::{opened, refused, say, soon, us, wish};
use numbers::Numbers;

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// The threads of all places; one of them is this program's.
static THREADS: [TunedThread<Numbers>; 5] = [
    TunedThread::new(0, Numbers::new()),
    TunedThread::new(1, Numbers::new()),
    TunedThread::new(2, Numbers::new()),
    TunedThread::new(3, Numbers::new()),
    TunedThread::new(4, Numbers::new()),
];

/// Messages that fit into the buffer.
const SLOTS: u64 = 128;

fn main(Arguments([place, channel, rate, seconds]): Arguments) {
    if let Err(error) = work(place as usize, channel as u8, rate, seconds) {
        log!("it ends: {error}");
    }
}

fn work(place: usize, channel: u8, rate: u64, seconds: u64) -> Result<(), PipeError> {
    let thread = THREADS.get(place).ok_or(PipeError::NoSuchPlace)?;
    let route = Route::From(channel);
    let endpoint = Endpoint { place, route };
    let mut pipe = Pipe::new(endpoint, thread)?;
    let usual = wish(rate, Nanos::from_millis(50), SLOTS);
    told("opened", &opened(&mut pipe, route, &usual)?);
    let impossible = wish(rate, Nanos::from_micros(900), SLOTS);
    refused(&mut pipe, "at once", &impossible, |why| matches!(why, WhyRefused::Latency { .. }))?;
    let much = wish(20_000, usual.latency, SLOTS);
    refused(&mut pipe, "more than the device has", &much, |why| {
        matches!(why, WhyRefused::Device { .. })
    })?;
    let heavy = Qos { execution: Nanos::from_millis(8), ..usual };
    refused(&mut pipe, "more than declared", &heavy, |why| {
        matches!(why, WhyRefused::Budget { .. })
    })?;
    let quick = wish(rate, Nanos::from_millis(35), SLOTS);
    told("changed", &pipe.renegotiate(&quick, soon())?);
    time::sleep(Nanos::from_secs(seconds));
    pipe.close(soon())?;
    let (missing, strange) = thread.function().faults();
    let seen = thread.report();
    let fine = missing + strange + seen.lost + u64::from(seen.overruns + seen.outside) == 0;
    let verdict = if fine && seen.messages > 0 { "WHOLE" } else { "NOT WHOLE" };
    log!("closed: {verdict}, {} messages, {missing} missing, {strange} strange", seen.messages);
    Ok(())
}

/// Logs what was given, and what equation 9 of [USB 2023] would give.
fn told(what: &str, granted: &Granted) {
    say(what, granted);
    let Granted { little, equation_nine, .. } = *granted;
    log!("[USB 2023, eq. 9]: T {} us, bound {} us", us(little), us(equation_nine));
}

//! Opens a pipe from one channel through itself to another while the system runs, with one bound
//! for the whole way, is refused what cannot be, passes messages on, and closes it.
//!
//! Each step is one line in the log. Arguments: the place of its pipe, both channels (the second
//! times 16), messages a second, and after how many seconds it ends with a verdict.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};
use diapason_rt::{Arguments, Nanos, entry, heap, log, time};
use diapason_tpipe::{
    CanFrame, Endpoint, Passage, Passer, Phase, Pipe, PipeError, Route, TimedFrame, WhyRefused,
};
use diapason_tuned::{again, finish, opened, refused, say_written, soon, wish};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// Messages that fit into the buffer.
const SLOTS: u64 = 64;

struct All {
    passed: AtomicU64,
}

impl Passage for All {
    fn pass(&self, message: &TimedFrame) -> Option<CanFrame> {
        time::work("tuned.message", || {
            self.passed.fetch_add(1, Ordering::Relaxed);
            Some(message.frame)
        })
    }

    fn news(&self, phase: Phase) {
        log!("the channel is {phase:?}");
    }
}

const fn thread(place: usize) -> Passer<All> {
    Passer::new(place, All { passed: AtomicU64::new(0) })
}

/// The threads of all places; one of them is this program's.
static THREADS: [Passer<All>; 5] = [thread(0), thread(1), thread(2), thread(3), thread(4)];

fn main(Arguments([place, channels, rate, seconds]): Arguments) {
    let route = Route::Through(channels as u8 % 16, (channels / 16) as u8);
    if let Err(error) = work(place as usize, route, rate, seconds) {
        log!("it ends: {error}");
    }
}

fn work(place: usize, route: Route, rate: u64, seconds: u64) -> Result<(), PipeError> {
    let thread = THREADS.get(place).ok_or(PipeError::NoSuchPlace)?;
    let mut pipe = Pipe::new(Endpoint { place, route }, thread)?;
    let usual = wish(rate, Nanos::from_millis(100), SLOTS);
    let granted = opened(&mut pipe, route, &usual)?;
    say_written("opened", &granted);
    refused(&mut pipe, "at once", &wish(rate, Nanos::from_millis(4), SLOTS), |why| {
        matches!(why, WhyRefused::Latency { .. })
    })?;
    refused(&mut pipe, "more than declared", &wish(2 * rate, usual.latency, SLOTS), |why| {
        matches!(why, WhyRefused::Rate { .. })
    })?;
    again(&mut pipe, &usual, &granted)?;
    let quick = wish(rate, Nanos::from_millis(96), SLOTS);
    say_written("changed", &pipe.renegotiate(&quick, soon())?);
    time::sleep(Nanos::from_secs(seconds));
    finish(&mut pipe, || 0)
}

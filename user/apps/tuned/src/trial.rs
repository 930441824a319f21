//! Asks for everything that cannot be had, and checks that it is refused for the right reason, that
//! nothing has changed by that, and that what was refused for want of room is given when there is
//! some. It has all places but the last, on which somebody hostile asks.
//!
//! It says `every refusal has its reason`, or what was wrong.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod numbers;

use diapason_rt::{Arguments, Nanos, entry, heap, log, time};
use diapason_tpipe::{
    Endpoint, Pipe, PipeError, Qos, RefusedPipe, Route, TunedThread, WhyRefused, WouldFit,
};
use numbers::Numbers;

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// The places it has.
const PLACES: usize = 4;
static THREADS: [TunedThread<Numbers>; PLACES] = [
    TunedThread::new(0, Numbers::new()),
    TunedThread::new(1, Numbers::new()),
    TunedThread::new(2, Numbers::new()),
    TunedThread::new(3, Numbers::new()),
];
/// The channel of the first pipe.
const CHANNEL: u8 = 4;
const ANSWER: Nanos = Nanos::from_secs(5);

/// A usual pipe, at 400 messages a second in a buffer of 64.
const USUAL: Qos = Qos {
    latency: Nanos::from_millis(50),
    tput: 400 * 16 * 8 / 20,
    buffer: 64 * 16,
    execution: Nanos::from_micros(200),
    burst: 8,
};

type Wrong = (&'static str, Option<PipeError>);

fn main(_: Arguments) {
    match run() {
        Ok(()) => log!("every refusal has its reason"),
        Err((what, Some(error))) => log!("WRONG: {what}: {error}"),
        Err((what, None)) => log!("WRONG: {what}"),
    }
}

fn soon() -> Nanos {
    time::now() + ANSWER
}

fn run() -> Result<(), Wrong> {
    let mut pipes = [None, None, None, None];
    for (place, pipe) in pipes.iter_mut().enumerate() {
        let endpoint = Endpoint { place, route: Route::From(CHANNEL) };
        let new = Pipe::new(endpoint, &THREADS[place]);
        *pipe = Some(new.map_err(|error| ("a pipe", Some(error)))?);
    }
    let [Some(mut first), Some(mut second), Some(mut third), Some(mut fourth)] = pipes else {
        return Err(("pipes", None));
    };
    closed_pipes(&mut first)?;
    until_open(&mut first)?;
    let granted = *first.granted().ok_or(("terms", None))?;
    wrong_wishes(&mut first)?;
    let same = first.renegotiate(&USUAL, soon()).map_err(|error| ("again", Some(error)))?;
    holds("nothing has changed", same == granted)?;
    // The description has a pipe, too: the sixth is this one or the hostile client's.
    for pipe in [&mut second, &mut third] {
        pipe.open(Route::From(1), &USUAL, soon()).map_err(|error| ("others", Some(error)))?;
    }
    room_for_one(&mut fourth, &mut third)?;
    for pipe in [&mut first, &mut second, &mut fourth] {
        pipe.close(soon()).map_err(|error| ("close", Some(error)))?;
    }
    closed_pipes(&mut first)?;
    let strange = THREADS.iter().map(|thread| thread.function().faults().1).sum::<u64>();
    holds("messages came in their order", strange == 0)
}

/// Checks that a closed pipe can do nothing but be closed again.
fn closed_pipes(pipe: &mut Pipe) -> Result<(), Wrong> {
    let changed = pipe.renegotiate(&USUAL, soon()).map(drop);
    reason("a change of a closed pipe", changed, |why| why == WhyRefused::NoPipe)?;
    pipe.close(soon()).map_err(|error| ("close twice", Some(error)))
}

/// The device is found while this runs; before that, there is none.
fn until_open(pipe: &mut Pipe) -> Result<(), Wrong> {
    let mut without = 0;
    loop {
        match pipe.open(Route::From(CHANNEL), &USUAL, soon()) {
            Ok(_) => return holds("a missing device was refused", without > 0),
            Err(PipeError::Refused(RefusedPipe { reason: WhyRefused::NoDevice, .. })) => {
                without += 1
            }
            Err(error) => return Err(("the first pipe", Some(error))),
        }
        time::sleep(Nanos::from_millis(20));
    }
}

/// Wishes that nobody can grant, one for each reason.
fn wrong_wishes(pipe: &mut Pipe) -> Result<(), Wrong> {
    let mut ask = |what, qos: Qos, right: fn(WhyRefused) -> bool| {
        reason(what, pipe.renegotiate(&qos, soon()).map(drop), right)
    };
    ask("no buffer for a message", Qos { buffer: 15, ..USUAL }, |why| {
        why == WhyRefused::SmallBuffer { buffer: 15, packet: 16 }
    })?;
    ask("too large a buffer", Qos { buffer: 257 * 16, ..USUAL }, |why| {
        why == WhyRefused::LargeBuffer { buffer: 4_112, most: 4_096 }
    })?;
    let (soon_enough, few) = (Nanos::from_micros(900), 46);
    ask(
        "below the fixed parts",
        Qos { latency: soon_enough, tput: few, ..USUAL },
        |why| matches!(why, WhyRefused::Latency { wanted, fixed } if fixed > wanted),
    )?;
    ask(
        "more than the device has",
        Qos { tput: 120_000, ..USUAL },
        |why| matches!(why, WhyRefused::Device { wanted, given: 2_250_000 } if wanted > 2_400_000),
    )?;
    ask("a burst beyond the device", Qos { burst: 65, ..USUAL }, |why| {
        why == WhyRefused::DeviceBuffer { holds: 64, needed: 65 }
    })?;
    ask("too few slots", Qos { buffer: 4 * 16, burst: 4, ..USUAL }, |why| {
        matches!(why, WhyRefused::Overflow { slots: 4, .. })
    })?;
    ask("nothing", Qos { execution: Nanos::ZERO, ..USUAL }, |why| why == WhyRefused::Nothing)?;
    undeclared(pipe)?;
    let channel = pipe.open(Route::From(7), &USUAL, soon()).map(drop);
    reason("an open pipe", channel, |why| why == WhyRefused::AlreadyOpen)
}

/// Wishes beyond what the description declares: 400 messages a second, 8 at once, 200 us.
fn undeclared(pipe: &mut Pipe) -> Result<(), Wrong> {
    let mut ask = |what, qos: Qos, right: WhyRefused| {
        reason(what, pipe.renegotiate(&qos, soon()).map(drop), |why| why == right)
    };
    let faster = Qos { tput: USUAL.tput + 1, ..USUAL };
    ask("more than declared", faster, WhyRefused::Rate { wanted: 401, declared: 400 })?;
    let burst = WhyRefused::Burst { wanted: 9, declared: 8 };
    ask("more at once", Qos { burst: 9, ..USUAL }, burst)?;
    let (wanted, declared) = (Nanos::from_millis(20), USUAL.execution);
    let slower = Qos { execution: wanted, ..USUAL };
    ask("longer than declared", slower, WhyRefused::Budget { wanted, declared })
}

/// Five pipes are open, one of them the description's and one perhaps a stranger's.
fn room_for_one(pipe: &mut Pipe, other: &mut Pipe) -> Result<(), Wrong> {
    let none = pipe.open(Route::From(9), &USUAL, soon()).map(drop);
    reason("no such channel", none, |why| {
        why == WhyRefused::NoSuchChannel { channel: 9, channels: 5 }
    })?;
    let other_channel = pipe.open(Route::From(1), &USUAL, soon()).map(drop);
    reason("an undeclared channel", other_channel, |why| {
        matches!(why, WhyRefused::Undeclared { channel: 1 } | WhyRefused::NoChannel { .. })
    })?;
    let fourth = pipe.open(Route::From(2), &USUAL, soon());
    if let Err(error) = fourth {
        reason("a pipe too many", Err(error), |why| why == WhyRefused::NoChannel { channels: 5 })?;
        other.close(soon()).map_err(|error| ("room", Some(error)))?;
        pipe.open(Route::From(2), &USUAL, soon())
            .map_err(|error| ("when there is room", Some(error)))?;
        return Ok(());
    }
    other.close(soon()).map_err(|error| ("the third", Some(error)))
}

/// Checks that the request was refused, and for the right reason.
fn reason(
    what: &'static str,
    done: Result<(), PipeError>,
    right: impl Fn(WhyRefused) -> bool,
) -> Result<(), Wrong> {
    match done {
        Err(PipeError::Refused(RefusedPipe { reason, would_fit, .. })) if right(reason) => {
            log!("{what}: {reason}");
            if would_fit != WouldFit::Nothing {
                log!("but {would_fit}");
            }
            Ok(())
        }
        Err(error) => Err((what, Some(error))),
        Ok(()) => Err((what, None)),
    }
}

fn holds(what: &'static str, right: bool) -> Result<(), Wrong> {
    if right { Ok(()) } else { Err((what, None)) }
}

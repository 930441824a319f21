//! Time: the clock, sleeping, timers, periodic jobs.

use crate::why::{Outcome, Trial};
use crate::{check, refused};
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_rt::event::{Event, Routine, Timer};
use diapason_rt::thread::{self, spawn};
use diapason_rt::{Errno, Nanos, body, time};

pub const TRIALS: &[(&str, Trial)] = &[
    ("the clock never goes back", monotonic),
    ("sleeping is as long as said", sleeping),
    ("a timer fires once", single_shot),
    ("a periodic timer keeps its phase", periodic),
    ("a timer counts what nobody waited for", unattended),
    ("a stopped timer is silent", stopped),
    ("a timer's routine runs at each expiry", routine),
    ("an event has one waiter", one_waiter),
    ("a deleted event is gone", deleted),
    ("events without names are limited", exhaustion),
    ("jobs are released on time", jobs),
    ("a late job passes over releases", late_job),
];

body!(Waiter = waiter);
body!(Late = late);

/// Wake-ups may be late by this much here: the kernel's paths and this program's.
const SLACK: Nanos = Nanos::from_micros(10);

fn us(n: u64) -> Nanos {
    Nanos::from_micros(n)
}

fn monotonic() -> Outcome {
    let mut last = time::now();
    for _ in 0..10_000 {
        let now = time::now();
        check!(now >= last);
        last = now;
    }
    Ok(())
}

fn sleeping() -> Outcome {
    for n in [1, 7, 50, 333, 2_000] {
        let until = time::now() + us(n);
        time::sleep_until(until);
        check!(time::now() >= until && time::now() < until + SLACK);
    }
    let before = time::now();
    time::sleep_until(Nanos::ZERO);
    time::sleep_until(before);
    check!(time::now() < before + SLACK);
    Ok(())
}

fn single_shot() -> Outcome {
    let timer = Timer::new()?;
    let first = time::now() + us(100);
    timer.start(first, Nanos::ZERO)?;
    refused!(timer.wait(Nanos::ZERO), WouldBlock);
    check!(timer.wait(Nanos::FOREVER)? == 1);
    check!(time::now() >= first && time::now() < first + SLACK);
    refused!(timer.wait(time::now() + us(300)), TimedOut);
    Ok(())
}

/// How often the routine has run; it ends itself after five.
static TICKS: AtomicU64 = AtomicU64::new(0);

struct Tick;

impl Routine for Tick {
    fn run(count: u64) -> ControlFlow<()> {
        let ticks = TICKS.load(Relaxed) + count;
        TICKS.store(ticks, Relaxed);
        if ticks < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

fn routine() -> Outcome {
    let first = time::now() + us(100);
    let thread = Timer::new()?.routine::<Tick>("tick", 40, first, us(50))?;
    time::sleep_until(first + us(120));
    check!(TICKS.load(Relaxed) == 3);
    thread.join(first + us(1_000))?;
    check!(TICKS.load(Relaxed) == 5);
    Ok(())
}

fn periodic() -> Outcome {
    let timer = Timer::new()?;
    let first = time::now() + us(100);
    timer.start(first, us(70))?;
    for n in 0..20 {
        check!(timer.wait(Nanos::FOREVER)? == 1);
        let due = first + us(70 * n);
        check!(time::now() >= due && time::now() < due + SLACK);
    }
    Ok(())
}

fn unattended() -> Outcome {
    let timer = Timer::new()?;
    let first = time::now() + us(100);
    timer.start(first, us(50))?;
    time::sleep_until(first + us(220));
    check!(timer.wait(Nanos::FOREVER)? == 5);
    check!(timer.wait(Nanos::FOREVER)? == 1);
    check!(time::now() >= first + us(250));
    Ok(())
}

fn stopped() -> Outcome {
    let timer = Timer::new()?;
    timer.start(time::now() + us(50), us(50))?;
    timer.stop()?;
    refused!(timer.wait(time::now() + us(200)), TimedOut);
    timer.start(time::now() + us(50), Nanos::ZERO)?;
    check!(timer.wait(Nanos::FOREVER)? == 1);
    Ok(())
}

/// Waits for the event whose handle it is given.
fn waiter(handle: u64) -> u64 {
    const WAIT: u8 = diapason_abi::CallNumber::EventWait as u8;
    // SAFETY: takes a handle and a time.
    let result = unsafe { diapason_rt::sys::raw2::<WAIT>(handle, u64::MAX) };
    match diapason_abi::decode_result(result) {
        Ok(count) => count,
        Err(errno) => 100 + errno as u64,
    }
}

fn one_waiter() -> Outcome {
    let event = Event::new()?;
    let other = spawn::<Waiter>("waiter", 40, event.raw())?;
    time::sleep(us(50));
    refused!(event.wait(Nanos::FOREVER), Busy);
    drop(event);
    check!(other.join(Nanos::FOREVER)? == 100 + Errno::Gone as u64);
    Ok(())
}

fn deleted() -> Outcome {
    let handle = Event::new()?.raw();
    check!(waiter(handle) == 100 + Errno::Gone as u64);
    let _again = Event::new()?;
    check!(waiter(handle) == 100 + Errno::Gone as u64);
    Ok(())
}

fn exhaustion() -> Outcome {
    let all = [(); 24].map(|()| Event::new());
    refused!(Event::new(), Exhausted);
    refused!(Timer::new(), Exhausted);
    check!(all.iter().filter(|event| event.is_ok()).count() >= 4);
    Ok(())
}

fn jobs() -> Outcome {
    let first = time::now() + us(100);
    let mut jobs = thread::periodic(first, us(80), us(80));
    for n in 0..10 {
        let release = first + us(80 * n);
        check!(time::now() >= release && time::now() < release + SLACK);
        check!(jobs.wait() == 0);
    }
    Ok(())
}

/// A job of three and a half periods: two whole releases are passed over.
fn late(_: u64) -> u64 {
    let first = time::now() + us(100);
    let mut jobs = thread::periodic(first, us(100), us(1_000));
    time::sleep_until(first + us(350));
    let skipped = jobs.wait();
    let again = jobs.wait();
    let now = time::now();
    let in_phase = now >= first + us(400) && now < first + us(400) + SLACK;
    skipped * 100 + again * 10 + u64::from(in_phase)
}

fn late_job() -> Outcome {
    check!(spawn::<Late>("late", 40, 0)?.join(Nanos::FOREVER)? == 201);
    Ok(())
}

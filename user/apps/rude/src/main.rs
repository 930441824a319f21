//! Takes all that it can get, in one of several ways: see the README. The first argument says how.

#![no_std]
#![no_main]

use diapason_rt::event::Timer;
use diapason_rt::mailbox::Mailbox;
use diapason_rt::sync::{Condition, Mutex, Semaphore};
use diapason_rt::thread::{JoinHandle, spawn, spawn_on};
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Arguments, Errno, Nanos, body, entry, log, time};

entry!(main);
body!(Burner = burner);
body!(Idler = idler);
body!(Waiter = waiter);

/// Most timers that it holds.
const TIMERS: usize = 1_000;
/// Most threads that it starts.
const THREADS: usize = 63;
/// The time that it computes between two looks at the clock.
const STINT: Nanos = Nanos::from_micros(10);

fn main(Arguments([behaviour, a, b, c]): Arguments) {
    let us = Nanos::from_micros;
    let result = match behaviour {
        0 => burn_for_ever(),
        1 => rearm(a, us(b), Nanos(c)),
        2 => ring(a, us(b), us(c)),
        3 => greedy(us(a), b, us(c)),
        4 => talk(us(a)),
        5 => post(a, us(b)),
        6 => fall(a, us(b)),
        7 => churn(a, us(b)),
        8 => nap(us(a), us(b)),
        9 => cling(us(a), us(b)),
        10 => reopen(us(a)),
        11 => beg(us(a)),
        _ => Ok(()),
    };
    if let Err(errno) = result {
        log!("it may not: {errno:?}");
    }
}

fn burn_for_ever() -> ! {
    loop {
        time::burn(STINT);
    }
}

fn burner(_: u64) -> u64 {
    burn_for_ever()
}

fn idler(_: u64) -> u64 {
    time::sleep_until(Nanos::FOREVER);
    0
}

/// As many timers as it may have, at most `count`.
fn timers(count: u64) -> [Option<Timer>; TIMERS] {
    let mut timers = [const { None }; TIMERS];
    for place in timers.iter_mut().take(usize::try_from(count).unwrap_or(TIMERS)) {
        *place = Timer::new().ok();
    }
    timers
}

fn rearm(count: u64, wake: Nanos, distance: Nanos) -> Result<(), Errno> {
    /// The first rings when the last is set.
    const LEAD: Nanos = Nanos::from_micros(60);
    let timers = timers(count);
    let mut next = time::now() + wake;
    loop {
        let first = time::now() + LEAD;
        for (number, timer) in (0..).zip(timers.iter().flatten()) {
            timer.start(first + Nanos(distance.0 * number), Nanos::ZERO)?;
        }
        time::sleep_until(next);
        next = (next + wake).max(time::now());
    }
}

fn ring(count: u64, period: Nanos, distance: Nanos) -> Result<(), Errno> {
    /// After the releases of others, which begin at the same instants.
    const AFTER: Nanos = Nanos::from_micros(20);
    const START: Nanos = Nanos::from_millis(100);
    let timers = timers(count);
    let mut release = START + period;
    loop {
        let at = |number: u64| release + AFTER + Nanos(distance.0 * number);
        for (number, timer) in (0..).zip(timers.iter().flatten()) {
            timer.start(at(number), Nanos::ZERO)?;
        }
        time::sleep_until(at(count) + AFTER);
        release += period;
    }
}

fn greedy(period: Nanos, count: u64, begin: Nanos) -> Result<(), Errno> {
    time::sleep_until(begin);
    for _ in 0..count {
        let vcpu = Vcpu::create(Vcpu::fit(period)?, period, false)?;
        keep(spawn_on::<Burner>(vcpu, "burner", 0, 0)?);
    }
    idler(0);
    Ok(())
}

/// Lets a thread run without ever asking for its end.
fn keep(thread: JoinHandle) {
    core::mem::forget(thread);
}

fn talk(pause: Nanos) -> Result<(), Errno> {
    let mut lines = 0u64;
    loop {
        log!("line {lines} of somebody who has nothing to say, and says it without end");
        lines += 1;
        rest(pause);
    }
}

fn post(count: u64, pause: Nanos) -> Result<(), Errno> {
    let mailbox = Mailbox::open("rude.box")?;
    for _ in 1..count {
        mailbox.send(b"urgent", 5, Nanos::ZERO)?;
    }
    loop {
        mailbox.send(b"last", 0, Nanos::ZERO)?;
        mailbox.receive(Nanos::FOREVER)?;
        mailbox.send(b"urgent", 5, Nanos::ZERO)?;
        time::sleep(pause);
    }
}

fn fall(threads: u64, after: Nanos) -> Result<(), Errno> {
    for _ in 1..threads {
        let Ok(thread) = spawn::<Idler>("idler", 0, 0) else { break };
        keep(thread);
    }
    let timers = timers(TIMERS as u64);
    for timer in timers.iter().flatten() {
        timer.start(time::now() + Nanos::from_secs(10), Nanos::ZERO)?;
    }
    while Semaphore::private(0).is_ok() {}
    while Condition::private().is_ok() {}
    time::sleep(after);
    panic!("it has made everything there is");
}

/// The semaphore that [`waiter`]s wait for, made and deleted over and over.
const GATE: &str = "rude.gate";

fn waiter(_: u64) -> u64 {
    // It ends when the semaphore does.
    let _ = Semaphore::open(GATE).and_then(|gate| gate.take(Nanos::FOREVER));
    0
}

fn churn(threads: u64, pause: Nanos) -> Result<(), Errno> {
    loop {
        let gate = Semaphore::open(GATE)?;
        let mut waiters = [const { None }; THREADS];
        for place in waiters.iter_mut().take(usize::try_from(threads).unwrap_or(THREADS)) {
            *place = spawn::<Waiter>("waiter", 0, 0).ok();
        }
        time::sleep(pause);
        gate.delete()?;
        for thread in waiters.into_iter().flatten() {
            thread.join(Nanos::FOREVER)?;
        }
    }
}

fn nap(pause: Nanos, work: Nanos) -> Result<(), Errno> {
    loop {
        time::burn(work);
        time::sleep(pause);
    }
}

fn cling(work: Nanos, pause: Nanos) -> Result<(), Errno> {
    let shared = Mutex::open("shared")?;
    loop {
        let guard = shared.lock()?;
        time::burn(work);
        drop(guard);
        time::sleep(pause);
    }
}

fn reopen(pause: Nanos) -> Result<(), Errno> {
    loop {
        Mailbox::open("rude.box")?.delete()?;
        rest(pause);
    }
}

fn beg(pause: Nanos) -> ! {
    loop {
        // All that it may have are in use after a while, and it goes on asking.
        let _ = Semaphore::private(0);
        rest(pause);
    }
}

fn rest(pause: Nanos) {
    if pause > Nanos::ZERO {
        time::sleep(pause);
    }
}

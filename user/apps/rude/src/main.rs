//! Takes all that it can get, in one of several ways: see the README. The first argument says how.
//!
//! Each behaviour is a function that is never inlined: each has a stack frame of its own, so the
//! arrays of one do not overflow the stack of another.

#![no_std]
#![no_main]

mod calls;

use diapason_rt::event::Timer;
use diapason_rt::mailbox::Mailbox;
use diapason_rt::sync::{Condition, Mutex, Semaphore};
use diapason_rt::thread::{JoinHandle, spawn, spawn_on};
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Arguments, Errno, Nanos, body, entry, log, time};

entry!(main);
body!(Burner = burner);
body!(Idler = idler);
body!(Lodger = lodger);
body!(Waiter = waiter);

/// Most timers that it holds.
const TIMERS: usize = 320;
/// Most threads that it starts.
const THREADS: usize = 63;
/// Most VCPUs that it makes.
const VCPUS: usize = 8;
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
        12 => crowd(a, us(b), c),
        13 => calls::idle_calls(us(a)),
        14 => calls::announce(a, us(b)),
        15 => calls::attach(a, us(b)),
        16 => calls::breed(us(a), us(b)),
        17 => calls::ring_bell(us(a)),
        18 => calls::hire(a, us(b)),
        19 => calls::ask(us(a)),
        20 => calls::retune(us(a)),
        21 => calls::pester(us(a)),
        22 => calls::promote(us(a), us(b)),
        _ => Ok(()),
    };
    if let Err(errno) = result {
        log!("it may not: {errno:?}");
    }
}

#[inline(never)]
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

/// Returns as many timers as it may have, at most `count`.
fn timers(count: u64) -> [Option<Timer>; TIMERS] {
    let mut timers = [const { None }; TIMERS];
    for place in timers.iter_mut().take(usize::try_from(count).unwrap_or(TIMERS)) {
        *place = Timer::new().ok();
    }
    timers
}

#[inline(never)]
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

#[inline(never)]
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

#[inline(never)]
fn greedy(period: Nanos, count: u64, begin: Nanos) -> Result<(), Errno> {
    time::sleep_until(begin);
    for _ in 0..count {
        let Some(vcpu) = vcpu(period, 1) else { break };
        keep(spawn_on::<Burner>(vcpu, "burner", 0, 0)?);
    }
    idler(0);
    Ok(())
}

/// Makes a VCPU of one `part`-th of the largest budget that the kernel admits at `period`. Returns
/// `None` if the kernel admits none so large, or if the process has made all that it may.
fn vcpu(period: Nanos, part: u64) -> Option<Vcpu> {
    /// The kernel ends a process that asks for less.
    const LEAST: Nanos = Nanos::from_micros(1);
    let budget = Nanos(Vcpu::fit(period).ok()?.0 / part);
    if budget < LEAST { None } else { Vcpu::create(budget, period, false).ok() }
}

/// Lets a thread run without ever asking for its end.
fn keep(thread: JoinHandle) {
    core::mem::forget(thread);
}

#[inline(never)]
fn talk(pause: Nanos) -> Result<(), Errno> {
    let mut lines = 0u64;
    loop {
        log!("line {lines} of somebody who has nothing to say, and says it without end");
        lines += 1;
        rest(pause);
    }
}

#[inline(never)]
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

#[inline(never)]
fn fall(threads: u64, after: Nanos) -> Result<(), Errno> {
    for _ in 1..threads {
        let Ok(thread) = spawn::<Idler>("idler", 0, 0) else { break };
        keep(thread);
    }
    while let Ok(timer) = Timer::new() {
        timer.start(time::now() + Nanos::from_secs(10), Nanos::ZERO)?;
        core::mem::forget(timer);
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

#[inline(never)]
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

#[inline(never)]
fn nap(pause: Nanos, work: Nanos) -> Result<(), Errno> {
    loop {
        time::burn(work);
        time::sleep(pause);
    }
}

#[inline(never)]
fn cling(work: Nanos, pause: Nanos) -> Result<(), Errno> {
    let shared = Mutex::open("shared")?;
    loop {
        let guard = shared.lock()?;
        time::burn(work);
        drop(guard);
        time::sleep(pause);
    }
}

#[inline(never)]
fn reopen(pause: Nanos) -> Result<(), Errno> {
    loop {
        Mailbox::open("rude.box")?.delete()?;
        rest(pause);
    }
}

#[inline(never)]
fn beg(pause: Nanos) -> ! {
    loop {
        // All that it may have are in use after a while, and it goes on asking.
        let _ = Semaphore::private(0);
        rest(pause);
    }
}

/// Computes until the instant `end`.
fn lodger(end: u64) -> u64 {
    while time::now() < Nanos(end) {
        time::burn(STINT);
    }
    0
}

#[inline(never)]
fn crowd(count: u64, stay: Nanos, rounds: u64) -> Result<(), Errno> {
    for _ in 0..rounds {
        let end = time::now() + stay;
        let (vcpus, threads) = gather(count, end);
        for thread in threads.into_iter().flatten() {
            thread.join(Nanos::FOREVER)?;
        }
        for vcpu in vcpus.into_iter().flatten() {
            vcpu.delete()?;
        }
    }
    let (_, threads) = gather(count, Nanos::FOREVER);
    threads.into_iter().flatten().for_each(keep);
    time::sleep(stay);
    panic!("it leaves with all that it has made");
}

type Gathered = ([Option<Vcpu>; VCPUS], [Option<JoinHandle>; THREADS]);

/// Makes all VCPUs that it may, and at most `count` threads, which compute on them in turn until
/// `end`.
fn gather(count: u64, end: Nanos) -> Gathered {
    const PERIOD: Nanos = Nanos::from_millis(5);
    let vcpus = [(); VCPUS].map(|()| vcpu(PERIOD, 4));
    let made = vcpus.iter().flatten().count();
    let mut threads = [const { None }; THREADS];
    let count = usize::try_from(count).unwrap_or(THREADS);
    for (number, place) in threads.iter_mut().enumerate().take(count) {
        let vcpu = vcpus.get(number % made.max(1)).copied().flatten();
        let vcpu = vcpu.unwrap_or(Vcpu::DEFAULT);
        *place = spawn_on::<Lodger>(vcpu, "lodger", 0, end.0).ok();
    }
    (vcpus, threads)
}

fn rest(pause: Nanos) {
    if pause > Nanos::ZERO {
        time::sleep(pause);
    }
}

//! Behaviours that make, over and over, the calls that no other behaviour makes.

use crate::{keep, rest, vcpu};
use diapason_abi::call::Counter;
use diapason_abi::{Key, MESSAGE_BYTES, PAGE, PAGES_PER_CALL};
use diapason_rt::event::{Doorbell, Event};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::memory::{DmaSegment, KernelCopy, Registers, Segment, allocate};
use diapason_rt::sync::{Condition, Mutex, Semaphore};
use diapason_rt::thread::{periodic, spawn, yield_now};
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Errno, Nanos, body, log, process, state, sys, time};

body!(Listener = listener);
body!(Worker = worker);
body!(Clerk = clerk);

const BOX: &str = "rude.box";
const ANSWERS: &str = "rude.answers";
const LOCK: &str = "rude.lock";
const NEWS: &str = "rude.news";
const SCREEN: &str = "screen";

/// Makes the calls that change nothing.
#[inline(never)]
pub fn idle_calls(pause: Nanos) -> Result<(), Errno> {
    let lock = Mutex::open(LOCK)?;
    loop {
        sys::null();
        yield_now();
        let _ = sys::count(Counter::CpuTime);
        let _ = lock.try_lock();
        let _ = Vcpu::fit(Nanos::from_millis(7));
        rest(pause);
    }
}

fn listener(_: u64) -> u64 {
    while let Err(Errno::Gone) | Ok(()) = listen() {}
    0
}

fn listen() -> Result<(), Errno> {
    let (lock, news) = (Mutex::open(LOCK)?, Condition::open(NEWS)?);
    let mut guard = lock.lock()?;
    loop {
        news.wait(&mut guard, Nanos::FOREVER)?;
    }
}

/// Wakes as many threads as it may have, and sometimes deletes the condition that they wait for.
#[inline(never)]
pub fn announce(threads: u64, pause: Nanos) -> Result<(), Errno> {
    const BROADCASTS: u64 = 8;
    crew::<Listener>(threads);
    loop {
        let news = Condition::open(NEWS)?;
        for _ in 0..BROADCASTS {
            news.broadcast()?;
            rest(pause);
        }
        news.delete()?;
    }
}

/// Attaches and maps everything, copies in one piece, and allocates `pages` of its heap.
#[inline(never)]
pub fn attach(pages: u64, pause: Nanos) -> Result<(), Errno> {
    let mut left = usize::try_from(pages).unwrap_or(usize::MAX);
    let reader = state::reader::<[u64; 250], 2>("rude.state")?;
    loop {
        drop(Segment::attach("rude.segment")?);
        drop(DmaSegment::attach("rude.dma")?);
        let _ = reader.read_slow(&KernelCopy);
        // The machine may lack the device.
        let _ = Registers::map(SCREEN);
        let _ = Event::interrupt(SCREEN);
        let step = left.min(PAGES_PER_CALL);
        let memory = allocate(step)?;
        debug_assert_eq!(memory.len(), step * PAGE);
        left -= step;
        rest(pause);
    }
}

/// Starts the process `rude.pawn`, lets it make what it may, and ends it.
#[inline(never)]
pub fn breed(stay: Nanos, pause: Nanos) -> Result<(), Errno> {
    let pawn = Key::new("rude.pawn");
    loop {
        let _ = process::create(pawn);
        time::sleep(stay);
        // It may have ended by itself.
        let _ = process::kill(pawn);
        rest(pause);
    }
}

/// Rings a doorbell that it answers itself.
#[inline(never)]
pub fn ring_bell(pause: Nanos) -> Result<(), Errno> {
    let (bell, event) = (Doorbell::new("rude.bell"), Event::interrupt("rude.bell")?);
    loop {
        bell.ring()?;
        match event.wait(time::now() + pause) {
            Ok(_) | Err(Errno::TimedOut | Errno::WouldBlock) => {}
            Err(other) => return Err(other),
        }
    }
}

/// Asks the server of an endpoint for something again and again, and has written nothing.
#[inline(never)]
pub fn pester(pause: Nanos) -> Result<(), Errno> {
    let asked = Semaphore::open("sink.ask")?;
    loop {
        // At its limit it has been given often enough.
        let _ = asked.give();
        if pause > Nanos::ZERO {
            time::sleep(pause);
        }
    }
}

fn worker(period: u64) -> u64 {
    const JOBS: u64 = 8;
    let mut jobs = periodic(time::now(), Nanos(period), Nanos(period));
    for _ in 0..JOBS {
        jobs.wait();
    }
    0
}

/// Starts periodic threads that nobody joins, as many as it may have.
#[inline(never)]
pub fn hire(threads: u64, period: Nanos) -> ! {
    loop {
        for _ in 1..threads {
            let Ok(thread) = spawn::<Worker>("worker", 0, period.0) else { break };
            drop(thread);
        }
        time::sleep(period);
    }
}

fn clerk(_: u64) -> u64 {
    let (Ok(questions), Ok(answers)) = (Mailbox::open(BOX), Mailbox::open(ANSWERS)) else {
        return 0;
    };
    let mut buffer = [0; MESSAGE_BYTES];
    while answers.call_into(&mut buffer, MESSAGE_BYTES, 0, &questions, Nanos::FOREVER).is_ok() {}
    0
}

/// Asks a thread of its own, which answers, and waits for the event of the answer before.
#[inline(never)]
pub fn ask(pause: Nanos) -> Result<(), Errno> {
    let questions = Mailbox::open(BOX)?;
    let arrival = Event::new()?;
    let answers = Mailbox::open_with(ANSWERS, &arrival)?;
    keep(spawn::<Clerk>("clerk", 0, 0)?);
    let mut buffer = [0; MESSAGE_BYTES];
    loop {
        questions.call_into(&mut buffer, MESSAGE_BYTES, 0, &answers, Nanos::FOREVER)?;
        let _ = arrival.wait(time::now() + pause);
        drop(Event::new());
        rest(pause);
    }
}

/// Makes VCPUs and changes them to and fro.
#[inline(never)]
pub fn retune(pause: Nanos) -> Result<(), Errno> {
    const CHANGES: u64 = 8;
    let periods = [3, 30].map(Nanos::from_millis);
    loop {
        let made = [vcpu(periods[0], 4), vcpu(periods[1], 4)];
        for change in 0..CHANGES {
            let period = periods[usize::from(change % 2 == 0)];
            for vcpu in made.into_iter().flatten() {
                // It may be more than the kernel admits.
                let _ = vcpu.set(Nanos(period.0 / 100), period);
            }
            rest(pause);
        }
        for vcpu in made.into_iter().flatten() {
            vcpu.delete()?;
        }
    }
}

/// Asks for more of its own VCPU, which is called `rude.vcpu`, than the description says, and uses
/// that up all the time.
#[inline(never)]
pub fn promote(budget: Nanos, period: Nanos) -> Result<(), Errno> {
    if Vcpu::open("rude.vcpu")?.set(budget, period).is_err() {
        log!("it has what it had");
    }
    loop {
        time::burn(period);
    }
}

/// Starts threads that wait, as many as it may have and at most `threads` with itself.
fn crew<B: diapason_rt::thread::Body>(threads: u64) {
    for _ in 1..threads {
        let Ok(thread) = spawn::<B>("crew", 0, 0) else { break };
        keep(thread);
    }
}

//! T1, the least urgent of the three, which holds the mutex when the event comes. It also makes one
//! task after the other ready behind itself, measures after each, and logs the results:
//!
//! - `PAIR n scenario case` and then median and maximum of the whole way, of the lock call alone,
//!   and of switches: the event is T1's (`own`) or comes while Tx runs (`other`);
//! - `DECISION n` and then median and maximum of waking by timer and of going to sleep.
//!
//! `n` is the number of tasks that are ready when T2 is. Arguments: how many tasks behind itself; 1
//! if they have VCPUs; 1 to measure pairs, 2 to measure decisions.

#![no_std]
#![no_main]

use core::sync::atomic::Ordering::Relaxed;
use diapason_rt::sync::{Mutex, Semaphore};
use diapason_rt::thread::{spawn, spawn_on};
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Arguments, Errno, Nanos, body, entry, log, time};
use diapason_semaphores::{Case, Marks, PACE, RUNS, stamp};

entry!(main);
body!(Behind = behind);

/// By then the others wait for their events.
const SETTLED: Nanos = Nanos::from_millis(20);
/// A stretch without this thread is longer than the loop that looks for it.
const GAP: u64 = 100;
/// The argument that asks for pairs of lock and unlock.
const PAIRS: u64 = 1;

struct Tasks {
    marks: &'static Marks,
    event: Semaphore,
    turn: Semaphore,
    mutex: Mutex,
    /// The cost of one stamp.
    stamp: u64,
}

fn main(Arguments([behind, reserved, what, _]): Arguments) {
    if let Err(errno) = run(behind, reserved != 0, what == PAIRS) {
        log!("low failed: {errno:?}");
    }
}

fn run(behind: u64, reserved: bool, pairs: bool) -> Result<(), Errno> {
    let tasks = Tasks {
        marks: Marks::attach()?,
        event: Semaphore::open("event")?,
        turn: Semaphore::open("turn")?,
        mutex: Mutex::open("s")?,
        stamp: (0..16).map(|_| cost_of_stamp()).min().unwrap_or(0),
    };
    time::sleep(SETTLED);
    for ready in 0..=behind {
        if ready > 0 {
            follow(ready, reserved)?;
        }
        if pairs {
            tasks.measure(ready)?;
        } else {
            tasks.decisions(ready + 2)?;
        }
    }
    log!("DONE");
    Ok(())
}

fn cost_of_stamp() -> u64 {
    let (first, second) = (stamp(), stamp());
    second - first
}

/// One more task is ready from now on, behind this one: its turn never comes.
fn follow(number: u64, reserved: bool) -> Result<(), Errno> {
    let mut name = *b"behind-00";
    name[7] += (number / 10) as u8;
    name[8] += (number % 10) as u8;
    let name = core::str::from_utf8(&name).unwrap_or("behind");
    let thread = if reserved {
        spawn_on::<Behind>(Vcpu::open(name)?, name, 0, 0)
    } else {
        spawn::<Behind>(name, 0, 0)
    };
    // It lives on without its handle.
    core::mem::forget(thread?);
    Ok(())
}

fn behind(_: u64) -> u64 {
    loop {
        time::burn(Nanos::from_micros(10));
    }
}

impl Tasks {
    fn measure(&self, ready: u64) -> Result<(), Errno> {
        for case in Case::PAIRS {
            self.pairs(ready + 2, "own", case, || {
                self.marks.begin();
                self.event.give()
            })?;
        }
        for case in Case::PAIRS {
            self.pairs(ready + 3, "other", case, || self.turn.give())?;
        }
        Ok(())
    }

    /// The event comes while this thread holds the mutex.
    fn pairs(
        &self,
        n: u64,
        scenario: &str,
        case: Case,
        raise: impl Fn() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.marks.set_case(case);
        for round in 0..=RUNS {
            if round == 1 {
                // The first began under the case before.
                self.marks.set_case(case);
            }
            let next = time::now() + PACE;
            let guard = self.mutex.lock()?;
            raise()?;
            drop(guard);
            while time::now() < next {}
        }
        let marks = self.marks;
        let (whole, lock) = (marks.whole.middle_and_most(), marks.lock.middle_and_most());
        let switches = marks.switches.middle_and_most();
        // Between its ends the whole way has one more stamp.
        let (one, two) = (self.stamp as u32, 2 * self.stamp as u32);
        log!(
            "PAIR {n} {scenario} {} {} {} {} {} {} {}",
            case.name(),
            whole.0 - two,
            whole.1 - two,
            lock.0 - one,
            lock.1 - one,
            switches.0,
            marks.switches.count()
        );
        Ok(())
    }

    /// The most urgent thread sleeps and wakes while this one runs.
    fn decisions(&self, n: u64) -> Result<(), Errno> {
        let marks = self.marks;
        marks.set_case(Case::Sleep);
        self.event.give()?;
        let mut last = stamp();
        while marks.block.count() < RUNS || marks.wake.count() < RUNS {
            let now = stamp();
            if now - last > GAP && marks.left.load(Relaxed) > last {
                marks.block.push(now - marks.left.load(Relaxed) - self.stamp);
            }
            last = now;
        }
        // The last sleep is over soon; then the other waits for the event again.
        let end = time::now() + PACE + PACE;
        while time::now() < end {}
        let (wake, block) = (marks.wake.middle_and_most(), marks.block.middle_and_most());
        log!("DECISION {n} {} {} {} {}", wake.0, wake.1, block.0, block.1);
        Ok(())
    }
}

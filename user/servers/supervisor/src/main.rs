//! The supervisor: hears of every fault and restarts what its description says to restart.
//!
//! Never, a number of times, or always; each time after a back-off that doubles. It keeps no state
//! of its own but the restarts that are due: everything else is in the report.

#![no_std]
#![no_main]

use diapason_abi::{FaultReport, Key, PROCESSES_MAX};
use diapason_rt::mailbox::{Mailbox, receive_fault};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, process};

entry!(main);

/// Back-offs stop doubling here.
const DOUBLINGS_MAX: u32 = 10;

/// A process waiting to be restarted.
#[derive(Clone, Copy)]
struct Due {
    when: Nanos,
    key: Key,
}

fn main(_: Arguments) {
    let Ok(faults) = Mailbox::open("supervisor.faults") else { return };
    let mut due: [Option<Due>; PROCESSES_MAX] = [None; PROCESSES_MAX];
    let mut restart = None;
    loop {
        let next = due.iter().flatten().map(|d| d.when).min().unwrap_or(Nanos::FOREVER);
        let report = match restart.take() {
            Some(key) => process::create_and_receive(key, &faults, next),
            None => receive_fault(&faults, next),
        };
        match report {
            Ok(report) => plan(&report, &mut due),
            Err(Errno::TimedOut) => restart = take_due(&mut due, next),
            Err(_) => log!("a process could not be restarted"),
        }
    }
}

fn plan(report: &FaultReport, due: &mut [Option<Due>]) {
    if report.restarts >= report.restarts_max {
        log!("process {} stays down after {} restarts", report.process, report.restarts);
        return;
    }
    let backoff = report.backoff << report.restarts.min(DOUBLINGS_MAX);
    let when = Nanos(report.time) + Nanos(backoff);
    if let Some(slot) = due.get_mut(report.process as usize) {
        *slot = Some(Due { when, key: Key(report.key) });
    }
}

/// A process that is to be restarted by `now`.
fn take_due(due: &mut [Option<Due>], now: Nanos) -> Option<Key> {
    let slot = due.iter_mut().find(|slot| slot.is_some_and(|d| d.when <= now))?;
    slot.take().map(|d| d.key)
}

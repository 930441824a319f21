//! Trials of condition variables.

use crate::why::{Outcome, Trial};
use crate::{check, refused};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_rt::sync::{Condition, Mutex};
use diapason_rt::thread::{JoinHandle, spawn};
use diapason_rt::{Errno, Nanos, body, time};

pub const TRIALS: &[(&str, Trial)] = &[
    ("a signal with nobody waiting is lost", lost_signal),
    ("a wait releases the mutex and holds it again", wait_and_hold),
    ("a wait times out holding the mutex", wait_times_out),
    ("a signal wakes the most urgent", most_urgent),
    ("a broadcast wakes more than a batch", broadcast),
    ("waiting needs the mutex", needs_mutex),
    ("a deleted condition is gone", deleted),
];

body!(Waiter = waiter);

static MUTEX: AtomicU64 = AtomicU64::new(0);
static CONDITION: AtomicU64 = AtomicU64::new(0);
static MARKS: AtomicU64 = AtomicU64::new(0);
static WOKEN: AtomicU64 = AtomicU64::new(0);

fn shared() -> (&'static Mutex, &'static Condition) {
    // SAFETY: the trial stored the addresses of objects that live until its threads are joined.
    unsafe {
        (&*(MUTEX.load(Relaxed) as *const Mutex), &*(CONDITION.load(Relaxed) as *const Condition))
    }
}

fn share(mutex: &Mutex, condition: &Condition) {
    MUTEX.store(core::ptr::from_ref(mutex) as u64, Relaxed);
    CONDITION.store(core::ptr::from_ref(condition) as u64, Relaxed);
    MARKS.store(0, Relaxed);
    WOKEN.store(0, Relaxed);
}

/// Waits once; its code says how that ended.
fn waiter(digit: u64) -> u64 {
    let (mutex, condition) = shared();
    let Ok(mut guard) = mutex.lock() else { return 9 };
    let result = condition.wait(&mut guard, Nanos::FOREVER);
    MARKS.store(MARKS.load(Relaxed).wrapping_mul(10) + digit, Relaxed);
    WOKEN.store(WOKEN.load(Relaxed) + 1, Relaxed);
    match result {
        Ok(()) => 0,
        Err(Errno::Gone) => 1,
        Err(_) => 2,
    }
}

fn settle() {
    time::sleep(Nanos::from_micros(100));
}

fn lost_signal() -> Outcome {
    let (mutex, condition) = (Mutex::private()?, Condition::private()?);
    check!(!condition.signal()?);
    condition.broadcast()?;
    let mut guard = mutex.lock()?;
    let soon = time::now() + Nanos::from_micros(50);
    refused!(condition.wait(&mut guard, soon), TimedOut);
    drop(guard);
    condition.delete()?;
    Ok(mutex.delete()?)
}

fn wait_and_hold() -> Outcome {
    let (mutex, condition) = (Mutex::private()?, Condition::private()?);
    share(&mutex, &condition);
    let thread = spawn::<Waiter>("waiter", 40, 1)?;
    settle();
    // It waits without the mutex.
    let guard = mutex.try_lock()?;
    check!(condition.signal()?);
    settle();
    check!(WOKEN.load(Relaxed) == 0);
    drop(guard);
    check!(thread.join(Nanos::FOREVER)? == 0);
    check!(WOKEN.load(Relaxed) == 1);
    condition.delete()?;
    Ok(mutex.delete()?)
}

fn wait_times_out() -> Outcome {
    let (mutex, condition) = (Mutex::private()?, Condition::private()?);
    let mut guard = mutex.lock()?;
    refused!(condition.wait(&mut guard, Nanos::ZERO), WouldBlock);
    let soon = time::now() + Nanos::from_micros(50);
    refused!(condition.wait(&mut guard, soon), TimedOut);
    check!(time::now() >= soon);
    refused!(mutex.lock(), Deadlock);
    drop(guard);
    drop(mutex.lock()?);
    condition.delete()?;
    Ok(mutex.delete()?)
}

fn most_urgent() -> Outcome {
    let (mutex, condition) = (Mutex::private()?, Condition::private()?);
    share(&mutex, &condition);
    let threads = [(3, 20), (1, 40), (2, 30)].map(|(digit, p)| spawn::<Waiter>("waiter", p, digit));
    settle();
    for _ in 0..3 {
        check!(condition.signal()?);
    }
    check!(!condition.signal()?);
    for thread in threads {
        check!(thread?.join(Nanos::FOREVER)? == 0);
    }
    check!(MARKS.load(Relaxed) == 123);
    condition.delete()?;
    Ok(mutex.delete()?)
}

fn broadcast() -> Outcome {
    let (mutex, condition) = (Mutex::private()?, Condition::private()?);
    share(&mutex, &condition);
    let mut threads: [Option<JoinHandle>; 11] = [const { None }; 11];
    for (n, thread) in threads.iter_mut().enumerate() {
        *thread = Some(spawn::<Waiter>("waiter", 20 + n as u8, 1)?);
    }
    settle();
    condition.broadcast()?;
    for thread in threads.into_iter().flatten() {
        check!(thread.join(Nanos::FOREVER)? == 0);
    }
    check!(WOKEN.load(Relaxed) == 11);
    condition.delete()?;
    Ok(mutex.delete()?)
}

fn needs_mutex() -> Outcome {
    let (mutex, condition) = (Mutex::private()?, Condition::private()?);
    let mut guard = mutex.lock()?;
    let other = Mutex::private()?;
    check!(other.delete().is_ok());
    mutex.delete()?;
    refused!(condition.wait(&mut guard, Nanos::FOREVER), Gone);
    drop(guard);
    Ok(condition.delete()?)
}

fn deleted() -> Outcome {
    let (mutex, condition) = (Mutex::private()?, Condition::private()?);
    share(&mutex, &condition);
    let thread = spawn::<Waiter>("waiter", 40, 1)?;
    settle();
    condition.delete()?;
    check!(thread.join(Nanos::FOREVER)? == 1);
    refused!(condition.signal(), Gone);
    // It ended with the mutex let go.
    drop(mutex.try_lock()?);
    Ok(mutex.delete()?)
}

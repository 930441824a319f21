//! Mutexes with priority inheritance, and counting semaphores.

use crate::why::{Outcome, Trial};
use crate::{check, refused};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_rt::sync::{Mutex, Semaphore};
use diapason_rt::thread::spawn;
use diapason_rt::{Errno, Nanos, body, time};

pub const TRIALS: &[(&str, Trial)] = &[
    ("a mutex excludes", excludes),
    ("a mutex may be asked without waiting", try_lock),
    ("locking twice is a deadlock", twice),
    ("a circle of owners is a deadlock", circle),
    ("a lock times out", lock_times_out),
    ("the owner inherits the waiter's priority", inheritance),
    ("priority is inherited through a chain", chain),
    ("the most urgent waiter is next", waiters_by_priority),
    ("an owner that ends leaves word", owner_died),
    ("a deleted mutex is gone", deleted),
    ("only the owner unlocks", not_owner),
    ("a semaphore counts", counts),
    ("a semaphore is full at its limit", full),
    ("more semaphores than declared are refused", exhaustion),
    ("by name there is one", by_name),
];

body!(Hold = hold);
body!(Mid = mid);
body!(High = high);
body!(Link = link);
body!(Waiter = waiter);
body!(Dies = dies);
body!(OtherWay = other_way);

/// The events, one digit each.
static MARKS: AtomicU64 = AtomicU64::new(0);
static LOCKS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

fn mark(digit: u64) {
    MARKS.store(MARKS.load(Relaxed) * 10 + digit, Relaxed);
}

fn micros(n: u64) -> Nanos {
    Nanos::from_micros(n)
}

/// Returns the mutexes of the trial under way, by where they live.
fn shared(n: usize) -> &'static Mutex {
    // SAFETY: the trial stored the address of a mutex that lives until its threads are joined.
    unsafe { &*(LOCKS[n].load(Relaxed) as *const Mutex) }
}

fn share(n: usize, mutex: &Mutex) {
    LOCKS[n].store(core::ptr::from_ref(mutex) as u64, Relaxed);
    MARKS.store(0, Relaxed);
}

fn hold(burn: u64) -> u64 {
    let guard = shared(0).lock();
    mark(1);
    time::burn(micros(burn));
    mark(2);
    drop(guard);
    mark(8);
    0
}

fn mid(_: u64) -> u64 {
    time::burn(micros(1_000));
    mark(5);
    0
}

fn high(n: u64) -> u64 {
    let guard = shared(n as usize).lock();
    mark(4);
    guard.is_ok().into()
}

fn excludes() -> Outcome {
    let mutex = Mutex::private()?;
    share(0, &mutex);
    let guard = mutex.lock()?;
    let other = spawn::<High>("other", 45, 0)?;
    time::sleep(micros(50));
    check!(MARKS.load(Relaxed) == 0);
    drop(guard);
    check!(other.join(Nanos::FOREVER)? == 1);
    check!(MARKS.load(Relaxed) == 4);
    Ok(mutex.delete()?)
}

fn try_lock() -> Outcome {
    let mutex = Mutex::private()?;
    drop(mutex.try_lock()?);
    let guard = mutex.lock()?;
    refused!(mutex.try_lock(), WouldBlock);
    drop(guard);
    drop(mutex.try_lock()?);
    Ok(mutex.delete()?)
}

fn twice() -> Outcome {
    let mutex = Mutex::private()?;
    let guard = mutex.lock()?;
    refused!(mutex.lock(), Deadlock);
    drop(guard);
    Ok(mutex.delete()?)
}

/// Holds the second and wants the first.
fn other_way(_: u64) -> u64 {
    let second = shared(1).lock();
    time::sleep(micros(100));
    let first = shared(0).lock();
    mark(3);
    (second.is_ok() && first.is_ok()).into()
}

fn circle() -> Outcome {
    let (first, second) = (Mutex::private()?, Mutex::private()?);
    share(0, &first);
    share(1, &second);
    let guard = first.lock()?;
    let other = spawn::<OtherWay>("other", 45, 0)?;
    time::sleep(micros(300));
    refused!(second.lock(), Deadlock);
    drop(guard);
    check!(other.join(Nanos::FOREVER)? == 1);
    first.delete()?;
    Ok(second.delete()?)
}

fn lock_times_out() -> Outcome {
    let mutex = Mutex::private()?;
    share(0, &mutex);
    let holder = spawn::<Hold>("holder", 20, 500)?;
    time::sleep(micros(20));
    refused!(mutex.lock_until(Nanos::ZERO), WouldBlock);
    let soon = time::now() + micros(100);
    refused!(mutex.lock_until(soon), TimedOut);
    check!(time::now() >= soon && time::now() < soon + micros(50));
    // The waiter's priority is gone with it: the holder is the least urgent again.
    holder.join(Nanos::FOREVER)?;
    Ok(mutex.delete()?)
}

/// Low holds, high waits, mid would like to run for long: low first, then high, then mid.
fn inheritance() -> Outcome {
    let mutex = Mutex::private()?;
    share(0, &mutex);
    let low = spawn::<Hold>("low", 10, 500)?;
    time::sleep(micros(100));
    let high = spawn::<High>("high", 30, 0)?;
    let mid = spawn::<Mid>("mid", 20, 0)?;
    check!(high.join(Nanos::FOREVER)? == 1);
    check!(MARKS.load(Relaxed) == 124);
    mid.join(Nanos::FOREVER)?;
    low.join(Nanos::FOREVER)?;
    check!(MARKS.load(Relaxed) == 12_458);
    Ok(mutex.delete()?)
}

/// Holds the second while it waits for the first.
fn link(_: u64) -> u64 {
    let second = shared(1).lock();
    let first = shared(0).lock();
    mark(3);
    (second.is_ok() && first.is_ok()).into()
}

fn chain() -> Outcome {
    let (first, second) = (Mutex::private()?, Mutex::private()?);
    share(0, &first);
    share(1, &second);
    let low = spawn::<Hold>("low", 10, 500)?;
    time::sleep(micros(50));
    let link = spawn::<Link>("link", 15, 0)?;
    time::sleep(micros(50));
    let high = spawn::<High>("high", 30, 1)?;
    let mid = spawn::<Mid>("mid", 20, 0)?;
    for thread in [high, mid, link, low] {
        thread.join(Nanos::FOREVER)?;
    }
    // Low, then the link, then high; then mid; then what is left of low.
    check!(MARKS.load(Relaxed) == 123_458);
    first.delete()?;
    Ok(second.delete()?)
}

fn waiter(digit: u64) -> u64 {
    let guard = shared(0).lock();
    mark(digit);
    guard.is_ok().into()
}

fn waiters_by_priority() -> Outcome {
    let mutex = Mutex::private()?;
    share(0, &mutex);
    let guard = mutex.lock()?;
    let threads =
        [(3, 20), (1, 40), (2, 30), (4, 20)].map(|(digit, p)| spawn::<Waiter>("waiter", p, digit));
    time::sleep(micros(100));
    drop(guard);
    for thread in threads {
        thread?.join(Nanos::FOREVER)?;
    }
    check!(MARKS.load(Relaxed) == 1234);
    Ok(mutex.delete()?)
}

fn dies(_: u64) -> u64 {
    core::mem::forget(shared(0).lock());
    0
}

fn owner_died() -> Outcome {
    let mutex = Mutex::private()?;
    share(0, &mutex);
    spawn::<Dies>("dies", 40, 0)?.join(Nanos::FOREVER)?;
    let guard = mutex.lock()?;
    check!(guard.owner_died);
    drop(guard);
    check!(!mutex.lock()?.owner_died);
    Ok(mutex.delete()?)
}

body!(WaitGone = wait_gone);
fn wait_gone(_: u64) -> u64 {
    let gone = shared(0).lock().is_err_and(|errno| errno == Errno::Gone);
    gone.into()
}

fn deleted() -> Outcome {
    let mutex = Mutex::private()?;
    share(0, &mutex);
    let guard = mutex.lock()?;
    let waiter = spawn::<WaitGone>("waiter", 40, 0)?;
    time::sleep(micros(50));
    mutex.delete()?;
    check!(waiter.join(Nanos::FOREVER)? == 1);
    drop(guard);
    refused!(mutex.lock(), Gone);
    refused!(mutex.delete(), Gone);
    // A new one in the same slot is another.
    let next = Mutex::private()?;
    refused!(mutex.lock(), Gone);
    Ok(next.delete()?)
}

body!(Thief = thief);
fn thief(_: u64) -> u64 {
    const UNLOCK: u8 = diapason_abi::CallNumber::SemUnlock as u8;
    let raw = LOCKS[1].load(Relaxed);
    // SAFETY: an unlock takes a handle; this one is not held by this thread.
    let result = unsafe { diapason_rt::sys::raw1::<UNLOCK>(raw) };
    (diapason_abi::decode_result(result) == Err(Errno::NotOwner)).into()
}

fn not_owner() -> Outcome {
    use diapason_abi::{CallNumber, call::MUTEX, decode_result};
    let call = |number: CallNumber, a: u64, b: u64| {
        // SAFETY: creates, locks and deletes a semaphore of this trial.
        decode_result(unsafe { diapason_rt::sys::any_call(number as u64, [a, b, 0, 0, 0]) })
    };
    let raw = call(CallNumber::SemCreate, 0, MUTEX)?;
    LOCKS[1].store(raw, Relaxed);
    refused!(call(CallNumber::SemUnlock, raw, 0), NotOwner);
    call(CallNumber::SemLock, raw, u64::MAX)?;
    check!(spawn::<Thief>("thief", 40, 0)?.join(Nanos::FOREVER)? == 1);
    call(CallNumber::SemUnlock, raw, 0)?;
    call(CallNumber::SemDelete, raw, 0)?;
    Ok(())
}

fn counts() -> Outcome {
    let semaphore = Semaphore::private(2)?;
    semaphore.take(Nanos::ZERO)?;
    semaphore.take(Nanos::ZERO)?;
    refused!(semaphore.take(Nanos::ZERO), WouldBlock);
    let soon = time::now() + micros(50);
    refused!(semaphore.take(soon), TimedOut);
    check!(time::now() >= soon);
    semaphore.give()?;
    semaphore.give()?;
    semaphore.take(Nanos::FOREVER)?;
    semaphore.take(Nanos::FOREVER)?;
    refused!(semaphore.take(Nanos::ZERO), WouldBlock);
    Ok(semaphore.delete()?)
}

fn full() -> Outcome {
    let semaphore = Semaphore::private(u32::MAX)?;
    refused!(semaphore.give(), Full);
    semaphore.take(Nanos::ZERO)?;
    semaphore.give()?;
    Ok(semaphore.delete()?)
}

fn exhaustion() -> Outcome {
    let mut all = [None; 24];
    for place in &mut all {
        *place = Semaphore::private(1).ok();
    }
    refused!(Semaphore::private(1), Exhausted);
    for semaphore in all.into_iter().flatten() {
        semaphore.delete()?;
    }
    Ok(())
}

fn by_name() -> Outcome {
    let (one, other) = (Mutex::open("lock")?, Mutex::open("lock")?);
    let guard = one.lock()?;
    refused!(other.try_lock(), WouldBlock);
    drop(guard);
    drop(other.lock()?);
    Ok(())
}

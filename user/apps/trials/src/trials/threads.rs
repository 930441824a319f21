//! Threads: creation, ends, exhaustion, stacks.

use crate::why::{Outcome, Trial, Why};
use crate::{check, refused};
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_abi::{CallNumber, Errno, decode_result};
use diapason_rt::sys::raw2;
use diapason_rt::thread::{self, JoinHandle, spawn};
use diapason_rt::{Nanos, body, time};

pub const TRIALS: &[(&str, Trial)] = &[
    ("a thread gets its argument and its code is joined", argument_and_code),
    ("exit codes keep 63 bits", wide_codes),
    ("a thread that ended waits to be joined", late_join),
    ("a join times out and detaches", join_times_out),
    ("a thread cannot join itself", join_self),
    ("a second joiner is refused", second_joiner),
    ("detached slots come back", detach),
    ("more threads than declared are refused", exhaustion),
    ("a joined handle is gone", stale),
    ("the whole stack can be used", whole_stack),
    ("stacks of threads are apart", stacks_apart),
    ("a higher priority runs at once", priority),
    ("yield goes round among equals", round_robin),
];

body!(Double = double);
body!(Sleeper = sleeper);
body!(Deep = deep);
body!(Mark = mark);
body!(JoinSelf = join_own);
body!(Joiner = joiner);
body!(Turns = turns);

static MARKS: AtomicU64 = AtomicU64::new(0);
static HANDLE: AtomicU64 = AtomicU64::new(0);

fn double(n: u64) -> u64 {
    2 * n
}

fn sleeper(micros: u64) -> u64 {
    time::sleep(Nanos::from_micros(micros));
    micros
}

fn mark(digit: u64) -> u64 {
    MARKS.store(MARKS.load(Relaxed) * 10 + digit, Relaxed);
    0
}

fn join(handle: u64, deadline: Nanos) -> Result<u64, Errno> {
    // SAFETY: takes a handle and a time.
    decode_result(unsafe { raw2::<{ CallNumber::ThreadJoin as u8 }>(handle, deadline.0) })
}

fn argument_and_code() -> Outcome {
    for n in [0, 1, 21, 1 << 40] {
        check!(spawn::<Double>("double", 40, n)?.join(Nanos::FOREVER)? == 2 * n);
    }
    Ok(())
}

fn wide_codes() -> Outcome {
    let code = spawn::<Double>("double", 40, u64::MAX / 2)?.join(Nanos::FOREVER)?;
    check!(code == (u64::MAX - 1) & (u64::MAX >> 1));
    Ok(())
}

fn late_join() -> Outcome {
    let thread = spawn::<Double>("double", 40, 4)?;
    time::sleep(Nanos::from_millis(1));
    check!(thread.join(Nanos::ZERO)? == 8);
    Ok(())
}

fn join_times_out() -> Outcome {
    refused!(spawn::<Sleeper>("sleeper", 40, 300)?.join(Nanos::ZERO), WouldBlock);
    let soon = time::now() + Nanos::from_micros(100);
    refused!(spawn::<Sleeper>("sleeper", 40, 300)?.join(soon), TimedOut);
    check!(time::now() >= soon);
    time::sleep(Nanos::from_millis(1));
    Ok(())
}

fn join_own(_: u64) -> u64 {
    time::sleep(Nanos::from_micros(50));
    join(HANDLE.load(Relaxed), Nanos::FOREVER).is_err_and(|errno| errno == Errno::Deadlock).into()
}

fn join_self() -> Outcome {
    let thread = spawn::<JoinSelf>("itself", 40, 0)?;
    HANDLE.store(thread.raw(), Relaxed);
    check!(thread.join(Nanos::FOREVER)? == 1);
    Ok(())
}

fn joiner(handle: u64) -> u64 {
    join(handle, Nanos::FOREVER).unwrap_or(0)
}

fn second_joiner() -> Outcome {
    let thread = spawn::<Sleeper>("sleeper", 40, 500)?;
    let first = spawn::<Joiner>("joiner", 40, thread.raw())?;
    time::sleep(Nanos::from_micros(100));
    refused!(join(thread.raw(), Nanos::FOREVER), Busy);
    check!(first.join(Nanos::FOREVER)? == 500);
    refused!(join(thread.raw(), Nanos::FOREVER), Gone);
    Ok(())
}

fn detach() -> Outcome {
    for _ in 0..40 {
        drop(spawn::<Double>("double", 40, 0)?);
        time::sleep(Nanos::from_micros(20));
    }
    Ok(())
}

fn exhaustion() -> Outcome {
    let mut handles: [Option<JoinHandle>; 24] = [const { None }; 24];
    let mut count = 0;
    let last = loop {
        match spawn::<Double>("double", 40, count) {
            Ok(handle) => handles[count as usize] = Some(handle),
            Err(errno) => break errno,
        }
        count += 1;
    };
    check!(last == Errno::Exhausted);
    // Ended threads keep their slots until they are joined.
    time::sleep(Nanos::from_millis(1));
    refused!(spawn::<Double>("double", 40, 0), Exhausted);
    for (n, handle) in handles.into_iter().flatten().enumerate() {
        check!(handle.join(Nanos::FOREVER)? == 2 * n as u64);
    }
    check!(count >= 11);
    Ok(())
}

fn stale() -> Outcome {
    let thread = spawn::<Double>("double", 40, 3)?;
    let handle = thread.raw();
    thread.join(Nanos::FOREVER)?;
    refused!(join(handle, Nanos::ZERO), Gone);
    // The slot's next life is somebody else.
    let next = spawn::<Double>("double", 40, 5)?;
    check!(next.raw() != handle);
    refused!(join(handle, Nanos::ZERO), Gone);
    check!(next.join(Nanos::FOREVER)? == 10);
    Ok(())
}

/// Bytes of the stack that the description gives, but for what the start and a call need.
const STACK: u64 = 16 * 1024 - 1024;

fn deep(start: u64) -> u64 {
    let here = black_box([0_u8; 128]);
    let at = here.as_ptr() as u64;
    let start = if start == 0 { at } else { start };
    if start - at > STACK - 512 { start - at } else { deep(start) + u64::from(here[5]) }
}

fn whole_stack() -> Outcome {
    check!(spawn::<Deep>("deep", 40, 0)?.join(Nanos::FOREVER)? > STACK - 512);
    Ok(())
}

fn stacks_apart() -> Outcome {
    let threads = [1_u64, 2, 3, 4].map(|_| spawn::<Deep>("deep", 40, 0));
    for thread in threads {
        thread?.join(Nanos::FOREVER)?;
    }
    Ok(())
}

body!(Parent = parent);
fn parent(_: u64) -> u64 {
    let child = spawn::<Mark>("child", 41, 1);
    mark(2);
    let other = spawn::<Mark>("child", 39, 4);
    mark(3);
    let joined = [child, other].into_iter().flatten().all(|c| c.join(Nanos::FOREVER).is_ok());
    u64::from(joined)
}

fn priority() -> Outcome {
    MARKS.store(0, Relaxed);
    check!(spawn::<Parent>("parent", 40, 0)?.join(Nanos::FOREVER)? == 1);
    check!(MARKS.load(Relaxed) == 1234);
    Ok(())
}

fn turns(digit: u64) -> u64 {
    for _ in 0..3 {
        mark(digit);
        thread::yield_now();
    }
    0
}

fn round_robin() -> Outcome {
    MARKS.store(0, Relaxed);
    let threads = [1, 2, 3].map(|digit| spawn::<Turns>("turns", 30, digit));
    for thread in threads {
        thread.map_err(Why::from)?.join(Nanos::FOREVER)?;
    }
    check!(MARKS.load(Relaxed) == 123_123_123);
    Ok(())
}

//! Condition variables: the mutex is released, the signal awaited, the mutex held again.

use crate::support::lab::{self, lab, summon};
use crate::support::*;
use diapason_abi::SIGNAL_BATCH;
use diapason_abi::call::{MUTEX, OWNER_DIED};

/// A condition and its mutex, both shared.
fn plan() -> Plan {
    lab::plan().condition("cv")
}

/// `(condition, mutex)`, opened by the running thread.
fn pair(sys: &mut Sys<'_>) -> (u64, u64) {
    (sys.open(Call::CvCreate, "cv"), sys.open(Call::SemCreate, "m1"))
}

/// Threads of these priorities wait on the condition; `main` runs and does not hold the mutex.
fn waiting(
    priorities: &[u8],
    deadline: u64,
    experiment: impl FnOnce(&mut Sys<'_>, u64, u64, &[ThreadId]),
) {
    lab::with(&plan(), |sys| {
        let (cv, m) = pair(sys);
        let main = sys.running();
        let mut threads = Vec::new();
        for (i, priority) in priorities.iter().enumerate() {
            threads.push(sys.spawn(*priority));
            sys.blocks(Call::SleepUntil, &[1 + i as u64]);
            assert_eq!(sys.running(), threads[i]);
            sys.lock(m);
            sys.blocks(Call::CvWait, &[cv, m, deadline]);
            sys.until(1 + i as u64);
            assert_eq!(sys.running(), main);
        }
        experiment(sys, cv, m, &threads);
    });
}

#[test]
fn waiting_releases_the_mutex_and_a_signal_gives_it_back() {
    waiting(&[10], FOREVER, |sys, cv, m, threads| {
        sys.lock(m);
        sys.ok(Call::SemUnlock, &[m]);
        assert_eq!(sys.ok(Call::CvSignal, &[cv, 1]), 1);
        assert_ne!(sys.running(), threads[0], "less urgent, the woken one has not run yet");
        sys.park();
        assert_eq!(sys.running(), threads[0]);
        assert_eq!(sys.result(threads[0]), Some(Ok(0)));
        assert_eq!(sys.err(Call::SemTryLock, &[m]), WouldBlock, "it holds it");
        assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0);
    });
}

#[test]
fn a_signal_under_the_mutex_makes_the_woken_wait_for_it() {
    waiting(&[30], FOREVER, |sys, cv, m, threads| {
        let low = sys.spawn(3);
        sys.park();
        assert_eq!(sys.running(), low);
        sys.lock(m);
        assert_eq!(sys.ok(Call::CvSignal, &[cv, 1]), 1);
        assert_eq!(sys.priority(low), 30, "the woken waits for the mutex and lends");
        sys.yields(Call::SemUnlock, &[m]);
        assert_eq!((sys.running(), sys.priority(low)), (threads[0], 3));
        assert_eq!(sys.result(threads[0]), Some(Ok(0)));
    });
}

#[test]
fn a_signal_without_waiters_is_lost() {
    waiting(&[], FOREVER, |sys, cv, m, _| {
        assert_eq!(sys.ok(Call::CvSignal, &[cv, 1]), 0);
        sys.lock(m);
        sys.blocks(Call::CvWait, &[cv, m, FOREVER]);
    });
}

#[test]
fn waiters_are_woken_by_priority_then_in_order() {
    waiting(&[7, 9, 9, 8], FOREVER, |sys, cv, m, t| {
        assert_eq!(sys.ok(Call::CvSignal, &[cv, 3]), 3);
        sys.park();
        for (i, next) in [(0, t[1]), (1, t[2]), (2, t[3])] {
            assert_eq!(sys.running(), next, "{i}");
            assert_eq!(sys.result(next), Some(Ok(0)));
            assert_ne!(sys.call(Call::SemUnlock, &[m]), Outcome::Blocked);
            if sys.running() == next {
                sys.park();
            }
        }
        assert_eq!(sys.state(t[0]), State::Blocked);
    });
}

#[test]
fn a_broadcast_wakes_a_batch_at_a_time() {
    let plan = plan().process("crowd", 30).with(|p| p.threads = 12);
    run(&plan, |sys| {
        let control = sys.running();
        let (cv, m) = pair(sys);
        sys.blocks(Call::SleepUntil, &[50]);
        sys.park();
        assert_eq!(sys.running_process(), 2);
        for _ in 0..11 {
            sys.spawn(20);
        }
        sys.park();
        for _ in 0..11 {
            sys.lock(m);
            sys.blocks(Call::CvWait, &[cv, m, FOREVER]);
        }
        sys.until(50);
        assert_eq!(sys.running(), control);
        assert_eq!(sys.ok(Call::CvSignal, &[cv, u64::MAX]), SIGNAL_BATCH as u64);
        assert_eq!(sys.ok(Call::CvSignal, &[cv, u64::MAX]), 3);
        assert_eq!(sys.ok(Call::CvSignal, &[cv, u64::MAX]), 0);
    });
}

#[test]
fn signalling_nobody_on_purpose_wakes_nobody() {
    waiting(&[10], FOREVER, |sys, cv, _, threads| {
        assert_eq!(sys.ok(Call::CvSignal, &[cv, 0]), 0);
        assert_eq!(sys.state(threads[0]), State::Blocked);
    });
}

#[test]
fn a_wait_times_out_holding_the_mutex() {
    waiting(&[35], 500, |sys, _, m, threads| {
        sys.until(500);
        sys.park();
        assert_eq!(sys.result(threads[0]), Some(Err(TimedOut)));
        assert_eq!(sys.running(), threads[0]);
        assert_eq!(sys.err(Call::SemTryLock, &[m]), WouldBlock);
        assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0);
    });
}

#[test]
fn a_time_out_while_the_mutex_is_held_queues_for_it_without_a_further_deadline() {
    waiting(&[30], 500, |sys, _, m, threads| {
        let low = sys.spawn(3);
        sys.park();
        sys.lock(m);
        sys.until(500);
        assert_eq!((sys.running(), sys.priority(low)), (low, 30));
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
        sys.yields(Call::SemUnlock, &[m]);
        assert_eq!(sys.running(), threads[0]);
        assert_eq!(sys.result(threads[0]), Some(Err(TimedOut)));
        assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0);
    });
}

#[test]
fn a_past_deadline_keeps_the_mutex() {
    waiting(&[], 0, |sys, cv, m, _| {
        sys.until(10);
        sys.lock(m);
        assert_eq!(sys.err(Call::CvWait, &[cv, m, 10]), TimedOut);
        assert_eq!(sys.err(Call::CvWait, &[cv, m, NOW]), WouldBlock);
        assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0);
    });
}

#[test]
fn waiting_needs_the_mutex() {
    waiting(&[], 0, |sys, cv, m, _| {
        assert_eq!(sys.err(Call::CvWait, &[cv, m, FOREVER]), NotOwner);
        let s = sys.ok(Call::SemCreate, &[0, 1]);
        sys.ok(Call::SemLock, &[s, FOREVER]);
        assert_eq!(sys.err(Call::CvWait, &[cv, s, FOREVER]), NotOwner, "a semaphore has no owner");
    });
}

#[test]
fn deleting_the_condition_wakes_with_the_mutex() {
    waiting(&[10, 11], FOREVER, |sys, cv, m, t| {
        assert_eq!(sys.ok(Call::CvDelete, &[cv]), 0);
        for call in [Call::CvSignal, Call::CvWait, Call::CvDelete] {
            assert_eq!(sys.err(call, &[cv, m, FOREVER]), Gone);
        }
        sys.park();
        for thread in [t[1], t[0]] {
            assert_eq!(sys.running(), thread);
            assert_eq!(sys.result(thread), Some(Err(Gone)));
            assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0, "it held the mutex");
            sys.park();
        }
    });
}

#[test]
fn a_mutex_deleted_meanwhile_is_not_taken_even_if_its_slot_lives_again() {
    for again in [false, true] {
        waiting(&[10], FOREVER, |sys, cv, m, threads| {
            sys.ok(Call::SemDelete, &[m]);
            if again {
                assert_ne!(sys.open(Call::SemCreate, "m1"), m);
            }
            assert_eq!(sys.ok(Call::CvSignal, &[cv, 1]), 1);
            if again {
                let m = sys.open(Call::SemCreate, "m1");
                assert_eq!(sys.ok(Call::SemTryLock, &[m]), 0, "nobody took the new one");
            }
            sys.park();
            assert_eq!(sys.result(threads[0]), Some(Err(Gone)));
        });
    }
}

#[test]
fn a_mutex_deleted_while_the_woken_waits_for_it_is_gone() {
    waiting(&[10], FOREVER, |sys, cv, m, threads| {
        sys.lock(m);
        sys.ok(Call::CvSignal, &[cv, 1]);
        sys.ok(Call::SemDelete, &[m]);
        sys.park();
        assert_eq!(sys.result(threads[0]), Some(Err(Gone)));
        assert_eq!(sys.err(Call::SemUnlock, &[m]), Gone);
    });
}

#[test]
fn a_wake_that_would_close_a_cycle_is_a_deadlock_without_the_mutex() {
    lab::with(&plan(), |sys| {
        let (cv, m) = pair(sys);
        let other = sys.open(Call::SemCreate, "m2");
        let waiter = sys.spawn(10);
        sys.blocks(Call::SleepUntil, &[10]);
        sys.lock(other);
        sys.lock(m);
        sys.blocks(Call::CvWait, &[cv, m, FOREVER]);
        sys.until(10);
        sys.lock(m);
        sys.blocks(Call::SemLock, &[other, FOREVER]);
        summon(sys);
        assert_eq!(sys.ok(Call::CvSignal, &[cv, 1]), 1);
        lab::dismiss(sys);
        assert_eq!(sys.running(), waiter);
        assert_eq!(sys.result(waiter), Some(Err(Deadlock)));
        assert_eq!(sys.err(Call::SemUnlock, &[m]), NotOwner);
    });
}

#[test]
fn an_owner_that_died_is_reported_to_the_woken_or_else_to_the_next() {
    for timed_out in [false, true] {
        let plan = plan().process("fragile", 50).device("gong", 6, false, EVERYBODY);
        run(&plan, |sys| {
            let (cv, m) = pair(sys);
            sys.await_bell("bell");
            assert_eq!(sys.running_process(), 2);
            sys.await_bell("gong");
            let waiter = sys.running();
            sys.lock(m);
            sys.blocks(Call::CvWait, &[cv, m, 500]);
            sys.ring(1);
            sys.lock(m);
            if !timed_out {
                sys.ok(Call::CvSignal, &[cv, 1]);
            }
            sys.until(600);
            sys.crash(FaultCause::Write, 4);
            assert_eq!(sys.running(), waiter);
            if timed_out {
                assert_eq!(sys.result(waiter), Some(Err(TimedOut)));
                assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0);
                assert_eq!(sys.ok(Call::SemLock, &[m, FOREVER]), OWNER_DIED, "told to the next");
            } else {
                assert_eq!(sys.result(waiter), Some(Ok(OWNER_DIED)));
            }
        });
    }
}

#[test]
fn a_waiter_whose_process_ends_leaves_the_condition() {
    let plan = plan().process("fragile", 30).with(|p| p.threads = 2);
    lab::with(&plan, |sys| {
        let (cv, m) = pair(sys);
        sys.blocks(Call::SleepUntil, &[10]);
        sys.spawn(20);
        sys.blocks(Call::SleepUntil, &[5]);
        sys.lock(m);
        sys.blocks(Call::CvWait, &[cv, m, 1_000]);
        sys.until(5);
        sys.crash(FaultCause::Execute, 0);
        sys.until(10);
        assert_eq!(sys.ok(Call::CvSignal, &[cv, 1]), 0);
        assert_eq!(sys.ok(Call::SemTryLock, &[m]), 0, "it did not hold the mutex");
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
    });
}

#[test]
fn private_conditions_run_out_and_handles_are_checked() {
    lab::with(&plan().condition("secret").only(0b10), |sys| {
        let first = sys.ok(Call::CvCreate, &[0]);
        let second = sys.ok(Call::CvCreate, &[0]);
        assert_ne!(first, second);
        assert_eq!(sys.err(Call::CvCreate, &[0]), Exhausted);
        sys.ok(Call::CvDelete, &[first]);
        let third = sys.ok(Call::CvCreate, &[0]);
        assert_eq!(third as u16, first as u16);
        assert_eq!(sys.err(Call::CvSignal, &[first, 1]), Gone);
        let m = sys.ok(Call::SemCreate, &[0, MUTEX]);
        sys.misuses(FaultCause::BadHandle, Call::CvSignal, &[m, 1]);
    });
    for call in [Call::CvDelete, Call::CvSignal, Call::CvWait] {
        lab(|sys| sys.misuses(FaultCause::BadHandle, call, &[0, 0, FOREVER]));
    }
    lab::with(&plan(), |sys| {
        let (cv, _) = pair(sys);
        sys.misuses(FaultCause::BadHandle, Call::CvWait, &[cv, cv, FOREVER]);
    });
    lab::with(&plan().condition("secret").only(0b10), |sys| {
        sys.misuses(FaultCause::BadGrant, Call::CvCreate, &[key("secret")]);
    });
}

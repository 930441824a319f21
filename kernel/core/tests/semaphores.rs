//! Semaphores: mutexes with owners, counting semaphores, time-outs, deletion, stale handles.
//! Priority inheritance has its own file.

use crate::support::lab::{self, lab, summon};
use crate::support::*;
use diapason_abi::call::{MUTEX, OWNER_DIED};

#[test]
fn a_free_mutex_is_taken_and_given_back() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        sys.lock(m);
        assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0);
        assert_eq!(sys.ok(Call::SemTryLock, &[m]), 0);
        assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0);
    });
}

#[test]
fn one_name_is_one_object_everywhere() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        assert_eq!(sys.open(Call::SemCreate, "m1"), m);
        summon(sys);
        assert_eq!(sys.open(Call::SemCreate, "m1"), m);
        assert_ne!(sys.open(Call::SemCreate, "m2"), m);
    });
}

#[test]
fn unlocking_what_one_does_not_hold_is_refused() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        assert_eq!(sys.err(Call::SemUnlock, &[m]), NotOwner);
        sys.lock(m);
        summon(sys);
        assert_eq!(sys.err(Call::SemUnlock, &[m]), NotOwner);
    });
}

#[test]
fn a_held_mutex_makes_others_wait_their_turn() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        sys.lock(m);
        summon(sys);
        let control = sys.running();
        sys.blocks(Call::SemLock, &[m, FOREVER]);
        assert_eq!(sys.host.kernel.threads[control].wait, Wait::Mutex(first_semaphore(m)));
        sys.yields(Call::SemUnlock, &[m]);
        assert_eq!(sys.running(), control);
        assert_eq!(sys.result(control), Some(Ok(0)));
        assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0);
    });
}

/// The pool id a semaphore's handle names.
fn first_semaphore<T>(handle: u64) -> diapason_core::Id<T> {
    diapason_core::Id::new(handle as u16)
}

#[test]
fn trylock_never_waits() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        sys.lock(m);
        assert_eq!(sys.err(Call::SemTryLock, &[m]), WouldBlock, "held by the caller itself");
        summon(sys);
        assert_eq!(sys.err(Call::SemTryLock, &[m]), WouldBlock);
        assert_eq!(sys.err(Call::SemLock, &[m, NOW]), WouldBlock);
    });
}

#[test]
fn a_deadline_that_has_passed_times_out_at_once() {
    lab(|sys| {
        let s = sys.ok(Call::SemCreate, &[0, 0]);
        sys.until(100);
        for past in [1, 99, 100] {
            assert_eq!(sys.err(Call::SemLock, &[s, past]), TimedOut);
        }
        assert_eq!(sys.err(Call::SemLock, &[s, NOW]), WouldBlock);
    });
}

#[test]
fn a_waiter_times_out_at_its_deadline_and_not_before() {
    lab(|sys| {
        let s = sys.ok(Call::SemCreate, &[0, 0]);
        let me = sys.running();
        sys.blocks(Call::SemLock, &[s, 500]);
        assert_eq!(sys.host.decision.alarm, Nanos(500));
        sys.until(499);
        assert_eq!((sys.state(me), sys.result(me)), (State::Blocked, None));
        sys.until(500);
        assert_eq!(sys.result(me), Some(Err(TimedOut)));
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
        assert_eq!(sys.ok(Call::SemUnlock, &[s]), 0, "nobody waits: it counts");
        assert_eq!(sys.ok(Call::SemLock, &[s, FOREVER]), 0);
    });
}

#[test]
fn an_unlock_in_time_cancels_the_alarm() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        sys.lock(m);
        summon(sys);
        sys.blocks(Call::SemLock, &[m, 500]);
        sys.yields(Call::SemUnlock, &[m]);
        assert_eq!(sys.host.decision.alarm, Nanos::FOREVER);
    });
}

#[test]
fn locking_ones_own_mutex_again_is_a_deadlock() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        sys.lock(m);
        assert_eq!(sys.err(Call::SemLock, &[m, FOREVER]), Deadlock);
        assert_eq!(sys.err(Call::SemLock, &[m, 1_000]), Deadlock);
        assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0, "still held once");
    });
}

#[test]
fn closing_a_cycle_of_owners_is_a_deadlock() {
    lab(|sys| {
        let m: Vec<u64> = ["m1", "m2", "m3"].iter().map(|n| sys.open(Call::SemCreate, n)).collect();
        let low = sys.spawn(1);
        sys.park();
        assert_eq!(sys.running(), low);
        sys.lock(m[0]);
        let middle = sys.spawn(2);
        assert_eq!(sys.running(), middle);
        sys.lock(m[1]);
        let high = sys.spawn(3);
        sys.lock(m[2]);
        sys.blocks(Call::SemLock, &[m[1], FOREVER]);
        assert_eq!(sys.running(), middle);
        sys.blocks(Call::SemLock, &[m[0], FOREVER]);
        assert_eq!(sys.running(), low);
        assert_eq!(sys.err(Call::SemLock, &[m[2], FOREVER]), Deadlock);
        assert_eq!(sys.err(Call::SemTryLock, &[m[2]]), WouldBlock);
        sys.yields(Call::SemUnlock, &[m[0]]);
        assert_eq!(sys.running(), middle);
        sys.yields(Call::SemUnlock, &[m[1]]);
        assert_eq!(sys.running(), high);
        assert_eq!(sys.result(high), Some(Ok(0)));
    });
}

#[test]
fn a_counting_semaphore_counts() {
    lab(|sys| {
        let s = sys.ok(Call::SemCreate, &[0, 2]);
        assert_eq!(sys.ok(Call::SemLock, &[s, FOREVER]), 0);
        assert_eq!(sys.ok(Call::SemTryLock, &[s]), 0);
        assert_eq!(sys.err(Call::SemTryLock, &[s]), WouldBlock);
        for _ in 0..3 {
            assert_eq!(sys.ok(Call::SemUnlock, &[s]), 0, "anybody may signal");
        }
        for _ in 0..3 {
            assert_eq!(sys.ok(Call::SemTryLock, &[s]), 0);
        }
        assert_eq!(sys.err(Call::SemTryLock, &[s]), WouldBlock);
    });
}

#[test]
fn a_count_at_its_limit_is_full() {
    lab(|sys| {
        let s = sys.ok(Call::SemCreate, &[0, u64::from(u32::MAX)]);
        assert_eq!(sys.err(Call::SemUnlock, &[s]), Full);
        assert_eq!(sys.ok(Call::SemTryLock, &[s]), 0);
        assert_eq!(sys.ok(Call::SemUnlock, &[s]), 0);
        assert_eq!(sys.err(Call::SemUnlock, &[s]), Full);
    });
}

#[test]
fn a_declared_semaphore_takes_its_count_from_the_description() {
    lab::with(&lab::plan().semaphore("three", 3), |sys| {
        let s = sys.ok(Call::SemCreate, &[key("three"), 77]);
        for _ in 0..3 {
            assert_eq!(sys.ok(Call::SemTryLock, &[s]), 0);
        }
        assert_eq!(sys.err(Call::SemTryLock, &[s]), WouldBlock);
        assert_eq!(sys.ok(Call::SemCreate, &[key("three"), 77]), s, "found, not reset");
        assert_eq!(sys.err(Call::SemTryLock, &[s]), WouldBlock);
    });
}

#[test]
fn signals_wake_the_most_urgent_first_and_equals_in_order() {
    lab(|sys| {
        let s = sys.ok(Call::SemCreate, &[0, 0]);
        let low = sys.spawn(5);
        let first = sys.spawn(9);
        let second = sys.spawn(9);
        let main = sys.running();
        sys.blocks(Call::SemLock, &[s, 10]);
        for waiter in [first, second, low] {
            assert_eq!(sys.running(), waiter);
            sys.blocks(Call::SemLock, &[s, FOREVER]);
        }
        sys.until(10);
        assert_eq!(sys.running(), main);
        for _ in 0..3 {
            assert_eq!(sys.ok(Call::SemUnlock, &[s]), 0);
        }
        sys.park();
        for expected in [first, second, low] {
            assert_eq!(sys.running(), expected);
            assert_eq!(sys.result(expected), Some(Ok(0)));
            sys.park();
        }
    });
}

#[test]
fn deletion_tells_every_waiter_and_makes_the_handle_stale() {
    lab(|sys| {
        let s = sys.ok(Call::SemCreate, &[0, 0]);
        let (low, high) = (sys.spawn(5), sys.spawn(6));
        sys.blocks(Call::SleepUntil, &[100]);
        sys.blocks(Call::SemLock, &[s, FOREVER]);
        sys.blocks(Call::SemLock, &[s, 5_000]);
        sys.until(100);
        assert_eq!(sys.ok(Call::SemDelete, &[s]), 0);
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
        for call in [Call::SemLock, Call::SemTryLock, Call::SemUnlock, Call::SemDelete] {
            assert_eq!(sys.err(call, &[s, FOREVER]), Gone);
        }
        sys.park();
        for waiter in [high, low] {
            assert_eq!(sys.running(), waiter);
            assert_eq!(sys.result(waiter), Some(Err(Gone)));
            sys.park();
        }
    });
}

#[test]
fn deleting_a_held_mutex_takes_it_from_its_owner() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        let other = sys.open(Call::SemCreate, "m2");
        sys.lock(m);
        sys.lock(other);
        summon(sys);
        assert_eq!(sys.ok(Call::SemDelete, &[m]), 0);
        let again = sys.open(Call::SemCreate, "m1");
        assert_ne!(again, m, "a new life has a new handle");
        sys.lock(again);
        lab::dismiss(sys);
        assert_eq!(sys.err(Call::SemUnlock, &[m]), Gone);
        assert_eq!(sys.err(Call::SemUnlock, &[again]), NotOwner);
        assert_eq!(sys.ok(Call::SemUnlock, &[other]), 0);
    });
}

#[test]
fn private_slots_run_out_and_are_reused_under_new_handles() {
    lab(|sys| {
        let all: Vec<u64> = (0..4).map(|_| sys.ok(Call::SemCreate, &[0, MUTEX])).collect();
        assert_eq!(sys.err(Call::SemCreate, &[0, MUTEX]), Exhausted);
        sys.ok(Call::SemDelete, &[all[2]]);
        let again = sys.ok(Call::SemCreate, &[0, 0]);
        assert_eq!(again as u16, all[2] as u16, "the same slot");
        assert_eq!(sys.err(Call::SemLock, &[all[2], FOREVER]), Gone);
        assert_eq!(sys.err(Call::SemTryLock, &[again]), WouldBlock);
        assert_eq!(sys.err(Call::SemCreate, &[0, MUTEX]), Exhausted);
    });
}

#[test]
fn handles_never_given_out_are_misuse() {
    use diapason_abi::{Handle, Kind};
    let never = |generation| Handle::new(Kind::Semaphore, 0, generation).0;
    let event = Handle::new(Kind::Event, 4, 1).0;
    let of_control = Handle::new(Kind::Semaphore, 8, 1).0;
    let beyond = Handle::new(Kind::Semaphore, 5_000, 1).0;
    for wrong in [0, 1, u64::MAX, never(0), never(1), event, of_control, beyond] {
        for call in [Call::SemLock, Call::SemTryLock, Call::SemUnlock, Call::SemDelete] {
            lab(|sys| {
                summon(sys);
                sys.ok(Call::SemCreate, &[0, 1]);
                lab::dismiss(sys);
                sys.misuses(FaultCause::BadHandle, call, &[wrong, FOREVER]);
            });
        }
    }
}

#[test]
fn keys_that_are_not_granted_are_misuse() {
    let plan = lab::plan().mutex("secret").only(0b10);
    for name in ["secret", "no such name", "bell"] {
        lab::with(&plan, |sys| {
            sys.misuses(FaultCause::BadGrant, Call::SemCreate, &[key(name), 0]);
        });
    }
    lab::with(&plan, |sys| {
        summon(sys);
        let secret = sys.open(Call::SemCreate, "secret");
        lab::dismiss(sys);
        sys.misuses(FaultCause::BadHandle, Call::SemLock, &[secret, FOREVER]);
    });
}

#[test]
fn an_owner_that_exits_leaves_word_for_the_next() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        sys.spawn(10);
        sys.park();
        sys.lock(m);
        assert_eq!(sys.call(Call::ThreadExit, &[0]), Outcome::Ended);
        summon(sys);
        assert_eq!(sys.ok(Call::SemLock, &[m, FOREVER]), OWNER_DIED);
        assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0);
        assert_eq!(sys.ok(Call::SemTryLock, &[m]), 0, "told once");
        assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0);
    });
}

#[test]
fn an_owner_that_faults_hands_its_mutexes_to_the_waiters() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        sys.lock(m);
        summon(sys);
        let control = sys.running();
        sys.blocks(Call::SemLock, &[m, FOREVER]);
        assert_eq!(sys.priority(sys.running()), 60);
        sys.crash(FaultCause::Divide, 0);
        assert_eq!(sys.running(), control);
        assert_eq!(sys.result(control), Some(Ok(OWNER_DIED)));
        assert_eq!(sys.ok(Call::SemUnlock, &[m]), 0);
    });
}

#[test]
fn a_dying_process_passes_its_mutex_over_its_own_waiters_to_a_stranger() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        sys.lock(m);
        let sibling = sys.spawn(20);
        sys.blocks(Call::SleepUntil, &[100]);
        assert_eq!(sys.running(), sibling);
        sys.blocks(Call::SemLock, &[m, FOREVER]);
        summon(sys);
        let control = sys.running();
        sys.blocks(Call::SemLock, &[m, FOREVER]);
        sys.until(100);
        sys.crash(FaultCause::Read, 0);
        assert_eq!(sys.running(), control);
        assert_eq!(sys.result(control), Some(Ok(OWNER_DIED)));
    });
}

#[test]
fn deleting_and_recreating_forgets_a_dead_owner() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        sys.lock(m);
        sys.crash(FaultCause::Read, 0);
        summon(sys);
        sys.ok(Call::SemDelete, &[m]);
        let m = sys.open(Call::SemCreate, "m1");
        assert_eq!(sys.ok(Call::SemTryLock, &[m]), 0);
    });
}

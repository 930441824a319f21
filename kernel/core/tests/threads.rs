//! Threads: creation, priorities, yielding, sleeping, exit, join and detach in every order.

use crate::support::lab::{self, lab, summon};
use crate::support::*;

#[test]
fn a_thread_starts_with_its_entry_argument_and_priority() {
    lab(|sys| {
        let handle =
            sys.ok(Call::ThreadCreate, &[0x1234, 77, 9, u64::from_le_bytes(*b"worker\0\0")]);
        let (thread, entry) = *sys.host.machine.started.last().unwrap();
        assert_eq!((sys.handle(thread), entry), (handle, Some((0x1234, 77))));
        let t = &sys.host.kernel.threads[thread];
        assert_eq!((t.priority, t.slot, &t.name.to_le_bytes()), (9, 1, b"worker\0\0"));
        assert_eq!(sys.state(thread), State::Ready);
    });
}

#[test]
fn a_more_urgent_thread_runs_at_once_and_its_creator_learns_the_handle_later() {
    lab(|sys| {
        let low = sys.spawn(5);
        sys.park();
        assert_eq!(sys.running(), low);
        let high = sys.spawn(6);
        assert_eq!((sys.running(), sys.result(low)), (high, None));
        sys.park();
        assert_eq!(sys.result(low), Some(Ok(sys.handle(high))));
    });
}

#[test]
fn no_thread_is_more_urgent_than_its_process_may_be() {
    for priority in [41, 63, 64, 255, 256, u64::MAX] {
        lab(|sys| sys.misuses(FaultCause::BadArgument, Call::ThreadCreate, &[0, 0, priority, 0]));
    }
    lab(|sys| assert_eq!(sys.spawn(40), sys.thread(0, 1)));
}

#[test]
fn slots_run_out_and_are_reused_under_new_handles() {
    lab(|sys| {
        let threads: Vec<_> = (0..7).map(|_| sys.spawn(5)).collect();
        assert_eq!(sys.err(Call::ThreadCreate, &[0, 0, 5, 0]), Exhausted);
        let old = sys.handle(threads[0]);
        sys.ok(Call::ThreadDetach, &[old]);
        sys.blocks(Call::SleepUntil, &[10]);
        assert_eq!(sys.call(Call::ThreadExit, &[0]), Outcome::Ended);
        sys.until(10);
        assert_eq!(sys.spawn(5), threads[0]);
        assert_ne!(sys.handle(threads[0]), old);
        assert_eq!(sys.err(Call::ThreadJoin, &[old, NOW]), Gone);
        assert_eq!(sys.err(Call::ThreadDetach, &[old]), Gone);
    });
}

#[test]
fn equals_take_turns_only_when_they_yield_or_wait() {
    lab(|sys| {
        let main = sys.running();
        let (a, b) = (sys.spawn(40), sys.spawn(40));
        assert_eq!(sys.running(), main, "creation does not take the turn");
        for next in [a, b, main, a] {
            sys.yields(Call::Yield, &[]);
            assert_eq!(sys.running(), next);
        }
        summon(sys);
        lab::dismiss(sys);
        assert_eq!(sys.running(), a, "a preempted thread keeps its place");
        sys.blocks(Call::SleepUntil, &[5]);
        sys.until(5);
        assert_eq!(sys.running(), b);
        sys.yields(Call::Yield, &[]);
        assert_eq!(sys.running(), main, "a woken thread goes behind its equals");
    });
}

#[test]
fn yielding_alone_returns_at_once() {
    lab(|sys| {
        sys.spawn(5);
        assert_eq!(sys.ok(Call::Yield, &[]), 0);
    });
}

#[test]
fn sleeping_ends_at_the_time_and_the_past_is_no_wait() {
    lab(|sys| {
        sys.until(10);
        for past in [0, 9, 10] {
            assert_eq!(sys.ok(Call::SleepUntil, &[past]), 0);
        }
        let me = sys.running();
        sys.blocks(Call::SleepUntil, &[11]);
        sys.until(11);
        assert_eq!(sys.result(me), Some(Ok(0)));
        sys.blocks(Call::SleepUntil, &[FOREVER]);
        assert_eq!(sys.host.decision.alarm, Nanos::FOREVER);
        sys.until(u64::MAX - 1);
        assert_eq!(sys.state(me), State::Blocked);
    });
}

#[test]
fn cpu_time_is_charged_to_who_ran() {
    lab(|sys| {
        let main = sys.running();
        sys.host.now = Nanos(100);
        assert_eq!(sys.ok(Call::Count, &[3, 0]), 100);
        let other = sys.spawn(5);
        sys.blocks(Call::SleepUntil, &[500]);
        sys.host.now = Nanos(130);
        sys.blocks(Call::SleepUntil, &[400]);
        sys.until(1_000);
        let used = |t| sys.host.kernel.threads[t].used;
        assert_eq!((used(main), used(other)), (Nanos(100), Nanos(130)));
        assert_eq!(sys.host.kernel.scheduler.idle, Nanos(270));
        assert_eq!(sys.ok(Call::Count, &[3, 0]), 600);
    });
}

/// Main creates a thread of priority `priority` and the experiment goes on in main.
fn with_child(priority: u8, experiment: impl FnOnce(&mut Sys<'_>, ThreadId, ThreadId, u64)) {
    lab(|sys| {
        let main = sys.running();
        let child = sys.spawn(priority);
        let handle = sys.handle(child);
        experiment(sys, main, child, handle);
    });
}

#[test]
fn joining_waits_for_the_end_and_gets_the_code() {
    with_child(5, |sys, main, child, handle| {
        sys.blocks(Call::ThreadJoin, &[handle, FOREVER]);
        assert_eq!(sys.running(), child);
        assert_eq!(sys.call(Call::ThreadExit, &[u64::MAX]), Outcome::Ended);
        assert_eq!(sys.running(), main);
        assert_eq!(sys.result(main), Some(Ok(u64::MAX >> 1)), "codes have 63 bits");
        assert_eq!(sys.state(child), State::Free);
        assert_eq!(sys.err(Call::ThreadJoin, &[handle, FOREVER]), Gone);
    });
}

#[test]
fn an_exit_code_waits_for_its_joiner() {
    with_child(40, |sys, main, child, handle| {
        sys.yields(Call::Yield, &[]);
        assert_eq!(sys.call(Call::ThreadExit, &[42]), Outcome::Ended);
        assert_eq!((sys.running(), sys.state(child)), (main, State::Ended));
        assert_eq!(sys.ok(Call::ThreadJoin, &[handle, NOW]), 42);
        assert_eq!(sys.err(Call::ThreadJoin, &[handle, NOW]), Gone);
    });
}

#[test]
fn a_join_times_out_and_can_be_repeated() {
    with_child(5, |sys, main, child, handle| {
        assert_eq!(sys.err(Call::ThreadJoin, &[handle, NOW]), WouldBlock);
        sys.blocks(Call::ThreadJoin, &[handle, 100]);
        sys.blocks(Call::SleepUntil, &[200]);
        sys.until(100);
        assert_eq!(sys.result(main), Some(Err(TimedOut)));
        assert_eq!(sys.err(Call::ThreadJoin, &[handle, 100]), TimedOut);
        sys.blocks(Call::ThreadJoin, &[handle, 300]);
        sys.until(200);
        assert_eq!(sys.running(), child);
        assert_eq!(sys.call(Call::ThreadExit, &[7]), Outcome::Ended);
        assert_eq!(sys.result(main), Some(Ok(7)));
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
    });
}

#[test]
fn one_thread_is_joined_by_one_and_not_by_itself() {
    with_child(5, |sys, main, child, handle| {
        let own = sys.handle(main);
        assert_eq!(sys.err(Call::ThreadJoin, &[own, FOREVER]), Deadlock);
        sys.blocks(Call::ThreadJoin, &[handle, FOREVER]);
        assert_eq!(sys.running(), child);
        let third = sys.spawn(6);
        assert_eq!(sys.running(), third);
        assert_eq!(sys.err(Call::ThreadJoin, &[handle, FOREVER]), Busy);
        assert_eq!(sys.err(Call::ThreadDetach, &[handle]), Busy);
        sys.blocks(Call::ThreadJoin, &[own, FOREVER]);
        assert_eq!(sys.running(), child);
    });
}

#[test]
fn detaching_before_or_after_the_end_frees_the_slot() {
    with_child(5, |sys, _, child, handle| {
        assert_eq!(sys.ok(Call::ThreadDetach, &[handle]), 0);
        assert_eq!(sys.err(Call::ThreadDetach, &[handle]), Busy);
        assert_eq!(sys.err(Call::ThreadJoin, &[handle, FOREVER]), Busy);
        sys.park();
        assert_eq!(sys.call(Call::ThreadExit, &[0]), Outcome::Ended);
        assert_eq!(sys.state(child), State::Free);
    });
    with_child(40, |sys, _, child, handle| {
        sys.yields(Call::Yield, &[]);
        assert_eq!(sys.call(Call::ThreadExit, &[0]), Outcome::Ended);
        assert_eq!(sys.state(child), State::Ended);
        assert_eq!(sys.ok(Call::ThreadDetach, &[handle]), 0);
        assert_eq!(sys.state(child), State::Free);
        assert_eq!(sys.err(Call::ThreadDetach, &[handle]), Gone);
    });
}

#[test]
fn a_thread_may_detach_itself() {
    with_child(5, |sys, _, child, handle| {
        sys.park();
        assert_eq!(sys.ok(Call::ThreadDetach, &[handle]), 0);
        assert_eq!(sys.call(Call::ThreadExit, &[0]), Outcome::Ended);
        assert_eq!(sys.state(child), State::Free);
    });
}

#[test]
fn the_end_of_the_last_thread_is_the_end_of_its_process() {
    with_child(5, |sys, main, child, handle| {
        assert_eq!(sys.call(Call::ThreadExit, &[1]), Outcome::Ended);
        assert_eq!((sys.running(), sys.state(main)), (child, State::Ended));
        let main_handle = sys.handle(main);
        assert_eq!(sys.ok(Call::ThreadJoin, &[main_handle, NOW]), 1);
        assert_eq!(sys.err(Call::ThreadJoin, &[handle, NOW]), Deadlock);
        assert_eq!(sys.call(Call::ThreadExit, &[1]), Outcome::Ended);
        assert_eq!((sys.state(child), sys.state(main)), (State::Free, State::Free));
        let process = &sys.host.kernel.processes[diapason_core::Id::new(0)];
        assert_eq!(process.state, ProcessState::Idle);
    });
}

#[test]
fn the_last_thread_frees_what_nobody_joined() {
    with_child(40, |sys, main, child, _| {
        sys.yields(Call::Yield, &[]);
        assert_eq!(sys.call(Call::ThreadExit, &[1]), Outcome::Ended);
        assert_eq!(sys.state(child), State::Ended);
        assert_eq!(sys.call(Call::ThreadExit, &[1]), Outcome::Ended);
        assert_eq!((sys.state(child), sys.state(main)), (State::Free, State::Free));
        assert!(sys.running().is_none());
    });
}

#[test]
fn joiner_and_joined_die_together_in_either_slot_order() {
    // The joiner in the lower slot, then in the higher one; the rest of the system goes on.
    for joiner_first in [true, false] {
        lab(|sys| {
            let (a, b) = (sys.spawn(10), sys.spawn(11));
            sys.blocks(Call::SleepUntil, &[10]);
            assert_eq!(sys.running(), b);
            let of_a = sys.handle(a);
            if joiner_first {
                sys.blocks(Call::SleepUntil, &[1_000]);
                let of_b = sys.handle(b);
                sys.blocks(Call::ThreadJoin, &[of_b, 5_000]);
            } else {
                sys.blocks(Call::ThreadJoin, &[of_a, 5_000]);
                sys.blocks(Call::SleepUntil, &[1_000]);
            }
            sys.until(10);
            sys.crash(FaultCause::Read, 0);
            assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
            summon(sys);
            assert_eq!(sys.ok(Call::Null, &[]), 0);
        });
    }
}

#[test]
fn a_new_thread_in_a_joined_slot_has_no_joiner() {
    with_child(5, |sys, main, child, handle| {
        sys.blocks(Call::ThreadJoin, &[handle, FOREVER]);
        sys.call(Call::ThreadExit, &[0]);
        assert_eq!(sys.running(), main);
        assert_eq!(sys.spawn(5), child);
        sys.park();
        assert_eq!(sys.call(Call::ThreadExit, &[0]), Outcome::Ended);
        assert_eq!(sys.state(child), State::Ended);
        assert_eq!(sys.state(main), State::Blocked);
    });
}

#[test]
fn threads_of_others_and_of_nobody_are_misuse() {
    for call in [Call::ThreadJoin, Call::ThreadDetach] {
        for wrong in [0, u64::MAX, 0x0001_0000_0001_0001, 0x0001_0000_0002_0000] {
            lab(|sys| sys.misuses(FaultCause::BadHandle, call, &[wrong, FOREVER]));
        }
        lab(|sys| {
            let anothers = sys.handle(sys.thread(1, 0));
            sys.misuses(FaultCause::BadHandle, call, &[anothers, FOREVER]);
        });
    }
}

//! Priority inheritance: an owner is as urgent as its waiters, through chains, exactly as
//! long as the wait lasts.

use crate::support::lab::{self, lab, summon};
use crate::support::*;
use diapason_abi::call::OWNER_DIED;

/// A chain of five: thread i (priority 10 + i) holds mutex i and waits for mutex i - 1. The first
/// runs with the priority of the last; `control` has not been involved.
struct Chain {
    threads: Vec<ThreadId>,
    mutexes: Vec<u64>,
}

fn plan() -> Plan {
    lab::plan().mutex("m5").mutex("m6")
}

fn chain(deadlines: [u64; 5], experiment: impl FnOnce(&mut Sys<'_>, &Chain)) {
    lab::with(&plan(), |sys| {
        let names = ["m1", "m2", "m3", "m4", "m5"];
        let mutexes: Vec<u64> = names.iter().map(|n| sys.open(Call::SemCreate, n)).collect();
        let mut threads = vec![sys.spawn(10)];
        sys.park();
        sys.lock(mutexes[0]);
        for i in 1..5 {
            threads.push(sys.spawn(10 + i as u8));
            assert_eq!(sys.running(), threads[i]);
            sys.lock(mutexes[i]);
            sys.blocks(Call::SemLock, &[mutexes[i - 1], deadlines[i]]);
            assert_eq!(sys.running(), threads[0]);
            assert_eq!(sys.priority(threads[0]), 10 + i as u8);
        }
        experiment(sys, &Chain { threads, mutexes });
    });
}

fn priorities(sys: &Sys<'_>, chain: &Chain) -> Vec<u8> {
    chain.threads.iter().map(|t| sys.priority(*t)).collect()
}

const FOR_EVER: [u64; 5] = [FOREVER; 5];

#[test]
fn the_last_of_a_chain_lends_its_priority_to_all() {
    chain(FOR_EVER, |sys, c| {
        assert_eq!(priorities(sys, c), [14, 14, 14, 14, 14]);
        for i in 0..4 {
            assert_eq!(sys.running(), c.threads[i]);
            sys.yields(Call::SemUnlock, &[c.mutexes[i]]);
            assert_eq!(sys.priority(c.threads[i]), 10 + i as u8, "given back at once");
        }
        assert_eq!(sys.running(), c.threads[4]);
        assert_eq!(sys.result(c.threads[4]), Some(Ok(0)));
    });
}

#[test]
fn a_stranger_at_the_end_raises_the_whole_chain() {
    chain(FOR_EVER, |sys, c| {
        summon(sys);
        sys.blocks(Call::SemLock, &[c.mutexes[4], 900]);
        assert_eq!(priorities(sys, c), [60; 5]);
        sys.until(900);
        assert_eq!(priorities(sys, c), [14; 5], "what was lent goes back with the time-out");
    });
}

#[test]
fn a_time_out_in_the_middle_cuts_the_chain() {
    chain([FOREVER, FOREVER, 700, FOREVER, FOREVER], |sys, c| {
        sys.until(700);
        assert_eq!(priorities(sys, c), [11, 11, 14, 14, 14]);
        assert_eq!(sys.running(), c.threads[2]);
        assert_eq!(sys.result(c.threads[2]), Some(Err(TimedOut)));
    });
}

#[test]
fn deleting_a_mutex_in_the_middle_cuts_the_chain() {
    chain(FOR_EVER, |sys, c| {
        summon(sys);
        sys.ok(Call::SemDelete, &[c.mutexes[1]]);
        assert_eq!(priorities(sys, c), [11, 11, 14, 14, 14]);
        lab::dismiss(sys);
        assert_eq!(sys.running(), c.threads[2]);
        assert_eq!(sys.result(c.threads[2]), Some(Err(Gone)));
    });
}

#[test]
fn a_late_waiter_in_the_middle_raises_only_what_is_before_it() {
    chain(FOR_EVER, |sys, c| {
        summon(sys);
        sys.blocks(Call::SemLock, &[c.mutexes[2], FOREVER]);
        assert_eq!(priorities(sys, c), [60, 60, 60, 14, 14]);
        assert_eq!(sys.running(), c.threads[0]);
    });
}

/// `lab` supervises `victim`, whose one thread holds m2 and waits for m1, which `lab` holds; and
/// `control` waits for m2. `lab` runs.
fn hostage(experiment: impl FnOnce(&mut Sys<'_>, ThreadId, ThreadId)) {
    let plan = plan().process("victim", 50).supervised_by(0);
    run(&plan, |sys| {
        let control = sys.running();
        assert_eq!(sys.running_process(), 1);
        let m1 = sys.open(Call::SemCreate, "m1");
        let m2 = sys.open(Call::SemCreate, "m2");
        sys.blocks(Call::SleepUntil, &[200]);
        let victim = sys.running();
        assert_eq!(sys.running_process(), 2);
        sys.lock(m2);
        sys.blocks(Call::SleepUntil, &[100]);
        assert_eq!(sys.running_process(), 0);
        sys.lock(m1);
        sys.until(100);
        sys.blocks(Call::SemLock, &[m1, FOREVER]);
        sys.until(200);
        sys.blocks(Call::SemLock, &[m2, FOREVER]);
        assert_eq!(sys.running_process(), 0);
        assert_eq!(sys.priority(sys.running()), 60);
        experiment(sys, victim, control);
    });
}

#[test]
fn a_supervisor_kills_a_process_in_the_middle_of_its_chain() {
    hostage(|sys, victim, control| {
        let lab = sys.running();
        sys.yields(Call::ProcKill, &[key("victim")]);
        assert_eq!(sys.state(victim), State::Free);
        assert_eq!(sys.priority(lab), 40, "nobody waits for it any more");
        assert_eq!(sys.running(), control);
        assert_eq!(sys.result(control), Some(Ok(OWNER_DIED)));
    });
}

#[test]
fn the_front_of_a_chain_faults_with_what_it_inherited() {
    hostage(|sys, victim, control| {
        sys.crash(FaultCause::Read, 1);
        assert_eq!(sys.running(), victim, "it holds m1 now, with the priority of who waits for m2");
        assert_eq!((sys.priority(victim), sys.priority(control)), (60, 60));
        assert_eq!(sys.result(victim), Some(Ok(OWNER_DIED)));
        sys.crash(FaultCause::Read, 2);
        assert_eq!(sys.running(), control);
    });
}

#[test]
fn several_mutexes_lend_the_maximum_and_give_it_back_in_any_order() {
    for first in [0, 1] {
        lab(|sys| {
            let m = [sys.open(Call::SemCreate, "m1"), sys.open(Call::SemCreate, "m2")];
            let owner = sys.spawn(5);
            sys.park();
            sys.lock(m[0]);
            sys.lock(m[1]);
            let lender = sys.spawn(20);
            sys.blocks(Call::SemLock, &[m[0], FOREVER]);
            assert_eq!(sys.priority(owner), 20);
            summon(sys);
            sys.blocks(Call::SemLock, &[m[1], FOREVER]);
            assert_eq!(sys.priority(owner), 60);
            if first == 0 {
                assert_eq!(sys.ok(Call::SemUnlock, &[m[0]]), 0);
                let waits = (60, State::Blocked);
                assert_eq!((sys.priority(owner), sys.state(lender)), waits, "until its turn");
                sys.yields(Call::SemUnlock, &[m[1]]);
            } else {
                sys.yields(Call::SemUnlock, &[m[1]]);
                assert_eq!(sys.priority(owner), 20);
                lab::dismiss(sys);
                assert_eq!(sys.running(), owner);
                sys.yields(Call::SemUnlock, &[m[0]]);
            }
            assert_eq!(sys.priority(owner), 5);
        });
    }
}

#[test]
fn a_counting_semaphore_lends_nothing() {
    lab(|sys| {
        let s = sys.ok(Call::SemCreate, &[0, 1]);
        let low = sys.spawn(5);
        sys.blocks(Call::SleepUntil, &[10]);
        sys.lock(s);
        sys.until(10);
        sys.blocks(Call::SemLock, &[s, FOREVER]);
        assert_eq!((sys.running(), sys.priority(low)), (low, 5));
    });
}

#[test]
fn inheritance_reorders_the_owner_wherever_it_waits() {
    // `owner` (5) and `rival` (8) wait for the same thing; a waiter for the owner's mutex puts the
    // owner in front.
    for place in ["semaphore", "receive", "send", "condition"] {
        let plan = plan().mailbox("box", 1);
        lab::with(&plan, |sys| {
            let m = sys.open(Call::SemCreate, "m1");
            let inner = sys.open(Call::SemCreate, "m2");
            let s = sys.ok(Call::SemCreate, &[0, 0]);
            let cv = sys.ok(Call::CvCreate, &[0]);
            let mailbox = sys.open(Call::MboxCreate, "box");
            let a = sys.address(0);
            if place == "send" {
                sys.ok(Call::MboxSend, &[mailbox, a, 1, 0, NOW]);
            }
            let owner = sys.spawn(5);
            sys.spawn(8);
            let main = sys.running();
            sys.blocks(Call::SleepUntil, &[100]);
            let wait = |sys: &mut Sys<'_>| match place {
                "semaphore" => sys.blocks(Call::SemLock, &[s, FOREVER]),
                "receive" => sys.blocks(Call::MboxReceive, &[mailbox, a, FOREVER]),
                "send" => sys.blocks(Call::MboxSend, &[mailbox, a, 1, 0, FOREVER]),
                _ => {
                    sys.lock(inner);
                    sys.blocks(Call::CvWait, &[cv, inner, FOREVER]);
                }
            };
            wait(sys);
            assert_eq!(sys.running(), owner);
            sys.lock(m);
            wait(sys);
            summon(sys);
            sys.blocks(Call::SemLock, &[m, FOREVER]);
            assert_eq!(sys.priority(owner), 60);
            sys.until(100);
            assert_eq!(sys.running(), main);
            let wake = match place {
                "semaphore" => sys.call(Call::SemUnlock, &[s]),
                "receive" => sys.call(Call::MboxSend, &[mailbox, a, 1, 0, NOW]),
                "send" => sys.call(Call::MboxReceive, &[mailbox, a, NOW]),
                _ => sys.call(Call::CvSignal, &[cv, 1]),
            };
            assert_eq!((wake, sys.running()), (Outcome::Preempted, owner), "{place}");
        });
    }
}

#[test]
fn an_heir_runs_before_its_new_equals_and_returns_before_its_old_ones() {
    lab(|sys| {
        let m = sys.open(Call::SemCreate, "m1");
        let owner = sys.spawn(5);
        sys.park();
        sys.lock(m);
        let equal = sys.spawn(5);
        let waiter = sys.spawn(9);
        let other = sys.spawn(9);
        assert_eq!(sys.running(), waiter);
        sys.blocks(Call::SemLock, &[m, FOREVER]);
        assert_eq!(sys.running(), owner, "in the place of its waiter");
        sys.yields(Call::SemUnlock, &[m]);
        for next in [waiter, other, owner] {
            assert_eq!(sys.running(), next);
            sys.park();
        }
        assert_eq!(sys.running(), equal);
    });
}

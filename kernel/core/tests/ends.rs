//! Work that is cut into stages, and searches that pass few. The end of a process has short paths,
//! its own place and budget, and nobody hears of it before it is over.

use crate::support::*;
use diapason_abi::archive::ProcessRecord;
use diapason_abi::call::{MUTEX, PARTIAL};
use diapason_abi::record::Record;
use diapason_core::host::HIDDEN;
use diapason_core::{Decision, Fault, Id, take_walked};
use diapason_costs::Round;
use diapason_costs::section::STAGE;

const THREADS: u64 = 64;
const OBJECTS: u64 = 1_024;
/// The rounds of a stage, the last thread, and the report in an empty box.
const LONGEST: u64 = STAGE + Round::Stop.price() + 100;

/// `boss` (process 0, priority 50) supervises `large` (30); `other` (20) does something else.
fn plan() -> Plan {
    let sizes = |p: &mut ProcessRecord| {
        (p.threads, p.events) = (THREADS as u16, OBJECTS as u16);
        (p.semaphores, p.conditions) = (OBJECTS as u16, OBJECTS as u16);
    };
    let plan = Plan::new().process("boss", 50).process("large", 30).supervised_by(0).with(sizes);
    plan.process("other", 20).device("bell", 5, false, EVERYBODY).reports("reports", 2, 0)
}

fn state(sys: &Sys<'_>) -> ProcessState {
    sys.host.kernel.processes[Id::new(1)].state
}

/// One entry with the fault that the machine sees, and nothing that follows from it.
fn enter(sys: &mut Sys<'_>, cause: Cause) -> Decision {
    let _ = take_walked();
    let decision = sys.host.kernel.enter(&mut sys.host.machine, sys.host.now, cause);
    let walked = take_walked();
    assert!(walked <= LONGEST, "a path of {walked}");
    sys.host.kernel.check_invariants();
    sys.host.decision = decision;
    if decision.run.is_some() {
        sys.host.machine.current = sys.host.kernel.threads[decision.run].process.index();
    }
    decision
}

const MISTAKE: Fault = Fault { cause: FaultCause::Write, address: 7, instruction: 0 };

/// The supervisor waits for its bell, or for reports; `large` has everything there is.
fn grown(receives: bool, experiment: impl FnOnce(&mut Sys<'_>)) {
    run(&plan(), |sys| {
        if receives {
            let (reports, buffer) = (sys.open(Call::MboxCreate, "reports"), sys.address(0x40));
            sys.blocks(Call::MboxReceive, &[reports, buffer, FOREVER]);
        } else {
            sys.await_bell("bell");
        }
        assert_eq!(sys.running_process(), 1);
        for _ in 1..THREADS {
            sys.spawn(10);
        }
        for made in 0..OBJECTS {
            sys.ok(Call::TimerCreate, &[]);
            sys.ok(Call::CvCreate, &[0]);
            let mutex = sys.ok(Call::SemCreate, &[0, MUTEX]);
            if made % 3 == 0 {
                sys.ok(Call::SemLock, &[mutex, FOREVER]);
            }
        }
        sys.ok(Call::MemAlloc, &[2]);
        experiment(sys);
    });
}

#[test]
fn a_large_process_ends_itself_in_short_stages_and_then_its_supervisor_hears() {
    grown(true, |sys| {
        let mut decision = enter(sys, Cause::Fault(MISTAKE));
        let mut stages = 1;
        while sys.host.kernel.processes[Id::new(1)].state == ProcessState::Ending {
            assert_eq!(sys.running_process(), 1, "it ends itself, and nobody less urgent runs");
            decision = enter(sys, Cause::Fault(HIDDEN));
            stages += 1;
        }
        assert!((40..400).contains(&stages), "{stages}");
        assert_eq!(state(sys), ProcessState::Faulted);
        assert_eq!((sys.running_process(), decision.result.is_some()), (0, true), "the report");
        assert_eq!(sys.records(Record::Fault).len(), 1, "one fault, however many stages");
        assert_eq!(sys.host.machine.hidden, 0);
    });
}

#[test]
fn others_run_between_two_stages() {
    grown(false, |sys| {
        enter(sys, Cause::Fault(MISTAKE));
        enter(sys, Cause::Irq(0));
        assert_eq!((sys.running_process(), state(sys)), (0, ProcessState::Ending));
        assert_eq!(sys.err(Call::ProcKill, &[key("large")]), Gone);
        let reports = sys.open(Call::MboxCreate, "reports");
        let buffer = sys.address(0x40);
        assert_eq!(sys.err(Call::MboxReceive, &[reports, buffer, NOW]), WouldBlock, "not over");
        let mut calls = 0;
        while sys.ok(Call::ProcCreate, &[key("large")]) == PARTIAL {
            calls += 1;
        }
        assert!(calls > 40, "{calls}");
        assert_eq!(state(sys), ProcessState::Running);
        assert!(sys.ok(Call::MboxReceive, &[reports, buffer, NOW]) > 0, "of the earlier life");
    });
}

#[test]
fn a_killed_process_ends_at_its_own_priority() {
    grown(false, |sys| {
        enter(sys, Cause::Irq(0));
        let decision =
            enter(sys, Cause::Syscall(Call::ProcKill as u64, [key("large"), 0, 0, 0, 0]));
        assert_eq!((decision.result, state(sys)), (Some(0), ProcessState::Ending));
        assert_eq!(sys.running_process(), 0, "who kills goes on");
        let wake = sys.host.now.0 + 5;
        enter(sys, Cause::Syscall(Call::SleepUntil as u64, [wake, u64::MAX, 0, 0, 0]));
        assert_eq!(sys.running_process(), 1, "more urgent than `other`");
        while state(sys) == ProcessState::Ending {
            enter(sys, Cause::Fault(HIDDEN));
        }
        assert_eq!((state(sys), sys.running_process()), (ProcessState::Idle, 2));
        assert_eq!(sys.records(Record::Ended).len(), 1);
    });
}

/// `maker` has 63 threads that wait for one thing; `other` may use it, too.
fn crowded(experiment: impl FnOnce(&mut Sys<'_>, u64)) {
    let sizes = |p: &mut ProcessRecord| p.threads = THREADS as u16;
    let plan = Plan::new().process("maker", 40).with(sizes).process("other", 20);
    run(&plan.semaphore("gate", 0), |sys| {
        let gate = sys.open(Call::SemCreate, "gate");
        for _ in 1..THREADS {
            let waiter = sys.spawn(40);
            sys.yields(Call::Yield, &[]);
            assert_eq!(sys.running(), waiter);
            sys.blocks(Call::SemLock, &[gate, FOREVER]);
        }
        experiment(sys, gate);
    });
}

#[test]
fn a_deletion_sends_few_away_in_each_entry() {
    crowded(|sys, gate| {
        let (mut calls, maker) = (0, sys.running());
        loop {
            let _ = take_walked();
            let deleted = sys.ok(Call::SemDelete, &[gate]);
            let walked = take_walked();
            assert!(walked <= STAGE, "a path of {walked}");
            assert_eq!(sys.running(), maker, "its equals come later");
            calls += 1;
            if deleted != PARTIAL {
                break;
            }
            assert_eq!(sys.err(Call::SemUnlock, &[gate]), Gone, "it is gone at once");
            assert_eq!(sys.err(Call::SemTryLock, &[gate]), Gone);
        }
        let each = STAGE / Round::SendAway.price();
        assert_eq!(calls, (THREADS - 1).div_ceil(each), "as many entries as it takes");
        assert_eq!(sys.err(Call::SemDelete, &[gate]), Gone);
        for slot in 1..THREADS {
            let waiter = sys.thread(0, slot as u16);
            assert_eq!(sys.state(waiter), State::Ready);
        }
        let again = sys.open(Call::SemCreate, "gate");
        assert_ne!(again, gate);
    });
}

#[test]
fn a_deletion_that_was_not_brought_to_its_end_is_ended_by_whoever_wants_the_name() {
    crowded(|sys, gate| {
        assert_eq!(sys.ok(Call::SemDelete, &[gate]), PARTIAL);
        let mut refusals = 0;
        while sys.host.kernel.stock().semaphores == 0 {
            match sys.call(Call::SemCreate, &[key("gate"), 0]) {
                Outcome::Returned(Err(Busy)) => refusals += 1,
                outcome => assert!(matches!(outcome, Outcome::Returned(Ok(_))), "{outcome:?}"),
            }
        }
        assert!((20..40).contains(&refusals), "{refusals}");
    });
}

#[test]
fn a_message_passes_few_others_however_many_there_are() {
    const MESSAGES: u64 = 1_023;
    run(&Plan::new().process("main", 10).mailbox("box", MESSAGES as u16), |sys| {
        let (mailbox, buffer) = (sys.open(Call::MboxCreate, "box"), sys.address(0x40));
        let mut random = diapason_random::Random::new(5);
        let mut sent: Vec<(u64, u64)> = Vec::new();
        let most = 20 * Round::Message.price();
        for turn in 0..3 * MESSAGES {
            if turn < MESSAGES || random.one_in(2) && sent.len() < MESSAGES as usize {
                let priority = if turn % 3 == 0 { random.below(1 << 32) } else { random.below(4) };
                sys.poke(buffer, &turn.to_le_bytes());
                let _ = take_walked();
                sys.ok(Call::MboxSend, &[mailbox, buffer, 8, priority, NOW]);
                sent.push((priority, turn));
            } else if !sent.is_empty() {
                let first = sent.iter().copied().max_by_key(|(p, turn)| (*p, u64::MAX - turn));
                let (priority, number) = first.expect("there is one");
                sent.retain(|message| *message != (priority, number));
                let _ = take_walked();
                let receipt = sys.ok(Call::MboxReceive, &[mailbox, buffer, NOW]);
                assert_eq!(receipt, 8 << 32 | priority);
                assert_eq!(sys.peek(buffer, 8), number.to_le_bytes());
            }
            let walked = take_walked();
            assert!(walked <= most, "a path of {walked}");
        }
    });
}

#[test]
fn a_mutex_below_very_many_is_not_let_go_before_them() {
    let sizes = |p: &mut ProcessRecord| p.semaphores = 80;
    run(&Plan::new().process("main", 10).with(sizes), |sys| {
        let mutex = |sys: &mut Sys<'_>| {
            let mutex = sys.ok(Call::SemCreate, &[0, MUTEX]);
            sys.ok(Call::SemLock, &[mutex, FOREVER]);
            mutex
        };
        let held: Vec<u64> = (0..70).map(|_| mutex(sys)).collect();
        for deep in [0, 4] {
            assert_eq!(sys.err(Call::SemUnlock, &[held[deep]]), Busy);
            assert_eq!(sys.err(Call::SemDelete, &[held[deep]]), Busy);
        }
        for mutex in held[5..].iter().chain(&held[..5]) {
            sys.ok(Call::SemUnlock, &[*mutex]);
            sys.ok(Call::SemDelete, &[*mutex]);
        }
    });
}

//! Processes: boot order, faults and their reports, restart, kill, grants, refused programs.

use crate::support::*;
use diapason_abi::call::MUTEX;
use diapason_abi::record::Record;
use diapason_abi::{FaultReport, MESSAGE_BYTES};
use diapason_core::{Id, Process};

/// `boss` (process 0, priority 50) supervises `first` and `second` (40, 30) and has their reports.
fn plan() -> Plan {
    let plan = Plan::new().process("boss", 50).process("first", 40).supervised_by(0);
    let plan = plan.process("second", 30).supervised_by(0).with(|p| p.restarts_max = u32::MAX);
    plan.reports("reports", 2, 0).mutex("m").mailbox("box", 2)
}

/// Boss waits for reports; the first thread of `first` runs. Gives the report box and its buffer.
fn supervised(plan: &Plan, experiment: impl FnOnce(&mut Sys<'_>, u64, u64)) {
    run(plan, |sys| {
        assert_eq!(sys.running_process(), 0);
        let (reports, buffer) = (sys.open(Call::MboxCreate, "reports"), sys.address(0x40));
        sys.blocks(Call::MboxReceive, &[reports, buffer, FOREVER]);
        experiment(sys, reports, buffer);
    });
}

fn report_at(sys: &Sys<'_>, buffer: u64) -> FaultReport {
    let bytes = sys.peek(buffer, MESSAGE_BYTES);
    FaultReport::from_bytes(&bytes.try_into().unwrap()).expect("a report")
}

fn process<'a>(sys: &'a Sys<'_>, index: u16) -> &'a Process {
    &sys.host.kernel.processes[Id::new(index)]
}

#[test]
fn boot_starts_what_is_declared_and_the_most_urgent_runs() {
    let plan = Plan::new().process("low", 3).process("high", 9).process("later", 60);
    let plan = plan.with(|p| p.start_at_boot = false).process("equal", 9);
    run(&plan, |sys| {
        let order = [1, 3, 0];
        for process in order {
            assert_eq!(sys.running_process(), process);
            assert_eq!(sys.host.machine.started.iter().filter(|(_, e)| e.is_none()).count(), 3);
            sys.park();
        }
        assert!(sys.running().is_none());
        assert_eq!(process(sys, 2).state, ProcessState::Idle);
        let started = sys.records(Record::Started);
        assert_eq!(started, [[0, 0, 1], [0, 1, 1], [0, 3, 1]]);
    });
}

#[test]
fn a_fault_ends_the_process_and_its_supervisor_reads_everything_about_it() {
    supervised(&plan(), |sys, _, buffer| {
        let boss = sys.thread(0, 0);
        sys.spawn(40);
        sys.until(777);
        sys.yields(Call::Yield, &[]);
        sys.crash(FaultCause::StackOverflow, 0x2_0800_0000);
        assert_eq!((sys.running(), sys.result(boss)), (boss, Some(Ok((64 << 32) | 0xffff_ffff))));
        let report = report_at(sys, buffer);
        assert_eq!(
            report,
            FaultReport {
                process: 1,
                thread: 1,
                cause: FaultCause::StackOverflow,
                address: 0x2_0800_0000,
                instruction: 0x1234,
                time: 777,
                key: key("first"),
                restarts: 0,
                restarts_max: 3,
                backoff: 5_000,
            }
        );
        assert_eq!(process(sys, 1).state, ProcessState::Faulted);
        let words = [777, 1, 1, FaultCause::StackOverflow as u64, 0x2_0800_0000, 0x1234];
        assert_eq!(sys.records(Record::Fault), [words]);
        assert!(sys.records(Record::Ended).is_empty(), "a fault has a record of its own");
    });
}

#[test]
fn a_supervisor_restarts_and_the_counters_go_on() {
    supervised(&plan(), |sys, reports, buffer| {
        for restarts in 0..5 {
            assert_eq!(sys.running_process(), 1);
            let stale = sys.ok(Call::SemCreate, &[0, MUTEX]);
            sys.crash(FaultCause::Write, restarts);
            let report = report_at(sys, buffer);
            assert_eq!((u64::from(report.restarts), report.address), (restarts, restarts));
            assert_eq!(sys.ok(Call::ProcCreate, &[report.key]), 0);
            assert_eq!(sys.err(Call::ProcCreate, &[report.key]), Busy);
            sys.blocks(Call::MboxReceive, &[reports, buffer, FOREVER]);
            assert_eq!(process(sys, 1).starts as u64, restarts + 2);
            assert_eq!(process(sys, 1).faults as u64, restarts + 1);
            assert_eq!(sys.err(Call::SemLock, &[stale, FOREVER]), Gone, "of an earlier life");
        }
    });
}

/// Boss has the report that `first` faulted, and has received nothing since.
fn reported(experiment: impl FnOnce(&mut Sys<'_>, u64, u64)) {
    supervised(&plan(), |sys, reports, buffer| {
        sys.crash(FaultCause::Write, 1);
        assert_eq!(sys.running_process(), 0);
        experiment(sys, reports, buffer);
    });
}

#[test]
fn a_supervisor_restarts_and_waits_for_the_next_report_in_one_call() {
    supervised(&plan(), |sys, reports, buffer| {
        for restarts in 0..8 {
            assert_eq!(sys.running_process(), 1);
            sys.host.enter(Cause::Timer);
            sys.crash(FaultCause::Write, restarts);
            assert_eq!(u64::from(report_at(sys, buffer).restarts), restarts);
            sys.blocks(Call::ProcCreate, &[key("first"), reports, buffer, FOREVER]);
            assert_eq!(sys.records(Record::Started).len() as u64, 4 + restarts);
        }
        assert_eq!(sys.host.shortcuts.get(&Call::ProcCreate), Some(&4), "every other one");
    });
}

#[test]
fn a_restart_that_is_refused_waits_for_nothing() {
    reported(|sys, reports, buffer| {
        let call = |name| [key(name), reports, buffer, FOREVER];
        assert_eq!(sys.err(Call::ProcCreate, &call("second")), Busy);
        sys.misuses(FaultCause::BadGrant, Call::ProcCreate, &call("boss"));
    });
}

#[test]
fn after_a_restart_the_call_goes_on_like_a_receive() {
    let start = |reports, at, deadline| [key("first"), reports, at, deadline];
    reported(|sys, reports, buffer| {
        assert_eq!(sys.err(Call::ProcCreate, &start(reports, buffer, NOW)), WouldBlock);
        assert_eq!(process(sys, 1).state, ProcessState::Running);
        sys.blocks(Call::MboxReceive, &[reports, buffer, sys.host.now.0 + 5]);
        sys.crash(FaultCause::Write, 2);
        let (boss, later) = (sys.running(), sys.host.now.0 + 100);
        sys.blocks(Call::ProcCreate, &start(reports, buffer, later));
        sys.until(later);
        assert_eq!(sys.result(boss), Some(Err(TimedOut)));
    });
    reported(|sys, reports, buffer| {
        sys.blocks(Call::SleepUntil, &[sys.host.now.0 + 10]);
        sys.crash(FaultCause::Read, 3);
        sys.until(10);
        let there = (64 << 32) | 0xffff_ffff;
        assert_eq!(sys.ok(Call::ProcCreate, &start(reports, buffer, FOREVER)), there);
        assert_eq!((report_at(sys, buffer).process, process(sys, 1).starts), (2, 2));
    });
    for (reports_too, cause) in [(false, FaultCause::BadHandle), (true, FaultCause::BadAddress)] {
        reported(|sys, reports, _| {
            let reports = if reports_too { reports } else { 0xdead };
            sys.misuses(cause, Call::ProcCreate, &start(reports, 0, FOREVER));
            assert_eq!(process(sys, 1).starts, 2);
        });
    }
}

#[test]
fn reports_of_several_faults_wait_in_order_and_one_too_many_is_noted() {
    let plan = plan().process("third", 20).supervised_by(0);
    run(&plan, |sys| {
        let reports = sys.open(Call::MboxCreate, "reports");
        sys.blocks(Call::SleepUntil, &[100]);
        for process in [1, 2, 3] {
            assert_eq!(sys.running_process(), process);
            sys.crash(FaultCause::Read, u64::from(process));
        }
        assert_eq!(sys.records(Record::ReportLost), [[3]]);
        sys.until(100);
        let buffer = sys.address(0);
        for process in [1, 2] {
            sys.ok(Call::MboxReceive, &[reports, buffer, NOW]);
            assert_eq!(report_at(sys, buffer).process, process);
        }
        assert_eq!(sys.err(Call::MboxReceive, &[reports, buffer, NOW]), WouldBlock);
    });
}

#[test]
fn reports_arrive_before_the_supervisor_ever_opened_its_mailbox() {
    run(&plan().process("high", 60).supervised_by(0), |sys| {
        assert_eq!(sys.running_process(), 3);
        sys.crash(FaultCause::Read, 9);
        let (reports, buffer) = (sys.open(Call::MboxCreate, "reports"), sys.address(0));
        sys.ok(Call::MboxReceive, &[reports, buffer, NOW]);
        assert_eq!(report_at(sys, buffer).address, 9);
    });
}

#[test]
fn misuse_is_reported_like_any_fault() {
    supervised(&plan(), |sys, _, buffer| {
        sys.misuses(FaultCause::BadHandle, Call::SemLock, &[0xdead, 0]);
        let report = report_at(sys, buffer);
        assert_eq!((report.cause, report.address), (FaultCause::BadHandle, 0xdead));
    });
}

#[test]
fn everything_a_process_had_goes_back_when_it_ends() {
    supervised(&plan(), |sys, _, _| {
        let frames = sys.host.kernel.free_frames();
        let m = sys.open(Call::SemCreate, "m");
        sys.lock(m);
        for _ in 0..4 {
            sys.ok(Call::SemCreate, &[0, 1]);
            sys.ok(Call::TimerCreate, &[]);
        }
        sys.ok(Call::CvCreate, &[0]);
        sys.ok(Call::MemAlloc, &[4]);
        let others: Vec<_> = (0..7).map(|_| sys.spawn(10)).collect();
        sys.crash(FaultCause::Divide, 0);
        assert_eq!(sys.host.kernel.free_frames(), frames);
        assert!(others.iter().all(|t| sys.state(*t) == State::Free));
        sys.ok(Call::ProcCreate, &[key("first")]);
        sys.park();
        assert_eq!(sys.running_process(), 1);
        for _ in 0..4 {
            sys.ok(Call::SemCreate, &[0, 1]);
            sys.ok(Call::TimerCreate, &[]);
        }
        assert_eq!(sys.spawn(10), others[0]);
        sys.ok(Call::MemAlloc, &[4]);
    });
}

#[test]
fn killing_ends_without_a_report() {
    run(&plan(), |sys| {
        let m = sys.open(Call::SemCreate, "m");
        sys.blocks(Call::SleepUntil, &[10]);
        sys.lock(m);
        sys.until(10);
        assert_eq!(sys.ok(Call::ProcKill, &[key("first")]), 0);
        assert_eq!(process(sys, 1).state, ProcessState::Idle);
        assert_eq!(sys.ok(Call::SemLock, &[m, FOREVER]), diapason_abi::call::OWNER_DIED);
        assert_eq!(sys.err(Call::ProcKill, &[key("first")]), Gone);
        assert_eq!((process(sys, 1).faults, sys.records(Record::Ended).len()), (0, 1));
        let (reports, buffer) = (sys.open(Call::MboxCreate, "reports"), sys.address(0));
        assert_eq!(sys.err(Call::MboxReceive, &[reports, buffer, NOW]), WouldBlock);
        assert_eq!(sys.ok(Call::ProcCreate, &[key("first")]), 0);
        assert_eq!(process(sys, 1).starts, 2);
    });
}

#[test]
fn who_may_start_and_who_may_kill() {
    let plan = plan().process("starter", 20).process("started", 10);
    let plan = plan.with(|p| (p.starters, p.start_at_boot) = (1 << 3, false));
    let to_starter = |sys: &mut Sys<'_>| {
        for _ in 0..3 {
            sys.park();
        }
        assert_eq!(sys.running_process(), 3);
    };
    run(&plan, |sys| {
        to_starter(sys);
        assert_eq!(sys.ok(Call::ProcCreate, &[key("started")]), 0);
        assert_eq!(process(sys, 4).state, ProcessState::Running);
        sys.misuses(FaultCause::BadGrant, Call::ProcKill, &[key("started")]);
    });
    for (call, name) in [
        (Call::ProcCreate, "first"),
        (Call::ProcKill, "first"),
        (Call::ProcCreate, "boss"),
        (Call::ProcKill, "boss"),
        (Call::ProcCreate, "starter"),
        (Call::ProcCreate, "nobody"),
        (Call::ProcKill, "nobody"),
    ] {
        run(&plan, |sys| {
            to_starter(sys);
            sys.misuses(FaultCause::BadGrant, call, &[key(name)]);
        });
    }
    run(&plan, |sys| sys.misuses(FaultCause::BadGrant, Call::ProcKill, &[key("started")]));
}

#[test]
fn a_refused_program_never_starts() {
    let mut plan = plan();
    plan.refused = 0b10;
    run(&plan, |sys| {
        assert_eq!(process(sys, 1).state, ProcessState::Refused);
        assert_eq!(sys.err(Call::ProcCreate, &[key("first")]), Gone);
        assert_eq!(sys.err(Call::ProcKill, &[key("first")]), Gone);
        sys.park();
        assert_eq!(sys.running_process(), 2, "the rest boots");
    });
}

#[test]
fn the_death_of_a_supervisor_is_told_to_the_machine() {
    run(&plan(), |sys| {
        sys.crash(FaultCause::Privilege, 0);
        assert_eq!(sys.host.machine.dead_supervisor, Some(Id::new(0)));
    });
    supervised(&plan(), |sys, _, _| {
        sys.crash(FaultCause::Privilege, 0);
        assert_eq!(sys.host.machine.dead_supervisor, None, "a worker's is not");
    });
    run(&Plan::new().process("alone", 1), |sys| {
        sys.crash(FaultCause::Privilege, 0);
        assert_eq!(sys.host.machine.dead_supervisor, None, "it supervised nobody");
    });
}

#[test]
fn a_supervisor_with_a_supervisor_is_reported_to_it() {
    let plan = Plan::new().process("top", 50).process("middle", 40).supervised_by(0);
    let plan = plan.process("leaf", 30).supervised_by(1);
    let plan = plan.reports("to top", 1, 0).reports("to middle", 1, 1);
    run(&plan, |sys| {
        let (reports, buffer) = (sys.open(Call::MboxCreate, "to top"), sys.address(0));
        sys.blocks(Call::MboxReceive, &[reports, buffer, FOREVER]);
        sys.crash(FaultCause::Read, 5);
        assert_eq!((sys.running_process(), report_at(sys, buffer).process), (0, 1));
        assert_eq!(sys.host.machine.dead_supervisor, None);
        sys.park();
        sys.crash(FaultCause::Read, 6);
        assert!(sys.running().is_none(), "the leaf's report waits for a restarted middle");
    });
}

#[test]
fn a_process_that_supervises_itself_may_kill_and_even_restart_itself() {
    let plan = Plan::new().process("phoenix", 50).supervised_by(0).process("other", 40);
    let plan = plan.reports("reports", 1, 0);
    run(&plan, |sys| {
        sys.spawn(10);
        assert_eq!(sys.call(Call::ProcKill, &[key("phoenix")]), Outcome::Ended);
        assert_eq!((sys.running_process(), process(sys, 0).state), (1, ProcessState::Idle));
        assert!((0..8).all(|slot| sys.state(sys.thread(0, slot)) == State::Free));
    });
    run(&plan, |sys| {
        sys.crash(FaultCause::Read, 1);
        assert_eq!((sys.running_process(), process(sys, 0).state), (1, ProcessState::Faulted));
    });
}

#[test]
fn a_restarted_process_finds_shared_objects_as_they_are() {
    supervised(&plan(), |sys, reports, buffer| {
        let mailbox = sys.open(Call::MboxCreate, "box");
        let at = sys.address(0);
        sys.poke(at, b"survivor");
        sys.ok(Call::MboxSend, &[mailbox, at, 8, 1, NOW]);
        sys.crash(FaultCause::Read, 0);
        sys.ok(Call::ProcCreate, &[key("first")]);
        sys.blocks(Call::MboxReceive, &[reports, buffer, FOREVER]);
        assert_eq!(sys.open(Call::MboxCreate, "box"), mailbox);
        assert_eq!(sys.ok(Call::MboxReceive, &[mailbox, at, NOW]), 8 << 32 | 1);
    });
}

#[test]
fn killing_a_waiter_leaves_the_others_in_their_order() {
    run(&plan().process("third", 20).semaphore("s", 0), |sys| {
        let s = sys.open(Call::SemCreate, "s");
        sys.blocks(Call::SleepUntil, &[10]);
        for process in [1, 2, 3] {
            assert_eq!(sys.running_process(), process);
            sys.blocks(Call::SemLock, &[s, 1_000]);
        }
        sys.until(10);
        assert_eq!(sys.ok(Call::ProcKill, &[key("second")]), 0);
        for _ in 0..3 {
            sys.ok(Call::SemUnlock, &[s]);
        }
        assert_eq!(sys.ok(Call::SemTryLock, &[s]), 0, "the third signal found nobody");
        sys.park();
        for process in [1, 3] {
            assert_eq!(sys.running_process(), process);
            sys.park();
        }
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
    });
}

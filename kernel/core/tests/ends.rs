//! The end of a process, stage by stage: short paths, its own place and budget, and nobody hears of
//! it before it is over.

mod support;
use diapason_abi::archive::ProcessRecord;
use diapason_abi::call::{MUTEX, PARTIAL};
use diapason_abi::record::Record;
use diapason_core::host::HIDDEN;
use diapason_core::{Decision, Fault, Id, take_walked};
use diapason_costs::Round;
use diapason_costs::section::STAGE;
use support::*;

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

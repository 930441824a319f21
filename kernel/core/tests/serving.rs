//! Calls to a server that runs in its caller's place. Every experiment is made twice: the host lets
//! every other call go the short way, and one entry more before the first swaps them.

use crate::support::lab::{self, dismiss};
use crate::support::*;
use diapason_abi::call::OWNER_DIED;
use diapason_abi::{MESSAGE_BYTES, layout};

const ROOM: u64 = 1 << 32;
const US: u64 = 1_000;

/// The mutex of the service is the first semaphore, `m1`.
fn plan() -> Plan {
    let plan = lab::plan().process("server", 5).supervised_by(1).reports("reports", 2, 1);
    plan.mailbox("service", 0).served_with(0).mailbox("plain", 1)
}

/// The service as its clients and its server know it.
#[derive(Clone, Copy)]
struct Service {
    mailbox: u64,
    mutex: u64,
    server: ThreadId,
}

/// The running thread becomes the server and waits for a request.
fn serve(sys: &mut Sys<'_>) -> Service {
    let server = sys.running();
    let mutex = sys.open(Call::SemCreate, "m1");
    sys.lock(mutex);
    let mailbox = sys.open(Call::MboxCreate, "service");
    let at = sys.address(0x100);
    sys.blocks(Call::MboxReceive, &[mailbox, at, FOREVER]);
    Service { mailbox, mutex, server }
}

/// The lab with a server of priority 5 that waits, by both ways; the first thread of `lab` runs.
fn with_server(experiment: impl Fn(&mut Sys<'_>, Service)) {
    for entries in 0..2 {
        lab::with(&plan(), |sys| {
            sys.open(Call::MboxCreate, "service");
            sys.blocks(Call::SleepUntil, &[10]);
            assert_eq!(sys.running_process(), 2);
            let service = serve(sys);
            sys.until(10);
            assert_eq!(sys.running_process(), 0);
            (0..entries).for_each(|_| sys.host.enter(Cause::Timer));
            experiment(sys, service);
        });
    }
}

/// The arguments of a call with `text`, which is written into the caller's memory first.
fn words(sys: &mut Sys<'_>, service: Service, text: &[u8], deadline: u64) -> [u64; 5] {
    let at = sys.address(0x100 * (1 + u64::from(sys.running().index())));
    sys.poke(at, text);
    [service.mailbox, at, text.len() as u64 * ROOM + 7, service.mailbox, deadline]
}

/// The running thread asks, or answers.
#[track_caller]
fn calls(sys: &mut Sys<'_>, service: Service, text: &[u8], deadline: u64) {
    let call = words(sys, service, text, deadline);
    sys.blocks(Call::MboxCall, &call);
}

/// The server answers, and has the next request at once.
#[track_caller]
fn goes_on(sys: &mut Sys<'_>, service: Service, answer: &[u8]) -> Vec<u8> {
    let call = words(sys, service, answer, FOREVER);
    let length = sys.ok(Call::MboxCall, &call) / ROOM;
    text(sys, service.server, length as usize)
}

/// A less urgent client than the first thread of `lab`, which sleeps until then.
fn less_urgent(sys: &mut Sys<'_>, priority: u8, wake: u64) -> ThreadId {
    let thread = sys.spawn(priority);
    sys.blocks(Call::SleepUntil, &[wake]);
    assert_eq!(sys.running(), thread);
    thread
}

fn text(sys: &Sys<'_>, thread: ThreadId, length: usize) -> Vec<u8> {
    let process = sys.host.kernel.threads[thread].process.index();
    sys.peek(layout::base(process) + 0x100 * (1 + u64::from(thread.index())), length)
}

#[test]
fn a_client_asks_and_its_server_answers_in_its_place() {
    with_server(|sys, service| {
        let client = sys.running();
        for round in 0..20u8 {
            let question = vec![round; round as usize];
            calls(sys, service, &question, FOREVER);
            assert_eq!(sys.running(), service.server);
            assert_eq!(sys.priority(service.server), 40, "it runs in its client's place");
            assert_eq!(sys.result(service.server), Some(Ok(u64::from(round) * ROOM + 7)));
            let process = layout::base(2);
            let at = if round == 0 { 0x100 } else { 0x100 * (1 + service.server.index() as u64) };
            assert_eq!(sys.peek(process + at, question.len()), question);
            let answer = vec![!round; 64 - round as usize];
            calls(sys, service, &answer, FOREVER);
            assert_eq!(sys.running(), client);
            assert_eq!(sys.priority(service.server), 5);
            assert_eq!(sys.result(client), Some(Ok(answer.len() as u64 * ROOM + 7)));
            assert_eq!(text(sys, client, answer.len()), answer);
        }
    });
}

#[test]
fn nobody_less_urgent_than_the_client_runs_before_the_answer() {
    with_server(|sys, service| {
        let client = sys.running();
        let middle = sys.spawn(20);
        calls(sys, service, b"x", FOREVER);
        assert_eq!(sys.running(), service.server);
        sys.until(50);
        assert_eq!(sys.running(), service.server, "{middle:?} waits");
        calls(sys, service, b"y", FOREVER);
        assert_eq!(sys.running(), client);
        sys.park();
        assert_eq!(sys.running(), middle);
    });
}

#[test]
fn the_most_urgent_client_is_served_next_whoever_asked_first() {
    with_server(|sys, service| {
        let high = sys.running();
        let low = less_urgent(sys, 30, 30);
        let first = less_urgent(sys, 20, 20);
        calls(sys, service, b"1", FOREVER);
        sys.until(20);
        assert_eq!(sys.running(), low);
        calls(sys, service, b"2", FOREVER);
        assert_eq!((sys.running(), sys.priority(service.server)), (service.server, 30));
        sys.until(30);
        assert_eq!(sys.running(), high);
        calls(sys, service, b"3", FOREVER);
        assert_eq!((sys.running(), sys.priority(service.server)), (service.server, 40));
        // It ends what it does for the first, and then takes the most urgent.
        assert_eq!(goes_on(sys, service, b"a"), b"3");
        calls(sys, service, b"c", FOREVER);
        assert_eq!((sys.running(), text(sys, high, 1)), (high, b"c".to_vec()));
        sys.park();
        assert_eq!(sys.running(), service.server);
        assert_eq!(text(sys, service.server, 1), b"2");
        calls(sys, service, b"b", FOREVER);
        assert_eq!((sys.running(), text(sys, low, 1)), (low, b"b".to_vec()));
        sys.park();
        assert_eq!((sys.running(), text(sys, first, 1)), (first, b"a".to_vec()));
    });
}

#[test]
fn a_time_out_before_or_after_the_request_was_taken() {
    with_server(|sys, service| {
        let high = sys.running();
        let client = less_urgent(sys, 20, 20);
        calls(sys, service, b"1", 40);
        sys.until(20);
        assert_eq!(sys.running(), high);
        calls(sys, service, b"2", 30);
        assert_eq!(sys.running(), service.server);
        sys.until(30);
        assert_eq!((sys.running(), sys.result(high)), (high, Some(Err(TimedOut))));
        sys.park();
        sys.until(40);
        assert_eq!((sys.running(), sys.result(client)), (client, Some(Err(TimedOut))));
        // The answer to the call that is over reaches nobody, not even its next call.
        calls(sys, service, b"3", FOREVER);
        assert_eq!(goes_on(sys, service, b"late"), b"3");
        calls(sys, service, b"answer", FOREVER);
        assert_eq!((sys.running(), sys.result(client)), (client, Some(Ok(6 * ROOM + 7))));
        assert_eq!(text(sys, client, 6), b"answer");
    });
}

#[test]
fn a_caller_who_waits_no_longer_than_now_asks_nothing() {
    with_server(|sys, service| {
        for (deadline, errno) in [(NOW, WouldBlock), (1, TimedOut), (10, TimedOut)] {
            let call = words(sys, service, b"x", deadline);
            assert_eq!(sys.err(Call::MboxCall, &call), errno);
        }
        assert_eq!(sys.state(service.server), State::Blocked);
    });
}

#[test]
fn the_death_of_the_server_ends_every_call() {
    with_server(|sys, service| {
        let high = sys.running();
        let client = less_urgent(sys, 20, 20);
        calls(sys, service, b"1", FOREVER);
        sys.until(20);
        calls(sys, service, b"2", FOREVER);
        assert_eq!(sys.running(), service.server);
        sys.crash(FaultCause::BadCall, 0);
        while sys.running_process() == 1 {
            dismiss(sys);
        }
        assert_eq!((sys.running(), sys.result(high)), (high, Some(Err(Gone))));
        let call = words(sys, service, b"3", FOREVER);
        assert_eq!(sys.err(Call::MboxCall, &call), Gone, "nobody serves");
        assert_eq!(sys.ok(Call::SemLock, &[service.mutex, FOREVER]), OWNER_DIED);
        sys.ok(Call::SemUnlock, &[service.mutex]);
        sys.park();
        assert_eq!((sys.running(), sys.result(client)), (client, Some(Err(Gone))));
    });
}

#[test]
fn a_server_that_lets_its_mutex_go_serves_nobody() {
    with_server(|sys, service| {
        let client = sys.running();
        calls(sys, service, b"1", FOREVER);
        sys.yields(Call::SemUnlock, &[service.mutex]);
        assert_eq!((sys.running(), sys.result(client)), (client, Some(Err(Gone))));
        assert_eq!(sys.ok(Call::SemLock, &[service.mutex, FOREVER]), 0, "it is free");
        let call = words(sys, service, b"2", FOREVER);
        sys.blocks(Call::MboxCall, &call);
        assert_eq!(sys.running(), service.server, "the holder of the mutex is the server");
    });
}

#[test]
fn a_server_that_goes_on_without_an_answer_answers_nobody() {
    with_server(|sys, service| {
        let client = sys.running();
        calls(sys, service, b"1", FOREVER);
        let at = sys.address(0x700);
        sys.blocks(Call::MboxReceive, &[service.mailbox, at, FOREVER]);
        assert_eq!((sys.running(), sys.result(client)), (client, Some(Err(Gone))));
        calls(sys, service, b"2", FOREVER);
        assert_eq!(sys.running(), service.server);
        assert_eq!(sys.peek(at, 1), b"2");
    });
}

#[test]
fn the_answer_is_not_sent_if_the_server_may_not_wait() {
    with_server(|sys, service| {
        let client = sys.running();
        calls(sys, service, b"1", FOREVER);
        let call = words(sys, service, b"y", NOW);
        assert_eq!(sys.err(Call::MboxCall, &call), WouldBlock);
        calls(sys, service, b"yes", time(sys) + 10);
        assert_eq!((sys.running(), sys.result(client)), (client, Some(Ok(3 * ROOM + 7))));
        sys.park();
        sys.until(time(sys) + 10);
        assert_eq!(sys.running(), service.server);
        assert_eq!(sys.result(service.server), Some(Err(TimedOut)));
    });
}

fn time(sys: &Sys<'_>) -> u64 {
    sys.host.now.0
}

#[test]
fn nobody_sends_to_a_server() {
    for receive in [None, Some("plain")] {
        with_server(|sys, service| {
            let at = sys.address(0);
            let (mailbox, cause) = (service.mailbox, FaultCause::BadArgument);
            match receive {
                None => sys.misuses(cause, Call::MboxSend, &[mailbox, at, 1, 0, NOW]),
                Some(name) => {
                    let plain = sys.open(Call::MboxCreate, name);
                    sys.misuses(cause, Call::MboxCall, &[mailbox, at, ROOM, plain, FOREVER]);
                }
            }
            assert_eq!(sys.state(service.server), State::Blocked);
        });
    }
}

#[test]
fn a_call_that_would_close_a_circle_is_refused() {
    with_server(|sys, service| {
        let m2 = sys.open(Call::SemCreate, "m2");
        sys.lock(m2);
        calls(sys, service, b"1", FOREVER);
        assert_eq!(sys.running(), service.server);
        sys.open(Call::SemCreate, "m2");
        assert_eq!(sys.err(Call::SemLock, &[m2, FOREVER]), Deadlock);
        calls(sys, service, b"2", 20);
        // The server waits for the caller before the call.
        let client = sys.running();
        sys.blocks(Call::SleepUntil, &[30]);
        sys.until(20);
        assert_eq!(sys.running(), service.server, "its time has come");
        sys.blocks(Call::SemLock, &[m2, FOREVER]);
        sys.until(30);
        assert_eq!(sys.running(), client);
        let call = words(sys, service, b"x", FOREVER);
        assert_eq!(sys.err(Call::MboxCall, &call), Deadlock);
    });
}

#[test]
fn a_server_that_sleeps_keeps_its_client_waiting_and_nobody_else() {
    with_server(|sys, service| {
        let client = sys.running();
        let middle = sys.spawn(20);
        calls(sys, service, b"1", FOREVER);
        sys.blocks(Call::SleepUntil, &[50]);
        assert_eq!(sys.running(), middle);
        sys.until(50);
        assert_eq!((sys.running(), sys.priority(service.server)), (service.server, 40));
        calls(sys, service, b"2", FOREVER);
        assert_eq!((sys.running(), sys.result(client)), (client, Some(Ok(ROOM + 7))));
    });
}

#[test]
fn a_server_may_ask_another_one() {
    let plan = plan().mailbox("inner", 0).served_with(1);
    lab::with(&plan, |sys| {
        sys.blocks(Call::SleepUntil, &[10]);
        let service = serve(sys);
        sys.until(10);
        let (client, inner_server) = (sys.running(), sys.spawn(7));
        sys.blocks(Call::SleepUntil, &[20]);
        assert_eq!(sys.running(), inner_server);
        let mutex = sys.open(Call::SemCreate, "m2");
        sys.lock(mutex);
        let inner = sys.open(Call::MboxCreate, "inner");
        let at = sys.address(0x100);
        sys.blocks(Call::MboxReceive, &[inner, at, FOREVER]);
        sys.until(20);
        let inner = Service { mailbox: inner, mutex, server: inner_server };
        calls(sys, service, b"outer", FOREVER);
        sys.open(Call::MboxCreate, "inner");
        calls(sys, inner, b"inner", FOREVER);
        assert_eq!((sys.running(), sys.priority(inner_server)), (inner_server, 40));
        calls(sys, inner, b"1", FOREVER);
        assert_eq!((sys.running(), sys.priority(service.server)), (service.server, 40));
        calls(sys, service, b"2", FOREVER);
        assert_eq!((sys.running(), text(sys, client, 1)), (client, b"2".to_vec()));
    });
}

#[test]
fn a_served_mailbox_is_not_deleted() {
    with_server(|sys, service| assert_eq!(sys.err(Call::MboxDelete, &[service.mailbox]), Busy));
}

#[test]
fn misuse_ends_the_process_and_the_server_does_not_notice() {
    let long = MESSAGE_BYTES as u64 + 1;
    let end = layout::base(0) + diapason_core::host::USER_BYTES;
    let base = layout::base(0);
    let misuses = [
        (FaultCause::BadArgument, "service", base, long * ROOM),
        (FaultCause::BadArgument, "service", base, u64::MAX),
        (FaultCause::BadArgument, "plain", base, ROOM),
        (FaultCause::BadAddress, "service", 0, ROOM),
        (FaultCause::BadAddress, "service", end - 1, 2 * ROOM),
        (FaultCause::BadAddress, "service", u64::MAX, 64 * ROOM),
    ];
    for (cause, name, at, what) in misuses {
        with_server(|sys, service| {
            let mailbox = sys.open(Call::MboxCreate, name);
            sys.misuses(cause, Call::MboxCall, &[mailbox, at, what, mailbox, FOREVER]);
            assert_eq!(sys.state(service.server), State::Blocked);
        });
    }
}

#[test]
fn a_place_too_small_for_the_answer_is_the_fault_of_the_caller() {
    with_server(|sys, service| {
        let (client, end) = (sys.running(), layout::base(0) + diapason_core::host::USER_BYTES);
        let call = [service.mailbox, end - 8, 8 * ROOM, service.mailbox, FOREVER];
        sys.blocks(Call::MboxCall, &call);
        let call = words(sys, service, &[1; 9], FOREVER);
        let outcome = sys.call(Call::MboxCall, &call);
        assert_eq!(outcome, Outcome::Faulted(FaultCause::BadAddress, end - 8));
        assert_eq!(sys.state(client), State::Free);
        assert_eq!(sys.state(service.server), State::Blocked);
    });
}

/// Two clients on VCPUs, one more urgent, and a server without one.
fn on_vcpus(experiment: impl Fn(&mut Sys<'_>, [ThreadId; 2])) {
    let plan = Plan::new().main_vcpu("fast", 300 * US, 1_000 * US, 0);
    let plan = plan.main_vcpu("slow", 1_000 * US, 10_000 * US, 0).mutex("m1");
    let plan = plan.mailbox("service", 0).served_with(0);
    let plan = plan.process("fast", 40).with(|p| p.vcpu = 0);
    let plan = plan.process("slow", 40).with(|p| p.vcpu = 1).process("server", 5);
    for entries in 0..2 {
        run(&plan, |sys| {
            let clients = [0, 1].map(|process| {
                let client = sys.running();
                assert_eq!(sys.running_process(), process);
                sys.open(Call::MboxCreate, "service");
                let release = 100 * US * (2 - u64::from(process));
                sys.blocks(Call::JobsStart, &[release, 10_000 * US, 10_000 * US]);
                client
            });
            serve(sys);
            (0..entries).for_each(|_| sys.host.enter(Cause::Timer));
            sys.until(100 * US);
            assert_eq!(sys.running(), clients[1]);
            experiment(sys, clients);
        });
    }
}

#[test]
fn the_client_pays_for_the_service() {
    on_vcpus(|sys, [fast, slow]| {
        let used = |sys: &Sys<'_>, thread: ThreadId| {
            let vcpu = sys.host.kernel.threads[thread].vcpu;
            sys.host.kernel.vcpus[vcpu].used.0 / US
        };
        let service = {
            let mailbox = sys.open(Call::MboxCreate, "service");
            Service { mailbox, mutex: 0, server: sys.thread(2, 0) }
        };
        let before = [used(sys, fast), used(sys, slow)];
        calls(sys, service, b"1", FOREVER);
        sys.until(200 * US);
        assert_eq!(sys.running(), fast);
        calls(sys, service, b"2", FOREVER);
        assert_eq!(sys.running(), service.server, "in the place of the more urgent one");
        sys.until(230 * US);
        goes_on(sys, service, b"a");
        sys.until(250 * US);
        calls(sys, service, b"b", FOREVER);
        assert_eq!(sys.running(), fast);
        sys.until(260 * US);
        sys.park();
        assert_eq!(sys.running(), slow);
        // 100 us for its own call, and 30 us of the other, whose request was taken before.
        let near = |time: u64, wanted: u64| (wanted - 2..=wanted).contains(&time);
        assert!(near(used(sys, slow) - before[1], 100), "but for a switch");
        assert!(near(used(sys, fast) - before[0], 60), "but for a switch");
        // A job is charged what its own call took, whichever VCPU paid.
        let now = sys.host.now;
        let paid = |thread: ThreadId| {
            let account = sys.host.kernel.job_account(thread, now).expect("it has jobs");
            account[3] / US
        };
        assert!(near(paid(slow), 130) && near(paid(fast), 30), "{} {}", paid(slow), paid(fast));
    });
}

#[test]
fn a_client_without_budget_leaves_the_server_to_the_next() {
    on_vcpus(|sys, [fast, slow]| {
        let mailbox = sys.open(Call::MboxCreate, "service");
        let service = Service { mailbox, mutex: 0, server: sys.thread(2, 0) };
        sys.blocks(Call::SleepUntil, &[150 * US]);
        sys.until(200 * US);
        assert_eq!(sys.running(), fast);
        calls(sys, service, b"1", FOREVER);
        sys.until(510 * US);
        // The budget of the more urgent VCPU is used up: its place is not run in.
        assert_eq!(sys.running(), slow);
        calls(sys, service, b"2", FOREVER);
        assert_eq!(sys.running(), service.server, "in the place of the less urgent one");
        assert_eq!(goes_on(sys, service, b"a"), b"2", "the first has its answer");
        calls(sys, service, b"b", FOREVER);
        assert_eq!((sys.running(), text(sys, slow, 1)), (slow, b"b".to_vec()));
        sys.park();
        sys.until(1_300 * US);
        assert_eq!((sys.running(), text(sys, fast, 1)), (fast, b"a".to_vec()));
    });
}

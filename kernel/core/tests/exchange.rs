//! Calls that send and wait for an answer. Every experiment is made twice: the host lets every
//! other call go the short way, and one entry more before the first swaps them.

use crate::support::lab::{self, summon};
use crate::support::*;
use diapason_abi::{MESSAGE_BYTES, layout};
use diapason_core::ThreadId;
use diapason_random::Random;

const ROOM: u64 = 1 << 32;

fn plan() -> Plan {
    lab::plan().mailbox("request", 2).mailbox("reply", 1).mailbox("third", 1)
}

/// The lab with request and reply open, by both ways.
fn with_boxes(experiment: impl Fn(&mut Sys<'_>, u64, u64)) {
    for entries in 0..2 {
        lab::with(&plan(), |sys| {
            let boxes = ["request", "reply"].map(|name| sys.open(Call::MboxCreate, name));
            (0..entries).for_each(|_| sys.host.enter(Cause::Timer));
            experiment(sys, boxes[0], boxes[1]);
        });
    }
}

/// The arguments of a call with `text`, which is written into the caller's memory first.
fn words(sys: &mut Sys<'_>, send: u64, text: &[u8], receive: u64, deadline: u64) -> [u64; 5] {
    let at = sys.address(0x100);
    sys.poke(at, text);
    [send, at, text.len() as u64 * ROOM + 7, receive, deadline]
}

/// `control` waits at `mailbox` for a request.
fn serve(sys: &mut Sys<'_>, mailbox: u64) -> ThreadId {
    summon(sys);
    let (server, at) = (sys.running(), sys.address(0x100));
    sys.blocks(Call::MboxReceive, &[mailbox, at, FOREVER]);
    server
}

fn text(sys: &Sys<'_>, process: u16, length: usize) -> Vec<u8> {
    sys.peek(layout::base(process) + 0x100, length)
}

fn is_empty(sys: &mut Sys<'_>, mailbox: u64) -> bool {
    let at = sys.address(0x800);
    sys.call(Call::MboxReceive, &[mailbox, at, NOW]) == Outcome::Returned(Err(WouldBlock))
}

#[test]
fn a_client_calls_and_a_server_answers_by_calls() {
    with_boxes(|sys, request, reply| {
        let (client, server) = (sys.running(), serve(sys, request));
        for round in 0..20u8 {
            let question = vec![round; round as usize];
            let call = words(sys, request, &question, reply, FOREVER);
            sys.blocks(Call::MboxCall, &call);
            assert_eq!(sys.running(), server);
            assert_eq!(sys.result(server), Some(Ok(u64::from(round) * ROOM + 7)));
            assert_eq!(text(sys, 1, question.len()), question);
            let answer = vec![!round; 64 - round as usize];
            let call = words(sys, reply, &answer, request, FOREVER);
            sys.blocks(Call::MboxCall, &call);
            assert_eq!(sys.running(), client);
            assert_eq!(sys.result(client), Some(Ok(answer.len() as u64 * ROOM + 7)));
            assert_eq!(text(sys, 0, answer.len()), answer);
        }
        assert!(is_empty(sys, request) && is_empty(sys, reply));
        assert_eq!(sys.host.shortcuts.get(&Call::MboxCall), Some(&20), "every other call");
    });
}

#[test]
fn what_nobody_waits_for_is_kept_and_the_caller_waits() {
    with_boxes(|sys, request, reply| {
        let client = sys.running();
        let call = words(sys, request, b"question", reply, FOREVER);
        sys.blocks(Call::MboxCall, &call);
        summon(sys);
        let at = sys.address(0x100);
        assert_eq!(sys.ok(Call::MboxReceive, &[request, at, NOW]), 8 * ROOM + 7);
        assert_eq!(text(sys, 1, 8), b"question");
        let answer = words(sys, reply, b"answer", request, FOREVER);
        sys.blocks(Call::MboxCall, &answer);
        assert_eq!(sys.result(client), Some(Ok(6 * ROOM + 7)));
        assert_eq!(text(sys, 0, 6), b"answer");
    });
}

#[test]
fn what_is_there_is_received_at_once_whatever_the_deadline() {
    with_boxes(|sys, request, reply| {
        sys.until(10);
        for deadline in [NOW, 5, FOREVER] {
            let at = sys.address(0x100);
            sys.poke(at, b"early");
            sys.ok(Call::MboxSend, &[reply, at, 5, 3, NOW]);
            let call = words(sys, request, b"late", reply, deadline);
            assert_eq!(sys.ok(Call::MboxCall, &call), 5 * ROOM + 3);
            assert_eq!(text(sys, 0, 5), b"early");
            assert_eq!(sys.ok(Call::MboxReceive, &[request, at, NOW]), 4 * ROOM + 7);
            assert_eq!(text(sys, 0, 4), b"late");
        }
    });
}

#[test]
fn a_place_that_becomes_free_goes_to_the_sender_who_waits() {
    with_boxes(|sys, request, reply| {
        let sender = sys.spawn(9);
        let at = sys.address(0x100);
        sys.poke(at, b"12");
        sys.ok(Call::MboxSend, &[reply, at, 1, 0, NOW]);
        sys.blocks(Call::SleepUntil, &[10]);
        sys.blocks(Call::MboxSend, &[reply, at, 2, 0, FOREVER]);
        sys.until(10);
        let call = words(sys, request, b"x", reply, NOW);
        assert_eq!(sys.ok(Call::MboxCall, &call), ROOM);
        assert_eq!(sys.state(sender), State::Ready);
        assert_eq!(sys.ok(Call::MboxReceive, &[reply, at, NOW]), 2 * ROOM);
    });
}

#[test]
fn a_refused_call_sends_nothing() {
    with_boxes(|sys, request, reply| {
        sys.until(10);
        for (deadline, errno) in [(NOW, WouldBlock), (1, TimedOut), (10, TimedOut)] {
            let call = words(sys, request, b"x", reply, deadline);
            assert_eq!(sys.err(Call::MboxCall, &call), errno);
        }
        assert!(is_empty(sys, request));
        let third = sys.open(Call::MboxCreate, "third");
        sys.ok(Call::MboxDelete, &[third]);
        for (send, receive) in [(request, third), (third, reply)] {
            let call = words(sys, send, b"x", receive, FOREVER);
            assert_eq!(sys.err(Call::MboxCall, &call), Gone);
        }
        assert!(is_empty(sys, request));
        let at = sys.address(0x100);
        sys.poke(at, b"kept");
        sys.ok(Call::MboxSend, &[reply, at, 4, 0, NOW]);
        let call = words(sys, reply, b"x", request, FOREVER);
        assert_eq!(sys.err(Call::MboxCall, &call), Full, "with nothing to receive");
        sys.ok(Call::MboxSend, &[request, at, 1, 0, NOW]);
        assert_eq!(sys.err(Call::MboxCall, &call), Full, "with something to receive");
        assert_eq!(sys.ok(Call::MboxReceive, &[request, at, NOW]), ROOM, "it is still there");
        assert_eq!(sys.ok(Call::MboxReceive, &[reply, at, NOW]), 4 * ROOM);
        assert_eq!(text(sys, 0, 4), b"kept");
    });
}

/// A call by `control` that no correct program makes, with somebody who waits for its message or
/// not, and with something for it to receive or not.
fn misuse(cause: FaultCause, call: impl Fn(u64, u64, u64) -> [u64; 5]) {
    for (waiting, there) in [(false, false), (false, true), (true, false), (true, true)] {
        with_boxes(|sys, request, reply| {
            let at = sys.address(0x900);
            let receiver = sys.spawn(9);
            if there {
                sys.poke(at, b"there");
                sys.ok(Call::MboxSend, &[reply, at, 5, 1, NOW]);
            }
            sys.blocks(Call::SleepUntil, &[10]);
            if waiting {
                sys.blocks(Call::MboxReceive, &[request, at, FOREVER]);
            }
            summon(sys);
            let words = call(request, reply, sys.address(0));
            sys.misuses(cause, Call::MboxCall, &words);
            sys.until(10);
            assert_eq!(waiting, sys.state(receiver) == State::Blocked, "it waits as before");
            assert!(waiting || is_empty(sys, request));
            let found = sys.call(Call::MboxReceive, &[reply, at, NOW]);
            let kept = if there { Ok(5 * ROOM + 1) } else { Err(WouldBlock) };
            assert_eq!(found, Outcome::Returned(kept), "what was there is still there");
        });
    }
}

#[test]
fn misuse_ends_the_process_and_nobody_else_notices() {
    let (argument, address) = (FaultCause::BadArgument, FaultCause::BadAddress);
    misuse(argument, |request, _, at| [request, at, ROOM, request, FOREVER]);
    let long = MESSAGE_BYTES as u64 + 1;
    misuse(argument, |request, reply, at| [request, at, long * ROOM, reply, FOREVER]);
    misuse(argument, |request, reply, at| [request, at, u64::MAX, reply, FOREVER]);
    misuse(address, |request, reply, at| [request, at - 1, 2 * ROOM, reply, FOREVER]);
    misuse(address, |request, reply, _| [request, u64::MAX, 64 * ROOM, reply, FOREVER]);
    misuse(address, |request, reply, _| [request, 0, ROOM, reply, FOREVER]);
    let bad = FaultCause::BadHandle;
    misuse(bad, |_, reply, at| [0, at, ROOM, reply, FOREVER]);
    misuse(bad, |request, _, at| [request, at, ROOM, u64::MAX, FOREVER]);
}

#[test]
fn a_place_too_small_for_what_is_there_sends_nothing() {
    with_boxes(|sys, request, reply| {
        let at = sys.address(0x100);
        sys.ok(Call::MboxSend, &[reply, at, 64, 1, NOW]);
        summon(sys);
        let end = layout::base(1) + diapason_core::host::USER_BYTES;
        sys.misuses(
            FaultCause::BadAddress,
            Call::MboxCall,
            &[request, end - 8, 8 * ROOM, reply, FOREVER],
        );
        assert!(is_empty(sys, request));
        assert_eq!(sys.ok(Call::MboxReceive, &[reply, at, NOW]), 64 * ROOM + 1);
    });
}

#[test]
fn a_place_too_small_for_the_answer_is_the_fault_of_the_caller() {
    with_boxes(|sys, request, reply| {
        serve(sys, request);
        let lab = sys.running();
        let end = layout::base(0) + diapason_core::host::USER_BYTES;
        sys.blocks(Call::MboxCall, &[request, end - 8, 8 * ROOM, reply, FOREVER]);
        let call = words(sys, reply, &[1; 9], request, FOREVER);
        let outcome = sys.call(Call::MboxCall, &call);
        assert_eq!(outcome, Outcome::Faulted(FaultCause::BadAddress, end - 8));
        assert_eq!(sys.state(lab), State::Free);
    });
}

#[test]
fn a_time_out_or_a_deletion_leaves_the_message_sent() {
    with_boxes(|sys, request, reply| {
        let client = sys.running();
        let call = words(sys, request, b"first", reply, 20);
        sys.blocks(Call::MboxCall, &call);
        sys.until(20);
        assert_eq!(sys.result(client), Some(Err(TimedOut)));
        let call = words(sys, request, b"second", reply, FOREVER);
        sys.blocks(Call::MboxCall, &call);
        summon(sys);
        sys.ok(Call::MboxDelete, &[reply]);
        lab::dismiss(sys);
        assert_eq!(sys.result(client), Some(Err(Gone)));
        let at = sys.address(0x100);
        assert_eq!(sys.ok(Call::MboxReceive, &[request, at, NOW]), 5 * ROOM + 7);
        assert_eq!(sys.ok(Call::MboxReceive, &[request, at, NOW]), 6 * ROOM + 7);
    });
}

#[test]
fn whoever_is_more_urgent_than_the_server_goes_first() {
    with_boxes(|sys, request, reply| {
        let [server, middle, equal] = [9, 20, 40].map(|priority| sys.spawn(priority));
        sys.blocks(Call::SleepUntil, &[10]);
        sys.blocks(Call::SleepUntil, &[20]);
        assert_eq!(sys.running(), middle);
        sys.blocks(Call::SleepUntil, &[10]);
        assert_eq!(sys.running(), server);
        let at = sys.address(0x900);
        sys.blocks(Call::MboxReceive, &[request, at, FOREVER]);
        sys.until(10);
        let call = words(sys, request, b"x", reply, FOREVER);
        sys.blocks(Call::MboxCall, &call);
        assert_eq!(sys.running(), middle);
        sys.until(20);
        assert_eq!(sys.running(), equal);
        sys.park();
        sys.park();
        assert_eq!(sys.running(), server);
        assert_eq!(sys.result(server), Some(Ok(ROOM | 7)));
    });
}

#[test]
fn a_caller_with_equals_leaves_them_their_turn() {
    with_boxes(|sys, request, reply| {
        let (client, equal) = (sys.running(), sys.spawn(40));
        let server = serve(sys, request);
        let call = words(sys, request, b"x", reply, FOREVER);
        sys.blocks(Call::MboxCall, &call);
        assert_eq!(sys.running(), server);
        sys.blocks(Call::MboxCall, &[reply, layout::base(1) + 0x100, 0, request, FOREVER]);
        assert_eq!(sys.running(), equal, "the client comes behind it");
        sys.park();
        assert_eq!(sys.running(), client);
    });
}

#[test]
fn arrivals_by_calls_raise_the_event() {
    with_boxes(|sys, request, reply| {
        let event = sys.ok(Call::EventCreate, &[]);
        sys.ok(Call::MboxCreate, &[key("request"), event]);
        serve(sys, request);
        let call = words(sys, request, b"x", reply, FOREVER);
        sys.blocks(Call::MboxCall, &call);
        let call = words(sys, reply, b"y", request, FOREVER);
        sys.blocks(Call::MboxCall, &call);
        assert_eq!(sys.ok(Call::EventWait, &[event, NOW]), 1);
    });
}

/// Six threads of one process, of random priorities, talk by three mailboxes.
fn talk(seed: u64, before: u64, mut see: impl FnMut(&mut Sys<'_>, Outcome)) -> u64 {
    lab::with(&plan(), |sys| {
        let mut random = Random::new(seed);
        let boxes = ["request", "reply", "third"].map(|name| sys.open(Call::MboxCreate, name));
        for _ in 0..5 {
            sys.spawn(1 + random.below(38) as u8);
        }
        (0..before).for_each(|_| sys.host.enter(Cause::Timer));
        for step in 0..300 {
            let later = sys.host.now.0 + 1 + random.below(50);
            if sys.running().is_none() || random.one_in(8) {
                sys.until(later);
                see(sys, Outcome::Blocked);
                continue;
            }
            // Each thread has a place of its own for its messages.
            let at = sys.address(0x100 * u64::from(sys.running().index() + 1));
            sys.poke(at, &[step as u8; 8]);
            let which = random.below(3) as usize;
            let (send, receive) = (boxes[which], boxes[(which + 1) % 3]);
            let deadline = if random.one_in(4) { later } else { FOREVER };
            let what = random.below(9);
            let outcome = match random.below(8) {
                0 => sys.call(Call::SleepUntil, &[later]),
                1 => sys.call(Call::MboxSend, &[send, at, what, 1, NOW]),
                2 | 3 => sys.call(Call::MboxReceive, &[receive, at, deadline]),
                _ => sys.call(Call::MboxCall, &[send, at, what * ROOM, receive, deadline]),
            };
            see(sys, outcome);
        }
        sys.host.shortcuts.get(&Call::MboxCall).copied().unwrap_or(0)
    })
}

#[test]
fn the_short_way_leads_where_the_long_way_leads() {
    let mut exchanges = 0;
    for seed in 0..300 {
        let traces = [0, 1].map(|before| {
            let mut trace = Vec::new();
            exchanges += talk(seed, before, |sys, outcome| {
                let ids: Vec<_> = sys.host.kernel.threads.ids().collect();
                let results: Vec<_> = ids.iter().map(|t| sys.result(*t)).collect();
                let host = &sys.host;
                let threads = ids.iter().map(|t| &host.kernel.threads[*t]);
                let seen: Vec<_> = threads.map(|t| (t.state, t.wait, t.used)).collect();
                let bytes: Vec<_> = host.machine.memory.iter().map(|(a, b)| (*a, *b)).collect();
                let next = (host.running(), host.kernel.next_alarm());
                trace.push((outcome, results, seen, bytes, next));
            });
            trace
        });
        let differ = traces[0].iter().zip(&traces[1]).position(|(a, b)| a != b);
        assert_eq!(differ, None, "seed {seed}");
    }
    assert!(exchanges > 100, "{exchanges} exchanges");
}

//! Mailboxes: bounded, by message priority, first come first served among equals.

use crate::support::lab::{self, summon};
use crate::support::*;
use diapason_abi::MESSAGE_BYTES;

const FULL_LENGTH: u64 = MESSAGE_BYTES as u64;

fn plan() -> Plan {
    lab::plan().mailbox("box", 3).mailbox("one", 1)
}

/// The lab with mailbox "box" open.
fn with_box(experiment: impl FnOnce(&mut Sys<'_>, u64)) {
    lab::with(&plan(), |sys| {
        let mailbox = sys.open(Call::MboxCreate, "box");
        experiment(sys, mailbox);
    });
}

/// The arguments of a send of `text`, which is written into the sender's memory first.
fn message(sys: &mut Sys<'_>, mailbox: u64, text: &[u8], priority: u64, deadline: u64) -> [u64; 5] {
    let from = sys.address(0x100);
    sys.poke(from, text);
    [mailbox, from, text.len() as u64, priority, deadline]
}

fn send(sys: &mut Sys<'_>, mailbox: u64, text: &[u8], priority: u64) {
    let arguments = message(sys, mailbox, text, priority, NOW);
    assert_eq!(sys.ok(Call::MboxSend, &arguments), 0);
}

fn receive(sys: &mut Sys<'_>, mailbox: u64) -> (Vec<u8>, u64) {
    let to = sys.address(0x800);
    let receipt = sys.ok(Call::MboxReceive, &[mailbox, to, NOW]);
    (sys.peek(to, (receipt >> 32) as usize), receipt & 0xffff_ffff)
}

#[test]
fn the_most_urgent_message_comes_first_and_equals_in_order() {
    with_box(|sys, mailbox| {
        for (text, priority) in [(b"a1", 1), (b"b7", 7), (b"c7", 7)] {
            send(sys, mailbox, text, priority);
        }
        assert_eq!(receive(sys, mailbox), (b"b7".to_vec(), 7));
        send(sys, mailbox, b"d7", 7);
        assert_eq!(receive(sys, mailbox), (b"c7".to_vec(), 7));
        assert_eq!(receive(sys, mailbox), (b"d7".to_vec(), 7));
        assert_eq!(receive(sys, mailbox), (b"a1".to_vec(), 1));
        let to = sys.address(0);
        assert_eq!(sys.err(Call::MboxReceive, &[mailbox, to, NOW]), WouldBlock);
    });
}

#[test]
fn messages_of_every_length_arrive_whole() {
    with_box(|sys, mailbox| {
        for length in 0..=MESSAGE_BYTES {
            let text: Vec<u8> = (0..length).map(|i| (i * 3 + length) as u8).collect();
            send(sys, mailbox, &text, u64::from(u32::MAX));
            let beyond = sys.address(0x800 + length as u64);
            sys.poke(beyond, &[0xee]);
            assert_eq!(receive(sys, mailbox), (text, u64::from(u32::MAX)));
            assert_eq!(sys.peek(beyond, 1), [0xee], "only the message is written");
        }
    });
}

#[test]
fn a_message_crosses_between_processes_by_copy() {
    with_box(|sys, mailbox| {
        send(sys, mailbox, b"hello", 2);
        let from = sys.address(0x100);
        sys.poke(from, b"later");
        summon(sys);
        assert_eq!(receive(sys, mailbox), (b"hello".to_vec(), 2));
    });
}

#[test]
fn a_full_mailbox_refuses_or_blocks_or_times_out() {
    with_box(|sys, mailbox| {
        for i in 0..3 {
            send(sys, mailbox, &[i], 0);
        }
        let again = message(sys, mailbox, b"x", 9, NOW);
        assert_eq!(sys.err(Call::MboxSend, &again), Full);
        sys.until(10);
        let late = message(sys, mailbox, b"x", 9, 10);
        assert_eq!(sys.err(Call::MboxSend, &late), TimedOut);
        let sender = sys.running();
        let waits = message(sys, mailbox, b"x", 9, 50);
        sys.blocks(Call::MboxSend, &waits);
        sys.until(49);
        assert_eq!(sys.state(sender), State::Blocked);
        sys.until(50);
        assert_eq!(sys.result(sender), Some(Err(TimedOut)));
        for i in 0..3 {
            assert_eq!(receive(sys, mailbox).0, [i], "what timed out was never sent");
        }
    });
}

#[test]
fn room_goes_to_the_most_urgent_blocked_sender_with_the_text_of_its_call() {
    with_box(|sys, mailbox| {
        let (low, high) = (sys.spawn(5), sys.spawn(9));
        for _ in 0..3 {
            send(sys, mailbox, b"old", 5);
        }
        sys.blocks(Call::SleepUntil, &[10]);
        assert_eq!(sys.running(), high);
        let first = message(sys, mailbox, b"high", 1, FOREVER);
        sys.blocks(Call::MboxSend, &first);
        assert_eq!(sys.running(), low);
        let second = message(sys, mailbox, b"low", 8, FOREVER);
        sys.blocks(Call::MboxSend, &second);
        sys.until(10);
        assert_eq!(receive(sys, mailbox), (b"old".to_vec(), 5));
        assert_eq!((sys.state(high), sys.state(low)), (State::Ready, State::Blocked));
        assert_eq!(receive(sys, mailbox), (b"old".to_vec(), 5));
        assert_eq!(sys.state(low), State::Ready);
        assert_eq!(receive(sys, mailbox), (b"low".to_vec(), 8), "sorted by message priority");
        assert_eq!(receive(sys, mailbox), (b"old".to_vec(), 5));
        assert_eq!(receive(sys, mailbox), (b"high".to_vec(), 1));
        sys.park();
        assert_eq!(sys.result(high), Some(Ok(0)));
        sys.park();
        assert_eq!(sys.result(low), Some(Ok(0)));
    });
}

#[test]
fn a_waiting_receiver_gets_the_message_in_its_own_memory_when_it_runs() {
    with_box(|sys, mailbox| {
        summon(sys);
        let (control, to) = (sys.running(), sys.address(0x40));
        sys.blocks(Call::MboxReceive, &[mailbox, to, FOREVER]);
        let arguments = message(sys, mailbox, b"direct", 3, NOW);
        sys.yields(Call::MboxSend, &arguments);
        assert_eq!(sys.running(), control);
        assert_eq!(sys.result(control), Some(Ok(6 << 32 | 3)));
        assert_eq!(sys.peek(to, 6), b"direct");
        assert_eq!(sys.err(Call::MboxReceive, &[mailbox, to, NOW]), WouldBlock);
    });
}

#[test]
fn receivers_are_served_by_priority_then_in_order() {
    with_box(|sys, mailbox| {
        let threads = [sys.spawn(5), sys.spawn(9), sys.spawn(9)];
        sys.blocks(Call::SleepUntil, &[10]);
        for slot in [1, 2, 0] {
            assert_eq!(sys.running(), threads[slot]);
            let to = sys.address(0x1000 + 0x100 * slot as u64);
            sys.blocks(Call::MboxReceive, &[mailbox, to, FOREVER]);
        }
        sys.until(10);
        for text in [b"1", b"2", b"0"] {
            send(sys, mailbox, text, 0);
        }
        sys.park();
        for (slot, text) in [(1, b"1"), (2, b"2"), (0, b"0")] {
            assert_eq!(sys.running(), threads[slot]);
            let to = sys.address(0x1000 + 0x100 * slot as u64);
            assert_eq!(sys.peek(to, 1), text);
            sys.park();
        }
    });
}

#[test]
fn a_receive_times_out_and_leaves_memory_alone() {
    with_box(|sys, mailbox| {
        let (me, to) = (sys.running(), sys.address(0x40));
        sys.poke(to, b"before");
        sys.blocks(Call::MboxReceive, &[mailbox, to, 20]);
        sys.until(20);
        assert_eq!(sys.result(me), Some(Err(TimedOut)));
        assert_eq!(sys.err(Call::MboxReceive, &[mailbox, to, 20]), TimedOut);
        send(sys, mailbox, b"after", 0);
        assert_eq!(sys.peek(to, 6), b"before");
    });
}

#[test]
fn a_bad_receive_address_is_the_fault_of_the_receiver_only() {
    let control_outside = diapason_abi::layout::base(1) - 1;
    let of_lab = diapason_abi::layout::base(0);
    for bad in [control_outside, of_lab, u64::MAX, 0] {
        with_box(|sys, mailbox| {
            summon(sys);
            let (control, lab) = (sys.running(), sys.thread(0, 0));
            let outcome = sys.call(Call::MboxReceive, &[mailbox, bad, FOREVER]);
            if outcome == Outcome::Blocked {
                let arguments = message(sys, mailbox, b"poison", 3, NOW);
                let sent = sys.call(Call::MboxSend, &arguments);
                assert_eq!(sent, Outcome::Faulted(FaultCause::BadAddress, bad));
            } else {
                assert_eq!(outcome, Outcome::Faulted(FaultCause::BadAddress, bad));
            }
            assert_eq!(sys.running(), lab, "the sender goes on");
            assert_eq!(sys.state(control), State::Free);
        });
    }
}

#[test]
fn a_bad_receive_address_loses_nothing_when_a_message_is_there() {
    with_box(|sys, mailbox| {
        send(sys, mailbox, b"kept", 3);
        summon(sys);
        sys.misuses(FaultCause::BadAddress, Call::MboxReceive, &[mailbox, 0x10, FOREVER]);
        assert_eq!(receive(sys, mailbox), (b"kept".to_vec(), 3));
    });
}

#[test]
fn a_bad_send_is_misuse_and_sends_nothing() {
    let base = diapason_abi::layout::base(1);
    let end = base + diapason_core::host::USER_BYTES;
    let bad = FaultCause::BadAddress;
    for (cause, address, length) in [
        (FaultCause::BadArgument, base, FULL_LENGTH + 1),
        (FaultCause::BadArgument, base, u64::MAX),
        (bad, base - 1, 2),
        (bad, end - 1, 2),
        (bad, end, 1),
        (bad, 0, 1),
        (bad, u64::MAX, 1),
        (bad, u64::MAX - 10, FULL_LENGTH),
    ] {
        for filled in [0, 3] {
            with_box(|sys, mailbox| {
                for _ in 0..filled {
                    send(sys, mailbox, b"", 0);
                }
                summon(sys);
                sys.misuses(cause, Call::MboxSend, &[mailbox, address, length, 0, FOREVER]);
                for _ in 0..filled {
                    assert_eq!(receive(sys, mailbox), (vec![], 0));
                }
                let to = sys.address(0);
                assert_eq!(sys.err(Call::MboxReceive, &[mailbox, to, NOW]), WouldBlock);
            });
        }
    }
}

#[test]
fn deletion_wakes_receivers_and_senders_and_loses_the_messages() {
    with_box(|sys, mailbox| {
        let one = sys.open(Call::MboxCreate, "one");
        send(sys, one, b"lost", 0);
        let (receiver, sender) = (sys.spawn(9), sys.spawn(8));
        sys.blocks(Call::SleepUntil, &[10]);
        let to = sys.address(0);
        sys.blocks(Call::MboxReceive, &[mailbox, to, 1_000]);
        let blocked = message(sys, one, b"too late", 0, 1_000);
        sys.blocks(Call::MboxSend, &blocked);
        sys.until(10);
        for handle in [mailbox, one] {
            assert_eq!(sys.ok(Call::MboxDelete, &[handle]), 0);
            assert_eq!(sys.err(Call::MboxDelete, &[handle]), Gone);
            assert_eq!(sys.err(Call::MboxReceive, &[handle, to, FOREVER]), Gone);
            assert_eq!(sys.err(Call::MboxSend, &[handle, to, 1, 0, FOREVER]), Gone);
        }
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
        let again = sys.open(Call::MboxCreate, "one");
        assert_ne!(again, one);
        assert_eq!(sys.err(Call::MboxReceive, &[again, to, NOW]), WouldBlock, "empty");
        send(sys, again, b"room", 0);
        sys.park();
        assert_eq!(sys.result(receiver), Some(Err(Gone)));
        sys.park();
        assert_eq!(sys.result(sender), Some(Err(Gone)));
    });
}

#[test]
fn opening_twice_finds_the_same_mailbox_with_its_messages_and_event() {
    with_box(|sys, mailbox| {
        send(sys, mailbox, b"kept", 0);
        let event = sys.ok(Call::EventCreate, &[]);
        assert_eq!(sys.ok(Call::MboxCreate, &[key("box"), event]), mailbox);
        assert_eq!(sys.open(Call::MboxCreate, "box"), mailbox);
        send(sys, mailbox, b"more", 0);
        assert_eq!(sys.ok(Call::EventWait, &[event, NOW]), 1, "event 0 changes nothing");
        assert_eq!(receive(sys, mailbox).0, b"kept");
        assert_eq!(receive(sys, mailbox).0, b"more");
    });
}

#[test]
fn the_event_is_raised_at_every_arrival() {
    with_box(|sys, mailbox| {
        let event = sys.ok(Call::EventCreate, &[]);
        sys.ok(Call::MboxCreate, &[key("box"), event]);
        for _ in 0..3 {
            send(sys, mailbox, b"", 0);
        }
        let full = message(sys, mailbox, b"", 0, NOW);
        assert_eq!(sys.err(Call::MboxSend, &full), Full);
        assert_eq!(sys.ok(Call::EventWait, &[event, NOW]), 3, "a refused message is no arrival");
        // A blocked sender's message arrives when there is room for it.
        let sender = sys.spawn(5);
        sys.blocks(Call::SleepUntil, &[10]);
        let waits = message(sys, mailbox, b"", 0, FOREVER);
        sys.blocks(Call::MboxSend, &waits);
        sys.until(10);
        assert_eq!(sys.err(Call::EventWait, &[event, NOW]), WouldBlock);
        receive(sys, mailbox);
        assert_eq!(sys.ok(Call::EventWait, &[event, NOW]), 1);
        assert_eq!(sys.state(sender), State::Ready);
        // And a direct delivery to a waiting receiver is one too.
        for _ in 0..3 {
            receive(sys, mailbox);
        }
        summon(sys);
        let to = sys.address(0);
        sys.blocks(Call::MboxReceive, &[mailbox, to, FOREVER]);
        let direct = message(sys, mailbox, b"", 0, FOREVER);
        sys.yields(Call::MboxSend, &direct);
        lab::dismiss(sys);
        assert_eq!(sys.ok(Call::EventWait, &[event, NOW]), 1);
    });
}

#[test]
fn a_deleted_event_is_raised_no_more() {
    with_box(|sys, mailbox| {
        let event = sys.ok(Call::EventCreate, &[]);
        sys.ok(Call::MboxCreate, &[key("box"), event]);
        sys.ok(Call::EventDelete, &[event]);
        let reused = sys.ok(Call::EventCreate, &[]);
        assert_eq!(reused as u16, event as u16);
        send(sys, mailbox, b"", 0);
        assert_eq!(sys.err(Call::EventWait, &[reused, NOW]), WouldBlock);
        sys.ok(Call::MboxCreate, &[key("box"), reused]);
        sys.ok(Call::MboxDelete, &[mailbox]);
        let mailbox = sys.open(Call::MboxCreate, "box");
        send(sys, mailbox, b"", 0);
        assert_eq!(sys.err(Call::EventWait, &[reused, NOW]), WouldBlock, "deleted with the box");
    });
}

#[test]
fn opening_with_anothers_event_is_misuse_and_opens_nothing() {
    lab::with(&plan(), |sys| {
        summon(sys);
        let event = sys.ok(Call::EventCreate, &[]);
        lab::dismiss(sys);
        sys.misuses(FaultCause::BadHandle, Call::MboxCreate, &[key("box"), event]);
        summon(sys);
        let mailbox = sys.open(Call::MboxCreate, "box");
        assert_eq!(diapason_abi::Handle(mailbox).generation(), 1);
    });
    lab::with(&plan(), |sys| {
        let event = sys.ok(Call::EventCreate, &[]);
        sys.ok(Call::EventDelete, &[event]);
        assert_eq!(sys.err(Call::MboxCreate, &[key("box"), event]), Gone);
    });
}

#[test]
fn the_report_box_cannot_be_deleted() {
    let plan = plan().process("child", 10).supervised_by(0).reports("reports", 1, 0);
    lab::with(&plan, |sys| {
        let reports = sys.open(Call::MboxCreate, "reports");
        assert_eq!(sys.err(Call::MboxDelete, &[reports]), Busy);
        send(sys, reports, b"", 0);
        assert_eq!(sys.err(Call::MboxDelete, &[reports]), Busy);
    });
}

#[test]
fn mailboxes_that_are_not_granted_are_misuse() {
    let plan = plan().mailbox("secret", 1).only(0b10);
    for name in ["secret", "nothing", "m1"] {
        lab::with(&plan, |sys| {
            sys.misuses(FaultCause::BadGrant, Call::MboxCreate, &[key(name), 0]);
        });
    }
    for call in [Call::MboxDelete, Call::MboxReceive, Call::MboxSend] {
        lab::with(&plan, |sys| {
            summon(sys);
            let secret = sys.open(Call::MboxCreate, "secret");
            lab::dismiss(sys);
            let a = sys.address(0);
            sys.misuses(FaultCause::BadHandle, call, &[secret, a, 1, 0, NOW]);
        });
    }
}

#[test]
fn a_mailbox_without_room_is_refused_at_boot() {
    let bytes = plan().mailbox("gate", 0).to_bytes();
    let archive = diapason_abi::archive::Archive::parse(&bytes).unwrap();
    assert_eq!(diapason_core::Sizes::of(&archive), None);
}

/// A mailbox with a server names a mutex and holds no messages; any other holds some.
#[test]
fn a_server_of_a_mailbox_holds_a_declared_mutex() {
    let plan = |room: u16, mutex: u16| {
        let plan = Plan::new().process("p", 1).mutex("m").semaphore("s", 1);
        plan.mailbox("box", room).served_with(mutex).to_bytes()
    };
    let sizes = |bytes: &[u8]| {
        diapason_core::Sizes::of(&diapason_abi::archive::Archive::parse(bytes).unwrap())
    };
    assert_eq!(sizes(&plan(0, 0)).map(|sizes| sizes.servers), Some(1));
    for (room, mutex) in [(0, 1), (0, 2), (0, u16::MAX), (1, 0)] {
        assert_eq!(sizes(&plan(room, mutex)), None, "{room} messages, mutex {mutex}");
    }
}

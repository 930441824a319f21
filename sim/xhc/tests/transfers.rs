//! Control, bulk and interrupt transfers: what arrives, what is reported, how it ends badly.

use crate::support::{Driver, Plan, Shared, bulk};
use diapason_abi::Nanos;
use diapason_devices::{Answer, Handshake, Stall};
use diapason_usb::context::{EndpointKind, EndpointState};
use diapason_usb::setup::descriptor_type;
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_usb::{Setup, Speed};
use diapason_xhc::{Config, PacketOutcome};

const OUT: u8 = 2;
const IN: u8 = 3;
const DONE: u32 = bit::COMPLETION;

/// A super-speed device with a bulk endpoint in each direction.
fn pair() -> (Driver, Shared, u8) {
    let mut driver = Driver::running(Config::default());
    let gadget = Shared::new(Speed::Super);
    let slot = driver.connect(5, gadget.boxed());
    assert_eq!(
        driver.configure(slot, &[bulk(OUT, 1024, 3), bulk(IN, 1024, 3)]),
        Completion::Success
    );
    driver.take(0);
    (driver, gadget, slot)
}

fn settle(driver: &mut Driver, slot: u8, index: u8) -> Vec<(u8, Completion, u32)> {
    driver.doorbell(slot, index);
    driver.run_for(Nanos::from_micros(500));
    driver.transfers()
}

fn control(driver: &mut Driver, slot: u8, setup: Setup, buffer: u64) {
    let kind = match (setup.length, setup.is_in()) {
        (0, _) => 0,
        (_, false) => 2,
        (_, true) => 3,
    };
    let bytes = u64::from_le_bytes(setup.encode());
    let flags = bit::IMMEDIATE | kind << 16;
    driver.queue(slot, 1, Trb::new(Kind::Setup, bytes, 8, flags));
    if kind != 0 {
        let flags = bit::SHORT | if setup.is_in() { bit::IN } else { 0 };
        let length = Trb::transfer_status(u32::from(setup.length), 0, 0);
        driver.queue(slot, 1, Trb::new(Kind::Data, buffer, length, flags));
    }
    let flags = DONE | if kind == 3 { 0 } else { bit::IN };
    driver.queue(slot, 1, Trb::new(Kind::Status, 0, 0, flags));
}

#[test]
fn control_reads_and_writes() {
    let (mut driver, gadget, slot) = pair();
    let buffer = driver.ram.buffer(255);
    gadget.0.borrow_mut().reply = Ok((0..34).collect());
    let setup = Setup::get_descriptor(descriptor_type::CONFIGURATION, 0, 0, 255);
    control(&mut driver, slot, setup, buffer);
    let short = (1, Completion::ShortPacket, 255 - 34);
    assert_eq!(settle(&mut driver, slot, 1), [short, (1, Completion::Success, 0)]);
    assert_eq!(driver.ram.bytes(buffer, 34), (0..34).collect::<Vec<u8>>());
    driver.ram.put(buffer, &[7; 20]);
    let setup = Setup { kind: 0x21, request: 0x20, length: 20, ..Setup::default() };
    control(&mut driver, slot, setup, buffer);
    assert_eq!(settle(&mut driver, slot, 1), [(1, Completion::Success, 0)]);
    control(&mut driver, slot, Setup::set_configuration(1), 0);
    assert_eq!(settle(&mut driver, slot, 1), [(1, Completion::Success, 0)]);
    let gadget = gadget.0.borrow();
    assert_eq!(gadget.requests[1], (setup, vec![7; 20]));
    assert_eq!(gadget.requests[2], (Setup::set_configuration(1), vec![]));
}

#[test]
fn a_refused_request_halts_the_control_endpoint_until_it_is_reset() {
    let (mut driver, gadget, slot) = pair();
    let buffer = driver.ram.buffer(64);
    gadget.0.borrow_mut().reply = Err(Stall);
    let setup = Setup::get_descriptor(descriptor_type::STRING, 9, 0, 64);
    control(&mut driver, slot, setup, buffer);
    assert_eq!(settle(&mut driver, slot, 1), [(1, Completion::Stall, 64)]);
    let context = driver.endpoint_context(slot, 1);
    let data = driver.rings[&(slot, 1)].base + 16;
    assert_eq!((context.state(), context.dequeue()), (Some(EndpointState::Halted), (data, true)));
    assert_eq!(settle(&mut driver, slot, 1), [], "a doorbell does not help");
    let wrong = driver.slot_command(Kind::SetDequeue, slot, 1, 0);
    assert_eq!(wrong, Completion::ContextState);
    assert_eq!(driver.slot_command(Kind::ResetEndpoint, slot, 1, 0), Completion::Success);
    let next = Trb::new(Kind::SetDequeue, (data + 32) | 1, 0, Trb::place(slot, 1));
    assert_eq!(driver.command(next), Completion::Success);
    gadget.0.borrow_mut().reply = Ok(vec![]);
    control(&mut driver, slot, Setup::set_configuration(1), 0);
    assert_eq!(settle(&mut driver, slot, 1), [(1, Completion::Success, 0)]);
}

#[test]
fn a_request_without_data_is_refused_at_its_status_stage() {
    let (mut driver, gadget, slot) = pair();
    gadget.0.borrow_mut().reply = Err(Stall);
    control(&mut driver, slot, Setup::set_configuration(5), 0);
    driver.doorbell(slot, 1);
    driver.run_for(Nanos::from_micros(100));
    let events = driver.take(0);
    let status = driver.rings[&(slot, 1)].base + 16;
    assert_eq!((events[0].parameter, events[0].completion()), (status, Some(Completion::Stall)));
}

#[test]
fn bytes_to_the_device_come_from_pieces_and_from_the_block() {
    let (mut driver, gadget, slot) = pair();
    let pieces: Vec<u64> = [1500, 1, 700]
        .into_iter()
        .map(|length| {
            let last = length == 700;
            driver.queue_normal(slot, OUT, length, if last { DONE } else { bit::CHAIN })
        })
        .collect();
    driver.ram.put(pieces[0], &[1; 1500]);
    driver.ram.put(pieces[1], &[2; 1]);
    driver.ram.put(pieces[2], &[3; 700]);
    let own = u64::from_le_bytes([9, 8, 7, 6, 5, 0, 0, 0]);
    driver.queue(slot, OUT, Trb::new(Kind::Normal, own, 5, DONE | bit::IMMEDIATE));
    driver.queue_normal(slot, OUT, 0, DONE);
    let success = (OUT, Completion::Success, 0);
    assert_eq!(settle(&mut driver, slot, OUT), [success; 3]);
    let gadget = gadget.0.borrow();
    let sizes: Vec<usize> = gadget.received.iter().map(|(_, _, bytes)| bytes.len()).collect();
    assert_eq!(sizes, [1024, 1024, 153, 5, 0]);
    let all: Vec<u8> = gadget.received.iter().flat_map(|(_, _, bytes)| bytes.clone()).collect();
    assert_eq!(all, [vec![1; 1500], vec![2], vec![3; 700], vec![9, 8, 7, 6, 5]].concat());
}

#[test]
fn a_short_packet_ends_the_transfer_and_skips_the_rest() {
    let (mut driver, gadget, slot) = pair();
    gadget.give(0x81, &[1; 1024]);
    gadget.give(0x81, &[2; 100]);
    gadget.give(0x81, &[3; 10]);
    let first = driver.queue_normal(slot, IN, 1500, bit::CHAIN | bit::SHORT);
    driver.queue_normal(slot, IN, 1000, bit::CHAIN | bit::SHORT);
    driver.queue_normal(slot, IN, 600, DONE);
    let second = driver.queue_normal(slot, IN, 64, DONE | bit::SHORT);
    let seen = settle(&mut driver, slot, IN);
    let short = Completion::ShortPacket;
    assert_eq!(seen, [(IN, short, 376), (IN, short, 600), (IN, short, 54)]);
    assert_eq!(driver.ram.bytes(first, 1124), [vec![1; 1024], vec![2; 100]].concat());
    assert_eq!(driver.ram.bytes(second, 10), [3; 10]);
}

#[test]
fn a_cookie_carries_the_sum() {
    let (mut driver, gadget, slot) = pair();
    gadget.give(0x81, &[1; 1024]);
    gadget.give(0x81, &[1; 30]);
    driver.queue_normal(slot, IN, 1024, bit::CHAIN);
    driver.queue_normal(slot, IN, 1024, bit::CHAIN | bit::NEXT);
    driver.queue(slot, IN, Trb::new(Kind::EventData, 0xfeed_beef_cafe, 0, DONE));
    driver.doorbell(slot, IN);
    driver.run_for(Nanos::from_micros(100));
    let events = driver.take(0);
    assert_eq!(events.len(), 1);
    assert!(events[0].has(bit::EVENT_DATA));
    assert_eq!((events[0].parameter, events[0].residual()), (0xfeed_beef_cafe, 1054));
    assert_eq!(events[0].completion(), Some(Completion::ShortPacket));
}

#[test]
fn an_empty_packet_ends_a_transfer() {
    let (mut driver, gadget, slot) = pair();
    gadget.give(0x81, &[1; 1024]);
    gadget.give(0x81, &[]);
    driver.queue_normal(slot, IN, 4096, DONE);
    assert_eq!(settle(&mut driver, slot, IN), [(IN, Completion::ShortPacket, 3072)]);
}

#[test]
fn a_halted_endpoint_needs_its_recovery() {
    for (answer, code) in [
        (Answer::Stall, Completion::Stall),
        (Answer::Data(5000), Completion::Babble),
        (Answer::Error, Completion::Transaction),
    ] {
        let (mut driver, gadget, slot) = pair();
        gadget.0.borrow_mut().answers.insert(0x81, [answer; 3].into());
        driver.queue_normal(slot, IN, 64, DONE);
        driver.queue_normal(slot, IN, 64, DONE);
        assert_eq!(settle(&mut driver, slot, IN), [(IN, code, 64)]);
        let asked = if code == Completion::Transaction { 3 } else { 1 };
        assert_eq!(gadget.0.borrow().asked.len(), asked);
        assert_eq!(driver.endpoint_context(slot, IN).state(), Some(EndpointState::Halted));
        assert_eq!(driver.slot_command(Kind::StopEndpoint, slot, IN, 0), Completion::ContextState);
        gadget.0.borrow_mut().answers.clear();
        gadget.give(0x81, &[4; 64]);
        assert_eq!(driver.slot_command(Kind::ResetEndpoint, slot, IN, 0), Completion::Success);
        assert_eq!(driver.endpoint_context(slot, IN).state(), Some(EndpointState::Stopped));
        assert_eq!(settle(&mut driver, slot, IN), [(IN, Completion::Success, 0)], "{code:?}");
    }
}

#[test]
fn two_errors_in_a_row_are_repeated_in_silence() {
    let (mut driver, gadget, slot) = pair();
    driver.queue_normal(slot, OUT, 3000, DONE);
    driver.xhc.fail_packets(slot, OUT, 2);
    assert_eq!(settle(&mut driver, slot, OUT), [(OUT, Completion::Success, 0)]);
    assert_eq!(gadget.0.borrow().received.len(), 3);
    driver.queue_normal(slot, OUT, 3000, DONE);
    driver.xhc.fail_packets(slot, OUT, 3);
    assert_eq!(settle(&mut driver, slot, OUT), [(OUT, Completion::Transaction, 3000)]);
}

#[test]
fn a_preserved_transfer_goes_on_where_it_failed() {
    let (mut driver, gadget, slot) = pair();
    gadget.give(0x81, &[1; 1024]);
    gadget.0.borrow_mut().answers.insert(0x81, [].into());
    let buffer = driver.queue_normal(slot, IN, 2048, DONE);
    assert_eq!(settle(&mut driver, slot, IN), []);
    driver.xhc.fail_packets(slot, IN, 3);
    gadget.0.borrow_mut().next = driver.now + Nanos(5);
    assert_eq!(settle(&mut driver, slot, IN), [(IN, Completion::Transaction, 1024)]);
    let keep = driver.slot_command(Kind::ResetEndpoint, slot, IN, bit::PRESERVE);
    assert_eq!(keep, Completion::Success);
    gadget.give(0x81, &[2; 1024]);
    assert_eq!(settle(&mut driver, slot, IN), [(IN, Completion::Success, 0)]);
    assert_eq!(driver.ram.bytes(buffer, 2048), [[1; 1024], [2; 1024]].concat());
}

#[test]
fn a_stop_says_how_far_it_came_and_a_doorbell_goes_on() {
    let (mut driver, gadget, slot) = pair();
    gadget.give(0x81, &[1; 1024]);
    let buffer = driver.queue_normal(slot, IN, 3000, DONE | bit::SHORT);
    assert_eq!(settle(&mut driver, slot, IN), []);
    let (events, code, _) =
        driver.command_with(Trb::new(Kind::StopEndpoint, 0, 0, Trb::place(slot, IN)));
    assert_eq!(code, Completion::Success);
    assert_eq!(events[0].completion(), Some(Completion::Stopped));
    assert_eq!(events[0].residual(), 3000 - 1024);
    let base = driver.rings[&(slot, IN)].base;
    assert_eq!(driver.endpoint_context(slot, IN).dequeue(), (base, true));
    gadget.give(0x81, &[2; 1024]);
    driver.run_for(Nanos::from_millis(1));
    assert_eq!(driver.transfers(), []);
    gadget.give(0x81, &[3; 100]);
    assert_eq!(settle(&mut driver, slot, IN), [(IN, Completion::ShortPacket, 3000 - 2148)]);
    assert_eq!(driver.ram.bytes(buffer, 1025)[1023..], [1, 2]);
}

/// The packet under way when the stop is asked for ends as it would without: a short one ends its
/// transfer, and the next packet belongs to the next transfer.
#[test]
fn a_short_packet_ends_its_transfer_even_if_a_stop_waits_for_it() {
    let mut short = 0;
    for delay in (0..2_000).step_by(100) {
        let (mut driver, gadget, slot) = pair();
        gadget.give(0x81, &[1; 700]);
        driver.queue_normal(slot, IN, 1024, DONE | bit::SHORT);
        let stop = Trb::new(Kind::StopEndpoint, 0, 0, Trb::place(slot, IN));
        let mut commands = driver.commands;
        driver.push(&mut commands, stop);
        driver.commands = commands;
        driver.write(diapason_xhc::DOORBELLS, 0);
        driver.run_for(Nanos(delay));
        driver.doorbell(slot, IN);
        driver.run_for(Nanos::from_micros(50));
        let ends: Vec<_> =
            driver.take(0).iter().map(|it| (it.completion(), it.residual())).collect();
        let stopped = (Some(Completion::Success), 0);
        match ends[..] {
            [(Some(Completion::ShortPacket), 324), end] if end == stopped => short += 1,
            // The command was there before the packet.
            [(Some(Completion::Stopped), 1024), end] if end == stopped => {}
            _ => panic!("{ends:?} after {delay} ns"),
        }
    }
    assert!(short > 0);
}

#[test]
fn a_stop_of_an_idle_endpoint_is_silent_and_between_pieces_has_no_length() {
    let (mut driver, gadget, slot) = pair();
    let stop = Trb::new(Kind::StopEndpoint, 0, 0, Trb::place(slot, IN));
    assert!(driver.command_with(stop).0.is_empty());
    // A chain whose end is not there yet, cut short by the device.
    gadget.give(0x81, &[1; 10]);
    driver.queue_normal(slot, IN, 1024, bit::CHAIN);
    assert_eq!(settle(&mut driver, slot, IN), []);
    let (events, ..) = driver.command_with(stop);
    assert_eq!(events[0].completion(), Some(Completion::StoppedShortPacket));
    assert_eq!(events[0].residual(), 10);
}

#[test]
fn a_chain_without_its_end_waits_for_the_doorbell() {
    let (mut driver, gadget, slot) = pair();
    driver.queue_normal(slot, OUT, 1024, bit::CHAIN);
    driver.queue_normal(slot, OUT, 10, bit::CHAIN);
    assert_eq!(settle(&mut driver, slot, OUT), []);
    assert_eq!(gadget.0.borrow().received.len(), 1, "only the whole packet is known");
    driver.queue_normal(slot, OUT, 20, DONE);
    assert_eq!(settle(&mut driver, slot, OUT), [(OUT, Completion::Success, 0)]);
    assert_eq!(gadget.0.borrow().received[1].2.len(), 30);
}

#[test]
fn rings_that_make_no_sense_stop_in_error() {
    let buffer = 0x18_0000;
    let wrong = [
        Trb::new(Kind::Setup, 0, 8, DONE | bit::IMMEDIATE),
        Trb::new(Kind::Normal, buffer + 0xffff, 2, DONE),
        Trb::new(Kind::Normal, 0, 9, DONE | bit::IMMEDIATE),
        Trb::new(Kind::EnableSlot, 0, 0, DONE),
        Trb::new(Kind::Isoch, buffer, 8, DONE),
    ];
    for block in wrong {
        let (mut driver, _, slot) = pair();
        driver.queue(slot, OUT, block);
        assert_eq!(settle(&mut driver, slot, OUT), [(OUT, Completion::Trb, 0)], "{block:?}");
        assert_eq!(driver.endpoint_context(slot, OUT).state(), Some(EndpointState::Error));
        let next = driver.rings[&(slot, OUT)].base + 16;
        let set = Trb::new(Kind::SetDequeue, next | 1, 0, Trb::place(slot, OUT));
        assert_eq!(driver.command(set), Completion::Success);
        driver.queue_normal(slot, OUT, 5, DONE);
        assert_eq!(settle(&mut driver, slot, OUT), [(OUT, Completion::Success, 0)]);
    }
}

#[test]
fn a_chain_without_end_is_an_error_of_its_ring() {
    let (mut driver, _, slot) = pair();
    let base = driver.ram.take(16 * 2, 64);
    let set = Trb::new(Kind::SetDequeue, base | 1, 0, Trb::place(slot, OUT));
    driver.slot_command(Kind::StopEndpoint, slot, OUT, 0);
    assert_eq!(driver.command(set), Completion::Success);
    let empty = Trb::new(Kind::Normal, 0, 0, bit::CHAIN).with_cycle(true);
    let link = Trb::new(Kind::Link, base, 0, bit::CHAIN).with_cycle(true);
    driver.ram.put_words(base, &empty.words());
    driver.ram.put_words(base + 16, &link.words());
    assert_eq!(settle(&mut driver, slot, OUT), [(OUT, Completion::Trb, 0)]);
}

#[test]
fn not_now_leaves_the_round_until_the_device_changes() {
    let (mut driver, gadget, slot) = pair();
    driver.queue_normal(slot, IN, 64, DONE);
    assert_eq!(settle(&mut driver, slot, IN), []);
    driver.run_for(Nanos::from_millis(10));
    assert_eq!(gadget.0.borrow().asked.len(), 1);
    let then = driver.now + Nanos(123_456);
    gadget.0.borrow_mut().next = then;
    gadget.give(0x81, &[1; 64]);
    driver.run_for(Nanos::from_millis(1));
    assert_eq!(driver.transfers(), [(IN, Completion::Success, 0)]);
    assert_eq!(gadget.0.borrow().asked[1].0, then);
    assert!(gadget.0.borrow().advanced.contains(&then));
    gadget.0.borrow_mut().says.insert(1, Handshake::Nak);
    driver.queue_normal(slot, OUT, 64, DONE);
    assert_eq!(settle(&mut driver, slot, OUT), []);
    gadget.0.borrow_mut().says.clear();
    gadget.0.borrow_mut().next = driver.now;
    assert_eq!(settle(&mut driver, slot, OUT), [(OUT, Completion::Success, 0)]);
}

/// The device is asked when a packet begins, and says "not now". The next packet asks for data that
/// comes to the device before that packet ends. Its next change may never happen.
#[test]
fn what_a_device_gets_while_it_says_not_now_is_fetched_by_the_next_packet() {
    let (mut driver, gadget, slot) = pair();
    driver.xhc.record(true);
    driver.queue_normal(slot, IN, 64, DONE);
    driver.doorbell(slot, IN);
    driver.run_for(Nanos::from_micros(10));
    let [nak] = driver.xhc.take_records()[..] else { panic!() };
    assert_eq!(nak.outcome, PacketOutcome::Nak);
    // The same once more: in the middle of the packet that says "not now" something comes.
    let then = driver.now + Nanos::from_micros(100);
    gadget.0.borrow_mut().next = then;
    driver.run_to(then);
    let middle = then + Nanos((nak.end - nak.start).0 / 2_000);
    gadget.give(0x81, &[1; 64]);
    gadget.0.borrow_mut().next = middle;
    driver.run_for(Nanos::from_micros(10));
    let packets = driver.xhc.take_records();
    let outcomes: Vec<PacketOutcome> = packets.iter().map(|packet| packet.outcome).collect();
    assert_eq!(outcomes, [PacketOutcome::Nak, PacketOutcome::Moved]);
    assert_eq!(packets[1].start, packets[0].end);
    assert!(packets[0].start.0 < middle.0 * 1_000 && middle.0 * 1_000 < packets[0].end.0);
    assert_eq!(driver.transfers(), [(IN, Completion::Success, 0)]);
}

#[test]
fn a_device_that_is_gone_does_not_answer() {
    let (mut driver, _, slot) = pair();
    driver.queue_normal(slot, IN, 64, DONE);
    assert_eq!(settle(&mut driver, slot, IN), []);
    driver.xhc.detach(5, driver.now, &mut driver.ram);
    driver.run_for(Nanos::from_micros(100));
    assert_eq!(driver.transfers(), [(IN, Completion::Transaction, 64)]);
    // Another one in the same port is not the one that was addressed.
    driver.plug(5, Shared::new(Speed::Super).boxed());
    driver.queue_normal(slot, OUT, 64, DONE);
    assert_eq!(settle(&mut driver, slot, OUT), [(OUT, Completion::Transaction, 64)]);
}

#[test]
fn interrupt_endpoints_are_asked_once_an_interval() {
    let mut driver = Driver::running(Config::default());
    let gadget = Shared::new(Speed::Full);
    let slot = driver.connect(1, gadget.boxed());
    let plan = Plan { interval: 6, kind: EndpointKind::InterruptIn, ..bulk(IN, 8, 0) };
    assert_eq!(driver.configure(slot, &[plan]), Completion::Success);
    driver.take(0);
    for byte in 0..5 {
        gadget.give(0x81, &[byte; 8]);
        driver.queue_normal(slot, IN, 8, DONE);
    }
    driver.doorbell(slot, IN);
    driver.run_for(Nanos::from_millis(50));
    assert_eq!(driver.transfers(), [(IN, Completion::Success, 0); 5]);
    let times: Vec<u64> = gadget.0.borrow().asked.iter().map(|(time, _)| time.0).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 8_000_000), "{times:?}");
    assert_eq!(times[0] % 1_000_000, 0);
}

#[test]
fn a_doorbell_without_endpoint_is_answered() {
    let (mut driver, _, slot) = pair();
    driver.doorbell(slot, 9);
    assert_eq!(driver.transfers(), [(9, Completion::EndpointNotEnabled, 0)]);
    driver.doorbell(30, 1);
    assert_eq!(driver.xhc.counts().idle_doorbells, 2);
    assert_eq!(driver.transfers(), []);
}

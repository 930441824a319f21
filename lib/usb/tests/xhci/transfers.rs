//! Transfers that go well, or less well without anything being wrong.

use crate::bench::{Bench, buffer, straddling};
use crate::fake::{BASE, CLIENT};
use diapason_abi::Nanos;
use diapason_usb::Setup;
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_usb::xhci::{Buffer, Limits, Refused, Request, TransferOutcome, When};

/// Context indices of the endpoints at slot 1.
const IN: u8 = 3;
const OUT: u8 = 4;
const ISOCH: u8 = 9;

#[test]
fn a_transfer_is_reported_by_the_interrupter_of_its_lane() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device_in(2, &[0x81, 2]);
    let memory = buffer(0, 1000);
    let request = Request { cookie: 77, ..Request::new(device, 2, memory) };
    let transfer = bench.driver.submit(&request).unwrap();
    {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, block) = fake.next_block(1, OUT).unwrap();
        assert_eq!((block.kind(), block.length()), (Some(Kind::Normal), 1000));
        assert_eq!((block.parameter, block.interrupter()), (BASE + CLIENT, 2));
        assert!(block.has(bit::COMPLETION) && !block.has(bit::CHAIN | bit::SHORT));
        assert_eq!(fake.next_block(1, OUT), None);
        fake.transfer_event(1, OUT, at, Completion::Success, 0);
    }
    assert!(bench.driver.has_events(2) && !bench.driver.has_events(0));
    let handled = bench.driver.handle_interrupt(2, 8, Nanos(bench.now.0 + 5));
    assert_eq!((handled.events, handled.more), (1, false));
    assert_eq!(bench.driver.take_finished(0), None);
    let finished = bench.driver.take_finished(2).unwrap();
    assert_eq!((finished.transfer, finished.cookie, finished.endpoint), (transfer, 77, 2));
    assert_eq!((finished.outcome, finished.actual), (TransferOutcome::Done, 1000));
    assert_eq!(finished.time, Nanos(bench.now.0 + 5));
}

#[test]
fn a_batch_that_is_cut_off_by_a_full_ring_is_rung() {
    let mut bench = Bench::running(Limits { blocks: 16, ..Limits::default() });
    let device = bench.device(&[2]);
    let memory = buffer(0, 512);
    let before = bench.fake.0.borrow().writes;
    let request = Request { more: true, ..Request::new(device, 2, memory) };
    while bench.driver.submit(&request).is_ok() {}
    assert_eq!(bench.fake.0.borrow().writes, before + 1);
    assert_eq!(bench.driver.submit(&request), Err(Refused::Busy));
    assert_eq!(bench.fake.0.borrow().writes, before + 1);
}

#[test]
fn the_controller_sees_none_of_a_batch_before_its_last() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[2]);
    let request = Request::new(device, 2, buffer(0, 512));
    for _ in 0..3 {
        bench.driver.submit(&Request { more: true, ..request }).unwrap();
        // The controller goes on looking at a ring that it knows.
        assert_eq!(bench.fake.0.borrow_mut().next_block(1, OUT), None);
    }
    bench.driver.submit(&request).unwrap();
    let seen = core::iter::from_fn(|| bench.fake.0.borrow_mut().next_block(1, OUT)).count();
    assert_eq!(seen, 4);
}

#[test]
fn a_batch_that_is_cancelled_while_it_is_held_back_ends_once() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[2]);
    let request = Request::new(device, 2, buffer(0, 512));
    bench.driver.submit(&request).unwrap();
    let more = Request { more: true, ..request };
    let held = [0; 2].map(|_| bench.driver.submit(&more).unwrap());
    for transfer in held {
        bench.driver.cancel(device, transfer).unwrap();
    }
    bench.run(4);
    let ended: Vec<_> = bench.finished.iter().map(|f| (f.transfer, f.outcome)).collect();
    assert_eq!(ended, held.map(|transfer| (transfer, TransferOutcome::Cancelled)));
    bench.driver.submit(&request).unwrap();
    // The blocks of cancelled transfers do nothing now.
    let kinds: Vec<_> =
        core::iter::from_fn(|| bench.fake.0.borrow_mut().next_block(1, OUT)).collect();
    let kinds = kinds.iter().filter_map(|(_, block)| block.kind());
    assert_eq!(kinds.collect::<Vec<_>>(), [Kind::Normal, Kind::NoOp, Kind::NoOp, Kind::Normal]);
}

#[test]
fn a_transfer_whose_event_never_came_is_lost_and_its_late_event_is_dropped() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[2]);
    let memory = buffer(0, 512);
    for cookie in 0..2 {
        bench.driver.submit(&Request { cookie, ..Request::new(device, 2, memory) }).unwrap();
    }
    {
        let mut fake = bench.fake.0.borrow_mut();
        let (first, _) = fake.next_block(1, OUT).unwrap();
        let (second, _) = fake.next_block(1, OUT).unwrap();
        fake.transfer_event(1, OUT, second, Completion::Success, 0);
        fake.transfer_event(1, OUT, first, Completion::Success, 0);
    }
    bench.run(1);
    let ended: Vec<_> = bench.finished.iter().map(|f| (f.cookie, f.outcome, f.actual)).collect();
    assert_eq!(ended, [(0, TransferOutcome::Lost, 0), (1, TransferOutcome::Done, 512)]);
    assert_eq!((bench.driver.counters().lost, bench.driver.counters().spurious), (1, 1));
}

#[test]
fn what_the_controller_claims_to_have_left_is_not_more_than_there_was() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    let memory = buffer(0, 512);
    bench.driver.submit(&Request::new(device, 0x81, memory)).unwrap();
    {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, _) = fake.next_block(1, IN).unwrap();
        fake.transfer_event(1, IN, at, Completion::ShortPacket, 513);
    }
    bench.run(1);
    assert_eq!((bench.finished[0].outcome, bench.finished[0].actual), (TransferOutcome::Short, 0));
    assert_eq!(bench.driver.counters().residuals, 1);
}

/// A transfer that is queued, rung, reported and taken, by itself and in a batch of 16.
#[test]
fn accesses_to_registers_are_few() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[2]);
    let memory = buffer(0, 512);
    for batch in [1, 16u64] {
        let before = (bench.fake.0.borrow().reads, bench.fake.0.borrow().writes);
        for n in 0..100 * batch {
            let more = (n + 1) % batch != 0;
            bench.driver.submit(&Request { more, ..Request::new(device, 2, memory) }).unwrap();
            if more {
                continue;
            }
            for _ in 0..batch {
                let mut fake = bench.fake.0.borrow_mut();
                let (at, _) = fake.next_block(1, OUT).unwrap();
                fake.transfer_event(1, OUT, at, Completion::Success, 0);
            }
            bench.driver.handle_interrupt(0, 32, bench.now);
            while bench.driver.take_finished(0).is_some() {}
        }
        let fake = bench.fake.0.borrow();
        let (reads, writes) = (fake.reads - before.0, fake.writes - before.1);
        // A doorbell and the two halves of the dequeue pointer, for each batch.
        assert_eq!((reads, writes), (0, 300));
    }
}

#[test]
fn a_long_transfer_is_cut_and_what_came_of_it_is_added_up() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    // 0xf000 bytes to the next multiple of 64 KiB, then twice 64 KiB, then the rest.
    bench.driver.submit(&Request::new(device, 0x81, buffer(1, 0x2_f064))).unwrap();
    bench.driver.submit(&Request::new(device, 0x81, buffer(64, 100))).unwrap();
    let blocks = {
        let mut fake = bench.fake.0.borrow_mut();
        let blocks: Vec<_> = (0..4).map(|_| fake.next_block(1, IN).unwrap()).collect();
        let lengths = blocks.iter().map(|(_, block)| block.length());
        assert_eq!(lengths.collect::<Vec<u32>>(), [0xf000, 0x1_0000, 0x1_0000, 100]);
        let left = blocks.iter().map(|(_, block)| block.packets_left());
        assert_eq!(left.collect::<Vec<u32>>(), [31, 31, 1, 0]);
        assert!(blocks[..3].iter().all(|(_, b)| b.has(bit::CHAIN) && !b.has(bit::COMPLETION)));
        // Short in the second block; the controller reports the last one, too.
        fake.transfer_event(1, IN, blocks[1].0, Completion::ShortPacket, 0xfff0);
        blocks
    };
    bench.run(1);
    assert_eq!(bench.finished.len(), 1);
    let finished = bench.finished[0];
    assert_eq!((finished.outcome, finished.actual), (TransferOutcome::Short, 0xf010));
    {
        let mut fake = bench.fake.0.borrow_mut();
        fake.transfer_event(1, IN, blocks[3].0, Completion::Success, 100);
        let (at, _) = fake.next_block(1, IN).unwrap();
        fake.transfer_event(1, IN, at, Completion::ShortPacket, 100);
    }
    bench.run(1);
    assert_eq!(bench.finished.len(), 2);
    assert_eq!((bench.finished[1].outcome, bench.finished[1].actual), (TransferOutcome::Short, 0));
    assert_eq!(bench.driver.counters().spurious, 0);
}

#[test]
fn a_ring_goes_round_and_a_full_one_refuses() {
    let limits = Limits { blocks: 16, transfers: 64, ..Limits::default() };
    let mut bench = Bench::running(limits);
    let device = bench.device(&[2]);
    let memory = [buffer(0, 8), straddling(4, 4), straddling(4, 0x1_0004)];
    let mut blocks = 0;
    for round in 0..200u32 {
        let count = 1 + round as usize % 3;
        let memory = memory[count - 1];
        let request = Request { cookie: round.into(), ..Request::new(device, 2, memory) };
        let mut queued = 0;
        while bench.driver.submit(&request).is_ok() {
            queued += 1;
        }
        assert_eq!(bench.driver.submit(&request), Err(Refused::Busy));
        assert_eq!(queued, 14 / count, "one of fifteen blocks stays free");
        for _ in 0..queued {
            let mut fake = bench.fake.0.borrow_mut();
            let taken: Vec<_> = (0..count).map(|_| fake.next_block(1, OUT).unwrap()).collect();
            fake.transfer_event(1, OUT, taken[count - 1].0, Completion::Success, 0);
            blocks += count;
        }
        assert!(bench.fake.0.borrow_mut().next_block(1, OUT).is_none());
        bench.finished.clear();
        bench.handle();
        bench.take();
        assert_eq!(bench.finished.len(), queued);
        assert!(bench.finished.iter().all(|f| f.outcome == TransferOutcome::Done
            && f.actual == memory.length
            && f.cookie == u64::from(round)));
    }
    assert!(blocks > 2000);
}

#[test]
fn a_request_is_answered_through_the_control_endpoint() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[]);
    bench.fake.0.borrow_mut().descriptors.insert(3, vec![4, 3, 9, 4]);
    let setup = Setup::get_descriptor(3, 0, 0, 64);
    assert_eq!(bench.driver.control(device, setup, buffer(0, 63), 5), Err(Refused::Length));
    bench.driver.control(device, setup, buffer(0, 64), 5).unwrap();
    bench.run(1);
    let finished = bench.finished.pop().unwrap();
    assert_eq!(
        (finished.outcome, finished.actual, finished.cookie),
        (TransferOutcome::Short, 4, 5)
    );
    assert_eq!(bench.fake.0.borrow().word(BASE + CLIENT), 0x0409_0304);
    let address = Setup { kind: 0, request: 5, value: 9, index: 0, length: 0 };
    assert_eq!(bench.driver.control(device, address, buffer(0, 0), 5), Err(Refused::Nonsense));
    // Without data: the status stage goes to the host.
    bench.driver.control(device, Setup::set_interface(0, 0), buffer(0, 0), 6).unwrap();
    bench.run(1);
    assert_eq!(bench.finished.pop().unwrap().outcome, TransferOutcome::Done);
}

#[test]
fn memory_nobody_granted_reaches_no_ring() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[2]);
    let bad = [
        Buffer { address: BASE, length: 8 },
        Buffer { address: BASE + CLIENT - 1, length: 2 },
        Buffer { address: BASE + (4 << 20) - 4, length: 5 },
        Buffer { address: u64::MAX - 3, length: 8 },
    ];
    for buffer in bad {
        let refused = bench.driver.submit(&Request::new(device, 2, buffer));
        assert_eq!(refused, Err(Refused::Outside));
    }
    assert_eq!(bench.fake.0.borrow_mut().next_block(1, OUT), None);
    let request = |endpoint| Request::new(device, endpoint, buffer(0, 0));
    assert_eq!(bench.driver.submit(&request(0x81)), Err(Refused::NoEndpoint));
    assert_eq!(bench.driver.submit(&request(0)), Err(Refused::NoEndpoint));
    assert_eq!(bench.driver.assign(device, 4), Err(Refused::NoInterrupter));
    assert_eq!(bench.driver.assign(device, 1), Err(Refused::Busy));
}

#[test]
fn isochronous_transfers_have_frames_and_those_that_were_missed_are_found() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x84]);
    let memory = buffer(0, 1024);
    let too_much = buffer(0, 1025);
    let request = Request { when: When::Frame(0x7fe), ..Request::new(device, 0x84, memory) };
    assert_eq!(bench.driver.submit(&Request::new(device, 0x84, too_much)), Err(Refused::Length));
    for cookie in 0..4 {
        bench.driver.submit(&Request { cookie, ..request }).unwrap();
    }
    {
        let mut fake = bench.fake.0.borrow_mut();
        let blocks: Vec<_> = (0..4).map(|_| fake.next_block(1, ISOCH).unwrap()).collect();
        let block = blocks[0].1;
        assert_eq!(block.kind(), Some(Kind::Isoch));
        assert_eq!((block.control >> 20 & 0x7ff, block.has(bit::ASAP)), (0x7fe, false));
        // A missed interval without a pointer, then the third transfer, then an empty ring.
        let nothing = fake.rings[&(1, ISOCH)].at;
        fake.transfer_event(1, ISOCH, nothing, Completion::MissedService, 0);
        fake.transfer_event(1, ISOCH, blocks[2].0, Completion::Success, 0);
        fake.transfer_event(1, ISOCH, blocks[3].0, Completion::Transaction, 1024);
        fake.transfer_event(1, ISOCH, nothing, Completion::RingOverrun, 0);
    }
    bench.run(1);
    let outcomes: Vec<TransferOutcome> = bench.finished.iter().map(|f| f.outcome).collect();
    let missed = TransferOutcome::Missed;
    assert_eq!(outcomes, [missed, missed, TransferOutcome::Done, TransferOutcome::Transaction]);
    let counters = bench.driver.counters();
    assert_eq!((counters.starved, counters.spurious, counters.lost), (1, 0, 0));
}

/// The controller says that a packet was too large, and still has the memory until the end.
#[test]
fn an_isochronous_transfer_of_two_blocks_ends_with_the_second() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x84]);
    let memory = straddling(500, 500);
    bench.driver.submit(&Request::new(device, 0x84, memory)).unwrap();
    let take = || bench.fake.0.borrow_mut().next_block(1, ISOCH).unwrap();
    let blocks = [take(), take()];
    let code = Completion::IsochBufferOverrun;
    bench.fake.0.borrow_mut().transfer_event(1, ISOCH, blocks[0].0, code, 0);
    bench.run(1);
    assert_eq!(bench.finished, []);
    bench.fake.0.borrow_mut().transfer_event(1, ISOCH, blocks[1].0, Completion::Success, 100);
    bench.run(1);
    assert_eq!(
        (bench.finished[0].outcome, bench.finished[0].actual),
        (TransferOutcome::Failed(code), 900)
    );
}

#[test]
fn events_about_nothing_are_dropped() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[2]);
    let memory = buffer(0, 512);
    bench.driver.submit(&Request::new(device, 2, memory)).unwrap();
    let (at, _) = bench.fake.0.borrow_mut().next_block(1, OUT).unwrap();
    let status = Trb::event_status(Completion::Success, 0);
    let link = at + 63 * 16;
    let pointers = [at + 8, at + 16, at - 16, link, link + 16, 0, u64::MAX, at | 1 << 63];
    let places = [(1, 0), (1, 3), (2, OUT), (0, OUT), (255, OUT)];
    let spoofs = pointers.map(|pointer| (pointer, (1, OUT))).into_iter();
    for (pointer, (slot, index)) in spoofs.chain(places.map(|place| (at, place))) {
        let flags = Trb::place(slot, index);
        let event = Trb::new(Kind::TransferEvent, pointer, status, flags);
        bench.fake.0.borrow_mut().post(0, event);
        let command = Trb::new(Kind::CommandCompletion, pointer, status, flags);
        bench.fake.0.borrow_mut().post(0, command);
    }
    let data = Trb::new(Kind::TransferEvent, at, status, Trb::place(1, OUT) | bit::EVENT_DATA);
    bench.fake.0.borrow_mut().post(0, data);
    bench.run(1);
    assert_eq!(bench.finished, []);
    assert_eq!(bench.driver.counters().spurious, 2 * 13 + 1);
    bench.fake.0.borrow_mut().transfer_event(1, OUT, at, Completion::Success, 0);
    bench.run(1);
    assert_eq!(bench.finished.len(), 1);
}

#[test]
fn moderation_is_set_in_units_of_the_controller_and_never_shorter() {
    let mut bench = Bench::running(Limits::default());
    assert_eq!(bench.driver.moderation(1), Ok(Nanos::ZERO));
    assert_eq!(bench.driver.moderate(1, Nanos(1_001)), Ok(Nanos(1_250)));
    assert_eq!(bench.driver.moderate(1, Nanos::from_secs(1)), Ok(Nanos(16_383_750)));
    assert_eq!(bench.driver.moderate(9, Nanos(1)), Err(Refused::NoInterrupter));
}

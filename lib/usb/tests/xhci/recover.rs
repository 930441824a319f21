//! Tests of halts and cancellations.

use crate::bench::{Bench, buffer};
use diapason_usb::trb::{Completion, Kind};
use diapason_usb::xhci::{DeviceId, Limits, Notice, Refused, Request, TransferId, TransferOutcome};

const IN: u8 = 3;

fn queue(bench: &mut Bench, device: DeviceId, count: u64) -> Vec<TransferId> {
    let memory = buffer(0, 512);
    let request = Request::new(device, 0x81, memory);
    (0..count).map(|cookie| bench.driver.submit(&Request { cookie, ..request }).unwrap()).collect()
}

fn outcomes(bench: &mut Bench) -> Vec<(u64, TransferOutcome)> {
    bench.finished.drain(..).map(|f| (f.cookie, f.outcome)).collect()
}

#[test]
fn a_halted_endpoint_is_brought_back_and_goes_on_with_the_next_transfer() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    queue(&mut bench, device, 3);
    {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, _) = fake.next_block(1, IN).unwrap();
        // Blocks that were read ahead are read again after the new place in the ring.
        fake.next_block(1, IN).unwrap();
        fake.commands.clear();
        fake.transfer_event(1, IN, at, Completion::Stall, 512);
    }
    bench.run(1);
    assert_eq!(outcomes(&mut bench), [(0, TransferOutcome::Stalled)]);
    assert_eq!(bench.fake.0.borrow().commands, [Kind::ResetEndpoint, Kind::SetDequeue]);
    assert_eq!(bench.driver.counters().recovered, 1);
    for cookie in 1..3 {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, _) = fake.next_block(1, IN).unwrap();
        fake.transfer_event(1, IN, at, Completion::Success, 0);
        drop(fake);
        bench.run(1);
        assert_eq!(outcomes(&mut bench), [(cookie, TransferOutcome::Done)]);
    }
}

#[test]
fn a_block_that_made_no_sense_needs_no_reset() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    queue(&mut bench, device, 1);
    {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, _) = fake.next_block(1, IN).unwrap();
        fake.commands.clear();
        fake.transfer_event(1, IN, at, Completion::Trb, 512);
    }
    bench.run(1);
    assert_eq!(outcomes(&mut bench), [(0, TransferOutcome::Failed(Completion::Trb))]);
    assert_eq!(bench.fake.0.borrow().commands, [Kind::SetDequeue]);
}

#[test]
fn cancelled_transfers_in_front_are_passed_and_others_do_nothing() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    let ids = queue(&mut bench, device, 5);
    bench.fake.0.borrow_mut().commands.clear();
    for id in [ids[0], ids[1], ids[3]] {
        bench.driver.cancel(device, id).unwrap();
    }
    assert_eq!(outcomes(&mut bench), []);
    bench.run(1);
    let cancelled = TransferOutcome::Cancelled;
    assert_eq!(outcomes(&mut bench), [(0, cancelled), (1, cancelled), (3, cancelled)]);
    assert_eq!(bench.fake.0.borrow().commands, [Kind::StopEndpoint, Kind::SetDequeue]);
    assert_eq!(bench.driver.cancel(device, ids[3]), Err(Refused::NoTransfer));
    let expected = [(Kind::Normal, Some(2)), (Kind::NoOp, None), (Kind::Normal, Some(4))];
    for (kind, cookie) in expected {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, block) = fake.next_block(1, IN).unwrap();
        assert_eq!(block.kind(), Some(kind));
        fake.transfer_event(1, IN, at, Completion::Success, 0);
        drop(fake);
        bench.run(1);
        let done: Vec<_> =
            cookie.map(|cookie| (cookie, TransferOutcome::Done)).into_iter().collect();
        assert_eq!(outcomes(&mut bench), done);
    }
    assert_eq!(bench.driver.counters().spurious, 0);
    assert_eq!(bench.driver.pools().transfers, 96);
}

#[test]
fn a_transfer_in_the_middle_of_which_the_endpoint_stops_goes_on_or_says_how_far_it_came() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    let ids = queue(&mut bench, device, 2);
    bench.driver.cancel(device, ids[0]).unwrap();
    {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, _) = fake.next_block(1, IN).unwrap();
        fake.transfer_event(1, IN, at, Completion::Stopped, 112);
    }
    bench.run(1);
    let finished = bench.finished[0];
    assert_eq!((finished.outcome, finished.actual), (TransferOutcome::Cancelled, 400));
    // The other one is stopped for the sake of a third, and comes to its end.
    let third = queue(&mut bench, device, 1)[0];
    bench.driver.cancel(device, third).unwrap();
    {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, _) = fake.next_block(1, IN).unwrap();
        fake.transfer_event(1, IN, at, Completion::Stopped, 500);
        fake.transfer_event(1, IN, at, Completion::Success, 0);
    }
    bench.run(1);
    let second = bench.finished.iter().find(|f| f.transfer == ids[1]).unwrap();
    assert_eq!((second.outcome, second.actual), (TransferOutcome::Done, 512));
}

#[test]
fn recoveries_go_round_the_ring() {
    let mut bench = Bench::running(Limits { blocks: 16, ..Limits::default() });
    let device = bench.device(&[0x81]);
    for round in 0..60 {
        let ids = queue(&mut bench, device, 1 + round % 4);
        bench.driver.cancel(device, ids[0]).unwrap();
        bench.run(1);
        assert_eq!(outcomes(&mut bench), [(0, TransferOutcome::Cancelled)]);
        for cookie in 1..1 + round % 4 {
            if cookie == 2 {
                // The ring begins to move again where it should, for any transfer that has ended by
                // now.
                let again = queue(&mut bench, device, 1);
                bench.driver.cancel(device, again[0]).unwrap();
                bench.run(1);
                assert_eq!(outcomes(&mut bench), [(0, TransferOutcome::Cancelled)]);
            }
            let mut fake = bench.fake.0.borrow_mut();
            let (at, block) = fake.next_block(1, IN).expect("the controller finds nothing");
            assert_eq!(block.kind(), Some(Kind::Normal));
            fake.transfer_event(1, IN, at, Completion::Success, 0);
            drop(fake);
            bench.run(1);
            assert_eq!(outcomes(&mut bench), [(cookie, TransferOutcome::Done)]);
        }
        while let Some((at, _)) = {
            let mut fake = bench.fake.0.borrow_mut();
            fake.next_block(1, IN)
        } {
            bench.fake.0.borrow_mut().transfer_event(1, IN, at, Completion::Success, 0);
            bench.run(1);
        }
    }
    assert_eq!((bench.finished.len(), bench.driver.counters().spurious), (0, 0));
}

/// The second is cancelled when the controller has already been told to go on with it.
#[test]
fn a_transfer_that_is_cancelled_during_a_recovery_becomes_blocks_that_do_nothing() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    let ids = queue(&mut bench, device, 3);
    {
        let mut fake = bench.fake.0.borrow_mut();
        fake.deaf = true;
        fake.commands.clear();
    }
    bench.driver.cancel(device, ids[0]).unwrap();
    bench.run(1);
    bench.fake.0.borrow_mut().listen_once();
    bench.run(1);
    bench.driver.cancel(device, ids[1]).unwrap();
    bench.fake.0.borrow_mut().listen_once();
    bench.run(1);
    let cancelled = TransferOutcome::Cancelled;
    assert_eq!(outcomes(&mut bench), [(0, cancelled), (1, cancelled)]);
    assert_eq!(bench.fake.0.borrow().commands, [Kind::StopEndpoint, Kind::SetDequeue]);
    // Its memory is free, so its block must not name it any more.
    for kind in [Kind::NoOp, Kind::Normal] {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, block) = fake.next_block(1, IN).unwrap();
        assert_eq!(block.kind(), Some(kind));
        fake.transfer_event(1, IN, at, Completion::Success, 0);
    }
    bench.run(1);
    assert_eq!(outcomes(&mut bench), [(2, TransferOutcome::Done)]);
}

#[test]
fn a_transfer_that_is_cancelled_while_the_device_is_told_is_taken_off_after_that() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    let ids = queue(&mut bench, device, 2);
    {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, _) = fake.next_block(1, IN).unwrap();
        fake.mute = true;
        fake.transfer_event(1, IN, at, Completion::Stall, 512);
    }
    bench.run(1);
    bench.driver.cancel(device, ids[1]).unwrap();
    bench.run(1);
    assert_eq!(outcomes(&mut bench), [(0, TransferOutcome::Stalled)]);
    {
        let mut fake = bench.fake.0.borrow_mut();
        fake.mute = false;
        fake.doorbell(1, 1);
    }
    bench.run(1);
    assert_eq!(outcomes(&mut bench), [(1, TransferOutcome::Cancelled)]);
}

#[test]
fn a_device_that_is_never_told_is_given_up() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    queue(&mut bench, device, 2);
    {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, _) = fake.next_block(1, IN).unwrap();
        fake.mute = true;
        fake.transfer_event(1, IN, at, Completion::Stall, 512);
    }
    bench.run(5_010);
    assert_eq!(outcomes(&mut bench), [(0, TransferOutcome::Stalled), (1, TransferOutcome::Gone)]);
    assert_eq!(bench.notices, [Notice::Gone(device)]);
}

#[test]
fn a_transfer_that_was_faster_than_its_cancellation_is_done() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    let ids = queue(&mut bench, device, 1);
    {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, _) = fake.next_block(1, IN).unwrap();
        fake.transfer_event(1, IN, at, Completion::Success, 0);
    }
    bench.driver.cancel(device, ids[0]).unwrap();
    bench.run(1);
    assert_eq!(outcomes(&mut bench), [(0, TransferOutcome::Done)]);
}

#[test]
fn an_endpoint_that_halts_while_it_is_told_to_stop_is_reset() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    let ids = queue(&mut bench, device, 2);
    {
        let mut fake = bench.fake.0.borrow_mut();
        fake.commands.clear();
        fake.set_endpoint_state(1, IN, 2);
        fake.verdicts = vec![Completion::ContextState];
    }
    bench.driver.cancel(device, ids[1]).unwrap();
    bench.run(1);
    let commands = [Kind::StopEndpoint, Kind::ResetEndpoint, Kind::SetDequeue];
    assert_eq!(bench.fake.0.borrow().commands, commands);
    assert_eq!(outcomes(&mut bench), [(1, TransferOutcome::Cancelled)]);
}

#[test]
fn an_endpoint_that_does_not_come_back_costs_the_device() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[0x81]);
    queue(&mut bench, device, 2);
    {
        let mut fake = bench.fake.0.borrow_mut();
        let (at, _) = fake.next_block(1, IN).unwrap();
        fake.verdicts = vec![Completion::ContextState; 5];
        fake.transfer_event(1, IN, at, Completion::Babble, 0);
    }
    bench.run(50);
    assert_eq!(outcomes(&mut bench), [(0, TransferOutcome::Babble), (1, TransferOutcome::Gone)]);
    assert_eq!(bench.notices.remove(0), Notice::Gone(device));
    // It is reset and found again, since it worked before.
    bench.run(500);
    let again = bench.found();
    assert_ne!(again, device);
}

#[test]
fn a_device_that_worked_in_between_is_not_given_up() {
    let mut bench = Bench::running(Limits::default());
    let mut device = bench.device(&[0x81]);
    for _ in 0..5 {
        queue(&mut bench, device, 1);
        {
            let mut fake = bench.fake.0.borrow_mut();
            let (at, _) = fake.next_block(1, IN).unwrap();
            fake.verdicts = vec![Completion::ContextState; 5];
            fake.transfer_event(1, IN, at, Completion::Babble, 0);
        }
        bench.run(600);
        device = bench.found();
        bench.driver.configure(device, 1, &crate::bench::plans(&[0x81])).unwrap();
        bench.run(10);
    }
}

#[test]
fn a_stalled_request_leaves_the_control_endpoint_usable() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[]);
    let setup = diapason_usb::Setup::set_interface(3, 1);
    bench.fake.0.borrow_mut().answers = vec![Completion::Stall];
    for cookie in 0..2 {
        bench.driver.control(device, setup, buffer(0, 0), cookie).unwrap();
        bench.run(1);
    }
    assert_eq!(outcomes(&mut bench), [(0, TransferOutcome::Stalled), (1, TransferOutcome::Done)]);
}

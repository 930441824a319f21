//! Devices that come and go at every moment.

use crate::bench::{Bench, buffer, plans};
use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_usb::trb::Kind;
use diapason_usb::xhci::{Limits, Notice, Refused, Request, TransferOutcome};

#[test]
fn transfers_of_a_device_that_vanishes_are_gone_when_its_slot_is() {
    let mut bench = Bench::running(Limits::default());
    let before = bench.driver.pools();
    let device = bench.device(&[0x81]);
    let memory = buffer(0, 512);
    let request = Request::new(device, 0x81, memory);
    let transfer = bench.driver.submit(&request).unwrap();
    bench.fake.0.borrow_mut().deaf = true;
    bench.fake.0.borrow_mut().unplug(1);
    bench.run(10);
    assert_eq!(bench.finished, [], "the controller still has the memory");
    assert_eq!(bench.driver.submit(&request), Err(Refused::NoDevice));
    bench.fake.0.borrow_mut().deaf = false;
    // The abort after five seconds makes the fake controller look at its ring again.
    bench.run(6_000);
    assert_eq!(bench.finished.len(), 1);
    let finished = bench.finished[0];
    assert_eq!((finished.transfer, finished.outcome), (transfer, TransferOutcome::Gone));
    assert_eq!(bench.notices.pop(), Some(Notice::Gone(device)));
    assert_eq!(bench.driver.pools(), before);
}

#[test]
fn a_slot_that_comes_too_late_is_given_back() {
    let mut bench = Bench::running(Limits::default());
    let before = bench.driver.pools();
    bench.fake.0.borrow_mut().deaf = true;
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.run(200);
    bench.fake.0.borrow_mut().unplug(1);
    bench.run(1);
    bench.fake.0.borrow_mut().listen_once();
    bench.fake.0.borrow_mut().deaf = false;
    bench.run(1);
    assert_eq!(bench.fake.0.borrow().commands, [Kind::EnableSlot, Kind::DisableSlot]);
    assert_eq!(bench.driver.pools(), before);
}

/// A device goes at a random moment: during the reset, the enumeration, the configuration, or with
/// transfers on the ring.
#[test]
fn a_thousand_plugs_leave_every_pool_as_it_was() {
    let mut bench = Bench::running(Limits { devices: 4, pipes: 8, ..Limits::default() });
    let mut random = Random::new(0x9106);
    let before = bench.driver.pools();
    let (mut found, mut queued) = (0, 0);
    for cycle in 0..1_000 {
        let port = 1 + random.index(4) as u8;
        let speed = if port > 2 { 4 } else { 3 };
        let version = if port > 2 { (3, 9) } else { (2, 64) };
        {
            let mut fake = bench.fake.0.borrow_mut();
            let descriptor = fake.descriptors.get_mut(&1).unwrap();
            (descriptor[3], descriptor[7]) = version;
            fake.plug(port, speed);
        }
        for _ in 0..random.below(12) {
            bench.now += Nanos::from_micros(random.below(60_000));
            bench.driver.poll(bench.now);
            bench.driver.handle_interrupt(0, 1 + random.index(3) as u32, bench.now);
            bench.take();
            if let Some(Notice::Found { device, .. }) = bench.notices.pop() {
                found += 1;
                // Endpoints are those of a high-speed device.
                let _ = bench.driver.configure(device, 1, &plans(&[0x81, 2, 0x83]));
                bench.run(random.below(3));
                let memory = buffer(cycle % 8, 64);
                for address in [0x81, 2, 0x83] {
                    let request = Request::new(device, address, memory);
                    queued += u32::from(bench.driver.submit(&request).is_ok());
                }
            }
        }
        bench.fake.0.borrow_mut().unplug(port);
        bench.run(random.below(4));
        bench.run(if cycle % 10 == 0 { 700 } else { 0 });
        bench.notices.clear();
    }
    bench.run(3_000);
    assert_eq!(bench.driver.pools(), before);
    assert_eq!(bench.driver.counters().notices_lost, 0);
    assert!(found > 200 && queued > 100, "found {found}, queued {queued}");
    let rings = bench.fake.0.borrow().rings.len();
    assert_eq!(rings, 0, "slots were left enabled");
}

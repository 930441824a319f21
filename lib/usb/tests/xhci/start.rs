//! Hand-over, halt, reset, run; and death.

use crate::bench::Bench;
use crate::fake::{BASE, BYTES, Handle};
use diapason_abi::Nanos;
use diapason_usb::xhci::{
    Buses, Controller, ControllerState, Death, Limits, Notice, Unusable, Waiting, Window,
};

#[test]
fn a_firmware_that_holds_on_is_overruled_and_a_reset_that_never_ends_is_not() {
    let mut bench = Bench::new(Limits::default());
    bench.fake.0.borrow_mut().stuck = true;
    bench.driver.start(bench.now);
    let end = Nanos::from_secs(1);
    assert_eq!(bench.driver.state(), ControllerState::Starting(Waiting::HandOver, end));
    bench.run(1_500);
    let end = Nanos::from_secs(11);
    assert_eq!(bench.driver.state(), ControllerState::Starting(Waiting::Reset, end));
    bench.run(12_000);
    let death = Death::Start(Waiting::Reset);
    assert_eq!(bench.driver.state(), ControllerState::Dead(death));
    assert_eq!(bench.notices, [Notice::Died(death)]);
    bench.fake.0.borrow_mut().stuck = false;
    bench.driver.start(bench.now);
    bench.run(5);
    assert_eq!(bench.driver.state(), ControllerState::Running);
}

#[test]
fn capabilities_are_read_and_scratchpads_are_given() {
    let mut bench = Bench::new(Limits::default());
    bench.fake.0.borrow_mut().scratchpads = 5;
    bench.driver.start(bench.now);
    bench.run(5);
    let capabilities = bench.driver.capabilities();
    assert_eq!((capabilities.version, capabilities.slots, capabilities.ports), (0x110, 16, 4));
    assert_eq!((capabilities.scratchpads, capabilities.context), (5, 32));
    let fake = bench.fake.0.borrow();
    // The contexts lie at the beginning of the window; their first entry is the table of pages.
    let table = u64::from(fake.word(BASE));
    let pages: Vec<u32> = (0..5).map(|page| fake.word(table + 8 * page)).collect();
    assert!(pages.iter().all(|page| page % 4096 == 0 && u64::from(*page) >= BASE));
    assert!(pages.is_sorted_by(|a, b| a + 4096 <= *b));
}

#[test]
fn a_controller_that_wants_more_than_there_is_does_not_start() {
    let mut bench = Bench::new(Limits { scratchpads: 3, ..Limits::default() });
    bench.fake.0.borrow_mut().scratchpads = 4;
    bench.driver.start(bench.now);
    assert_eq!(bench.driver.state(), ControllerState::Dead(Death::Scratchpads(4)));
}

#[test]
fn registers_that_would_be_outside_of_the_bar_are_never_touched() {
    for bar in [0x400, 0x1080, 0x2000, 0x23ff] {
        let mut bench = Bench::new(Limits::default());
        bench.fake.0.borrow_mut().bar = bar;
        bench.driver.start(bench.now);
        assert_eq!(bench.driver.state(), ControllerState::Dead(Death::Nonsense));
        assert_eq!(bench.fake.0.borrow().writes, 0);
    }
}

#[test]
fn a_removed_controller_is_reported_once() {
    let mut bench = Bench::running(Limits::default());
    bench.fake.0.borrow_mut().removed = true;
    bench.run(1_000);
    assert_eq!(bench.driver.state(), ControllerState::Dead(Death::Removed));
    assert_eq!(bench.notices, [Notice::Died(Death::Removed)]);
    bench.driver.start(bench.now);
    assert_eq!(bench.driver.state(), ControllerState::Dead(Death::Removed));
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let new = |limits| {
        let fake = Handle::new();
        Controller::new(fake.clone(), fake, limits, &Buses::default()).err()
    };
    let usual = Limits::default();
    assert_eq!(new(usual), None);
    assert_eq!(new(Limits { blocks: 48, ..usual }), Some(Unusable::Blocks));
    assert_eq!(new(Limits { events: 128, ..usual }), Some(Unusable::Events));
    assert_eq!(new(Limits { devices: 0, ..usual }), Some(Unusable::Empty));
    assert_eq!(new(Limits { configuration: 17, ..usual }), Some(Unusable::Configuration));
    let large = Limits { scratchpads: 1000, ..usual };
    assert_eq!(new(large), Some(Unusable::Window(large.window_bytes())));
    assert!(usual.window_bytes() < BYTES);
}

#[test]
fn memory_is_granted_and_taken_back() {
    let mut bench = Bench::new(Limits::default());
    let window = |base, length| Window { base, length };
    let outside = Err(diapason_usb::xhci::Refused::Outside);
    assert_eq!(bench.driver.grant(window(BASE + 0x1000, 8)), outside);
    assert_eq!(bench.driver.grant(window(0, 0)), outside);
    assert_eq!(bench.driver.grant(window(u64::MAX, 2)), outside);
    assert_eq!(bench.driver.grant(window(0x1000, 8)), Ok(()));
    assert_eq!(bench.driver.revoke(window(0x1000, 8)), Ok(()));
    assert_eq!(bench.driver.revoke(window(0x1000, 8)), outside);
}

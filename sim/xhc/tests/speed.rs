//! How fast the model is: five bulk streams of 7000 small packets a second each.

use crate::support::{Driver, Shared, bulk};
use diapason_abi::Nanos;
use diapason_usb::Speed;
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_xhc::Config;

/// Simulated time, short in the normal run; the measurement is of the release build.
const LENGTH: Nanos =
    if cfg!(debug_assertions) { Nanos::from_millis(100) } else { Nanos::from_secs(20) };

#[test]
fn small_packets_at_a_high_rate() {
    let mut driver = Driver::running(Config::default());
    let gadget = Shared::new(Speed::High);
    let slot = driver.connect(1, gadget.boxed());
    let plans: Vec<_> = [3, 5, 7, 9, 11].map(|index| bulk(index, 512, 0)).into();
    assert_eq!(driver.configure(slot, &plans), Completion::Success);
    let period = Nanos(142_857);
    let end = driver.now + LENGTH;
    let buffer = driver.ram.buffer(512);
    let mut events = 0;
    let mut rounds = 0;
    while driver.now < end {
        rounds += 1;
        for index in [3, 5, 7, 9, 11] {
            gadget.give(0x80 | (index / 2), &[index; 24]);
            driver.queue(slot, index, Trb::new(Kind::Normal, buffer, 512, bit::COMPLETION));
            driver.doorbell(slot, index);
        }
        driver.run_for(period);
        events += driver.transfers().len();
        driver.interrupts.clear();
    }
    assert_eq!(events, 5 * rounds);
}

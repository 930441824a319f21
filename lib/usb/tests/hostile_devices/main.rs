//! Devices that lie about themselves and spoil what is transferred, one after another, beside a
//! sensor that must not notice: the driver and the classes on the model of a controller, without a
//! kernel.

mod campaign;
mod devices;
#[path = "../xhci/machine.rs"]
#[allow(dead_code, reason = "each test uses a part")]
mod machine;
mod shell;
mod witness;
mod work;

use campaign::{Seen, attack};

/// The campaign reached what it means to attack.
fn reached(seen: &Seen, devices: u64) {
    println!("{seen:?}");
    assert!(seen.liars > devices / 2, "too few lies");
    assert!(seen.served > devices / 10, "hardly a device was believed");
    assert!(seen.refused > devices / 10, "hardly a device was refused");
    assert!(seen.transfers > devices, "too few transfers");
    assert!(seen.faults > 10 * devices, "too few faults");
}

#[test]
fn hostile_devices_disturb_nobody() {
    reached(&attack(1, 300), 300);
}

/// In parts, so that one sees how far it is, and a failure names its seed.
#[test]
#[ignore = "a hundred thousand lying devices take a quarter of an hour, in release"]
fn a_hundred_thousand_hostile_devices() {
    let (mut sum, mut seed) = (Seen::default(), 100);
    while sum.liars < 100_000 || sum.faults < 1_000_000 {
        println!("{sum:?}, seed {seed}");
        sum.add(&attack(seed, 1_000));
        seed += 1;
    }
    reached(&sum, sum.devices);
}

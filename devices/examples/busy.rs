//! Five busy channels for a minute, 7,000 frames a second, and a host that polls
//! whenever something may have changed. Time it from outside to see how fast the model is.

use diapason_abi::Nanos;
use diapason_devices::kvaser::{CommandHeader, Hydra, IN, Identity, OUT};
use diapason_devices::{Answer, UsbDevice};
use diapason_usb::Setup;

const SECONDS: u64 = 60;

fn command(number: u8, entity: u8, body: &[u8]) -> [u8; 32] {
    let header = CommandHeader { number, to: entity, from: 0, transaction: 1 }.encode();
    std::array::from_fn(|at| *header.iter().chain(body).nth(at).unwrap_or(&0))
}

fn main() {
    let (mut device, buses) = Hydra::busy(Identity::default());
    let configured = device.control(Nanos::ZERO, Setup::set_configuration(1), &[]);
    assert!(configured.is_ok());
    for (entity, bus) in (0x13..).zip(&buses) {
        let rate = bus.with_bus(|bus| bus.rate().hertz()).to_le_bytes();
        for (number, body) in [(16, [&rate[..], &[13, 2, 1, 1]].concat()), (26, Vec::new())] {
            device.receive(Nanos::ZERO, OUT, &command(number, entity, &body));
        }
    }
    let (mut polls, mut bytes, mut packet) = (0u64, 0, [0; 512]);
    while device.next_change() <= Nanos::from_secs(SECONDS) {
        let now = device.next_change();
        device.advance(now);
        while let Answer::Data(length) = device.send(now, IN, &mut packet) {
            bytes += length;
        }
        polls += 1;
    }
    // Ten replies of 32 bytes; each frame is 40.
    println!("{SECONDS} s simulated: {} frames, {polls} polls", (bytes - 320) / 40);
}

//! Everything that is a choice: names in the description, who interrupts when, how much of what.

use diapason_abi::Nanos;
use diapason_contract::threads::RECEIVE;
use diapason_usb::class::kvaser;
use diapason_usb::class::link::PEER_TIME;
use diapason_usb::xhci::Limits;

pub use diapason_contract::threads::MANAGED;

/// Most pixels of a picture: 640 by 480.
pub const CAMERA_PIXELS: u32 = 640 * 480;

/// The interrupter of commands, ports, control transfers, and most of what goes to devices. Those
/// of the services follow it in their order; the same number of messages is in the description.
pub const MANAGING: u16 = 0;

/// The thread that hears clients of CAN channels rests so long before it listens again.
pub const REST: Nanos = diapason_abi::pipe::REST;
/// Interrupts of [`MANAGING`] are handled so much later. QEMU's controller ignores moderation, but
/// no controller interrupts again before that; and nothing that is managed is in a hurry.
pub const PACE: Nanos = Nanos::from_millis(2);
/// A reservation that cannot be changed yet is tried again after this time, and so long.
pub const RETRY: Nanos = Nanos::from_millis(5);
pub const PATIENCE: Nanos = Nanos::from_secs(2);
// The driver's own costs assume what the thread is told.
const _: () = assert!(RECEIVE.moderation.0 == kvaser::MODERATION.0);
/// How exact time stamps of interfaces are.
pub const CLOCK: Nanos = Nanos::from_micros(10);

/// Events that have waited so long without an interrupt lost theirs.
pub const LOST: Nanos = Nanos::from_millis(10);
/// The managing thread looks at every branch at least so often. It learns only then of a time that
/// a bottom half set, so that time is kept late by up to so much.
pub const LOOK: Nanos = Nanos::from_millis(10);
const _: () = assert!(LOOK.0 <= PEER_TIME.0 && LOOK.0 <= REOPEN.0);
/// Events taken off a ring before the controller is told how far it was read.
pub const BATCH: u32 = 32;

/// A channel that was closed is opened again after this time, an interface that failed is asked
/// anew.
pub const REOPEN: Nanos = Nanos::from_millis(100);
/// A controller that died is started again after the first pause, then after twice as long, up to
/// the last.
pub const PAUSES: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_secs(1));

/// Bytes kept of a configuration.
pub const CONFIGURATION: usize = 1024;
/// Most bytes of a text of a device.
pub const TEXT: usize = 255;
/// Configurations of a device that are looked at, in their order, for one that somebody serves.
pub const CONFIGURATIONS: u8 = 4;

/// Room for one device of each service, and for a few that nobody serves; of the services, so many
/// have an interrupter of their own, and so many share memory with clients. Each CAN interface has
/// room for its transfers.
pub fn limits(services: usize, own: usize, shared: usize, interfaces: usize) -> Limits {
    let many = services > 1;
    let transfers = if many { (56 * interfaces as u16).max(132) } else { 56 };
    Limits {
        devices: services as u8 + 3,
        pipes: if many { 24 } else { 8 },
        // Each of the 16 transfers of a stream has two blocks if it crosses a border of 64 KiB.
        blocks: 64,
        transfers,
        interrupters: own as u16 + 1,
        // Two of each transfer, one of each port, and a few more.
        events: (2 * transfers + 40).next_power_of_two(),
        ports: 30,
        scratchpads: 64,
        configuration: CONFIGURATION as u16,
        windows: shared as u8 + 1,
        watch: Nanos::from_millis(100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the segment for rings in every description.
    const RINGS: u64 = 512 << 10;

    #[test]
    fn the_usual_segment_has_room_for_scratchpads_and_eight_services() {
        for (services, interfaces) in [(1, 0), (6, 1), (8, 2)] {
            let limits = limits(services, services, services, interfaces);
            assert!(limits.check().is_ok() && limits.scratchpads == 64);
            let bytes = limits.window_bytes();
            assert!(bytes <= RINGS, "{services} services, {interfaces} interfaces: {bytes}");
        }
    }
}

//! Everything that is a choice: names in the description, who interrupts when, how much of what.

use diapason_abi::Nanos;
use diapason_usb::xhci::Limits;

/// The controller in the description.
pub const DEVICE: &str = "xhci";
/// Memory the driver and the controller share: contexts and rings.
pub const RINGS: &str = "usb-rings";
/// Memory that transfers carry to and fro.
pub const BUFFERS: &str = "usb-buffers";

/// Where a bottom half is at home.
pub struct Home {
    /// Its VCPU in the description.
    pub vcpu: &'static str,
    /// Its thread.
    pub thread: &'static str,
    /// What the simulator calls its work.
    pub work: &'static str,
    /// The shortest time between two of its interrupts: the description's interval is a little
    /// shorter.
    pub moderation: Nanos,
}

/// The interrupter of commands, ports, control transfers, and most of what goes to devices. Those
/// of the services follow it in their order; the same number of messages is in the description.
pub const MANAGING: u16 = 0;
/// Its time between interrupts.
pub const MANAGED: Nanos = Nanos::from_millis(2);

/// What CAN channels receive. Together with the transfers pending the moderation makes batches:
/// what comes meanwhile stays in the interface, which has room for 64 frames, 9 ms of the article's
/// traffic.
pub const CAN: Home = Home {
    vcpu: "usb-receive",
    thread: "receive",
    work: "usbd.receive",
    moderation: Nanos::from_millis(1),
};
/// Interrupts of [`MANAGING`] are handled so much later. QEMU's controller ignores moderation, but
/// no controller interrupts again before that; and nothing that is managed is in a hurry.
pub const PACE: Nanos = Nanos::from_millis(2);
/// Events taken off a ring before the controller is told how far it was read.
pub const BATCH: u32 = 32;

/// Bit rates of the channels: those of the article's five buses.
pub const BIT_RATES: [u32; diapason_usbd::CHANNELS] = [500_000, 250_000, 500_000, 500_000, 500_000];
/// Where a bit is sampled, in tenths of a per cent.
pub const SAMPLE_POINT: u32 = 800;

/// A channel that was closed is opened again after this time, an interface that failed is asked
/// anew.
pub const REOPEN: Nanos = Nanos::from_millis(100);
/// A controller that died is started again after the first pause, then after twice as long, up to
/// the last.
pub const PAUSES: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_secs(1));

/// Bytes kept of a configuration.
pub const CONFIGURATION: usize = 1024;

/// Room for one device of each service, and for a few that nobody serves.
pub fn limits(services: usize) -> Limits {
    let many = services > 1;
    Limits {
        devices: services as u8 + 3,
        pipes: if many { 32 } else { 8 },
        blocks: 64,
        transfers: if many { 96 } else { 32 },
        interrupters: services as u16 + 1,
        events: if many { 256 } else { 128 },
        ports: 30,
        scratchpads: 32,
        configuration: CONFIGURATION as u16,
        windows: 1,
        watch: Nanos::from_millis(100),
    }
}

//! Everything that is a choice: names in the description, who interrupts when, how much of what.

use diapason_abi::Nanos;
use diapason_usb::xhci::Limits;

/// The controller in the description.
pub const DEVICE: &str = "xhci";
/// Memory the driver and the controller share: contexts and rings.
pub const RINGS: &str = "usb-rings";
/// Memory that transfers carry to and fro.
pub const BUFFERS: &str = "usb-buffers";
/// The VCPU of the bottom half that takes what CAN channels receive.
pub const RECEIVING: &str = "usb-receive";

/// Commands, ports, control transfers, and what goes to devices.
pub const MANAGING: u16 = 0;
/// What comes from CAN channels.
pub const CAN: u16 = 1;
/// How many interrupters are used; the same number of messages is in the description.
pub const INTERRUPTERS: u16 = 2;

/// The shortest time between two interrupts, by interrupter: the description's intervals are a
/// little shorter. Together with the transfers pending it makes batches: what comes meanwhile
/// stays in the interface, which has room for 64 frames, 9 ms of the article's traffic.
pub const MODERATION: [Nanos; INTERRUPTERS as usize] =
    [Nanos::from_millis(2), Nanos::from_millis(1)];
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

/// Transfers to interfaces that may be pending; those from them are the class's to say.
pub const SENDING: usize = 16;
/// Room for one of them.
pub const SEND_BYTES: usize = 128;

/// One interface, and a few devices that nobody serves.
pub const LIMITS: Limits = Limits {
    devices: 4,
    pipes: 8,
    blocks: 64,
    transfers: 32,
    interrupters: INTERRUPTERS,
    events: 128,
    ports: 30,
    scratchpads: 32,
    configuration: 1024,
    windows: 1,
    watch: Nanos::from_millis(100),
};

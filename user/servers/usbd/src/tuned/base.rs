//! The driver information base: what a CAN interface can do, and what its driver costs. The
//! description gives the server what is asked for here.

use crate::policy;
use diapason_abi::Nanos;
use diapason_abi::pipe::SLOTS;
use diapason_bus::Guarantee;
use diapason_canlib::agreement::CHANNELS;
use diapason_pipe::bill::{Interrupts, Telling, Transfers, Work};
use diapason_pipe::tuned::{Attributes, Driver, Reader, Shares};
use diapason_usb::class::kvaser::{MODERATION, TRANSFER};

/// Bytes of a message on the bus.
const MESSAGE: usize = 64;
/// Bytes of a message in a quality of service: a frame as Linux has it.
const FRAME: u64 = 16;
/// Slots of a USB 2 bus in which a transfer is through, guaranteed by its schedule: whatever is
/// plugged in later, or it is not configured.
const BUS_SLOTS: u32 = 2;
const SLOT: Nanos = Nanos::from_micros(125);

/// What the bus is asked to guarantee to the interface.
pub const GUARANTEE: Guarantee = Guarantee { bytes: TRANSFER.0 as u32, period: BUS_SLOTS };

/// The article's interface: four buses of 500 kbit/s and one of 250, 4 KiB in the device. The
/// longest works are those of `examples/tuned-pipes.toml`: the bottom half's, those for which the
/// server may be locked when it wants it, and its calls.
pub const BASE: Driver = Driver {
    attributes: Attributes {
        max_channels: CHANNELS as u32,
        max_tput: 2_250,
        min_latency: Nanos::from_millis(1),
        buffer: 64,
        packet: (FRAME, FRAME),
        max_slots: SLOTS as u64,
    },
    bus: Transfers {
        worst: Nanos(SLOT.0 * BUS_SLOTS as u64),
        least: Nanos::from_micros(1),
        queued: TRANSFER.1 as u64,
        messages: (TRANSFER.0 / MESSAGE) as u64,
    },
    interrupts: Interrupts {
        moderation: MODERATION,
        gap: Nanos::from_micros(990),
        top_half: Nanos::from_micros(20),
        shared: false,
    },
    bottom_half: (
        Work { activation: Nanos::from_micros(150), transfer: Nanos::ZERO, message: Nanos::ZERO },
        Telling::All,
    ),
    io: Shares { least: policy::IO_SHARE, most: policy::IO_SHARE, period: policy::IO_PERIOD },
    receiver: None,
    reader: Reader { wake: Nanos::from_micros(10), chunks: 8 },
};

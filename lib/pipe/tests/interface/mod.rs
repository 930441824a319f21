//! The device that tests of `tpipe` ask.

use diapason_abi::Nanos;
use diapason_pipe::bill::{Interrupts, StageTimes, Telling, Transfers};
use diapason_pipe::tuned::*;

pub const MS: fn(u64) -> Nanos = Nanos::from_millis;
pub const US: fn(u64) -> Nanos = Nanos::from_micros;

/// Returns a USB interface with five CAN channels.
pub fn interface() -> Driver {
    Driver {
        attributes: Attributes {
            max_channels: 5,
            max_tput: 2_250,
            min_latency: MS(1),
            buffer: 64,
            packet: (16, 16),
            max_slots: 256,
        },
        bus: Transfers {
            worst: US(125),
            least: US(10),
            run: 1,
            queued: 4,
            messages: 96,
            empties: false,
            paced: None,
        },
        interrupts: Interrupts {
            moderation: US(1_000),
            gap: US(990),
            top_half: US(20),
            shared: false,
        },
        bottom_half: (
            StageTimes { activation: US(5), transfer: US(2), message: US(2) },
            Telling::All,
        ),
        io: Shares { least: 20_000, most: 200_000, period: MS(2) },
        receiver: None,
        reader: ReaderThreads { wake: US(2), chunks: 8 },
        output: None,
    }
}

//! The driver information base: what a CAN interface can do, and what its driver costs. The costs
//! are those that the plan of the description computes with; they are told with the contracts.

use diapason_abi::Nanos;
use diapason_abi::archive::REPLENISHMENTS_MAX;
use diapason_abi::pipe::{AT_ONCE, BEFORE, DriverCosts, OUT_SLOTS, OutputCosts, REST, SLOTS};
use diapason_bus::{Guarantee, Speed};
use diapason_contract::can::EACH;
use diapason_contract::tuned::MESSAGE_BYTES;
use diapason_pipe::bill::{Drain, Interrupts, StageTimes, Telling, Transfers};
use diapason_pipe::size::Bucket;
use diapason_pipe::tuned::{Attributes, Driver, Outward, ReaderThreads, Shares};
use diapason_usb::class::kvaser::{MESSAGE, MODERATION, RUN, SENDING, TRANSFER};

/// Returns the guarantee that the bus gives the interface: that transfers in a row take no longer
/// than the plan says. The plan counted the described devices. Another device that would break the
/// guarantee is not configured.
pub const fn guarantee(costs: &DriverCosts) -> Guarantee {
    let period = costs.transfer.0 * 1_000 / Speed::High.slot().0;
    Guarantee { bytes: (RUN * TRANSFER.0) as u32, period: period as u32 }
}

/// An interface: four buses of 500 kbit/s and one of 250, 4 KiB in the device.
pub const ATTRIBUTES: Attributes = Attributes {
    max_channels: EACH as u32,
    max_tput: 2_250,
    min_latency: Nanos::from_millis(1),
    buffer: 64,
    packet: (MESSAGE_BYTES, MESSAGE_BYTES),
    max_slots: SLOTS as u64,
};

/// Returns the interface and its driver.
pub fn driver(costs: &DriverCosts, output: Option<&OutputCosts>) -> Driver {
    let DriverCosts { share, period, bottom_half, .. } = *costs;
    let attend =
        StageTimes { activation: bottom_half, transfer: Nanos::ZERO, message: Nanos::ZERO };
    Driver {
        attributes: ATTRIBUTES,
        bus: Transfers {
            worst: costs.transfer,
            least: costs.transfer_least,
            run: RUN as u64,
            queued: TRANSFER.1 as u64,
            messages: (TRANSFER.0 / MESSAGE) as u64,
            empties: true,
            paced: None,
        },
        interrupts: Interrupts {
            moderation: MODERATION,
            gap: costs.gap,
            top_half: costs.top_half,
            shared: output.is_some(),
        },
        bottom_half: (attend, Telling::All),
        io: Shares { least: share, most: share, period },
        receiver: None,
        reader: ReaderThreads { wake: costs.wake, chunks: REPLENISHMENTS_MAX as u32 },
        output: output.map(|output| outward(output, bottom_half)),
    }
}

/// Returns the way to the device; `work` is that of a thread of the server each time it is woken.
fn outward(costs: &OutputCosts, work: Nanos) -> Outward {
    let (ahead, open) = SENDING;
    let turn = costs.turn.1;
    Outward {
        look: (REST, work),
        io: (costs.share, costs.period),
        transfers: (costs.transfer, open as u64),
        ahead: ahead as u64,
        channels: costs.channels.count_ones().into(),
        slots: OUT_SLOTS as u64,
        drain: Drain { first: Nanos(BEFORE * turn.0), each: turn, holds: costs.holds },
        acknowledged: acknowledged(costs),
    }
}

/// Returns the arrivals from a channel that is written.
pub fn acknowledged(costs: &OutputCosts) -> Bucket {
    Bucket::periodic(costs.turn.0).with_burst(AT_ONCE)
}

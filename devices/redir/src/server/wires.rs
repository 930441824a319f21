//! The wires between the Ethernet adapters of guests, as their server sees them.
//!
//! QEMU's adapters send a frame in no time. The plugin of the clock keeps it with the time at which
//! its sender wrote the register. The server has all frames of a slice when all guests stand still,
//! and hands them to [`Wires`] in the order of these times. A frame that comes to an adapter at
//! some time of a slice arrives there a slice later, to the nanosecond. So no guest is ahead of a
//! frame, and a way takes longer than in a network without guests by a slice, whatever is on it.

use diapason_abi::Nanos;

/// Most adapters of a guest: `plugin/clock.c` has the same number.
pub const WIRES_MAX: usize = 16;

/// A frame that leaves an adapter of a guest, or comes to one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdapterFrame {
    /// The adapter, counted from 0 in the order of the guest's netdevs.
    pub adapter: usize,
    pub at: Nanos,
    /// From the destination to the end of the payload.
    pub bytes: Vec<u8>,
}

/// The network between the adapters of guests.
pub trait Wires {
    /// A guest has sent a frame. No earlier one follows.
    fn sent(&mut self, guest: usize, frame: &AdapterFrame);

    /// Takes the frames that come to a guest until `now`, in the order of time.
    fn came(&mut self, guest: usize, now: Nanos) -> Vec<AdapterFrame>;
}

/// The network of guests whose adapters have no wire.
pub(super) struct NoWires;

impl Wires for NoWires {
    fn sent(&mut self, _: usize, _: &AdapterFrame) {}

    fn came(&mut self, _: usize, _: Nanos) -> Vec<AdapterFrame> {
        Vec::new()
    }
}

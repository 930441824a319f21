//! The books of the thread that receives. It publishes them whole, so that those who report never
//! see a frame that was offered and neither passed on nor discarded.

use diapason_contract::ethernet::SOCKETS;
use diapason_ether::{Discard, FrameCounts};
use diapason_rt::Errno;
use diapason_rt::memory::KernelCopy;
use diapason_state::{StateBuffer, StateWriter, StaticState, plain};

plain! {
    /// The frames of the adapter, or of one socket, since the start.
    pub struct FrameBooks {
        pub offered: u64,
        pub passed: u64,
        /// Frames outside of the contract that the plan assumes.
        pub outside: u64,
        /// Most that ever waited.
        pub peak: u64,
        pub discarded: [u64; Discard::ALL.len()],
    }
}

type Cell = StateBuffer<FrameBooks, 2>;

/// The adapter, and then its sockets in the order of their terms.
static BOOKS: [StaticState<Cell>; 1 + SOCKETS] =
    [const { StaticState::new(StateBuffer::new()) }; 1 + SOCKETS];

/// The place of the adapter's books.
pub(crate) const ADAPTER: usize = 0;

/// Returns the newest books at this place.
pub(crate) fn read(place: usize) -> Option<FrameBooks> {
    Some(BOOKS.get(place)?.reader().read_slow(&KernelCopy))
}

/// The writing end of the books at one place.
pub(crate) struct Ledger(StateWriter<'static, Cell>);

impl Ledger {
    /// Returns the writing end.
    ///
    /// # Errors
    /// `Busy` if somebody has it.
    pub fn open(place: usize) -> Result<Ledger, Errno> {
        let writer = BOOKS.get(place).and_then(StaticState::writer);
        writer.map(Ledger).ok_or(Errno::Busy)
    }

    /// Publishes what was counted up to now.
    pub fn publish(&mut self, counts: &FrameCounts, outside: u64, peak: u32) {
        let FrameCounts { offered, passed, .. } = *counts;
        let (peak, discarded) = (peak.into(), *counts.discards());
        self.0.write(FrameBooks { offered, passed, outside, peak, discarded });
    }
}

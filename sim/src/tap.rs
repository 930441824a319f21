//! The traffic on the buses of a controller, for its observer. Watching changes nothing.

use diapason_abi::Nanos;
use diapason_usb::Speed;
use diapason_xhc::{BusPacket, InterruptMessage, TransferRecord, Xhc};
use std::cell::RefCell;
use std::rc::Rc;

/// The traffic since the last call.
#[derive(Clone, Debug, Default)]
pub struct TapTraffic {
    /// Packets, in the order of their ends.
    pub packets: Vec<BusPacket>,
    /// Interrupts that left the controller, with the times at which they arrive.
    pub interrupts: Vec<InterruptMessage>,
    /// Beginnings and ends of transfers, in the order in which they became known.
    pub transfers: Vec<TransferRecord>,
    /// No transfer before this time will be added.
    pub settled: Nanos,
    /// The bus instances: their speeds, and which are behind a hub that translates.
    pub buses: Vec<(Speed, bool)>,
}

/// A handle on what passes; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Tap(Rc<RefCell<TapTraffic>>);

impl Tap {
    /// Returns the traffic since the last call.
    #[must_use]
    pub fn take(&self) -> TapTraffic {
        let passed = &mut *self.0.borrow_mut();
        let left = TapTraffic {
            buses: passed.buses.clone(),
            settled: passed.settled,
            ..TapTraffic::default()
        };
        std::mem::replace(passed, left)
    }

    pub(crate) fn fill(&self, xhc: &mut Xhc, risen: &[InterruptMessage]) {
        let passed = &mut *self.0.borrow_mut();
        passed.interrupts.extend(risen);
        let (transfers, settled) = xhc.take_transfers();
        passed.packets.extend(xhc.take_records());
        passed.transfers.extend(transfers);
        passed.settled = settled;
        if passed.buses.len() != xhc.buses().count() {
            passed.buses = xhc.buses().collect();
        }
    }
}

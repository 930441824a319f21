//! The driver of a pipe's device, as its bill counts it: the thread that works for the device, its
//! transfers, and what keeps messages. CAN interfaces have their own numbers, and every other kind
//! of devices has a row in `diapason_contract::source`.

use diapason_abi::Nanos;
use diapason_abi::pipe::SLOTS;
use diapason_contract::can;
use diapason_contract::source::{PipeSource, SOURCES};
use diapason_contract::threads::{Home, RECEIVE, RECEIVERS};
use diapason_system::System;
use diapason_usb::class::kvaser::{MESSAGE, TRANSFER};

/// Messages that a CAN interface keeps until they are fetched: 4 KiB of them.
const KEPT: u64 = 64;

/// The driver of a device, as far as bills count it.
#[derive(Clone, Copy)]
pub(crate) struct Driver {
    /// The thread of the server that works for it.
    pub home: &'static Home,
    /// The row of its kind, if it is not that of a CAN interface.
    pub source: Option<&'static PipeSource>,
    /// Bytes of a transfer, and how many are queued.
    pub transfer: (usize, usize),
    /// Bytes of the shortest message.
    pub shortest: usize,
    /// Most messages in a transfer.
    pub messages: u64,
    /// Messages that the device keeps until they are fetched.
    pub kept: u64,
    /// Slots of the buffer of a pipe.
    pub slots: u64,
    /// The name of the work that a reader does for one message.
    pub message: &'static str,
}

/// Returns the longest time of a work, if the description has it.
pub(crate) fn worst(system: &System, name: &str) -> Option<Nanos> {
    let mut works = system.works.iter();
    works.find(|work| work.name == name).map(|work| Nanos(work.worst_ns))
}

/// Returns the longest time for which a bottom half holds its lock: its work, and that of as many
/// messages as can have come if all that was queued has ended.
pub(crate) fn held(system: &System, home: &Home) -> Nanos {
    let most = match SOURCES.iter().find(|source| source.home.vcpu == home.vcpu) {
        Some(source) => source.attributes.transfer.1,
        None => TRANSFER.1 * (TRANSFER.0 / MESSAGE),
    };
    let each = worst(system, home.each).unwrap_or_default();
    let own = worst(system, home.work).unwrap_or_default();
    Nanos(own.0.saturating_add(each.0.saturating_mul(most as u64)))
}

impl Driver {
    /// Returns that of a USB device; `interface` is its number among the CAN interfaces of its
    /// server.
    pub(crate) fn of(system: &System, usb: usize, interface: usize) -> Driver {
        if let Some((_, source)) = system.usb[usb].model.source() {
            let attributes = source.attributes;
            return Driver {
                home: source.home,
                source: Some(source),
                transfer: attributes.transfer,
                shortest: attributes.packet.0,
                messages: 1,
                kept: attributes.buffer,
                slots: attributes.slots as u64,
                message: source.message,
            };
        }
        Driver {
            home: RECEIVERS.get(interface).unwrap_or(&RECEIVE),
            source: None,
            transfer: TRANSFER,
            shortest: MESSAGE,
            messages: (TRANSFER.0 / MESSAGE) as u64,
            kept: KEPT,
            slots: SLOTS as u64,
            message: can::MESSAGE,
        }
    }
}

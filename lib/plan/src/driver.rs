//! The driver of a pipe's device, as its bill counts it: the thread that works for the device, its
//! transfers, and what keeps messages. CAN interfaces have their own numbers, and every other kind
//! of devices has a row in `diapason_contract::source`.

use crate::frames::has_fd;
use crate::missing::{self, Missing};
use diapason_abi::Nanos;
use diapason_abi::pipe::SLOTS;
use diapason_contract::can;
use diapason_contract::source::{MessageForm, PipeSource};
use diapason_contract::threads::{Home, RECEIVE, RECEIVERS, ServiceKind};
use diapason_devices::kvaser::Identity;
use diapason_system::{PipeSpec, System, UsbModel};
use diapason_usb::class::{gs_usb, kvaser};

/// Messages that a CAN interface keeps until they are fetched.
const KEPT: u64 = 64;
const _: () = assert!(diapason_devices::kvaser::FRAMES as u64 == KEPT);
const _: () = assert!(diapason_devices::gs_usb::POOL as u64 == KEPT);
const _: () = assert!(kvaser::TRANSFER.1 as u64 == can::PENDING);
const _: () = assert!((kvaser::TRANSFER.0 / kvaser::MESSAGE) as u64 == can::TOGETHER);

/// The driver of a device, as far as bills count it.
#[derive(Clone, Copy)]
pub(crate) struct Driver {
    /// The thread of the server that works for it.
    pub home: &'static Home,
    /// The row of its kind, if it is not that of a CAN interface.
    pub source: Option<&'static PipeSource>,
    /// Bytes of a transfer, and how many are queued.
    pub transfer: (usize, usize),
    /// Transfers in a row whose time the plan bounds as one.
    pub run: usize,
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

/// Returns the longest time for which a bottom half holds its lock.
pub(crate) fn held(system: &System, home: &Home) -> Nanos {
    let is_piped = |source: &PipeSource| {
        system.pipes.iter().filter_map(PipeSpec::source).any(|piped| piped == source)
    };
    Nanos(home.held(|name| worst(system, name).map(|worst| worst.0), is_piped))
}

/// Returns what each transfer and each message takes beside a wake-up: nothing if the description
/// has them in the work of a wake-up.
///
/// # Errors
/// The description has one of the two works only.
pub(crate) fn apart(system: &System, home: &Home) -> Result<(Nanos, Nanos), Missing> {
    if home.transfer.is_empty() {
        return Ok((Nanos::ZERO, worst(system, home.each).unwrap_or_default()));
    }
    match (worst(system, home.transfer), worst(system, home.each)) {
        (None, None) => Ok((Nanos::ZERO, Nanos::ZERO)),
        (Some(transfer), Some(each)) => Ok((transfer, each)),
        (Some(_), None) => Err(missing::works(&[home.each])),
        (None, Some(_)) => Err(missing::works(&[home.transfer])),
    }
}

impl Driver {
    /// Returns that of a USB device to a pipe of this source. A CAN interface has no source, and
    /// `interface` is its number among those of its server.
    pub(crate) fn of(
        system: &System,
        usb: usize,
        source: Option<&'static PipeSource>,
        interface: usize,
    ) -> Driver {
        if let Some(source) = source {
            let attributes = source.attributes;
            // A device with pipes both ways has a bottom half for both.
            let pair = system.service_of(usb).filter(|kind| *kind == ServiceKind::Pairs);
            let home = pair.and_then(|kind| kind.homes().first());
            return Driver {
                home: home.unwrap_or(source.home),
                source: Some(source),
                transfer: attributes.transfer,
                run: 1,
                shortest: attributes.packet.0,
                messages: 1,
                kept: match source.form {
                    // A camera keeps a picture, however many pieces it is. A disk sends what it is
                    // asked for.
                    MessageForm::Picture(_) | MessageForm::Blocks(_) => u64::MAX,
                    _ => attributes.buffer,
                },
                slots: attributes.slots as u64,
                message: source.message,
            };
        }
        let kvaser = Driver {
            home: RECEIVERS.get(interface).unwrap_or(&RECEIVE),
            source: None,
            transfer: kvaser::TRANSFER,
            run: kvaser::RUN,
            shortest: kvaser::MESSAGE,
            messages: (kvaser::TRANSFER.0 / kvaser::MESSAGE) as u64,
            kept: KEPT,
            slots: SLOTS as u64,
            message: can::MESSAGE,
        };
        match system.usb[usb].model {
            UsbModel::GsUsb => {
                let (mut transfer, shortest) = (gs_usb::TRANSFER, gs_usb::MESSAGE);
                if has_fd(&system.usb[usb]) {
                    transfer.0 = gs_usb::LONG_TRANSFER;
                }
                Driver { transfer, run: 1, shortest, messages: 1, ..kvaser }
            }
            _ => kvaser,
        }
    }
}

/// The way of frames to a CAN interface, as bills count it.
#[derive(Clone, Copy)]
pub(crate) struct Outward {
    /// Bytes of a transfer to the device.
    pub bytes: usize,
    /// Frames that are taken before they are sent, and those that are being sent.
    pub sending: (usize, usize),
    /// Frames of a channel that may be under way.
    pub holds: u64,
}

impl Outward {
    /// Returns that of a USB device.
    pub(crate) fn of(system: &System, usb: usize) -> Outward {
        match system.usb[usb].model {
            UsbModel::GsUsb => Outward {
                bytes: if has_fd(&system.usb[usb]) { gs_usb::LONG_SENT } else { gs_usb::SENT },
                sending: gs_usb::SENDING,
                holds: gs_usb::SLOTS.into(),
            },
            _ => Outward {
                bytes: kvaser::SENT_MAX,
                sending: kvaser::SENDING,
                holds: Identity::default().outstanding.into(),
            },
        }
    }
}

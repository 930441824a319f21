//! USB-CAN interfaces of any family that is served, as one class.
//!
//! A caller opens and closes channels by bit rate, sends frames and hears of what comes. The two
//! families differ in how that travels:
//!
//! | | [`Kvaser`] | [`GsUsb`] |
//! |---|---|---|
//! | commands | messages on the bulk pair | control requests |
//! | frames | several in a transfer | one in a transfer |
//! | times | 48 or 64 bits | µs in 32 bits |
//! | CAN FD | no | on channels that have it |

mod clock;
mod event;
mod slots;

pub(in crate::class) use clock::WrappingClock;
pub use event::{
    BusRates, CloseCause, DiscardCounts, FrameOutcome, InterfaceEvent, InterfaceFailure, Mode,
    ProbeStep, Refused,
};
pub use slots::SLOTS_MAX;
pub(in crate::class) use slots::Slots;

use super::gs_usb::GsUsb;
use super::kvaser::Kvaser;
use super::{Class, Completion, Request};
use crate::descriptor::{Configuration, DeviceDescriptor};
use diapason_abi::Nanos;
use diapason_can::{CanFrame, FdFrame};

/// The driver of one device.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "each interface has one, in a box of its own")]
pub enum InterfaceClass {
    Kvaser(Kvaser),
    GsUsb(GsUsb),
}

impl InterfaceClass {
    /// Returns whether it is a device of one of the families that have CAN FD, or of any family.
    #[must_use]
    pub fn fits(device: &DeviceDescriptor, configuration: &Configuration<'_>, fd: bool) -> bool {
        !fd && Kvaser::fits(device, configuration)
            || GsUsb::find(device, configuration, fd).is_some()
    }

    /// Begins to probe a device, if it is one of these. Channels can be opened with CAN FD only if
    /// `fd` says so, and then the device must be of a family that has it.
    #[must_use]
    pub fn find(
        now: Nanos,
        device: &DeviceDescriptor,
        configuration: &Configuration<'_>,
        fd: bool,
    ) -> Option<InterfaceClass> {
        if !fd && Kvaser::fits(device, configuration) {
            return Some(InterfaceClass::Kvaser(Kvaser::new(now, true)));
        }
        GsUsb::find(device, configuration, fd).map(InterfaceClass::GsUsb)
    }

    /// Returns whether the device is probed: its channels can be opened.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match self {
            InterfaceClass::Kvaser(class) => class.identity().is_some(),
            InterfaceClass::GsUsb(class) => class.is_ready(),
        }
    }

    /// Opens a channel at these rates. [`InterfaceEvent::Opened`] or [`InterfaceEvent::Failed`]
    /// follows.
    ///
    /// # Errors
    /// The caller's wish cannot be done.
    pub fn open(
        &mut self,
        now: Nanos,
        channel: u8,
        rates: impl Into<BusRates>,
        mode: Mode,
    ) -> Result<(), Refused> {
        let rates = rates.into();
        match self {
            InterfaceClass::Kvaser(_) if rates.data.is_some() => Err(Refused::NoFd),
            InterfaceClass::Kvaser(class) => {
                let identity = class.identity().ok_or(Refused::NotReady)?;
                let wanted = identity.personality.parameters(rates.rate, rates.sample_point);
                class.open(now, channel, wanted.map_err(|_| Refused::Parameters)?, mode)
            }
            InterfaceClass::GsUsb(class) => class.open(channel, rates, mode),
        }
    }

    /// Closes a channel; [`InterfaceEvent::Closed`] follows, after a time-out at the latest.
    ///
    /// # Errors
    /// It is not open.
    pub fn close(&mut self, now: Nanos, channel: u8) -> Result<(), Refused> {
        match self {
            InterfaceClass::Kvaser(class) => class.close(now, channel),
            InterfaceClass::GsUsb(class) => class.close(channel),
        }
    }

    /// Asks how a controller is; [`InterfaceEvent::ChipState`] follows.
    ///
    /// # Errors
    /// There is no such channel, or no room.
    pub fn ask_chip_state(&mut self, channel: u8) -> Result<(), Refused> {
        match self {
            InterfaceClass::Kvaser(class) => class.ask_chip_state(channel),
            InterfaceClass::GsUsb(class) => class.ask_chip_state(channel),
        }
    }

    /// Returns whether [`InterfaceClass::send`] would take a frame of this channel now.
    #[must_use]
    pub fn takes(&self, channel: u8) -> bool {
        match self {
            InterfaceClass::Kvaser(class) => class.takes(channel),
            InterfaceClass::GsUsb(class) => class.takes(channel),
        }
    }

    /// Sends a frame; [`InterfaceEvent::Acknowledged`] with the same slot follows when it is
    /// through.
    ///
    /// # Errors
    /// The channel is not open, or there is no slot: nothing was queued.
    pub fn send(&mut self, channel: u8, frame: &CanFrame) -> Result<u8, Refused> {
        match self {
            InterfaceClass::Kvaser(class) => class.send(channel, frame, false),
            InterfaceClass::GsUsb(class) => class.send(channel, frame),
        }
    }

    /// Sends a frame of CAN FD, like [`InterfaceClass::send`].
    ///
    /// # Errors
    /// The channel is not open for such frames, or there is no slot: nothing was queued.
    pub fn send_fd(&mut self, channel: u8, frame: &FdFrame) -> Result<u8, Refused> {
        match self {
            InterfaceClass::Kvaser(_) => Err(Refused::NoFd),
            InterfaceClass::GsUsb(class) => class.send_fd(channel, frame),
        }
    }
}

impl Class for InterfaceClass {
    type Event<'a> = InterfaceEvent;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        match self {
            InterfaceClass::Kvaser(class) => class.request(now),
            InterfaceClass::GsUsb(class) => class.request(now),
        }
    }

    fn complete(&mut self, now: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(InterfaceEvent)) {
        match self {
            InterfaceClass::Kvaser(class) => class.complete(now, done, tell),
            InterfaceClass::GsUsb(class) => class.complete(now, done, tell),
        }
    }

    fn renew(&mut self, endpoint: u8) -> Option<usize> {
        match self {
            InterfaceClass::Kvaser(class) => class.renew(endpoint),
            InterfaceClass::GsUsb(class) => class.renew(endpoint),
        }
    }

    fn next_wake(&self) -> Nanos {
        match self {
            InterfaceClass::Kvaser(class) => class.next_wake(),
            InterfaceClass::GsUsb(class) => class.next_wake(),
        }
    }

    fn wake(&mut self, now: Nanos, tell: &mut dyn FnMut(InterfaceEvent)) {
        match self {
            InterfaceClass::Kvaser(class) => class.wake(now, tell),
            InterfaceClass::GsUsb(class) => class.wake(now, tell),
        }
    }
}

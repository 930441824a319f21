//! A service for devices, as the server sees it.

use super::clients::Clients;
use crate::papers::Found;
use crate::platform::Platform;
use diapason_abi::Nanos;
use diapason_usb::class::{Completion, Landed, Request};
use diapason_usb::xhci::EndpointPlan;

/// How far a class is with its device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClassStage {
    /// The class has said nothing yet.
    Begun,
    /// The device did what was asked of it first.
    Works,
    /// The class has given up.
    Failed,
}

/// A kind with its class, as the server sees it.
pub(crate) trait Service<P: Platform>: Send {
    /// Returns whether this is one of its devices.
    fn fits(&self, found: &Found<'_>) -> bool;

    /// Returns the bus reservation of an endpoint; most have the `usual` one.
    fn plan(&self, usual: EndpointPlan) -> EndpointPlan;

    /// Begins the class for `another` device, or for one that failed a while ago. Returns false if
    /// it cannot.
    fn begin(&mut self, found: &Found<'_>, another: bool, now: Nanos) -> bool;

    /// Ends the class: its device is gone, or of no use for a while.
    fn end(&mut self, now: Nanos);

    /// Returns how far the class is since it began.
    fn stage(&self) -> ClassStage;

    /// Returns the next request of the class.
    fn request(&mut self, now: Nanos) -> Option<Request<'_>>;

    /// Takes the end of a transfer.
    fn complete(&mut self, done: Completion<'_>, now: Nanos);

    /// Begins another transfer from an endpoint whose last one has just ended well, if the class
    /// wants one at once, and returns its bytes.
    fn renew(&mut self, endpoint: u8) -> Option<usize>;

    /// Takes the end of a transfer with shared memory.
    fn landed(&mut self, done: Landed<'_>, now: Nanos);

    /// Returns when it wants to be woken.
    fn next_wake(&self) -> Nanos;

    /// Does what is due: time has passed, or clients have asked for something.
    fn wake(&mut self, now: Nanos);

    /// Returns how many messages came since the last call.
    fn take_messages(&mut self) -> u32;

    /// Returns its clients, if it can have any.
    fn clients(&mut self) -> Option<&mut Clients<P::Memory>>;
}

//! A kind of devices: which they are, what they need, and what their events are to clients.

use super::clients::Clients;
use crate::papers::Found;
use crate::platform::Platform;
use crate::slots::Shape;
use diapason_abi::Nanos;
use diapason_usb::class::Class;
use diapason_usb::xhci::EndpointPlan;

/// The effect of a class's event on its device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    On,
    /// The device is of no use; it is asked again after a while.
    End,
}

/// A kind of devices, and those it is for.
pub(crate) trait Kind<P: Platform>: Send + 'static {
    /// The class that speaks to its devices.
    type Class: Class + Send;

    /// The name of its devices.
    const NAME: &'static str;

    /// Memory for transfers of one device.
    const MEMORY: &'static [Shape];

    /// Returns the class for a device, if it is of this kind.
    fn find(&self, found: &Found<'_>, now: Nanos) -> Option<Self::Class>;

    /// Returns whether a device is of this kind.
    fn fits(&self, found: &Found<'_>) -> bool {
        self.find(found, Nanos::ZERO).is_some()
    }

    /// Returns the bus reservation of an endpoint. `usual` is that of other kinds: critical if the
    /// class chose the setting.
    fn plan(&self, usual: EndpointPlan) -> EndpointPlan {
        usual
    }

    /// Notes that another device is there.
    fn welcome(&mut self, found: &Found<'_>) {
        let _ = found;
    }

    /// Returns whether an event is a message for a pipe, or the end of one.
    fn is_message(event: &<Self::Class as Class>::Event<'_>) -> bool {
        let _ = event;
        false
    }

    /// Takes in an event of the class.
    fn hear(&mut self, event: <Self::Class as Class>::Event<'_>, now: Nanos) -> Next;

    /// Serves the clients' requests to the class; there may be no class.
    fn attend(&mut self, class: Option<&mut Self::Class>, now: Nanos) {
        let _ = (class, now);
    }

    /// Returns how many requests it took since the last call that are work for a message each.
    fn take_asks(&mut self) -> u32 {
        0
    }

    /// Returns when clients' wishes are due.
    fn next_wake(&self) -> Nanos {
        Nanos::FOREVER
    }

    /// Notes that the device is gone, or of no use for a while.
    fn forget(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Returns its clients, if it can have any.
    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        None
    }
}

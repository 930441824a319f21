//! CAN interfaces: frames to the pipes of their channels.

use super::clients::Clients;
use super::kind::{Kind, Next};
use super::offered::Offered;
use crate::channels::Channels;
use crate::papers::Found;
use crate::places::Order;
use crate::platform::Platform;
use crate::presence::Presence;
use crate::slots::Shape;
use crate::told::{Asking, Pipes};
use crate::tuned;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_bus::Guarantee;
use diapason_usb::class::kvaser::{Event, Kvaser, TRANSFER};
use diapason_usb::xhci::EndpointPlan;

/// The service for CAN interfaces.
pub(crate) struct Can<P: Platform> {
    clients: Clients<P::Memory>,
    channels: Channels<P>,
    /// Whether there is an interface.
    presence: Presence,
    /// The guarantee of the bus that they rest on.
    guarantee: Option<Guarantee>,
}

impl<P: Platform> Can<P> {
    /// Returns the channels of an interface that is not there, and the semaphores that their
    /// clients wait for.
    ///
    /// # Errors
    /// A pipe or a mailbox is not there.
    pub fn new(
        platform: &P,
        interface: usize,
        asking: Asking,
        pipes: &Pipes,
    ) -> Result<(Can<P>, &'static [&'static str]), Errno> {
        let (channels, bells) = Channels::new(platform, interface, asking, pipes)?;
        let (clients, presence) = (Clients::new(), Presence::default());
        let costs = pipes.costs.as_ref().filter(|_| interface == 0);
        let guarantee = costs.map(tuned::guarantee);
        Ok((Can { clients, channels, presence, guarantee }, bells.leak()))
    }
}

impl<P: Platform> Offered<P, Can<P>> {
    /// Returns the view of whether there is an interface.
    pub fn presence(&self) -> Presence {
        self.kind.presence.clone()
    }

    /// Somebody listens or writes to a channel, or no more.
    pub fn order(&mut self, order: &Order, now: Nanos) {
        self.kind.channels.order(order, now);
    }

    /// Hears what clients have put into their mailboxes.
    pub fn heed(&mut self, now: Nanos) {
        self.kind.channels.listen(now);
    }

    /// Writes reports for the clients of channels.
    pub fn report(&mut self) {
        self.kind.clients.ring(self.kind.channels.take_fresh());
    }
}

impl<P: Platform> Kind<P> for Can<P> {
    type Class = Kvaser;

    const NAME: &'static str = "a CAN interface";
    const MEMORY: &'static [Shape] =
        &[Shape { bytes: 128, count: 16 }, Shape { bytes: TRANSFER.0, count: TRANSFER.1 as u8 }];

    fn find(&self, _: &Found<'_>, now: Nanos) -> Option<Kvaser> {
        Some(Kvaser::new(now, true))
    }

    fn fits(&self, found: &Found<'_>) -> bool {
        Kvaser::fits(&found.about, &found.set)
    }

    fn is_message(event: &Event) -> bool {
        matches!(event, Event::Frame { .. })
    }

    fn hear(&mut self, event: Event, now: Nanos) -> Next {
        let over = matches!(event, Event::Failed { channel: None, .. });
        self.channels.hear(event, now);
        if over { Next::End } else { Next::On }
    }

    fn plan(&self, usual: EndpointPlan) -> EndpointPlan {
        // Messages come from its one endpoint of this direction.
        let guarantee = self.guarantee.filter(|_| usual.endpoint.address & 0x80 != 0);
        EndpointPlan { guarantee, ..usual }
    }

    fn attend(&mut self, class: Option<&mut Kvaser>, now: Nanos) {
        self.presence.set(class.is_some());
        if let Some(class) = class {
            self.channels.drive(class, now);
        }
    }

    fn forget(&mut self, _: Nanos) {
        self.channels.forget();
    }

    fn next_wake(&self) -> Nanos {
        self.channels.next_wake()
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}

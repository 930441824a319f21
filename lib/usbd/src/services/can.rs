//! CAN interfaces: frames to the pipes of their channels.

use super::{Asking, Found, Kind, Next};
use crate::channels::Channels;
use crate::places::Order;
use crate::platform::Platform;
use crate::slots::Shape;
use crate::told::Pipes;
use crate::tuned;
use alloc::vec::Vec;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_bus::Guarantee;
use diapason_usb::class::kvaser::{Event, Kvaser, TRANSFER};
use diapason_usb::descriptor::Endpoint;
use diapason_usb::xhci::EndpointPlan;

/// The service for CAN interfaces.
pub struct Can<P: Platform> {
    channels: Channels<P>,
    bells: Vec<&'static str>,
    /// There are places for tuned pipes.
    tuned: bool,
    /// The guarantee of the bus that they rest on.
    guarantee: Option<Guarantee>,
}

impl<P: Platform> Can<P> {
    /// Channels without an interface.
    ///
    /// # Errors
    /// A pipe or a semaphore is not there.
    pub fn new(platform: &P, asking: Asking, pipes: &Pipes) -> Result<Can<P>, Errno> {
        let (channels, bells) = Channels::new(platform, asking, pipes)?;
        let tuned = !pipes.places.is_empty();
        let guarantee = pipes.costs.as_ref().map(tuned::guarantee);
        Ok(Can { channels, bells, tuned, guarantee })
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

    fn hear(&mut self, event: Event, now: Nanos) -> Next {
        let over = matches!(event, Event::Failed { channel: None, .. });
        self.channels.hear(event, now);
        if over { Next::End } else { Next::On }
    }

    fn heed(&mut self, now: Nanos) {
        self.channels.listen(now);
    }

    fn has_pipes(&self) -> bool {
        self.tuned
    }

    fn plan(&self, endpoint: Endpoint) -> EndpointPlan {
        // Messages come from its one endpoint of this direction.
        let guarantee = self.guarantee.filter(|_| endpoint.address & 0x80 != 0);
        EndpointPlan { guarantee, ..EndpointPlan::new(endpoint) }
    }

    fn order(&mut self, order: &Order, now: Nanos) {
        self.channels.order(order, now);
    }

    fn attend(&mut self, class: Option<&mut Kvaser>, now: Nanos) {
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

    fn bells(&self) -> &[&'static str] {
        &self.bells
    }

    fn take_fresh(&mut self) -> u32 {
        self.channels.take_fresh()
    }
}

//! A device of which one endpoint is read and another one is written: both services of such
//! endpoints, side by side, in one branch.

use super::clients::Clients;
use super::endpoint::{self, Endpoint};
use super::kind::{Kind, Next};
use super::sink::Sink;
use crate::papers::Found;
use crate::platform::Platform;
use crate::slots::Shape;
use crate::told::Pipes;
use diapason_abi::{Errno, Nanos};
use diapason_contract::sensor::{PACKET, QUEUED};
use diapason_contract::sink::UNDER_WAY;
use diapason_usb::class::pair::{PacketPair, PairEvent};
use diapason_usb::xhci::EndpointPlan;

/// The bell of the reader, and that of the writer.
const BELLS: [u32; 2] = [1, 2];

/// The service for two endpoints of a device.
pub(crate) struct Pair<P: Platform> {
    source: Endpoint<P>,
    sink: Sink<P>,
    clients: Clients<P::Memory>,
}

impl<P: Platform> Pair<P> {
    /// Returns the service without a device.
    ///
    /// # Errors
    /// A pipe is not there.
    pub fn new(platform: &P, pipes: &Pipes) -> Result<Pair<P>, Errno> {
        let (source, sink) = (Endpoint::new(platform, pipes)?, Sink::new(platform, pipes)?);
        Ok(Pair { source, sink, clients: Clients::new() })
    }
}

impl<P: Platform> Kind<P> for Pair<P> {
    type Class = PacketPair;

    const NAME: &'static str = "two endpoints";
    const MEMORY: &'static [Shape] = &[Shape { bytes: PACKET, count: (QUEUED + UNDER_WAY) as u8 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<PacketPair> {
        let numbers = [self.source.number(), self.sink.number()];
        let fits = endpoint::has_room(found, self.source.number());
        PacketPair::find(&found.set, numbers).filter(|_| fits)
    }

    fn plan(&self, usual: EndpointPlan) -> EndpointPlan {
        self.sink.plan(self.source.plan(usual))
    }

    fn is_message(event: &PairEvent<'_>) -> bool {
        matches!(event, PairEvent::Source(event) if Endpoint::<P>::is_message(event))
    }

    fn hear(&mut self, event: PairEvent<'_>, now: Nanos) -> Next {
        match event {
            PairEvent::Source(event) => self.source.hear(event, now),
            PairEvent::Sink(event) => self.sink.hear(event, now),
        }
    }

    fn attend(&mut self, class: Option<&mut PacketPair>, now: Nanos) {
        self.sink.attend(class.map(PacketPair::sink), now);
    }

    fn next_wake(&self) -> Nanos {
        self.sink.next_wake()
    }

    fn forget(&mut self, now: Nanos) {
        self.sink.forget(now);
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        let both = [self.source.clients(), self.sink.clients()];
        for (clients, bell) in both.into_iter().zip(BELLS) {
            if clients.is_some_and(|clients| clients.take_fresh() != 0) {
                self.clients.ring(bell);
            }
        }
        Some(&mut self.clients)
    }
}

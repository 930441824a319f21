//! The endpoint of any device that a description has a pipe from: packets to that pipe.

use super::clients::Clients;
use super::judged::Judge;
use super::kind::{Kind, Next};
use super::packets::PacketOutlet;
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use crate::told::Pipes;
use diapason_abi::{Errno, Nanos};
use diapason_bus::Criticality;
use diapason_contract::endpoint::PACKETS;
use diapason_contract::sensor::{PACKET, QUEUED};
use diapason_contract::threads::ServiceKind;
use diapason_usb::class::endpoint::{DEPTH, PacketEvent, PacketSource, find};
use diapason_usb::setup::IN;
use diapason_usb::xhci::EndpointPlan;

// The plan counts as many transfers as the driver keeps queued.
const _: () = assert!(QUEUED == DEPTH);

/// The service for one endpoint of a device.
pub(crate) struct Endpoint<P: Platform> {
    number: u8,
    outlet: PacketOutlet<P>,
}

impl<P: Platform> Endpoint<P> {
    /// Returns the service without a device.
    ///
    /// # Errors
    /// The pipe is not there.
    pub fn new(platform: &P, pipes: &Pipes) -> Result<Endpoint<P>, Errno> {
        let outlet =
            PacketOutlet::new(platform, PACKETS, Judge::new(ServiceKind::Endpoints, pipes))?;
        Ok(Endpoint { number: pipes.endpoint, outlet })
    }

    /// Returns the number of the endpoint; 0 of none.
    pub const fn number(&self) -> u8 {
        self.number
    }
}

/// Returns whether the packets of this endpoint of a device have room in the pipe.
pub(super) fn has_room(found: &Found<'_>, number: u8) -> bool {
    find(&found.set, number).is_some_and(|it| usize::from(it.packet) <= PACKET)
}

/// Returns the bus reservation of an endpoint, where packets pass the one with this address. Their
/// bill says how often it is served, and no device that comes later may change that.
pub(super) fn reserved(usual: EndpointPlan, address: u8) -> EndpointPlan {
    let is_its = usual.endpoint.address == address;
    let criticality = if is_its { Criticality::High } else { usual.criticality };
    EndpointPlan { criticality, ..usual }
}

impl<P: Platform> Kind<P> for Endpoint<P> {
    type Class = PacketSource;

    const NAME: &'static str = "an endpoint";
    const MEMORY: &'static [Shape] = &[Shape { bytes: PACKET, count: QUEUED as u8 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<PacketSource> {
        let fits = has_room(found, self.number);
        PacketSource::find(&found.set, self.number).filter(|_| fits)
    }

    fn plan(&self, usual: EndpointPlan) -> EndpointPlan {
        reserved(usual, self.number | IN)
    }

    fn is_message(event: &PacketEvent<'_>) -> bool {
        matches!(event, PacketEvent::Packet(_))
    }

    fn hear(&mut self, event: PacketEvent<'_>, now: Nanos) -> Next {
        match event {
            PacketEvent::Opened => {
                self.outlet.restart();
                log!(P, "endpoint {}: open", self.number);
            }
            PacketEvent::Packet(bytes) => self.outlet.push(bytes, now),
            PacketEvent::Failed => {
                log!(P, "endpoint {}: failed", self.number);
                return Next::End;
            }
        }
        Next::On
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.outlet.clients)
    }
}

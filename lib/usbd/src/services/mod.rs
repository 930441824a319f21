//! The services for devices: a class of `lib/usb`, and the effect of its events on clients.
//!
//! A service lives as long as the server, its clients attached to it; devices of its kind come and
//! go. It serves one at a time. Each is a [`Kind`]; [`Offered`] makes a [`service::Service`] of it,
//! which is what the server sees. It sees more of CAN interfaces and hubs: [`AnyService`].

pub mod any;
mod camera;
pub mod can;
pub mod clients;
mod disk;
mod endpoint;
mod frames;
pub mod hub;
mod judged;
mod keyboard;
mod kind;
mod link;
mod network;
pub mod offered;
mod packets;
mod pair;
mod sensor;
pub mod service;
mod sink;
mod stream;

use crate::platform::Platform;
use crate::slots::Shape;
use crate::told::ServerSettings;
use alloc::boxed::Box;
use alloc::vec::Vec;
use any::AnyService;
use can::Can;
use diapason_abi::Errno;
use diapason_contract::threads::{HUBS, Home, LINK, STREAM, ServiceKind};
use kind::Kind;
use offered::Offered;

/// All services that are offered.
pub type Offers<P> = Vec<Offer<P>>;

/// A service as the server takes it on.
pub struct Offer<P: Platform> {
    pub(crate) service: AnyService<P>,
    /// The home of the service's bottom half; `None`: with the managing thread.
    pub home: Option<&'static Home>,
    /// The devices that it serves; `None`: any that fits.
    pub(crate) kind: Option<ServiceKind>,
    /// The CAN interface that it is for, or the seat of its device; 0 of other services.
    pub(crate) interface: u8,
    /// The name of its devices, and the memory for transfers of one of them.
    pub(crate) name: &'static str,
    pub(crate) memory: &'static [Shape],
    /// Semaphores that it gives to clients with something new.
    pub(crate) bells: &'static [&'static str],
}

/// Returns the services that are wanted.
///
/// # Errors
/// Returns an error if an object that they need is not there.
pub fn offered<P: Platform>(platform: &P, told: &ServerSettings) -> Result<Offers<P>, Errno> {
    let mut all = Offers::new();
    for (kind, seat) in told.seats.iter().copied() {
        let at = (Some(&kind.homes()[seat]), Some(kind));
        let offer = match kind {
            ServiceKind::Can => {
                let asking = told.hears_clients(seat).then_some(told.clients);
                let (can, bells) = Can::new(platform, seat, asking, &told.pipes)?;
                let memory = can.memory();
                Offer { bells, memory, ..offer(can, AnyService::Can, at) }
            }
            ServiceKind::Sensors => other(sensor::Sensor::new(platform, seat, &told.pipes)?, at),
            ServiceKind::Keyboards => other(keyboard::Keys::new(platform)?, at),
            ServiceKind::Disks => other(disk::Disk::new(platform, seat, &told.pipes)?, at),
            ServiceKind::Cameras => other(camera::Video::new(platform, seat, &told.pipes)?, at),
            ServiceKind::Networks => {
                let (network, bells) = network::Network::new(platform, &told.pipes)?;
                Offer { bells, ..other(network, at) }
            }
            ServiceKind::Endpoints => other(endpoint::Endpoint::new(platform, &told.pipes)?, at),
            ServiceKind::Sinks => other(sink::Sink::new(platform, &told.pipes)?, at),
            ServiceKind::Pairs => other(pair::Pair::new(platform, &told.pipes)?, at),
            // They have no interrupter and no seat, and come last.
            ServiceKind::Hubs => continue,
        };
        all.push(Offer { interface: seat as u8, ..offer });
    }
    let links = told.links.iter().copied().zip(&LINK).zip(told.longest);
    for (number, ((port, home), longest)) in links.enumerate() {
        let link = link::Link::new(platform, number, port, (told.guarantee, longest))?;
        all.push(other(link, (Some(home), None)));
    }
    // The first seats are those of the cameras that clients watch.
    let watched = told.seats.iter().filter(|(kind, _)| *kind == ServiceKind::Cameras).count();
    for (number, (terms, home)) in told.streams.iter().cloned().zip(&STREAM).enumerate() {
        let stream = stream::Stream::new(platform, number, terms)?;
        let offer = other(stream, (Some(home), Some(ServiceKind::Cameras)));
        all.push(Offer { interface: (watched + number) as u8, ..offer });
    }
    if told.hubs {
        for _ in 0..HUBS {
            all.push(offer(hub::Ports::new(), AnyService::Hub, (None, None)));
        }
    }
    Ok(all)
}

/// Where a service is at home, and the devices that it serves.
type At = (Option<&'static Home>, Option<ServiceKind>);

fn offer<P: Platform, K: Kind<P>>(
    kind: K,
    any: impl FnOnce(Box<Offered<P, K>>) -> AnyService<P>,
    (home, served): At,
) -> Offer<P> {
    let bells = home.map_or(&[][..], |home| home.ready);
    // A description is refused if it has less for its devices.
    debug_assert!(served.is_none_or(|kind| {
        K::MEMORY.iter().map(|shape| shape.total() as u64).sum::<u64>() == kind.buffers()
    }));
    let service = any(Box::new(Offered::new(kind)));
    Offer { service, home, kind: served, interface: 0, name: K::NAME, memory: K::MEMORY, bells }
}

/// Returns a service of which the server knows no more than that it is one.
fn other<P: Platform, K: Kind<P>>(kind: K, at: At) -> Offer<P> {
    offer(kind, |service| AnyService::Other(service), at)
}

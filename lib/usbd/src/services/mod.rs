//! The services for devices: a class of `lib/usb`, and the effect of its events on clients.
//!
//! A service lives as long as the server, its clients attached to it; devices of its kind come and
//! go. It serves one at a time. Each is a [`Kind`]; [`Offered`] makes a [`Service`] of it, which is
//! what the server sees. It sees more of CAN interfaces and hubs: [`AnyService`].

mod camera;
mod can;
mod clients;
mod disk;
mod frames;
mod hub;
mod keyboard;
mod link;
mod network;
mod offered;
mod sensor;
mod stream;

use crate::platform::Platform;
use crate::policy;
use crate::served::Place;
use crate::server::Driver;
use crate::slots::Shape;
use crate::told::Told;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
pub use can::Can;
pub use clients::Clients;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::threads::{Home, LINK, STREAM, ServiceKind};
use diapason_pipe::measured::{DeviceReport, Fate, Measurement};
use diapason_usb::Speed;
use diapason_usb::class::{Class, Completion, Landed, Request};
use diapason_usb::descriptor::{Configuration, Device};
use diapason_usb::xhci::{DeviceId, EndpointPlan};
pub use offered::{AnyService, Offered};
pub use stream::Terms;

/// The identity that a device reports.
pub struct Found<'a> {
    pub about: Device,
    /// One of its configurations.
    pub set: Configuration<'a>,
    /// Hubs between it and the controller.
    pub tier: u8,
    pub port: u8,
}

/// A device's descriptors, as the driver read them.
pub struct Papers {
    device: [u8; DEVICE_BYTES],
    /// One of its configurations.
    set: Vec<u8>,
    pub speed: Speed,
    pub place: Place,
    /// The connector of the controller that it is behind.
    pub connector: u8,
}

const DEVICE_BYTES: usize = 18;

impl Papers {
    /// Returns the driver's reading of a device.
    pub fn read<P: Platform>(
        driver: &Driver<P>,
        device: DeviceId,
        (speed, place): (Speed, Place),
    ) -> Option<Papers> {
        let about = driver.device_descriptor(device).ok()?;
        let mut set = vec![0; policy::CONFIGURATION];
        let length = driver.configuration(device, &mut set).ok()?;
        set.truncate(length);
        let connector = driver.connector(place.port);
        (set.len() == length).then_some(Papers { device: about, set, speed, place, connector })
    }

    /// Returns the report that the device met this fate.
    pub fn report(&self, fate: Fate) -> Measurement {
        let about = Device::parse(&self.device, self.speed);
        let identity = about.map_or((0, 0), |about| (about.vendor, about.product));
        let (connector, route) = (self.connector, self.place.route);
        Measurement::Device(DeviceReport { connector, route, identity, fate })
    }

    /// Returns what they say, if they make sense.
    pub fn found(&self) -> Option<Found<'_>> {
        let about = Device::parse(&self.device, self.speed).ok()?;
        let set = Configuration::parse_once(&self.set, self.speed).ok()?;
        Some(Found { about, set, tier: self.place.tier(), port: self.place.port })
    }
}

/// The fate of a device behind a hub.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Child {
    /// Its descriptors are read.
    Found,
    /// It does not work.
    Failed,
}

/// The effect of a class's event on its device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Next {
    On,
    /// It is of no use; it is asked anew after a while.
    End,
}

/// How far a class is with its device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ClassStage {
    /// It has said nothing yet.
    Begun,
    /// The device did what was asked of it first.
    Works,
    /// It has given up.
    Failed,
}

/// A kind of devices, and those it is for.
pub trait Kind<P: Platform>: Send + 'static {
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
    fn welcome(&mut self) {}

    /// Takes in an event of the class.
    fn hear(&mut self, event: <Self::Class as Class>::Event<'_>, now: Nanos) -> Next;

    /// Serves the clients' requests to the class; there may be no class.
    fn attend(&mut self, class: Option<&mut Self::Class>, now: Nanos) {
        let _ = (class, now);
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

/// A kind with its class, as the server sees it.
pub trait Service<P: Platform>: Send {
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

    /// Takes the end of a transfer with shared memory.
    fn landed(&mut self, done: Landed<'_>, now: Nanos);

    /// Returns when it wants to be woken.
    fn next_wake(&self) -> Nanos;

    /// Does what is due: time has passed, or clients have asked for something.
    fn wake(&mut self, now: Nanos);

    /// Returns its clients, if it can have any.
    fn clients(&mut self) -> Option<&mut Clients<P::Memory>>;
}

/// All services that are offered.
pub type Offers<P> = Vec<Offer<P>>;

/// A service as the server takes it on.
pub struct Offer<P: Platform> {
    pub(crate) service: AnyService<P>,
    /// Where its bottom half is at home; `None`: with the managing thread.
    pub home: Option<&'static Home>,
    /// The devices that it serves; `None`: any that fits.
    pub(crate) kind: Option<ServiceKind>,
    /// The name of its devices, and the memory for transfers of one of them.
    pub(crate) name: &'static str,
    pub(crate) memory: &'static [Shape],
    /// Semaphores that it gives to clients with something new.
    pub(crate) bells: &'static [&'static str],
}

/// CAN channels with a client that asks, one bit each, if a thread hears clients.
pub type Asking = Option<u8>;

/// The services that are wanted.
///
/// # Errors
/// Returns an error if an object that they need is not there.
pub fn offered<P: Platform>(platform: &P, told: &Told) -> Result<Offers<P>, Errno> {
    let asking = told.hears_clients().then_some(told.clients);
    let mut all = Offers::new();
    for kind in told.services.iter().copied() {
        let at = (kind.home(), Some(kind));
        all.push(match kind {
            ServiceKind::Can => {
                let (can, bells) = Can::new(platform, asking, &told.pipes)?;
                Offer { bells, ..offer(can, AnyService::Can, at) }
            }
            ServiceKind::Sensors => other(sensor::Sensor::new(platform)?, at),
            ServiceKind::Keyboards => other(keyboard::Keys::new(platform)?, at),
            ServiceKind::Disks => other(disk::Disk::new(platform)?, at),
            ServiceKind::Cameras => other(camera::Video::new(platform)?, at),
            ServiceKind::Networks => other(network::Network::new(platform)?, at),
            // Without interrupters, they come last.
            ServiceKind::Hubs => continue,
        });
    }
    for (number, (port, home)) in told.links.iter().copied().zip(&LINK).enumerate() {
        let link = link::Link::new(platform, number, port, told.guarantee)?;
        all.push(other(link, (Some(home), None)));
    }
    for (number, (terms, home)) in told.streams.iter().copied().zip(&STREAM).enumerate() {
        let stream = stream::Stream::new(platform, number, terms)?;
        all.push(other(stream, (Some(home), Some(ServiceKind::Cameras))));
    }
    if told.services.contains(&ServiceKind::Hubs) {
        for _ in 0..policy::HUBS {
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
    let bells = home.map_or(&[][..], |home| home.ready.as_slice());
    let service = any(Box::new(Offered::new(kind)));
    Offer { service, home, kind: served, name: K::NAME, memory: K::MEMORY, bells }
}

/// A service of which the server knows no more than [`Service`].
fn other<P: Platform, K: Kind<P>>(kind: K, at: At) -> Offer<P> {
    offer(kind, |service| AnyService::Other(service), at)
}

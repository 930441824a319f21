//! The services for devices: a class of `lib/usb`, and the effect of its events on clients.
//!
//! A service lives as long as the server, its clients attached to it; devices of its kind come and
//! go. It serves one at a time. Each is a [`Kind`]; [`Offered`] makes a [`Service`] of it, which is
//! what the server sees.

mod camera;
mod can;
mod disk;
mod frames;
mod hub;
mod keyboard;
mod link;
mod network;
mod offered;
mod sensor;
mod stream;

use crate::places::Order;
use crate::platform::Platform;
use crate::policy;
use crate::served::Place;
use crate::server::{Driver, Turn};
use crate::slots::Shape;
use crate::told::Told;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::threads::{Home, LINK, STREAM, ServiceKind};
use diapason_pipe::measured::{DeviceReport, Fate, Measurement};
use diapason_usb::Speed;
use diapason_usb::class::{Class, Completion, Landed, Request};
use diapason_usb::descriptor::{Configuration, Device, Endpoint};
use diapason_usb::xhci::{DeviceId, EndpointPlan};
use offered::Offered;
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

    /// The class for a device, if it is of this kind.
    fn find(&self, found: &Found<'_>, now: Nanos) -> Option<Self::Class>;

    fn fits(&self, found: &Found<'_>) -> bool {
        self.find(found, Nanos::ZERO).is_some()
    }

    /// Returns the bus reservation of an endpoint in its first settings.
    fn plan(&self, endpoint: Endpoint) -> EndpointPlan {
        EndpointPlan::new(endpoint)
    }

    /// Returns the bus reservation of a setting that the class chose.
    fn chosen(&self, endpoint: Endpoint) -> EndpointPlan {
        EndpointPlan::critical(endpoint)
    }

    /// Another device is there.
    fn welcome(&mut self) {}

    fn hear(&mut self, event: <Self::Class as Class>::Event<'_>, now: Nanos) -> Next;

    /// Clients have put something into a mailbox.
    fn heed(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Returns whether it carries tuned pipes.
    fn has_pipes(&self) -> bool {
        false
    }

    /// Somebody listens to a channel, or no more.
    fn order(&mut self, order: &Order, now: Nanos) {
        let _ = (order, now);
    }

    /// Serves the clients' requests to the class; there may be no class.
    fn attend(&mut self, class: Option<&mut Self::Class>, now: Nanos) {
        let _ = (class, now);
    }

    /// Makes its requests to the driver.
    fn steer(
        &mut self,
        class: &mut Self::Class,
        driver: &mut Driver<P>,
        device: DeviceId,
        turn: &mut Turn,
    ) -> Next {
        let _ = (class, driver, device, turn);
        Next::On
    }

    /// The driver did what it was asked for here.
    fn settled(&mut self) {}

    /// News of a device behind this one, at this port.
    fn child(&mut self, port: u8, child: Child) {
        let _ = (port, child);
    }

    /// A place in shared memory is the controller's.
    fn lent(&mut self, place: u32) {
        let _ = place;
    }

    /// It is not any more; if the class still listens, it hears of it next.
    fn returned(&mut self, place: u32, now: Nanos) {
        let _ = (place, now);
    }

    /// The device is gone, or of no use for a while.
    fn forget(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Returns when clients' wishes are due.
    fn next_wake(&self) -> Nanos {
        Nanos::FOREVER
    }

    /// Memory it shares with a client, and the bytes from one place in it to the next.
    fn shared(&self) -> Option<(&P::Memory, usize)> {
        None
    }

    /// Returns the semaphores that it gives to clients with something new.
    fn bells(&self) -> &[&'static str] {
        &[]
    }

    /// Returns the bells that are to be rung, and forgets them: bit n stands for number n.
    fn take_fresh(&mut self) -> u32 {
        0
    }

    /// Returns the semaphore that clients give when they want something.
    fn asked(&self) -> Option<&'static str> {
        None
    }
}

/// A kind with its class, as the server sees it.
pub trait Service<P: Platform>: Send {
    /// Returns the name of its devices.
    fn name(&self) -> &'static str;

    /// Returns whether this is one of its devices.
    fn fits(&self, found: &Found<'_>) -> bool;

    /// Memory for transfers of one device.
    fn memory(&self) -> &'static [Shape];

    fn plan(&self, endpoint: Endpoint) -> EndpointPlan;

    fn chosen(&self, endpoint: Endpoint) -> EndpointPlan;

    /// Returns the interrupter that reports its transfers.
    fn interrupter(&self) -> u16;

    fn welcome(&mut self);

    /// A device is configured, or failed a while ago: its class begins. False if it cannot.
    fn begin(&mut self, found: &Found<'_>, now: Nanos) -> bool;

    /// Its device is gone, or of no use for a while.
    fn end(&mut self, now: Nanos);

    /// Returns how far the class is since it began.
    fn stage(&self) -> ClassStage;

    /// Returns the next request of the class.
    fn request(&mut self, now: Nanos) -> Option<Request<'_>>;

    fn complete(&mut self, done: Completion<'_>, now: Nanos);

    fn lent(&mut self, place: u32);

    fn returned(&mut self, place: u32, now: Nanos);

    /// Takes the end of a transfer with shared memory.
    fn landed(&mut self, done: Landed<'_>, now: Nanos);

    /// Returns when it wants to be woken.
    fn next_wake(&self) -> Nanos;

    /// Clients have put something into a mailbox.
    fn heed(&mut self, now: Nanos);

    /// Time has passed, or clients have asked for something.
    fn wake(&mut self, now: Nanos);

    fn steer(&mut self, driver: &mut Driver<P>, device: DeviceId, turn: &mut Turn);

    fn settled(&mut self);

    fn child(&mut self, port: u8, child: Child);

    fn shared(&self) -> Option<(&P::Memory, usize)>;

    /// Returns whether it has a device with tuned pipes.
    fn has_pipes(&self) -> bool;

    fn order(&mut self, order: &Order, now: Nanos);

    fn bells(&self) -> &[&'static str];

    fn take_fresh(&mut self) -> u32;

    fn asked(&self) -> Option<&'static str>;
}

/// All services that are offered.
pub type Offers<P> = Vec<Offer<P>>;

/// A service as the server takes it on.
pub struct Offer<P: Platform> {
    pub service: Box<dyn Service<P>>,
    /// Where its bottom half is at home; `None`: with the managing thread.
    pub home: Option<&'static Home>,
    /// The devices that it serves; `None`: any that fits.
    pub kind: Option<ServiceKind>,
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
    for service in told.services.iter().filter(|service| **service != ServiceKind::Hubs) {
        let kind = *service;
        let all = (&mut all, service.home(), Some(kind));
        match kind {
            ServiceKind::Can => offer(all, can::Can::new(platform, asking, &told.pipes)?),
            ServiceKind::Sensors => offer(all, sensor::Sensor::new(platform)?),
            ServiceKind::Keyboards => offer(all, keyboard::Keys::new(platform)?),
            ServiceKind::Disks => offer(all, disk::Disk::new(platform)?),
            ServiceKind::Cameras => offer(all, camera::Video::new(platform)?),
            ServiceKind::Networks => offer(all, network::Network::new(platform)?),
            ServiceKind::Hubs => {}
        }
    }
    for (number, (port, home)) in told.links.iter().copied().zip(&LINK).enumerate() {
        let link = link::Link::new(platform, number, port, told.guarantee)?;
        offer((&mut all, Some(home), None), link);
    }
    for (number, (terms, home)) in told.streams.iter().copied().zip(&STREAM).enumerate() {
        let stream = stream::Stream::new(platform, number, terms)?;
        offer((&mut all, Some(home), Some(ServiceKind::Cameras)), stream);
    }
    if told.services.contains(&ServiceKind::Hubs) {
        (0..policy::HUBS).for_each(|_| offer((&mut all, None, None), hub::Ports::new()));
    }
    Ok(all)
}

/// One more; its interrupter is the next that nobody has.
fn offer<P: Platform, K: Kind<P>>(
    (all, home, served): (&mut Offers<P>, Option<&'static Home>, Option<ServiceKind>),
    kind: K,
) {
    let before = all.iter().filter(|offer| offer.home.is_some()).count() as u16;
    let interrupter = if home.is_some() { before + 1 } else { policy::MANAGING };
    let service = Box::new(Offered::new(kind, interrupter));
    all.push(Offer { service, home, kind: served });
}

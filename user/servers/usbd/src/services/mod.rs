//! What devices are served by: a class of `lib/usb`, and what becomes of its events for clients.
//!
//! A service lives as long as the server, its clients attached to it; devices of its kind come and
//! go. It serves one at a time.

mod can;

use crate::policy::{self, Home};
use crate::server::Driver;
use crate::slots::Shape;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_rt::Errno;
use diapason_rt::sync::Semaphore;
use diapason_usb::Speed;
use diapason_usb::class::{Completion, Request};
use diapason_usb::descriptor::{Configuration, Device, Endpoint};
use diapason_usb::xhci::{DeviceId, EndpointPlan};

/// What a device says it is.
pub struct Found<'a> {
    /// Its device descriptor.
    pub about: Device,
    /// Its first configuration.
    pub set: Configuration<'a>,
}

impl<'a> Found<'a> {
    /// What the driver has read of a device, its configuration in `bytes`.
    pub fn read(
        driver: &Driver,
        device: DeviceId,
        speed: Speed,
        bytes: &'a mut [u8; policy::CONFIGURATION],
    ) -> Option<Found<'a>> {
        let about = driver.device_descriptor(device).ok()?;
        let about = Device::parse(&about, speed).ok()?;
        let length = driver.configuration(device, bytes).ok()?;
        let set = Configuration::parse_once(bytes.get(..length)?, speed).ok()?;
        Some(Found { about, set })
    }
}

/// One kind of device, and those it is for.
pub trait Service: Send {
    /// What its devices are called.
    fn name(&self) -> &'static str;

    /// Is this one of its devices?
    fn fits(&self, found: &Found<'_>) -> bool;

    /// Memory for transfers of one device.
    fn memory(&self) -> &'static [Shape];

    /// How much an endpoint matters to the bus.
    fn plan(&self, endpoint: Endpoint) -> EndpointPlan {
        EndpointPlan::new(endpoint)
    }

    /// Who reports transfers of an endpoint.
    fn interrupter(&self, endpoint: u8) -> u16;

    /// A device is configured, or failed a while ago: its class begins. False if it cannot.
    fn begin(&mut self, found: &Found<'_>, now: Nanos) -> bool;

    /// Its device is gone, or of no use for a while.
    fn end(&mut self);

    /// Has the class given up since it began?
    fn has_failed(&self) -> bool;

    /// What the class wants.
    fn request(&mut self, now: Nanos) -> Option<Request<'_>>;

    /// How it went.
    fn complete(&mut self, done: Completion<'_>, now: Nanos);

    /// When it wants to be woken.
    fn next_wake(&self) -> Nanos;

    /// Time has passed, or clients have asked for something.
    fn wake(&mut self, now: Nanos);

    /// What it gives to clients that have something new.
    fn bells(&self) -> &[Semaphore];

    /// Which of its bells are to be rung: bit n stands for number n. Asking takes them back.
    fn take_fresh(&mut self) -> u32;
}

/// Services, and where the bottom half of each is at home.
pub type Offers = Vec<(Box<dyn Service>, &'static Home)>;

/// The services there are; the first has interrupter 1, and so on.
///
/// # Errors
/// What they need is not there.
pub fn offered() -> Result<Offers, Errno> {
    Ok(vec![(Box::new(can::Can::new(1)?), &policy::CAN)])
}

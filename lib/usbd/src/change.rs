//! Changes of a device's endpoints that its class asks for: settings, and endpoints begun anew. One
//! at a time, as the driver has it, and tried again while the driver is at something else.

use crate::platform::Platform;
use crate::policy;
use crate::served::Place;
use crate::server::Driver;
use crate::services::{Found, Service};
use alloc::vec::Vec;
use diapason_usb::Speed;
use diapason_usb::class::Fault;
use diapason_usb::xhci::{DeviceId, EndpointPlan, Refused};

/// Interfaces whose settings are remembered.
const INTERFACES: usize = 16;

/// The change to make.
#[derive(Clone, Copy)]
pub enum Change {
    /// Another setting of an interface.
    Alternate { interface: u8, alternate: u8 },
    /// An endpoint begins anew, here and in the device.
    Renew { endpoint: u8 },
}

impl Change {
    /// The endpoint whose completion the class waits for.
    pub const fn endpoint(self) -> u8 {
        match self {
            Change::Alternate { .. } => 0,
            Change::Renew { endpoint } => endpoint,
        }
    }
}

/// The change that is wanted, and the settings there are.
#[derive(Default)]
pub struct Changes {
    wanted: Option<Change>,
    /// The driver has taken it on.
    asked: bool,
    settings: [u8; INTERFACES],
}

impl Changes {
    /// Notes that this change is wanted.
    pub fn want(&mut self, change: Change) {
        (self.wanted, self.asked) = (Some(change), false);
    }

    /// Nothing is wanted any more, and the settings are those after a configuration.
    pub fn forget(&mut self) {
        // The driver still carries out the changes that it has accepted.
        self.wanted = None;
    }

    /// The driver has done it.
    pub fn settled(&mut self) -> Option<Change> {
        let change = self.refused()?;
        if let Change::Alternate { interface, alternate } = change
            && let Some(setting) = self.settings.get_mut(usize::from(interface))
        {
            *setting = alternate;
        }
        Some(change)
    }

    /// The device did not do it.
    pub fn refused(&mut self) -> Option<Change> {
        self.wanted.take_if(|_| self.asked)
    }

    /// Ask the driver, if that is still to be done; what cannot be is told with its reason.
    pub fn ask<P: Platform>(
        &mut self,
        service: &dyn Service<P>,
        driver: &mut Driver<P>,
        of: (DeviceId, Speed, Place),
    ) -> Option<(Change, Fault)> {
        let change = self.wanted.filter(|_| !self.asked)?;
        let asked = match change {
            Change::Renew { endpoint } => driver.renew(of.0, endpoint),
            Change::Alternate { interface, alternate } => {
                self.choose(service, driver, of, (interface, alternate))
            }
        };
        let fault = match asked {
            Ok(()) => {
                self.asked = true;
                return None;
            }
            Err(Refused::Busy) => return None,
            Err(Refused::NoDevice | Refused::NotRunning) => Fault::Gone,
            Err(Refused::Unfit(_)) => Fault::NoBandwidth,
            Err(_) => Fault::Stall,
        };
        self.wanted = None;
        Some((change, fault))
    }

    fn choose<P: Platform>(
        &self,
        service: &dyn Service<P>,
        driver: &mut Driver<P>,
        (device, speed, place): (DeviceId, Speed, Place),
        (interface, alternate): (u8, u8),
    ) -> Result<(), Refused> {
        let mut bytes = [0; policy::CONFIGURATION];
        let found = Found::read::<P>(driver, device, (speed, place), &mut bytes)
            .ok_or(Refused::NoDevice)?;
        let before = self.settings.get(usize::from(interface)).copied().unwrap_or(0);
        let endpoints = |alternate| {
            let setting = found.set.interface(interface, alternate);
            setting.into_iter().flat_map(|setting| setting.endpoints())
        };
        let gone: Vec<u8> = endpoints(before).map(|endpoint| endpoint.address).collect();
        let plans: Vec<EndpointPlan> = endpoints(alternate).map(|e| service.chosen(e)).collect();
        driver.set_alternate(device, (interface, alternate), &gone, &plans)
    }
}

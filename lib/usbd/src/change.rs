//! Changes of a device's endpoints that its class asks for: settings, and restarted endpoints. One
//! at a time, as the driver has it, and tried again while the driver is at something else.

use crate::papers::Papers;
use crate::platform::Platform;
use crate::services::service::Service;
use alloc::vec::Vec;
use diapason_usb::class::TransferFault;
use diapason_usb::xhci::{Controller, DeviceId, Dma, EndpointPlan, Lanes, Mmio, Refused};

/// Interfaces whose settings are remembered.
const INTERFACES: usize = 16;

/// The change to make.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    /// Another setting of an interface.
    Alternate { interface: u8, alternate: u8 },
    /// Restarts an endpoint, here and in the device.
    Renew { endpoint: u8 },
}

impl Change {
    /// Returns the endpoint whose completion the class waits for.
    pub const fn endpoint(self) -> u8 {
        match self {
            Change::Alternate { .. } => 0,
            Change::Renew { endpoint } => endpoint,
        }
    }
}

/// The change that is wanted, and the settings there are.
#[derive(Default)]
pub(crate) struct Changes {
    wanted: Option<Change>,
    /// The driver has it.
    asked: bool,
    settings: [u8; INTERFACES],
}

impl Changes {
    /// Notes that this change is wanted.
    pub fn want(&mut self, change: Change) {
        (self.wanted, self.asked) = (Some(change), false);
    }

    /// Forgets every wish; the settings are those after a configuration.
    pub fn forget(&mut self) {
        // The driver still carries out the changes that it has accepted.
        self.wanted = None;
    }

    /// Notes that the driver has done it.
    pub fn settled(&mut self) -> Option<Change> {
        let change = self.refused()?;
        if let Change::Alternate { interface, alternate } = change
            && let Some(setting) = self.settings.get_mut(usize::from(interface))
        {
            *setting = alternate;
        }
        Some(change)
    }

    /// Notes that the device did not do it.
    pub fn refused(&mut self) -> Option<Change> {
        self.wanted.take_if(|_| self.asked)
    }

    /// Returns the order for the driver, if a change is still to be ordered.
    pub fn order<P: Platform>(
        &mut self,
        service: &dyn Service<P>,
        papers: &Papers,
    ) -> Option<Result<DriverRequest, (Change, TransferFault)>> {
        let change = self.wanted.filter(|_| !self.asked)?;
        let order = match change {
            Change::Renew { endpoint } => Some(DriverRequest::Renew { endpoint }),
            Change::Alternate { interface, alternate } => {
                self.choose(service, papers, (interface, alternate))
            }
        };
        let Some(order) = order else {
            self.wanted = None;
            return Some(Err((change, TransferFault::Gone)));
        };
        self.asked = true;
        Some(Ok(order))
    }

    fn choose<P: Platform>(
        &self,
        service: &dyn Service<P>,
        papers: &Papers,
        setting @ (interface, alternate): (u8, u8),
    ) -> Option<DriverRequest> {
        let found = papers.found()?;
        let before = self.settings.get(usize::from(interface)).copied().unwrap_or(0);
        let endpoints = |alternate| {
            let setting = found.set.interface(interface, alternate);
            setting.into_iter().flat_map(|setting| setting.endpoints())
        };
        let gone = endpoints(before).map(|endpoint| endpoint.address).collect();
        let plans = endpoints(alternate).map(|e| service.plan(EndpointPlan::critical(e))).collect();
        Some(DriverRequest::Alternate { setting, gone, plans })
    }
}

/// A change as the driver is asked for it.
pub enum DriverRequest {
    /// Another setting of an interface, the endpoints that go, and those that come.
    Alternate { setting: (u8, u8), gone: Vec<u8>, plans: Vec<EndpointPlan> },
    /// Restarts an endpoint, here and in the device.
    Renew { endpoint: u8 },
}

impl DriverRequest {
    /// Asks the driver; `None`: it is at something else.
    pub fn ask<M: Mmio, D: Dma, L: Lanes<M, D>>(
        &self,
        driver: &mut Controller<M, D, L>,
        device: DeviceId,
    ) -> Option<Result<(), TransferFault>> {
        let asked = match self {
            DriverRequest::Renew { endpoint } => driver.renew(device, *endpoint),
            DriverRequest::Alternate { setting, gone, plans } => {
                driver.set_alternate(device, *setting, gone, plans)
            }
        };
        match asked {
            Ok(()) => Some(Ok(())),
            Err(Refused::Busy) => None,
            Err(Refused::NoDevice | Refused::NotRunning) => Some(Err(TransferFault::Gone)),
            Err(Refused::Unfit(_)) => Some(Err(TransferFault::NoBandwidth)),
            Err(_) => Some(Err(TransferFault::Stall)),
        }
    }
}

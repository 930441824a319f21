//! A service of any kind, as the server has it.

use super::can::Can;
use super::hub::Ports;
use super::offered::Offered;
use super::service::Service;
use crate::platform::Platform;
use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

/// A service of any kind. Those that the server knows by more than [`Service`] have their types.
pub(crate) enum AnyService<P: Platform> {
    /// CAN interfaces, whose channels are told who listens to them.
    Can(Box<Offered<P, Can<P>>>),
    /// A hub, which makes requests to the driver.
    Hub(Box<Offered<P, Ports>>),
    Other(Box<dyn Service<P>>),
}

impl<P: Platform> Deref for AnyService<P> {
    type Target = dyn Service<P>;

    fn deref(&self) -> &Self::Target {
        match self {
            AnyService::Can(service) => &**service,
            AnyService::Hub(service) => &**service,
            AnyService::Other(service) => &**service,
        }
    }
}

impl<P: Platform> DerefMut for AnyService<P> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            AnyService::Can(service) => &mut **service,
            AnyService::Hub(service) => &mut **service,
            AnyService::Other(service) => &mut **service,
        }
    }
}

//! Services at their places: those with a bottom half have a desk of their own, in its branch.

use crate::platform::Platform;
use crate::services::{Offer, Offers};
use crate::serving::Serving;
use crate::slots::Shape;
use alloc::vec;
use alloc::vec::Vec;
use diapason_contract::threads::ServiceKind;

/// A service by its place, and its kind of devices.
pub(crate) struct Offered {
    pub branch: u16,
    /// The service's number in its branch.
    pub number: usize,
    pub kind: Option<ServiceKind>,
    /// The CAN interface that it is for, or the seat of its device; 0 of other services.
    pub interface: u8,
    /// The name of its devices, and the memory for transfers of one of them.
    pub name: &'static str,
    pub memory: &'static [Shape],
}

/// The services at their places.
pub(crate) struct Furnished<P: Platform> {
    /// The desks of branches.
    pub desks: Vec<Serving<P>>,
    pub desk: Serving<P>,
    pub offices: Vec<Offered>,
    pub bells: Vec<&'static str>,
}

/// Gives each service with a bottom half a desk of its own, and the others the server's.
pub(crate) fn furnish<P: Platform>(offers: Offers<P>) -> Furnished<P> {
    let (mut desks, mut common) = (Vec::new(), Vec::new());
    let (mut offices, mut bells) = (Vec::new(), Vec::new());
    for Offer { service, home, kind, interface, name, memory, bells: own } in offers {
        let (branch, number) = if home.is_some() {
            desks.push(Serving::new(vec![service], bells.len()));
            bells.extend(own);
            (desks.len() as u16, 0)
        } else {
            common.push(service);
            (0, common.len() - 1)
        };
        offices.push(Offered { branch, number, kind, interface, name, memory });
    }
    Furnished { desks, desk: Serving::new(common, 0), offices, bells }
}

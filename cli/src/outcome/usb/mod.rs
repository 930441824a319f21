//! Reports of USB servers on devices, links and cameras, and the promises about those.
//!
//! A server reports when something changes. A run without a report on something that is described
//! does not hold, and names it.

mod cameras;
mod devices;
mod links;
mod modes;
mod network;

pub(super) use cameras::note as note_camera;
pub use cameras::{CameraPromise, CameraRow};
pub(super) use devices::note as note_device;
pub use devices::{DevicePromise, PlugRow};
pub(super) use links::note as note_link;
pub use links::{LinkPromise, LinkRow};
pub use modes::{ModePromise, ModeRows};
pub use network::NetworkRow;

use super::coverage::patience;
use super::{Outcome, RaisedAlarm};
use crate::names::Names;
use diapason_system::System;

/// The promises of a description about USB, besides its pipes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct UsbPromises {
    pub links: Vec<LinkPromise>,
    pub devices: Vec<DevicePromise>,
    pub cameras: Vec<CameraPromise>,
    pub modes: Vec<ModePromise>,
    /// A run of so long without one of them is an alarm.
    patience_ns: u64,
}

impl UsbPromises {
    /// Returns those of a description.
    #[must_use]
    pub fn of(system: &System) -> UsbPromises {
        UsbPromises {
            links: LinkPromise::of(system),
            devices: DevicePromise::of(system),
            cameras: CameraPromise::of(system),
            modes: ModePromise::of(system),
            patience_ns: patience(system),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
            && self.devices.is_empty()
            && self.cameras.is_empty()
            && self.modes.is_empty()
    }

    /// Returns what a run contradicts.
    pub(super) fn alarms(&self, outcome: &Outcome, names: &Names) -> Vec<RaisedAlarm> {
        let links = self.links.iter().filter_map(|it| it.alarm(outcome, names, self.patience_ns));
        let devices = self.devices.iter().filter_map(|it| it.alarm(outcome, self.patience_ns));
        let cameras =
            self.cameras.iter().flat_map(|it| it.alarms(outcome, names, self.patience_ns));
        let modes = self.modes.iter().filter_map(|it| it.alarm(outcome));
        links.chain(devices).chain(cameras).chain(modes).collect()
    }

    /// Returns what no life of the host measured, as sentences.
    pub(super) fn unmeasured(&self, outcome: &Outcome, names: &Names) -> Vec<String> {
        let never = |is_measured: &dyn Fn(&Outcome) -> bool| !outcome.lives().any(is_measured);
        let links = self.links.iter().filter(|it| never(&|life| it.is_measured(life)));
        let links = links.map(|it| it.unmeasured(outcome, names));
        let devices = self.devices.iter().filter(|it| never(&|life| it.is_kept(life)));
        let devices = devices.map(|it| it.sentence(outcome));
        let cameras = self.cameras.iter().filter(|it| never(&|life| it.is_measured(life)));
        let cameras = cameras.map(|it| format!("no frame of {}", it.name(names)));
        let modes = self.modes.iter().filter(|it| never(&|life| it.is_measured(life)));
        let modes = modes.map(ModePromise::unmeasured);
        links.chain(devices).chain(cameras).chain(modes).collect()
    }
}

#[cfg(test)]
mod tests;

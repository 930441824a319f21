//! A device and where it stands between the plug and its configuration.

use super::report::DeviceFailure;
use crate::context::Slot;
use crate::register::speed;
use crate::setup::descriptor_type::{CONFIGURATION, DEVICE, STRING};
use crate::{Setup, Speed};
use diapason_abi::Nanos;

/// Tiers of hubs below a root port.
pub(super) const DEPTH_MAX: u8 = 5;

/// The hub's properties that matter to devices behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HubPlan {
    pub ports: u8,
    /// Think time of its translator as in the hub descriptor, 0 to 3.
    pub think_time: u8,
    /// One transaction translator per port.
    pub multi_tt: bool,
}

/// Where a device is plugged in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Place {
    /// Root port, from 1.
    pub port: u8,
    /// Hub ports on the way.
    pub route: u32,
    pub depth: u8,
    /// Index of the hub, and its port.
    pub parent: Option<(u8, u8)>,
    /// Slot and port of the hub that translates, and whether each of its ports does.
    pub translator: Option<(u8, u8, bool)>,
}

/// The step that is under way for a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Free,
    Enable,
    /// Address Device with the address held back, after it failed at once.
    Block,
    /// Eight bytes of the device descriptor at address 0 (`early`) or at the device's own.
    Eight {
        early: bool,
    },
    /// Evaluate Context with the right packet size, and what follows.
    Evaluate {
        early: bool,
    },
    Address,
    Descriptor,
    /// The first nine bytes of the configuration.
    Header,
    Configuration,
    /// The first language in which it has texts, to read this text in.
    Language(u8),
    /// A text, by its number and its language.
    Text(u8, u16),
    /// The device waits for the client, or runs.
    Idle,
    /// Configure Endpoint, and the request that tells the device.
    Configure(Option<Setup>),
    Request(Setup),
    Leave,
}

/// Bytes of a device descriptor.
pub(super) const DEVICE_BYTES: u16 = 18;
/// Where it says how many configurations there are.
pub(super) const CONFIGURATIONS_AT: usize = 17;
/// Bytes of the head of a configuration.
pub(super) const HEADER_BYTES: u16 = 9;
/// Bytes of a list of languages with its first.
pub(super) const LANGUAGE_BYTES: u16 = 4;
/// Most bytes of a text.
pub(super) const TEXT_BYTES: u16 = 255;

/// A place for a device.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub generation: u32,
    pub step: Step,
    /// The command or request of this step is under way.
    pub issued: bool,
    /// Until when the driver's own request must be answered.
    pub deadline: Nanos,
    /// The driver's own request on the control endpoint, and the endpoint (context index) it
    /// clears if it does.
    pub request: Option<(Setup, Option<u8>)>,
    pub slot: u8,
    pub speed: Speed,
    pub place: Place,
    pub hub: Option<HubPlan>,
    /// The lane of its endpoints. Its control endpoint is in lane 0.
    pub lane: u16,
    /// Contexts that it has an endpoint for.
    pub contexts: u32,
    /// Contexts whose endpoint needs a command or a request.
    pub wants: u32,
    /// The schedule changed for its endpoints, and the controller may have to learn of that.
    pub replan: bool,
    /// Bytes of a packet of the control endpoint.
    pub packet: u16,
    /// The address is held back at first.
    pub blocked: bool,
    /// The index of the configuration that is read, from 0.
    pub number: u8,
    pub total: u16,
    pub descriptor: [u8; DEVICE_BYTES as usize],
    /// The client knows of it.
    pub announced: bool,
    /// Why it leaves, if it did not just vanish.
    pub cause: Option<DeviceFailure>,
    /// Contexts that the Configure Endpoint under way drops and adds.
    pub masks: (u32, u32),
    /// The endpoints are being changed for the schedule's sake and not the client's.
    pub quiet: bool,
}

impl Device {
    /// Returns a place that no device has.
    pub fn new() -> Device {
        Device {
            generation: 0,
            step: Step::Free,
            issued: false,
            deadline: Nanos::FOREVER,
            request: None,
            slot: 0,
            speed: Speed::Full,
            place: Place::default(),
            hub: None,
            lane: 0,
            contexts: 0,
            wants: 0,
            replan: false,
            packet: 8,
            blocked: false,
            number: 0,
            total: 0,
            descriptor: [0; DEVICE_BYTES as usize],
            announced: false,
            cause: None,
            masks: (0, 0),
            quiet: false,
        }
    }

    /// A device that was just reset.
    pub fn begin(&mut self, place: Place, speed: Speed, blocked: bool) {
        let packet = match speed {
            Speed::Low | Speed::Full => 8,
            Speed::High => 64,
            Speed::Super => 512,
        };
        let generation = self.generation;
        *self = Device { generation, place, speed, packet, blocked, ..Device::new() };
        self.enter(Step::Enable);
    }

    /// Begins a step, with no command or request issued for it.
    pub fn enter(&mut self, step: Step) {
        self.step = step;
        self.issued = false;
    }

    /// Returns whether no device has this place.
    pub fn is_free(&self) -> bool {
        self.step == Step::Free
    }

    /// Returns whether a device has this place and is not leaving.
    pub fn is_here(&self) -> bool {
        !matches!(self.step, Step::Free | Step::Leave)
    }

    /// Returns the request of this step.
    pub fn wants_request(&self) -> Option<Setup> {
        let get = |kind, length| {
            let number = if kind == CONFIGURATION { self.number } else { 0 };
            Some(Setup::get_descriptor(kind, number, 0, length))
        };
        match self.step {
            Step::Eight { .. } => get(DEVICE, 8),
            Step::Descriptor => get(DEVICE, DEVICE_BYTES),
            Step::Header => get(CONFIGURATION, HEADER_BYTES),
            Step::Configuration => get(CONFIGURATION, self.total),
            Step::Language(_) => get(STRING, LANGUAGE_BYTES),
            Step::Text(number, language) => {
                Some(Setup::get_descriptor(STRING, number, language, TEXT_BYTES))
            }
            Step::Request(setup) => Some(setup),
            _ => None,
        }
    }

    /// Returns its slot context for the controller, with `entries` as the highest endpoint.
    pub fn slot_context(&self, entries: u32) -> Slot {
        let mut slot = Slot::default();
        slot.set_route(self.place.route);
        slot.set_speed(speed_number(self.speed));
        slot.set_root_port(self.place.port.into());
        slot.set_entries(entries);
        if let Some(hub) = self.hub {
            slot.set_hub(1);
            slot.set_ports(hub.ports.into());
            if self.speed == Speed::High {
                slot.set_think_time(hub.think_time.into());
                slot.set_multi_tt(hub.multi_tt.into());
            }
        }
        if let Some((parent, port, multi)) = self.place.translator {
            slot.set_parent_slot(parent.into());
            slot.set_parent_port(port.into());
            slot.set_multi_tt(multi.into());
        }
        slot
    }
}

pub(super) const fn speed_number(speed: Speed) -> u32 {
    match speed {
        Speed::Full => speed::FULL,
        Speed::Low => speed::LOW,
        Speed::High => speed::HIGH,
        Speed::Super => speed::SUPER,
    }
}

/// Returns the speed of a port; faster than super speed counts as that.
pub(super) const fn speed_of(number: u32) -> Option<Speed> {
    Some(match number {
        0 => return None,
        speed::FULL => Speed::Full,
        speed::LOW => Speed::Low,
        speed::HIGH => Speed::High,
        _ => Speed::Super,
    })
}

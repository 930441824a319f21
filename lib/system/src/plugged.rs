//! The devices on USB: what is plugged in, the buses, and the models there are.

use crate::carried::PipeDirection;
use diapason_bus::{Async, BusInstance, PeriodicEndpoint};
use diapason_contract::can::EACH;
use diapason_contract::network::SINK;
use diapason_contract::source::{MessageForm, PipeSource};
use diapason_contract::threads::ServiceKind;

/// A USB device that is plugged in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsbPlug {
    pub name: String,
    /// The controller: a number of a device.
    pub device: usize,
    /// The hub it is plugged into: a number of a plug. `None`: into the controller itself.
    pub behind: Option<usize>,
    /// The port of the one or the other, from 1.
    pub port: u8,
    /// The model of the device.
    pub model: UsbModel,
    /// The plug is an adapter of the computer on which QEMU runs, and not a model.
    pub is_real: bool,
    /// The device's vendor and its product; 0 is any.
    pub identity: (u16, u16),
    /// The device's serial number; `None` is any.
    pub serial: Option<String>,
    /// CAN buses on which somebody is besides a unit that acknowledges.
    pub buses: Vec<PluggedCanBus>,
    /// The number of its CAN channels; 0 if it is no CAN interface.
    pub channels: usize,
    /// The number of the first of them among the CAN channels of the host.
    pub first_channel: usize,
    /// The bit rate of each CAN channel that there can be.
    pub bit_rates: [u32; EACH],
    /// The rates of the data of CAN FD of its channels, in bit/s; 0 of classic ones.
    pub data_rates: [u32; EACH],
    /// The sample point of a CAN interface, in tenths of a per cent.
    pub sample_point: u16,
    /// The time after which a channel that went bus-off is opened again, in ns, if the description
    /// says it.
    pub restart_ns: Option<u64>,
    /// By how many millionths its clock and the host's run apart at most.
    pub drift: u32,
    /// The time that the clock of a model of a CAN interface shows when the interface was reset, in
    /// ns.
    pub clock_at_ns: u64,
    /// The sockets to which the computer behind a network device sends, if that is an adapter.
    pub datagrams: Vec<SocketAddress>,
    /// The time from one message of a sensor to the next, in ns, if the description says it.
    pub gap_ns: Option<u64>,
    /// The longest time that a disk takes for a command besides the bus, in ns, if the description
    /// says it.
    pub takes_ns: Option<u64>,
}

/// A socket of this host, as others know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketAddress {
    /// The address of its adapter.
    pub mac: [u8; 6],
    pub address: [u8; 4],
    pub port: u16,
    /// The port where it sends, if it does.
    pub answers: Option<u16>,
}

impl UsbPlug {
    /// Returns the word that a description has for what is plugged in.
    #[must_use]
    pub fn word(&self) -> String {
        let (vendor, product) = self.identity;
        match self.is_real {
            true => format!("host:{vendor:04x}:{product:04x}"),
            false => self.model.name().to_owned(),
        }
    }

    /// Returns whether the simulator has no such device.
    #[must_use]
    pub fn only_in_qemu(&self) -> bool {
        self.is_real || self.model.only_in_qemu()
    }
}

/// A CAN bus of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluggedCanBus {
    /// The channel it is connected to, from 0.
    pub channel: usize,
    /// The other nodes of the bus.
    pub traffic: CanTraffic,
}

/// The other nodes of a CAN bus.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CanTraffic {
    /// Units that send so many numbered frames a second together, with extended identifiers or with
    /// standard ones.
    Numbered { per_second: u32, extended: bool },
    /// A receiver, and the shortest and the longest time that it takes for a frame.
    Receiver { turn_ns: (u64, u64) },
    /// A unit that sends numbered frames, and the shortest and the longest time between two.
    Sender { gap_ns: (u64, u64) },
    /// A unit that sends what a candump log says.
    Replay {
        /// The log, as the description names it.
        file: String,
        /// The content of the log. Reading files is not done here: empty until somebody does.
        log: String,
    },
}

/// Where there is a device of a model.
enum Lives {
    Everywhere,
    InSimulator,
    InQemu,
}

/// All that the table has of a model.
struct Row {
    name: &'static str,
    service: Option<ServiceKind>,
    lives: Lives,
    superspeed: bool,
}

/// Makes the models, and the table of what is known of each.
macro_rules! models {
    ($(
        $(#[$doc:meta])*
        $model:ident, $name:literal, $service:expr, $lives:ident, $superspeed:expr;
    )*) => {
        /// USB devices there are: models, and some that only QEMU has.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum UsbModel {
            $($(#[$doc])* $model,)*
        }

        const TABLE: [Row; UsbModel::ALL.len()] = [$(Row {
            name: $name,
            service: $service,
            lives: Lives::$lives,
            superspeed: $superspeed,
        }),*];

        impl UsbModel {
            pub const ALL: [UsbModel; [$($name),*].len()] = [$(UsbModel::$model),*];
        }
    };
}

// A model, its word in descriptions, the service that is for it, where it is, and whether it is a
// SuperSpeed device.
models! {
    /// An interface to CAN buses, five at most.
    UsbCan, "usb-can", Some(ServiceKind::Can), Everywhere, false;
    /// An interface to CAN buses that speaks `gs_usb`.
    GsUsb, "gs-usb", Some(ServiceKind::Can), Everywhere, false;
    /// A sensor: 512 bytes every 2.5 ms.
    Sensor, "sensor", Some(ServiceKind::Sensors), Everywhere, false;
    /// A camera, which is isochronous.
    Camera, "camera", Some(ServiceKind::Cameras), Everywhere, true;
    /// A camera with something to send in every interval.
    BusyCamera, "busy-camera", Some(ServiceKind::Cameras), Everywhere, true;
    /// A keyboard on which somebody types the alphabet.
    Keyboard, "keyboard", Some(ServiceKind::Keyboards), Everywhere, false;
    /// A disk of 64 MiB.
    Disk, "disk", Some(ServiceKind::Disks), Everywhere, false;
    /// The same disk at SuperSpeed.
    SuperSpeedDisk, "superspeed-disk", Some(ServiceKind::Disks), Everywhere, true;
    /// A hub of USB 2 with four ports; in QEMU its own, which is of full speed.
    Hub, "hub", None, Everywhere, false;
    /// A hub with four ports, for SuperSpeed devices.
    SuperSpeedHub, "superspeed-hub", None, InSimulator, true;
    /// A network device, and a computer that answers on its network.
    Network, "network", Some(ServiceKind::Networks), Everywhere, false;
    /// QEMU's own disk, of 64 MiB.
    QemuStorage, "qemu-storage", Some(ServiceKind::Disks), InQemu, false;
    QemuKeyboard, "qemu-keyboard", Some(ServiceKind::Keyboards), InQemu, false;
    /// QEMU's own network device, on a network of QEMU's.
    QemuNetwork, "qemu-network", Some(ServiceKind::Networks), InQemu, false;
    /// QEMU's own network device, pulled out and plugged in again all the time.
    QemuLooseNetwork, "qemu-loose-network", Some(ServiceKind::Networks), InQemu, false;
    /// An instrument of a vendor's own class, which sends packets from two endpoints.
    Instrument, "instrument", Some(ServiceKind::Endpoints), Everywhere, false;
    /// An actuator of a vendor's own class, which takes packets at two endpoints.
    Actuator, "actuator", Some(ServiceKind::Sinks), Everywhere, false;
    /// A servo drive of a vendor's own class, which takes set points and sends positions.
    Servo, "servo", Some(ServiceKind::Pairs), Everywhere, false;
}

impl UsbModel {
    /// Ports of a hub.
    pub const HUB_PORTS: u8 = 4;

    /// Returns the word that a description has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].name
    }

    /// Returns the service that is for it, if its place matters: that of a hub does not.
    #[must_use]
    pub const fn service(self) -> Option<ServiceKind> {
        TABLE[self as usize].service
    }

    /// Returns the source of pipes, or the sink, that it is to a pipe of this direction, and the
    /// number of that pipe, if it is no CAN interface and has pipes. A device whose pipes all go
    /// the other way is what it is to those.
    #[must_use]
    pub fn source(self, way: PipeDirection) -> Option<(usize, &'static PipeSource)> {
        let modeled = !matches!(
            self,
            UsbModel::BusyCamera
                | UsbModel::QemuStorage
                | UsbModel::QemuNetwork
                | UsbModel::QemuLooseNetwork
        );
        let kind = match self.service().filter(|_| modeled)? {
            ServiceKind::Networks if way == PipeDirection::ToDevice => {
                return Some((SINK.number(), &SINK));
            }
            ServiceKind::Pairs if way == PipeDirection::ToDevice => ServiceKind::Sinks,
            // Packets of a keyboard can be read one by one although another service is for it.
            ServiceKind::Pairs | ServiceKind::Keyboards if !self.only_in_qemu() => {
                ServiceKind::Endpoints
            }
            other => other,
        };
        PipeSource::of(kind)
    }

    /// Returns every source of pipes, and the sink, that it is.
    fn sources(self) -> impl Iterator<Item = &'static PipeSource> {
        let ways = [PipeDirection::FromDevice, PipeDirection::ToDevice];
        ways.into_iter().filter_map(move |way| self.source(way)).map(|(_, source)| source)
    }

    /// Returns whether pipes can come from it or go to it.
    #[must_use]
    pub fn carries(self) -> bool {
        self.most_channels() > 0 || self.sources().next().is_some()
    }

    /// Returns whether its messages bear times by its own clock. A disk answers when it is asked,
    /// and what goes to a device bears the time of the host.
    #[must_use]
    pub fn tells_time(self) -> bool {
        let by_itself = |source: &PipeSource| {
            matches!(
                source.form,
                MessageForm::Packet | MessageForm::Picture(_) | MessageForm::Frame(_)
            )
        };
        self.most_channels() > 0 || self.sources().any(by_itself)
    }

    /// Returns how many CAN channels it has at most.
    #[must_use]
    pub const fn most_channels(self) -> usize {
        match self {
            UsbModel::UsbCan | UsbModel::GsUsb => EACH,
            _ => 0,
        }
    }

    /// Returns how many CAN channels it has if a description does not say it.
    #[must_use]
    pub const fn usual_channels(self) -> usize {
        match self {
            UsbModel::GsUsb => 1,
            other => other.most_channels(),
        }
    }

    /// Returns whether it is an interface to CAN buses.
    #[must_use]
    pub const fn is_can(self) -> bool {
        self.most_channels() > 0
    }

    /// Returns whether others can be plugged into it.
    #[must_use]
    pub const fn is_hub(self) -> bool {
        self.service().is_none()
    }

    /// Returns whether it is a SuperSpeed device. A SuperSpeed hub takes such devices only, and
    /// other hubs take none.
    #[must_use]
    pub const fn is_superspeed(self) -> bool {
        TABLE[self as usize].superspeed
    }

    /// Returns whether QEMU has no such device.
    #[must_use]
    pub const fn only_in_simulator(self) -> bool {
        matches!(TABLE[self as usize].lives, Lives::InSimulator)
    }

    /// Returns whether the simulator has no such device.
    #[must_use]
    pub const fn only_in_qemu(self) -> bool {
        matches!(TABLE[self as usize].lives, Lives::InQemu)
    }
}

/// A bus instance of a controller, and the endpoints declared on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsbBus {
    /// The controller: a number of [`System::devices`](crate::System::devices).
    pub device: usize,
    /// The bus's speed, and how it is counted.
    pub bus: BusInstance,
    /// The control endpoints of its devices count.
    pub control: bool,
    /// Interrupt and isochronous endpoints; their numbers are places in
    /// [`System::endpoints`](crate::System::endpoints).
    pub periodic: Vec<PeriodicEndpoint>,
    /// Bulk and control endpoints, in the order of the round robin.
    pub asyncs: Vec<Async>,
}

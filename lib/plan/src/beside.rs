//! How long a transfer of a pipe's device takes on the bus as it is described: with the devices
//! that are plugged in beside it, as their descriptors say, and with declared endpoints.
//!
//! The slots of periodic endpoints, and the order of devices in the round
//! robin, is decided when devices come: so periodic endpoints are charged in every slot, and the
//! bound is one for any order. Devices that only QEMU has are left out; its bus takes no time.

use crate::pictures;
use diapason_abi::Nanos;
use diapason_bus::{
    Async, BusInstance, Criticality, Direction, EndpointId, GUARANTEE_SLOTS_MAX, Guarantee,
    NoSchedule, PeriodicEndpoint, Picos, Speed, Starts, Transfer, plan,
};
use diapason_devices::UsbDevice;
use diapason_devices::actuator::Actuator;
use diapason_devices::camera::CameraModel;
use diapason_devices::disk::Disk;
use diapason_devices::gs_usb::GsUsbModel;
use diapason_devices::hub::HubModel;
use diapason_devices::instrument::Instrument;
use diapason_devices::keyboard::KeyboardModel;
use diapason_devices::kvaser::{CHANNELS, Hydra, Identity};
use diapason_devices::network::Adapter;
use diapason_devices::sensor::Sensor;
use diapason_devices::servo::Servo;
use diapason_system::{System, UsbModel};
use diapason_usb::Setup;
use diapason_usb::descriptor::{
    Configuration, DeviceDescriptor, EndpointDescriptor, control_asynchronous,
};
use diapason_usb::setup::descriptor_type::{CONFIGURATION, DEVICE};

/// Numbers of devices' endpoints begin here, so many for each plug; declared ones are below.
const DEVICES: u32 = 1 << 16;
const EACH: u32 = 1 << 8;
/// The two endpoints of the pipe's own device.
const OWN: [u32; 2] = [u32::MAX - 1, u32::MAX];

/// Packets of a super-speed control endpoint.
const DEBUG_CONTROL: u16 = 512;

/// Blocks of 512 bytes of a disk.
pub const DISK_BLOCKS: u32 = 128 << 10;
/// From one key to the next, and how many: an hour.
pub(crate) const KEY_PERIOD: Nanos = Nanos::from_millis(100);
const KEYS: u64 = 36_000;

/// Returns a fresh device of this kind; devices that only QEMU has have no model.
#[must_use]
pub fn model(model: UsbModel) -> Option<Box<dyn UsbDevice>> {
    Some(match model {
        UsbModel::UsbCan => Box::new(Hydra::new(Identity::default(), &[const { None }; CHANNELS])),
        UsbModel::GsUsb => Box::new(GsUsbModel::new(1, &[const { None }; CHANNELS])),
        UsbModel::Sensor => Box::new(Sensor::default()),
        UsbModel::Instrument => Box::new(Instrument::default()),
        UsbModel::Actuator => Box::new(Actuator::default()),
        UsbModel::Servo => Box::new(Servo::default()),
        UsbModel::Camera => Box::new(CameraModel::default()),
        UsbModel::BusyCamera => Box::new(CameraModel::busy()),
        UsbModel::Keyboard => Box::new(KeyboardModel::typing(KEY_PERIOD, KEYS)),
        UsbModel::Disk => Box::new(Disk::new(DISK_BLOCKS)),
        UsbModel::SuperSpeedDisk => Box::new(Disk::superspeed(DISK_BLOCKS)),
        UsbModel::Hub | UsbModel::SuperSpeedHub => Box::new(hub(model)),
        UsbModel::Network => Box::new(Adapter::default()),
        UsbModel::QemuStorage
        | UsbModel::QemuKeyboard
        | UsbModel::QemuNetwork
        | UsbModel::QemuLooseNetwork => return None,
    })
}

/// Returns a fresh hub of this kind.
#[must_use]
pub fn hub(model: UsbModel) -> HubModel {
    HubModel::new(model.is_superspeed(), UsbModel::HUB_PORTS)
}

/// The other users of a bus instance.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    pub bus: BusInstance,
    pub periodic: Vec<PeriodicEndpoint>,
    pub asyncs: Vec<Async>,
    /// The control endpoints of its devices count.
    control: bool,
}

/// Returns the longest time in which the bulk endpoint of the device `usb` in this direction, with
/// packets of so many bytes, carries `bytes`.
///
/// # Errors
/// Why the bus has no time for that, and the remedy.
pub fn longest(
    system: &System,
    usb: usize,
    end: (Direction, u32),
    bytes: u32,
) -> Result<Nanos, (String, String)> {
    longest_at(system, (usb, Speed::High), end, bytes)
}

/// As [`longest`], of a device at this speed.
pub(crate) fn longest_at(
    system: &System,
    (usb, speed): (usize, Speed),
    (direction, packet): (Direction, u32),
    bytes: u32,
) -> Result<Nanos, (String, String)> {
    let all = beside(system, usb, speed);
    let worst = all.longest(direction, packet, bytes).map_err(|unfit| words(&unfit, system))?;
    worst.map(Picos::nanos).ok_or_else(|| {
        let name = &system.usb[usb].name;
        let what = format!("other devices leave no time for the transfers of `{name}` on its bus");
        (what, "plug some of them into another controller".into())
    })
}

/// Checks that all periodic endpoints of the bus of a device fit into each slot.
///
/// # Errors
/// Why they do not, and the remedy.
pub(crate) fn fits(system: &System, (usb, speed): (usize, Speed)) -> Result<(), (String, String)> {
    let Beside { bus, periodic, .. } = beside(system, usb, speed);
    plan(&bus, &periodic, &[]).map(|_| ()).map_err(|unfit| words(&unfit, system))
}

/// Returns the users of a device's bus besides its own bulk endpoints.
fn beside(system: &System, usb: usize, speed: Speed) -> Beside {
    Beside::of(system, system.usb[usb].device, Some(usb), speed)
}

impl Beside {
    /// Returns the described users of a controller's bus at a speed. Of the device `own`, which is
    /// plugged in there, the bulk and control endpoints are left out.
    pub(crate) fn of(
        system: &System,
        controller: usize,
        own: Option<usize>,
        speed: Speed,
    ) -> Beside {
        let described =
            system.buses.iter().find(|b| b.device == controller && b.bus.speed == speed);
        let mut all = Beside {
            bus: BusInstance {
                starts: Starts::Unknown,
                ..described.map_or(BusInstance::new(speed), |b| b.bus)
            },
            periodic: described.map_or(Vec::new(), |b| b.periodic.clone()),
            asyncs: described.map_or(Vec::new(), |b| b.asyncs.clone()),
            control: described.is_none_or(|b| b.control),
        };
        for (number, plug) in system.usb.iter().enumerate() {
            let model = model(plug.model);
            if let Some(mut device) = model
                && plug.device == controller
                && device.speed() == speed
            {
                all.add(first_of(number), &mut *device, Some(number) == own);
                all.narrow(number, pictures::endpoint(system, number));
            }
        }
        all
    }

    /// Counts the stream of a camera as it is in this setting: the server chooses no other for the
    /// pictures of a pipe.
    fn narrow(&mut self, usb: usize, stream: Option<EndpointDescriptor>) {
        let Some(stream) = stream else { return };
        let id = EndpointId(first_of(usb) + u32::from(stream.address));
        self.periodic.retain(|end| end.id != id);
        self.periodic.extend(stream.periodic(id, Criticality::High, 1));
    }

    /// As of [`longest()`], of a device that comes to these; `None`: far too long.
    pub(crate) fn longest(
        &self,
        direction: Direction,
        packet: u32,
        bytes: u32,
    ) -> Result<Option<Picos>, NoSchedule> {
        let alone = self.periodic.is_empty() && self.asyncs.is_empty();
        let guarantee = Guarantee { bytes, period: GUARANTEE_SLOTS_MAX };
        let own = |(id, way)| {
            let guarantee = (way == direction).then_some(guarantee);
            let (id, transfer) = (EndpointId(id), Transfer::Bulk);
            Async { id, transfer, direction: way, packet, burst: 0, guarantee }
        };
        let ends = OWN.into_iter().zip([Direction::In, Direction::Out]).map(own);
        let asyncs: Vec<Async> = self.asyncs.iter().copied().chain(ends).collect();
        let found = plan(&self.bus, &self.periodic, &asyncs)?;
        let own = found.promises.iter().find(|promise| OWN.contains(&promise.id.0));
        // The order of two equal ones makes no difference.
        Ok(own.and_then(|own| if alone { Some(own.worst) } else { own.any_order }))
    }

    /// The endpoints of a device: of each address the largest that any of its settings has. Of the
    /// pipe's `own` device those that are not bulk.
    pub(crate) fn add(&mut self, first: u32, device: &mut dyn UsbDevice, own: bool) {
        let speed = device.speed();
        let Some((about, sets)) = descriptors(device) else { return };
        let sets = sets.iter().filter_map(|set| Configuration::parse_once(set, speed).ok());
        let mut ends: Vec<EndpointDescriptor> = sets
            .flat_map(|set| set.interfaces().flat_map(|i| i.endpoints()).collect::<Vec<_>>())
            .collect();
        let load =
            |end: &EndpointDescriptor| (end.interval_bytes, u32::MAX - end.period().unwrap_or(1));
        ends.sort_by_key(|end| (end.address, std::cmp::Reverse(load(end))));
        ends.dedup_by_key(|end| end.address);
        if !own {
            self.add_control(first, about.packet);
        }
        for end in ends {
            let id = EndpointId(first + u32::from(end.address));
            self.periodic.extend(end.periodic(id, Criticality::High, 1));
            self.asyncs.extend(end.asynchronous(id, None).filter(|_| !own));
        }
    }
}

/// Returns what a device says of itself, and the bytes of its configurations.
fn descriptors(device: &mut dyn UsbDevice) -> Option<(DeviceDescriptor, Vec<Vec<u8>>)> {
    let speed = device.speed();
    device.reset(Nanos::ZERO);
    let mut get = |kind, number| {
        let setup = Setup::get_descriptor(kind, number, 0, u16::MAX);
        device.control(Nanos::ZERO, setup, &[]).unwrap_or_default()
    };
    let about = DeviceDescriptor::parse(&get(DEVICE, 0), speed).ok()?;
    let sets = (0..about.configurations).map(|number| get(CONFIGURATION, number)).collect();
    Some((about, sets))
}

/// Returns the bytes of the configurations of a device.
pub(crate) fn configurations(device: &mut dyn UsbDevice) -> Vec<Vec<u8>> {
    descriptors(device).map(|(_, sets)| sets).unwrap_or_default()
}

impl Beside {
    /// The control endpoint of a device, with packets of so many bytes.
    fn add_control(&mut self, id: u32, packet: u16) {
        if self.control {
            self.asyncs.push(control_asynchronous(EndpointId(id), packet));
        }
    }

    /// A debug device: its control endpoint, and a bulk endpoint in each direction.
    pub(crate) fn add_debug_device(&mut self, first: u32, packet: u16) {
        self.add_control(first, DEBUG_CONTROL);
        for (id, direction) in (first + 1..).zip([Direction::In, Direction::Out]) {
            let (id, transfer, packet) = (EndpointId(id), Transfer::Bulk, packet.into());
            self.asyncs.push(Async { id, transfer, direction, packet, burst: 0, guarantee: None });
        }
    }
}

/// Returns the number of the first endpoint of the device `usb`.
pub(crate) const fn first_of(usb: usize) -> u32 {
    DEVICES + usb as u32 * EACH
}

/// Returns an endpoint in a sentence.
pub(crate) fn called(system: &System, id: EndpointId) -> String {
    match id.0 {
        own if OWN.contains(&own) => "the transfers of its own device".to_owned(),
        id if id >= DEVICES => {
            let plug = system.usb.get(((id - DEVICES) / EACH) as usize);
            let name = plug.map_or("", |plug| &plug.name);
            format!("endpoint {:#04x} of `{name}`", (id - DEVICES) % EACH)
        }
        id => format!("`{}`", system.endpoint_name(id).unwrap_or_default()),
    }
}

/// Returns why a bus has no schedule, and the remedy.
fn words(unfit: &NoSchedule, system: &System) -> (String, String) {
    let name = |id: EndpointId| called(system, id);
    match unfit {
        NoSchedule::Refused(refusal) => {
            let what = format!("its bus has too much on it: {}", refusal.why(name));
            let remedy = "plug that device into another controller, or have it ask for less";
            (format!("{what} ({})", name(refusal.id)), remedy.into())
        }
        NoSchedule::Nonsense(nonsense) => nonsense.describe(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_bus::{BusScheduler, Moves};
    use diapason_random::Random;

    const HEAD: &str = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
        [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
        [[device]]\nname = \"other\"\npci = \"0c0330\"\nsize = \"16K\"\ninstance = 1\n";

    fn plug(model: &str, on: &str, port: u8) -> String {
        format!(
            "[[usb]]\nname = \"{model}{port}\"\non = \"{on}\"\nport = {port}\nmodel = \"{model}\"\n"
        )
    }

    /// Returns the time of 3072 bytes from the interface, with this beside it.
    fn with(others: &str) -> Result<Nanos, (String, String)> {
        let text = format!("{HEAD}{}{others}", plug("usb-can", "xhci", 1));
        let system = diapason_system::parse("f", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
        longest(&system, 0, (Direction::In, 512), 3_072)
    }

    #[test]
    fn what_is_plugged_in_beside_it_takes_its_part() {
        let alone = with("").unwrap();
        assert_eq!(with(&plug("camera", "xhci", 2)).unwrap(), alone, "another speed");
        assert_eq!(with(&plug("disk", "other", 2)).unwrap(), alone, "another controller");
        let mut before = alone;
        let mut others = String::new();
        for (port, model) in (2..).zip(["disk", "sensor", "network", "usb-can"]) {
            others += &plug(model, "xhci", port);
            let more = with(&others).unwrap();
            assert!(more > before, "{model}: {more:?} after {before:?}");
            before = more;
        }
    }

    #[test]
    fn declared_endpoints_and_the_bus_count_and_too_many_are_refused() {
        let camera = |name: &str, packet: u16| {
            format!(
                "[[endpoint]]\nname = \"{name}\"\non = \"xhci\"\nspeed = \"high\"\n\
                 type = \"isochronous\"\ndirection = \"in\"\npacket = {packet}\nburst = 2\n\
                 period = 1\ncriticality = \"high\"\n"
            )
        };
        let one = with(&camera("front", 1024)).unwrap();
        assert!(one > with("").unwrap());
        let (what, remedy) =
            with(&(camera("front", 1024) + &camera("rear", 1024))).expect_err("too much");
        assert!(what.contains("`rear`") && what.contains("too much"), "{what}");
        assert!(remedy.contains("another controller"), "{remedy}");
    }

    fn any_periodic(random: &mut Random, id: u32) -> PeriodicEndpoint {
        let period = 1 << random.below(6);
        PeriodicEndpoint {
            id: EndpointId(id),
            transfer: random.pick(&[Transfer::Interrupt, Transfer::Isochronous]),
            direction: random.pick(&[Direction::In, Direction::Out]),
            packet: 1 + random.below(1024) as u32,
            burst: 0,
            mult: 0,
            period,
            longest_period: period,
            criticality: Criticality::High,
        }
    }

    fn any_bulk(random: &mut Random, id: u32) -> Async {
        let transfer = random.pick(&[Transfer::Bulk, Transfer::Control]);
        let packet = if transfer == Transfer::Control { 64 } else { 512 };
        let direction = random.pick(&[Direction::In, Direction::Out]);
        Async { id: EndpointId(id), transfer, direction, packet, burst: 0, guarantee: None }
    }

    /// Devices come in any order, and the server places them one by one: what its schedule gives
    /// the interface in the end is never longer than the bound.
    #[test]
    fn the_servers_own_schedules_keep_the_bound() {
        let (mut bounded, mut close) = (0, 0);
        for seed in 0..2_000 {
            let mut random = Random::stream(29, seed);
            let bus = BusInstance::new(Speed::High);
            let periodic: Vec<_> =
                (0..random.below(5) as u32).map(|id| any_periodic(&mut random, id)).collect();
            let asyncs: Vec<_> =
                (0..1 + random.below(5) as u32).map(|id| any_bulk(&mut random, 100 + id)).collect();
            let unknown = BusInstance { starts: Starts::Unknown, ..bus };
            let beside = Beside { bus: unknown, periodic, asyncs, control: true };
            let bytes = 1 + random.below(8_192) as u32;
            let Ok(Some(bound)) = beside.longest(Direction::In, 512, bytes) else { continue };
            let mut server = BusScheduler::new(bus).unwrap();
            let own = [Direction::In, Direction::Out].map(|direction| {
                let id = OWN[usize::from(direction == Direction::Out)];
                Async {
                    direction,
                    packet: 512,
                    transfer: Transfer::Bulk,
                    ..any_bulk(&mut random, id)
                }
            });
            let turn = random.below(1 + beside.asyncs.len() as u64) as usize;
            for (place, end) in beside.asyncs.iter().enumerate() {
                if place == turn {
                    server.attach(&[], &own, Moves::Never).unwrap();
                }
                server.attach(&[], &[*end], Moves::Never).unwrap();
            }
            if turn == beside.asyncs.len() {
                server.attach(&[], &own, Moves::Never).unwrap();
            }
            for end in &beside.periodic {
                server.attach(&[*end], &[], Moves::Never).unwrap();
            }
            let plan = server.plan();
            let worst = plan.worst_time(&bus, server.asyncs(), own[0].id, bytes).unwrap().unwrap();
            assert!(worst <= bound, "seed {seed}: {worst:?} of {bound:?}");
            bounded += 1;
            close += u32::from(worst.0 > bound.0 / 2);
        }
        assert!(bounded > 1_000 && close > 300, "{bounded} {close}");
    }
}

//! The campaign: ports at which hostile devices come and go, and what is to hold meanwhile.

use crate::devices::hostile;
use crate::machine::Machine;
use crate::shell::{SLOT, SLOTS, Shell};
use crate::witness::{GUARANTEE, Heard, Witness, plans};
use crate::work;
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_devices::faulty::FaultTally;
use diapason_devices::sensor::Sensor;
use diapason_random::Random;
use diapason_usb::Speed;
use diapason_usb::descriptor::{self, Configuration};
use diapason_usb::xhci::{ControllerState, DeviceId, EndpointPlan, Limits, Notice};
use diapason_xhc::{Config, Group, Protocol};
use std::cell::RefCell;
use std::rc::Rc;

/// The sensor's port, and those of the hostile devices: their number at USB 2, and what is to be
/// added to it at USB 3.
const SENSOR: u8 = 1;
const PORTS: [u8; 7] = [2, 3, 4, 5, 6, 7, 8];
const USB3: u8 = 8;
/// Memory of devices at a time: those that are there, and some whose transfers still come back.
const PLACES: usize = 10;
/// Configurations of a device that are looked at.
const CONFIGURATIONS: u8 = 4;

/// The results of a campaign.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Devices plugged in, and those of them that lied at least once.
    pub devices: u64,
    pub liars: u64,
    pub lies: u64,
    /// Devices that a class was begun for, and those that were refused: by the driver, or because
    /// nobody knows what they say they are.
    pub served: u64,
    pub refused: u64,
    /// Transfers of hostile devices, and packets and requests they spoiled.
    pub transfers: u64,
    pub faults: u64,
    /// Packets of the sensor, and the longest time that one took.
    pub packets: u64,
    pub slowest: Nanos,
    pub time: Nanos,
}

impl Seen {
    pub fn add(&mut self, other: &Seen) {
        self.devices += other.devices;
        self.liars += other.liars;
        self.lies += other.lies;
        self.served += other.served;
        self.refused += other.refused;
        self.transfers += other.transfers;
        self.faults += other.faults;
        self.packets += other.packets;
        self.slowest = self.slowest.max(other.slowest);
        self.time += other.time;
    }
}

/// Lanes that devices are given to.
const LANES: u16 = 4;

/// The device at a port, and when it leaves.
struct Port {
    connector: u8,
    /// The place at which the device is plugged, if it is.
    plugged: Option<u8>,
    until: Nanos,
}

/// A device of which another configuration is being read, and which.
#[derive(Clone, Copy)]
struct Unserved {
    device: DeviceId,
    speed: Speed,
    port: u8,
    number: u8,
}

struct Campaign {
    machine: Machine,
    random: Random,
    shells: Vec<Option<Shell>>,
    ports: Vec<Port>,
    unserved: Vec<Unserved>,
    tally: Rc<FaultTally>,
    heard: Rc<RefCell<Heard>>,
    seen: Seen,
}

/// Plugs in hostile devices, one after another at each port.
pub fn attack(seed: u64, devices: u64) -> Seen {
    let mut campaign = Campaign::new(seed);
    campaign.begin();
    let empty = campaign.machine.driver.pools();
    while campaign.seen.devices < devices || campaign.ports.iter().any(|p| p.plugged.is_some()) {
        campaign.plug(devices);
        campaign.run();
    }
    let end = campaign.machine.now() + Nanos::from_secs(8);
    while campaign.machine.now() < end {
        campaign.ports.iter_mut().for_each(|port| port.until = end);
        campaign.run();
    }
    campaign.end(empty)
}

impl Campaign {
    fn new(seed: u64) -> Campaign {
        let port = |connector| Port { connector, plugged: None, until: Nanos::ZERO };
        let ports = |protocol| Group { protocol, ports: USB3 };
        let groups = vec![ports(Protocol::Usb2), ports(Protocol::Usb3)];
        let config = Config { groups, ..Config::default() };
        let limits = Limits { pipes: 48, transfers: 240, events: 512, ..Limits::default() };
        Campaign {
            machine: Machine::running(config, limits),
            random: Random::new(seed),
            shells: (0..PLACES).map(|_| None).collect(),
            ports: PORTS.map(port).into(),
            unserved: Vec::new(),
            tally: Rc::default(),
            heard: Rc::default(),
            seen: Seen::default(),
        }
    }

    /// The sensor is there and speaks.
    fn begin(&mut self) {
        self.machine.attach(SENSOR, Box::new(Sensor::default()));
        for _ in 0..200 {
            self.until(self.machine.now() + Nanos::from_millis(2));
        }
        assert!(self.heard.borrow().packets > 10, "the sensor does not speak");
    }

    /// Devices come and go where it is time.
    fn plug(&mut self, most: u64) {
        let now = self.machine.now();
        for port in self.ports.iter_mut().filter(|port| port.until <= now) {
            if let Some(number) = port.plugged.take() {
                self.machine.detach(number);
                port.until = now + Nanos::from_micros(self.random.below(40_000));
                continue;
            }
            if self.seen.devices == most {
                port.until = Nanos::FOREVER;
                continue;
            }
            let device: Box<dyn UsbDevice> = hostile(&mut self.random, now, &self.tally);
            let higher = if device.speed() == Speed::Super { USB3 } else { 0 };
            let number = port.connector + higher;
            self.machine.attach(number, device);
            self.seen.devices += 1;
            port.plugged = Some(number);
            // Most stay long enough to be found; some are gone before or meanwhile.
            let least = if self.random.one_in(8) { 1_000 } else { 160_000 };
            port.until = now + Nanos::from_micros(least + self.random.below(200_000));
        }
    }

    /// Until the next port is due.
    fn run(&mut self) {
        let next = self.ports.iter().map(|port| port.until).min().unwrap_or(Nanos::FOREVER);
        self.until(next.min(self.machine.now() + Nanos::from_secs(1)));
    }

    fn until(&mut self, end: Nanos) {
        while self.machine.now() < end {
            let wakes = self.shells.iter().flatten().filter(|shell| shell.works && !shell.gone);
            let wake = wakes.map(|shell| shell.class.next_wake()).min().unwrap_or(end);
            let soon = wake.max(self.machine.now() + Nanos::from_micros(1)).min(end);
            let news = |m: &Machine| !m.finished.is_empty() || !m.notices.is_empty();
            self.machine.run_until(soon, news);
            self.attend();
            assert_eq!(self.machine.driver.state(), ControllerState::Running);
        }
    }

    fn attend(&mut self) {
        for notice in std::mem::take(&mut self.machine.notices) {
            self.hear(notice);
        }
        for done in std::mem::take(&mut self.machine.finished) {
            let whose = |shell: &&mut Shell| shell.device == done.device;
            let shell = self.shells.iter_mut().flatten().find(whose);
            shell.expect("a transfer of nobody").finish(&mut self.machine, &done);
        }
        for place in &mut self.shells {
            if let Some(over) = place.take_if(|shell| shell.is_over()) {
                self.seen.transfers += over.ended;
            }
            if let Some(shell) = place {
                shell.drive(&mut self.machine, &mut self.random);
            }
        }
        let now = self.machine.now();
        self.machine.driver.poll(now);
    }

    fn hear(&mut self, notice: Notice) {
        let now = self.machine.now();
        let shell = |shells: &mut Vec<Option<Shell>>, device: DeviceId| {
            shells.iter().position(|s| s.as_ref().is_some_and(|s| s.device == device))
        };
        match notice {
            Notice::Found { device, speed, port, .. } => {
                self.consider(Unserved { device, speed, port, number: 0 });
            }
            Notice::Read(device) => {
                let read = self.unserved.iter().position(|unserved| unserved.device == device);
                let read = self.unserved.swap_remove(read.expect("a configuration of nobody"));
                self.consider(read);
            }
            Notice::Configured(device) | Notice::Refused(device, _) => {
                let done = matches!(notice, Notice::Configured(_));
                if let Some(place) = shell(&mut self.shells, device)
                    && let Some(shell) = &mut self.shells[place]
                {
                    shell.settled(now, done);
                }
            }
            Notice::Gone(device) => {
                self.unserved.retain(|unserved| unserved.device != device);
                if let Some(place) = shell(&mut self.shells, device)
                    && let Some(shell) = &mut self.shells[place]
                {
                    shell.gone = true;
                }
            }
            Notice::Failed { port, .. } => {
                assert_ne!(port, SENSOR, "the sensor failed");
                self.seen.refused += 1;
            }
            Notice::Stopped { endpoint, .. } => panic!("endpoint {endpoint:#x} had to make room"),
            Notice::OverCurrent(_) | Notice::Died(_) => panic!("{notice:?}"),
        }
    }

    /// A device with one of its configurations: it is served, or shows the next one.
    fn consider(&mut self, unserved: Unserved) {
        let Unserved { device, speed, port, number } = unserved;
        if self.adopt(device, speed, port).is_some() {
            self.seen.served += u64::from(port != SENSOR);
            return;
        }
        let next = Unserved { number: number + 1, ..unserved };
        let few = next.number < CONFIGURATIONS;
        if few && self.machine.driver.read_configuration(device, next.number).is_ok() {
            self.unserved.push(next);
        } else {
            self.seen.refused += 1;
        }
    }

    /// A device was found: a class for it, if there is one and room.
    fn adopt(&mut self, device: DeviceId, speed: Speed, port: u8) -> Option<()> {
        let mut bytes = [0; 1024];
        let driver = &mut self.machine.driver;
        let about = driver.device_descriptor(device).ok()?;
        let about = descriptor::DeviceDescriptor::parse(&about, speed).ok()?;
        let length = driver.configuration(device, &mut bytes).ok()?;
        let bytes = &bytes[..length];
        let set = Configuration::parse_once(bytes, speed).ok()?;
        let (class, plans): (Box<dyn work::Work>, _) = if port == SENSOR {
            (Box::new(Witness::new(&set, &self.heard)), plans(&set))
        } else {
            let class = work::find(&about, &set, self.machine.now())?;
            let settings = set.interfaces().filter(|interface| interface.alternate == 0);
            let endpoints = settings.flat_map(|interface| interface.endpoints());
            (class, endpoints.map(EndpointPlan::new).collect())
        };
        let place = self.shells.iter().position(Option::is_none)?;
        self.machine.driver.assign(device, place as u16 % LANES).ok()?;
        self.machine.driver.configure(device, set.header().value, &plans).ok()?;
        let shell = Shell::new(device, speed, place * SLOTS * SLOT, bytes, class);
        self.shells[place] = Some(shell);
        Some(())
    }

    /// Nothing is left of anybody but the sensor, which noticed nothing.
    fn end(mut self, empty: diapason_usb::xhci::PoolRoom) -> Seen {
        assert_eq!(self.shells.iter().flatten().count(), 1, "somebody is left");
        let pools = self.machine.driver.pools();
        assert_eq!((pools.devices, pools.pipes), (empty.devices, empty.pipes));
        assert_eq!(self.machine.denials(), 0, "memory outside of what was granted");
        let heard = self.heard.borrow();
        let guaranteed = Nanos(u64::from(GUARANTEE.period) * 125_000);
        assert!(heard.slowest <= guaranteed, "a packet took {:?}", heard.slowest);
        let time = self.machine.now();
        assert!(heard.packets + 200 > time.0 / 2_500_000, "only {} packets", heard.packets);
        Seen {
            liars: self.tally.liars.get(),
            lies: self.tally.lies.get(),
            faults: self.tally.faults.get(),
            packets: heard.packets,
            slowest: heard.slowest,
            time,
            ..self.seen
        }
    }
}

//! The controller with its driver, and what is plugged into it.

use crate::memory::Memory;
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::archive::crc32;
use diapason_hardware::{Bar, Shared};
use diapason_rt::event::Event;
use diapason_rt::memory::{DmaSegment, Registers};
use diapason_rt::{Errno, Nanos, log, time};
use diapason_usb::Speed;
use diapason_usb::descriptor::{Configuration, EndpointDescriptor};
use diapason_usb::xhci::{
    Buses, Controller, ControllerState, DeviceId, EndpointPlan, Finished, Limits, Notice,
};

/// The controller in the description, and its segments.
const DEVICE: &str = "xhci";
const RINGS: &str = "usb-rings";
const DATA: &str = "script-data";
/// The only interrupter, and its message.
const INTERRUPTER: u16 = 0;
/// From one look at the controller to the next, if nothing interrupts.
const LOOK: Nanos = Nanos::from_millis(1);
/// An interrupt is handled so much later: QEMU's controller ignores moderation.
const PACE: Nanos = Nanos::from_micros(100);
/// A start, and a change of endpoints, may take so long.
const PATIENCE: Nanos = Nanos::from_secs(5);
/// Bytes kept of a configuration.
const CONFIGURATION: usize = 1024;
const LIMITS: Limits = Limits {
    devices: 8,
    pipes: 24,
    blocks: 64,
    transfers: 48,
    interrupters: 1,
    events: 256,
    ports: 30,
    scratchpads: 16,
    configuration: CONFIGURATION as u16,
    windows: 1,
    watch: Nanos::from_millis(100),
};

/// A device that is configured.
pub(crate) struct Seat {
    pub device: DeviceId,
    pub connector: u8,
    pub endpoints: Vec<EndpointDescriptor>,
}

/// The controller and the memory of its transfers.
pub(crate) struct Host {
    pub driver: Controller<Bar, Shared>,
    pub memory: Memory,
    message: Event,
    pub finished: Vec<Finished>,
    notices: Vec<Notice>,
}

impl Host {
    /// Opens what the description grants.
    ///
    /// # Errors
    /// Something of it is missing, or the driver cannot use it.
    pub fn open() -> Result<Host, Errno> {
        let registers = Registers::map(DEVICE).map(Bar)?;
        let rings = DmaSegment::attach(RINGS).map(Shared::new)?;
        let memory = Memory::new(DmaSegment::attach(DATA).map(Shared::new)?);
        let unusable = |why| {
            log!("the limits: {why:?}");
            Errno::Exhausted
        };
        let driver = Controller::new(registers, rings, LIMITS, &Buses::default());
        let mut driver = driver.map_err(unusable)?;
        driver.grant(memory.window()).map_err(|_| Errno::Exhausted)?;
        let message = Event::message(DEVICE, INTERRUPTER as u8)?;
        Ok(Host { driver, memory, message, finished: Vec::new(), notices: Vec::new() })
    }

    /// Waits for the controller, and does what is due.
    ///
    /// # Errors
    /// The message is gone.
    pub fn turn(&mut self) -> Result<(), Errno> {
        match self.message.wait(self.driver.next_wake().min(time::now() + LOOK)) {
            // No other interrupt comes until this one is handled.
            Ok(_) => time::sleep(PACE),
            Err(Errno::TimedOut | Errno::WouldBlock) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        while self.driver.handle_interrupt(INTERRUPTER, 32, now).more {}
        self.driver.poll(now);
        self.finished.extend(core::iter::from_fn(|| self.driver.take_finished(INTERRUPTER)));
        self.notices.extend(core::iter::from_fn(|| self.driver.take_notice()));
        Ok(())
    }

    /// Goes on until something is so, at most for some time; true if it is.
    ///
    /// # Errors
    /// The message is gone.
    pub fn until(
        &mut self,
        patience: Nanos,
        mut is_so: impl FnMut(&mut Host) -> bool,
    ) -> Result<bool, Errno> {
        let end = time::now() + patience;
        loop {
            if is_so(self) {
                return Ok(true);
            }
            if time::now() >= end {
                return Ok(false);
            }
            self.turn()?;
        }
    }

    /// Starts the controller anew for a script, and returns its devices, by their connectors.
    ///
    /// # Errors
    /// The message is gone.
    pub fn start(&mut self, number: u64, devices: usize) -> Result<Vec<Seat>, Errno> {
        self.driver.start(time::now());
        self.finished.clear();
        self.notices.clear();
        self.found(number, devices)
    }

    /// Waits until so many devices are found, and configures them.
    ///
    /// # Errors
    /// The message is gone.
    pub fn found(&mut self, number: u64, devices: usize) -> Result<Vec<Seat>, Errno> {
        let found = |notice: &&Notice| matches!(notice, Notice::Found { .. });
        let all = |host: &mut Host| host.notices.iter().filter(found).count() == devices;
        if !self.until(PATIENCE, all)? {
            let (state, notices) = (self.driver.state(), self.notices.len());
            log!("{number}: {state:?}, {notices} notices");
        }
        let mut seats: Vec<(Seat, Configured)> = Vec::new();
        for notice in core::mem::take(&mut self.notices) {
            let Notice::Found { device, port, speed, .. } = notice else {
                log!("{number}: {notice:?}");
                continue;
            };
            let connector = self.driver.connector(port);
            let (configured, endpoints) = self.read(device, speed);
            seats.push((Seat { device, connector, endpoints }, configured));
        }
        seats.sort_by_key(|(seat, _)| seat.connector);
        for (seat, Configured { value, descriptor, set }) in &seats {
            let configured = self.configure(seat, *value)?;
            log!("{number} at {}: {descriptor:08x} {set:08x} {configured}", seat.connector);
        }
        if self.driver.state() != ControllerState::Running {
            log!("{number}: it does not run");
        }
        Ok(seats.into_iter().map(|(seat, _)| seat).collect())
    }

    /// Waits until a device is gone; false if it stays.
    ///
    /// # Errors
    /// The message is gone.
    pub fn gone(&mut self, seat: &Seat, patience: Nanos) -> Result<bool, Errno> {
        let gone = Notice::Gone(seat.device);
        let is_gone = self.until(patience, |host| host.notices.contains(&gone))?;
        self.notices.retain(|notice| *notice != gone);
        Ok(is_gone)
    }

    /// Returns what a device says about its first configuration, and the endpoints of that.
    fn read(&mut self, device: DeviceId, speed: Speed) -> (Configured, Vec<EndpointDescriptor>) {
        let mut bytes = vec![0; CONFIGURATION];
        let length = self.driver.configuration(device, &mut bytes).unwrap_or(0);
        bytes.truncate(length);
        let descriptor = self.driver.device_descriptor(device).unwrap_or_default();
        let sums = (crc32(&descriptor), crc32(&bytes));
        let parsed = Configuration::parse_once(&bytes, speed).ok();
        let endpoints = parsed.iter().flat_map(|set| set.interfaces());
        let usual = endpoints.filter(|interface| interface.alternate == 0);
        let value = parsed.as_ref().map_or(0, |set| set.header().value);
        let endpoints = usual.flat_map(|interface| interface.endpoints()).collect();
        (Configured { value, descriptor: sums.0, set: sums.1 }, endpoints)
    }

    /// Configures a device, and returns whether it says that it is.
    fn configure(&mut self, seat: &Seat, value: u8) -> Result<bool, Errno> {
        let plans: Vec<EndpointPlan> =
            seat.endpoints.iter().copied().map(EndpointPlan::new).collect();
        if self.driver.configure(seat.device, value, &plans).is_err() {
            return Ok(false);
        }
        self.changed(seat)
    }

    /// Waits until a device has changed as it was told; false if it would not.
    ///
    /// # Errors
    /// The message is gone.
    pub fn changed(&mut self, seat: &Seat) -> Result<bool, Errno> {
        let mut done = false;
        let own = |notice: &Notice| match *notice {
            Notice::Configured(device) if device == seat.device => Some(true),
            Notice::Refused(device, _) if device == seat.device => Some(false),
            _ => None,
        };
        self.until(PATIENCE, |host| {
            let said = host.notices.iter().find_map(own);
            done = said == Some(true);
            said.is_some()
        })?;
        self.notices.retain(|notice| own(notice).is_none());
        Ok(done)
    }

    /// Returns the notices that nobody asked for.
    pub fn news(&mut self) -> Vec<Notice> {
        core::mem::take(&mut self.notices)
    }
}

/// How a device is configured: the value, and the sums over its descriptors.
struct Configured {
    value: u8,
    descriptor: u32,
    set: u32,
}

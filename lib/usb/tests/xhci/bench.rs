//! The driver, the controller on command, and the time they share.

use crate::fake::{BASE, BYTES, CLIENT, Handle};
use diapason_abi::Nanos;
use diapason_usb::Speed;
use diapason_usb::descriptor::Configuration;
use diapason_usb::xhci::{
    Buffer, Buses, Controller, ControllerState, DeviceId, EndpointPlan, Finished, Limits, Notice,
    Window,
};

/// A high-speed device descriptor.
pub const DEVICE: [u8; 18] = [18, 1, 0, 2, 0, 0, 0, 64, 9, 18, 1, 0, 0, 1, 0, 0, 0, 1];

/// One interface: bulk in 0x81, bulk out 0x02, interrupt in 0x83, isochronous in 0x84.
pub const CONFIGURATION: [u8; 46] = [
    9, 2, 46, 0, 1, 1, 0, 0x80, 50, //
    9, 4, 0, 0, 4, 255, 0, 0, 0, //
    7, 5, 0x81, 2, 0, 2, 0, //
    7, 5, 0x02, 2, 0, 2, 0, //
    7, 5, 0x83, 3, 64, 0, 4, //
    7, 5, 0x84, 1, 0, 4, 1,
];

pub struct Bench {
    pub fake: Handle,
    pub driver: Controller<Handle, Handle>,
    pub now: Nanos,
    pub notices: Vec<Notice>,
    pub finished: Vec<Finished>,
}

impl Bench {
    pub fn new(limits: Limits) -> Bench {
        let fake = Handle::new();
        {
            let mut inside = fake.0.borrow_mut();
            inside.descriptors.insert(1, DEVICE.to_vec());
            inside.descriptors.insert(2, CONFIGURATION.to_vec());
        }
        let mut driver =
            Controller::new(fake.clone(), fake.clone(), limits, &Buses::default()).unwrap();
        driver.grant(Window { base: BASE + CLIENT, length: BYTES - CLIENT }).unwrap();
        Bench { fake, driver, now: Nanos::ZERO, notices: Vec::new(), finished: Vec::new() }
    }

    /// Returns a driver that runs.
    pub fn running(limits: Limits) -> Bench {
        let mut bench = Bench::new(limits);
        bench.driver.start(bench.now);
        bench.run(5);
        assert_eq!(bench.driver.state(), ControllerState::Running);
        bench
    }

    /// Interrupts are handled and the driver is called when it wants to be, for so long.
    pub fn run(&mut self, millis: u64) {
        let end = self.now + Nanos::from_millis(millis);
        loop {
            self.handle();
            let wake = self.driver.poll(self.now);
            assert!(wake >= self.now, "it wants to be called in the past");
            self.handle();
            self.take();
            if wake > end {
                break;
            }
            self.now = wake.max(self.now + Nanos(1));
        }
        self.now = end;
    }

    pub fn handle(&mut self) {
        for interrupter in 0..4 {
            while self.driver.has_events(interrupter) {
                self.driver.handle_interrupt(interrupter, 7, self.now);
            }
        }
    }

    pub fn take(&mut self) {
        while let Some(notice) = self.driver.take_notice() {
            self.notices.push(notice);
        }
        for interrupter in 0..4 {
            while let Some(finished) = self.driver.take_finished(interrupter) {
                self.finished.push(finished);
            }
        }
    }

    /// Plugs a high-speed device into port 1 and configures it with these endpoints.
    pub fn device(&mut self, endpoints: &[u8]) -> DeviceId {
        self.device_in(0, endpoints)
    }

    /// Plugs it in, and gives it to a lane.
    pub fn device_in(&mut self, lane: u16, endpoints: &[u8]) -> DeviceId {
        self.fake.0.borrow_mut().plug(1, 3);
        self.run(200);
        let device = self.found();
        self.driver.assign(device, lane).unwrap();
        let plans = plans(endpoints);
        self.driver.configure(device, 1, &plans).unwrap();
        self.run(10);
        assert_eq!(self.notices.pop(), Some(Notice::Configured(device)));
        device
    }

    /// Returns the device of the last notice, which says that one was found.
    pub fn found(&mut self) -> DeviceId {
        match self.notices.pop() {
            Some(Notice::Found { device, .. }) => device,
            other => panic!("{other:?} and not a device found"),
        }
    }
}

/// Returns plans for these endpoints of [`CONFIGURATION`].
pub fn plans(endpoints: &[u8]) -> Vec<EndpointPlan> {
    let configuration = Configuration::parse_once(&CONFIGURATION, Speed::High).unwrap();
    let interface = configuration.interface(0, 0).unwrap();
    let wanted = interface.endpoints().filter(|e| endpoints.contains(&e.address));
    wanted.map(EndpointPlan::new).collect()
}

/// Returns a buffer of the test's own, by number.
pub fn buffer(number: u64, length: u32) -> Buffer {
    Buffer { address: BASE + CLIENT + number * 0x1000, length }
}

/// Memory of so many bytes before a multiple of 64 KiB and so many behind it.
pub fn straddling(before: u32, behind: u32) -> Buffer {
    let boundary = BASE + CLIENT + 0x2_0000;
    Buffer { address: boundary - u64::from(before), length: before + behind }
}

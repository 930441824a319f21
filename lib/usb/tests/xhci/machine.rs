//! The driver on the model of a controller, with time that passes on buses.

use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_usb::xhci::{
    Buffer, Buses, Controller, ControllerState, DeviceId, Dma, Finished, Lane, Lanes, Limits, Mmio,
    Notice, Together, Window,
};
use diapason_xhc::{Config, Denied, Memory, Xhc};
use std::cell::RefCell;
use std::rc::Rc;

const BASE: u64 = 0x8_0000_0000;
const BYTES: usize = 12 << 20;
const CLIENT: usize = 2 << 20;

/// Memory that denies everything outside of it.
struct Ram(Vec<u8>);

fn range(address: u64, length: usize) -> Result<std::ops::Range<usize>, Denied> {
    let start = address.checked_sub(BASE).ok_or(Denied)? as usize;
    let end = start.checked_add(length).ok_or(Denied)?;
    if end <= BYTES { Ok(start..end) } else { Err(Denied) }
}

impl Memory for Ram {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Denied> {
        bytes.copy_from_slice(&self.0[range(address, bytes.len())?]);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Denied> {
        self.0[range(address, bytes.len())?].copy_from_slice(bytes);
        Ok(())
    }
}

struct Inside {
    xhc: Xhc,
    ram: Ram,
    now: Nanos,
    accesses: (u64, u64),
}

#[derive(Clone)]
pub struct Link(Rc<RefCell<Inside>>);

impl Link {
    /// Returns the time of the machine.
    pub fn now(&self) -> Nanos {
        self.0.borrow().now
    }

    /// Memory of the test's own from this byte on.
    pub fn buffer(at: usize, length: u32) -> Buffer {
        Buffer { address: BASE + (CLIENT + at) as u64, length }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link")
    }
}

impl Mmio for Link {
    fn length(&self) -> u64 {
        diapason_xhc::WINDOW
    }

    fn read32(&mut self, offset: u64) -> u32 {
        let inside = &mut *self.0.borrow_mut();
        inside.accesses.0 += 1;
        inside.xhc.read(offset, inside.now)
    }

    fn write32(&mut self, offset: u64, value: u32) {
        let inside = &mut *self.0.borrow_mut();
        inside.accesses.1 += 1;
        inside.xhc.write(offset, value, inside.now, &mut inside.ram);
    }
}

impl Dma for Link {
    fn base(&self) -> u64 {
        BASE
    }
    fn length(&self) -> u64 {
        BYTES as u64
    }
    fn load(&self, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        self.read(offset, &mut bytes);
        u32::from_le_bytes(bytes)
    }
    fn store(&mut self, offset: u64, value: u32) {
        self.write(offset, &value.to_le_bytes());
    }
    fn read(&self, offset: u64, bytes: &mut [u8]) {
        let at = offset as usize;
        bytes.copy_from_slice(&self.0.borrow().ram.0[at..at + bytes.len()]);
    }
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let at = offset as usize;
        self.0.borrow_mut().ram.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// A machine with one controller.
pub struct Machine<L = Together<Link, Link>> {
    link: Link,
    pub driver: Controller<Link, Link, L>,
    pub notices: Vec<Notice>,
    pub finished: Vec<Finished>,
}

impl Machine {
    pub fn new(config: Config, limits: Limits) -> Machine {
        Machine::over(config, limits, |_, lanes| Together::new(lanes))
    }

    /// Returns a machine whose controller runs.
    pub fn running(config: Config, limits: Limits) -> Machine {
        let mut machine = Machine::new(config, limits);
        machine.driver.start(Nanos::ZERO);
        machine.run(Nanos::from_millis(20));
        assert_eq!(machine.driver.state(), ControllerState::Running);
        machine
    }
}

impl<L: Lanes<Link, Link>> Machine<L> {
    /// Returns a machine whose lanes are where `put` stores them.
    pub fn over(
        config: Config,
        limits: Limits,
        put: impl FnOnce(&Link, Vec<Lane<Link, Link>>) -> L,
    ) -> Machine<L> {
        let inside = Inside {
            xhc: Xhc::new(config),
            ram: Ram(vec![0; BYTES]),
            now: Nanos::ZERO,
            accesses: (0, 0),
        };
        let link = Link(Rc::new(RefCell::new(inside)));
        let parts = (link.clone(), link.clone());
        let put = |lanes| put(&link, lanes);
        let mut driver = Controller::over(parts, limits, &Buses::default(), put).unwrap();
        let length = (BYTES - CLIENT) as u64;
        driver.grant(Window { base: BASE + CLIENT as u64, length }).unwrap();
        Machine { link, driver, notices: Vec::new(), finished: Vec::new() }
    }

    pub fn now(&self) -> Nanos {
        self.link.0.borrow().now
    }

    /// Lets time pass: interrupts are handled when they come, the driver when it wants to be.
    pub fn run(&mut self, time: Nanos) {
        let end = self.now() + time;
        self.run_until(end, |_| false);
    }

    /// Runs until something is as wanted; at most until `end`.
    pub fn run_until(&mut self, end: Nanos, done: impl Fn(&Machine<L>) -> bool) {
        let mut wake = self.driver.poll(self.now());
        self.take();
        while !done(self) {
            let event = self.link.0.borrow().xhc.next_event();
            let next = event.min(wake);
            if next > end {
                let inside = &mut *self.link.0.borrow_mut();
                inside.now = inside.now.max(end);
                return;
            }
            let vectors = {
                let inside = &mut *self.link.0.borrow_mut();
                inside.now = next.max(inside.now);
                inside.xhc.advance(inside.now, &mut inside.ram);
                inside.xhc.take_interrupts()
            };
            let now = self.now();
            for interrupt in vectors {
                while self.driver.handle_interrupt(interrupt.vector, 16, now).more {}
            }
            wake = self.driver.next_wake();
            if wake <= now {
                wake = self.driver.poll(now);
            }
            self.take();
        }
    }

    fn take(&mut self) {
        while let Some(notice) = self.driver.take_notice() {
            self.notices.push(notice);
        }
        for interrupter in 0..4 {
            while let Some(finished) = self.driver.take_finished(interrupter) {
                self.finished.push(finished);
            }
        }
    }

    pub fn attach(&mut self, port: u8, device: Box<dyn UsbDevice>) {
        let inside = &mut *self.link.0.borrow_mut();
        inside.xhc.attach(port, device, inside.now, &mut inside.ram);
    }

    pub fn detach(&mut self, port: u8) {
        let inside = &mut *self.link.0.borrow_mut();
        inside.xhc.detach(port, inside.now, &mut inside.ram);
    }

    /// The link of a USB 3 port is lost.
    pub fn lose_link(&mut self, port: u8) {
        let inside = &mut *self.link.0.borrow_mut();
        inside.xhc.lose_link(inside.now, &mut inside.ram, port);
    }

    /// Something happens to the controller itself.
    pub fn disturb(&mut self, disturbance: impl FnOnce(&mut Xhc)) {
        disturbance(&mut self.link.0.borrow_mut().xhc);
    }

    /// Accesses the controller made to memory that is not there.
    pub fn denials(&self) -> usize {
        self.link.0.borrow().xhc.denials().len()
    }

    /// Misuses of memory that was lent, by the driver or the controller, since the last call.
    pub fn take_misuses(&mut self) -> Vec<(diapason_xhc::Misuse, u64)> {
        self.link.0.borrow_mut().xhc.take_misuses()
    }

    /// A broken controller writes once more what it wrote last.
    pub fn write_late(&mut self) {
        let inside = &mut *self.link.0.borrow_mut();
        inside.xhc.write_late(&mut inside.ram);
    }

    pub fn counts(&self) -> diapason_xhc::TraceCounts {
        self.link.0.borrow().xhc.counts()
    }

    /// Register reads and writes so far.
    pub fn accesses(&self) -> (u64, u64) {
        self.link.0.borrow().accesses
    }

    /// Returns the device that was just found.
    pub fn found(&mut self) -> DeviceId {
        match self.notices.pop() {
            Some(Notice::Found { device, .. }) => device,
            other => panic!("{other:?} and not a device found"),
        }
    }

    /// Memory of the test's own from this byte on.
    pub fn buffer(&self, at: usize, length: u32) -> Buffer {
        Link::buffer(at, length)
    }

    pub fn fill(&mut self, at: usize, bytes: &[u8]) {
        self.link.write((CLIENT + at) as u64, bytes);
    }

    pub fn bytes(&self, at: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.link.read((CLIENT + at) as u64, &mut bytes);
        bytes
    }
}

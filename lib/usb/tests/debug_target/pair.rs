//! A target on the model of a controller, and the other computer's end of the cable.

use diapason_abi::Nanos;
use diapason_devices::{Answer, UsbDevice};
use diapason_usb::Setup;
use diapason_usb::debug_target::{DebugTarget, LinkDirection, TargetEvent, TargetIdentity};
use diapason_usb::xhci::{Buffer, Dma, Mmio};
use diapason_xhc::{Config, DebugConfig, Denied, Memory, Xhc};
use std::cell::RefCell;
use std::rc::Rc;

pub const BASE: u64 = 0x1_0000;
pub const ROOM: usize = 0x8_0000;
pub const DATA: u64 = 0x1_0000;
/// The time from one look to the next.
pub const LOOK: Nanos = Nanos::from_micros(10);
pub const IDENTITY: TargetIdentity = TargetIdentity {
    vendor: 0x1d6b,
    product: 0x0010,
    version: 0x0010,
    protocol: 0,
    texts: ["Diapason", "Debug target", "0001"],
};

pub struct Ram(pub Vec<u8>);

impl Ram {
    fn range(address: u64, length: usize) -> Result<std::ops::Range<usize>, Denied> {
        let start = address.checked_sub(BASE).ok_or(Denied)? as usize;
        let end = start.checked_add(length).filter(|end| *end <= ROOM).ok_or(Denied)?;
        Ok(start..end)
    }
}

impl Memory for Ram {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Denied> {
        bytes.copy_from_slice(&self.0[Ram::range(address, bytes.len())?]);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Denied> {
        self.0[Ram::range(address, bytes.len())?].copy_from_slice(bytes);
        Ok(())
    }
}

/// A controller and its memory, seen by the driver.
#[derive(Clone)]
pub struct Hardware(pub Rc<RefCell<(Xhc, Ram, Nanos)>>);

impl Mmio for Hardware {
    fn length(&self) -> u64 {
        diapason_xhc::WINDOW
    }

    fn read32(&mut self, offset: u64) -> u32 {
        let (xhc, _, now) = &*self.0.borrow();
        xhc.read(offset, *now)
    }

    fn write32(&mut self, offset: u64, value: u32) {
        let (xhc, ram, now) = &mut *self.0.borrow_mut();
        xhc.write(offset, value, *now, ram);
    }
}

impl Dma for Hardware {
    fn base(&self) -> u64 {
        BASE
    }

    fn length(&self) -> u64 {
        ROOM as u64
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
        bytes.copy_from_slice(&self.0.borrow().1.0[at..at + bytes.len()]);
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let at = offset as usize;
        self.0.borrow_mut().1.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// The target, and what the other computer has at its end of the cable.
pub struct Pair {
    pub hardware: Hardware,
    pub target: DebugTarget<Hardware, Hardware>,
    pub partner: Box<dyn UsbDevice>,
    pub told: Vec<TargetEvent>,
}

impl Pair {
    pub fn new() -> Pair {
        let debug = DebugConfig { port: 4, burst: 0, first_endpoint: 2, survives_reset: false };
        let mut xhc = Xhc::new(Config { debug: Some(debug), ..Config::default() });
        let partner = xhc.debug_partner(Nanos::from_micros(1), &Default::default()).unwrap();
        let hardware = Hardware(Rc::new(RefCell::new((xhc, Ram(vec![0; ROOM]), Nanos::ZERO))));
        let target = DebugTarget::new(hardware.clone(), hardware.clone(), IDENTITY).unwrap();
        let mut pair = Pair { hardware, target, partner, told: Vec::new() };
        pair.look();
        pair
    }

    /// Time passes, and the target looks.
    pub fn look(&mut self) {
        self.pass();
        self.target.poll(&mut |told| self.told.push(told));
    }

    /// Time passes, and the target does not look.
    pub fn pass(&mut self) {
        let now = self.now() + LOOK;
        {
            let (xhc, ram, time) = &mut *self.hardware.0.borrow_mut();
            xhc.advance(now, ram);
            *time = now;
        }
        self.partner.advance(now);
    }

    pub fn now(&self) -> Nanos {
        self.hardware.0.borrow().2
    }

    pub fn take(&mut self) -> Vec<TargetEvent> {
        std::mem::take(&mut self.told)
    }

    /// Does what the other computer does when it finds a device.
    pub fn configure(&mut self) {
        let now = self.now();
        self.partner.reset(now);
        // A reset of a target that is known takes its time.
        (0..200).for_each(|_| self.look());
        let now = self.now();
        self.partner.control(now, Setup::set_configuration(1), &[]).unwrap();
        (0..3).for_each(|_| self.look());
        assert!(self.target.is_configured());
    }

    pub fn give(&mut self, number: u64, bytes: &[u8]) -> bool {
        let at = DATA + number * 0x1_0000;
        self.hardware.write(at, bytes);
        let buffer = Buffer { address: BASE + at, length: bytes.len() as u32 };
        self.target.submit(LinkDirection::Out, buffer, number)
    }

    pub fn lend(&mut self, number: u64, length: u32) -> bool {
        let address = BASE + DATA + number * 0x1_0000;
        self.target.submit(LinkDirection::In, Buffer { address, length }, number)
    }

    /// Packets that the other computer reads.
    pub fn fetch(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let mut buffer = [0; 1024];
        while let Answer::Data(count) = self.partner.send(self.now(), 0x81, &mut buffer) {
            packets.push(buffer[..count].to_vec());
        }
        packets
    }
}

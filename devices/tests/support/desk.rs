//! A module of a TouCAN under a driver that a test plays.

use diapason_abi::Nanos;
use diapason_can::toucan::ToucanRegisters;
use diapason_devices::can::CanBus;
use diapason_devices::toucan::TouCan;
use std::cell::{Cell, RefCell};

/// A module, and a clock that goes on at each access.
pub struct Desk {
    pub model: RefCell<TouCan>,
    pub now: Cell<u64>,
    access_ns: u64,
}

impl ToucanRegisters for &Desk {
    fn read(&self, offset: usize) -> u32 {
        self.pass(self.access_ns);
        self.model.borrow_mut().read_long(self.time(), offset)
    }

    fn write(&self, offset: usize, value: u32) {
        self.pass(self.access_ns);
        self.model.borrow_mut().write_long(self.time(), offset, value);
    }
}

impl Desk {
    pub fn new(bus: &CanBus, access_ns: u64) -> Desk {
        Desk { model: RefCell::new(TouCan::new(bus)), now: Cell::new(0), access_ns }
    }

    pub fn time(&self) -> Nanos {
        Nanos(self.now.get())
    }

    pub fn pass(&self, ns: u64) {
        self.now.set(self.now.get() + ns);
        self.model.borrow_mut().advance(self.time());
    }

    /// Lets time pass until the module interrupts, or until `end`. Returns whether it does.
    pub fn wait(&self, end: u64) -> bool {
        loop {
            let mut model = self.model.borrow_mut();
            if model.take_interrupt() {
                return true;
            }
            let next = model.next_change().0.max(self.now.get() + 1);
            if next > end {
                self.now.set(self.now.get().max(end));
                model.advance(Nanos(end));
                return model.take_interrupt();
            }
            self.now.set(next);
            model.advance(Nanos(next));
        }
    }
}

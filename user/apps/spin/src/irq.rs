//! The bottom half of a device that interrupts at a fixed rate: the machine's own timer (HPET), set
//! to the next point of a fixed grid each time, so that the rate does not depend on how long it
//! takes to be handled. (In the HPET's own periodic mode, QEMU delivers each interrupt twice.)
//!
//! Arguments: time between interrupts in us (0: none), work for each in us.

#![no_std]
#![no_main]

use core::sync::atomic::Ordering::Relaxed;
use diapason_rt::event::Event;
use diapason_rt::memory::Registers;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_spin::Progress;

entry!(main);

/// The HPET's registers; its first comparator, and the line that is routed to.
mod hpet {
    pub const CAPABILITIES: usize = 0x00;
    pub const CONFIGURATION: usize = 0x10;
    pub const ENABLE: u64 = 1;
    pub const COUNTER: usize = 0xf0;
    pub const COMPARATOR_CONFIGURATION: usize = 0x100;
    pub const COMPARATOR: usize = 0x108;
    pub const LINE: u64 = 20 << 9;
    pub const INTERRUPT: u64 = 1 << 2;
}

fn main(Arguments([every_us, work_us, ..]): Arguments) {
    if every_us == 0 {
        return;
    }
    if let Err(errno) = serve(every_us, Nanos::from_micros(work_us)) {
        log!("the bottom half failed: {errno:?}");
    }
}

fn serve(every_us: u64, work: Nanos) -> Result<(), Errno> {
    let progress = Progress::attach()?;
    let registers = Registers::map("hpet")?;
    let interrupt = Event::interrupt("hpet")?;
    let mut alarm = Alarm::start(registers, every_us);
    loop {
        interrupt.wait(Nanos::FOREVER)?;
        alarm.next();
        progress.interrupts.store(progress.interrupts.load(Relaxed) + 1, Relaxed);
        time::burn(work);
    }
}

/// The comparator and the grid it follows.
struct Alarm {
    registers: Registers,
    /// Distance of the points, and the next one, in ticks of the HPET.
    every: u64,
    due: u64,
}

impl Alarm {
    /// Points of the grid this close are left out: what is past never comes.
    const CLOSE: u64 = 100;

    fn start(registers: Registers, every_us: u64) -> Alarm {
        let femtoseconds = registers.read64(hpet::CAPABILITIES) >> 32;
        let on = registers.read64(hpet::CONFIGURATION) | hpet::ENABLE;
        registers.write64(hpet::CONFIGURATION, on);
        registers.write64(hpet::COMPARATOR_CONFIGURATION, hpet::LINE | hpet::INTERRUPT);
        let now = registers.read64(hpet::COUNTER);
        let every = every_us * 1_000_000_000 / femtoseconds;
        let mut alarm = Alarm { registers, every, due: now };
        alarm.next();
        alarm
    }

    /// Rings at the next point of the grid.
    fn next(&mut self) {
        let now = self.registers.read64(hpet::COUNTER);
        while self.due <= now + Self::CLOSE {
            self.due += self.every;
        }
        self.registers.write64(hpet::COMPARATOR, self.due);
    }
}

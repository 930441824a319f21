//! A device: the high-precision event timer's registers and one of its comparators' interrupts.

use crate::why::{Outcome, Trial, Why};
use crate::{check, refused};
use diapason_rt::event::Event;
use diapason_rt::memory::Registers;
use diapason_rt::{Nanos, time};

pub const TRIALS: &[(&str, Trial)] = &[
    ("registers of a device can be read", registers),
    ("an interrupt has one owner", one_owner),
    ("an interrupt wakes its thread", interrupt),
];

const DEVICE: &str = "hpet";
/// The device's line, as the description says.
const LINE: u64 = 20;

const CAPABILITIES: usize = 0;
const CONFIGURATION: usize = 0x10;
const COUNTER: usize = 0xf0;
const COMPARATOR: usize = 2;
const TIMER: usize = 0x100 + 0x20 * COMPARATOR;
const TIMER_VALUE: usize = TIMER + 8;

const ENABLE: u64 = 1;
const INTERRUPT_ENABLE: u64 = 1 << 2;

/// The registers of the timer.
struct Hpet(Registers);

impl Hpet {
    fn open() -> Result<Hpet, Why> {
        Ok(Hpet(Registers::map(DEVICE)?))
    }

    fn read(&self, register: usize) -> u64 {
        self.0.read64(register)
    }

    fn write(&self, register: usize, value: u64) {
        self.0.write64(register, value);
    }

    /// Ticks in this many nanoseconds.
    fn ticks(&self, span: Nanos) -> u64 {
        let femtoseconds = self.read(CAPABILITIES) >> 32;
        span.0 * 1_000_000 / femtoseconds
    }
}

fn registers() -> Outcome {
    let hpet = Hpet::open()?;
    let femtoseconds = hpet.read(CAPABILITIES) >> 32;
    check!(femtoseconds > 0 && femtoseconds <= 100_000_000);
    hpet.write(CONFIGURATION, hpet.read(CONFIGURATION) | ENABLE);
    let (before, start) = (hpet.read(COUNTER), time::now());
    time::sleep(Nanos::from_millis(1));
    let (after, end) = (hpet.read(COUNTER), time::now());
    let (least, most) = (Nanos::from_millis(1), end - start + Nanos::from_micros(20));
    check!(after - before >= hpet.ticks(least) && after - before <= hpet.ticks(most));
    Ok(())
}

fn one_owner() -> Outcome {
    let event = Event::interrupt(DEVICE)?;
    refused!(Event::interrupt(DEVICE), Busy);
    drop(event);
    drop(Event::interrupt(DEVICE)?);
    Ok(())
}

fn interrupt() -> Outcome {
    let hpet = Hpet::open()?;
    check!(hpet.read(TIMER) >> (32 + LINE) & 1 == 1);
    let event = Event::interrupt(DEVICE)?;
    hpet.write(CONFIGURATION, hpet.read(CONFIGURATION) | ENABLE);
    for span in [Nanos::from_micros(50), Nanos::from_micros(500)] {
        let due = time::now() + span;
        // Silent while its value is written: it may be set in two halves.
        hpet.write(TIMER, LINE << 9);
        hpet.write(TIMER_VALUE, hpet.read(COUNTER) + hpet.ticks(span));
        hpet.write(TIMER, LINE << 9 | INTERRUPT_ENABLE);
        check!(event.wait(due + Nanos::from_millis(1))? == 1);
        check!(time::now() + Nanos::from_micros(2) >= due);
        check!(time::now() < due + Nanos::from_micros(20));
    }
    hpet.write(TIMER, 0);
    refused!(event.wait(time::now() + Nanos::from_micros(200)), TimedOut);
    Ok(())
}

//! Three sensors, each with a thread and a state message of its own.

#![no_std]
#![no_main]

use diapason_engine::{CRANK_PERIOD, Crank, Engine, TEMPERATURE_PERIOD, THROTTLE_PERIOD};
use diapason_rt::thread::{periodic, spawn};
use diapason_rt::{Arguments, Errno, Nanos, body, entry, log, time};

entry!(main);
body!(Throttle = throttle);
body!(Temperature = temperature);

const THROTTLE_PRIORITY: u8 = 44;
const TEMPERATURE_PRIORITY: u8 = 30;
/// Revolutions per minute at rest, and what full throttle adds.
const IDLE_SPEED: u64 = 800;
const SPEED_RANGE: u64 = 5200;

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("the sensors failed: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let engine = Engine::attach()?;
    let _throttle = spawn::<Throttle>("throttle", THROTTLE_PRIORITY, 0)?;
    let _temperature = spawn::<Temperature>("temperat", TEMPERATURE_PRIORITY, 0)?;
    let (mut writer, throttle) = (engine.crank_writer(), engine.throttle());
    let (mut sequence, mut angle) = (0, 0);
    let mut jobs = periodic(time::now(), CRANK_PERIOD, CRANK_PERIOD);
    loop {
        time::burn(Nanos::from_micros(120));
        let speed = IDLE_SPEED + SPEED_RANGE * throttle.read() / 1000;
        // Thousandths of a degree in one period: rpm * 360 / 60 s * 2 ms.
        angle = (angle + speed * 12) % 720_000;
        sequence += 1;
        writer.write(Crank { sequence, angle, speed });
        jobs.wait();
    }
}

/// A driver's foot: up and down between nothing and 1000.
fn throttle(_: u64) -> u64 {
    let Ok(engine) = Engine::attach() else { return 1 };
    let mut writer = engine.throttle_writer();
    let (mut position, mut rising) = (0u64, true);
    let mut jobs = periodic(time::now(), THROTTLE_PERIOD, THROTTLE_PERIOD);
    loop {
        time::burn(Nanos::from_micros(60));
        position = if rising { position + 4 } else { position - 4 };
        rising = match position {
            0 => true,
            1000 => false,
            _ => rising,
        };
        writer.write(position);
        jobs.wait();
    }
}

/// The coolant warms up, in thousandths of a degree.
fn temperature(_: u64) -> u64 {
    let Ok(engine) = Engine::attach() else { return 1 };
    let mut writer = engine.temperature_writer();
    let mut coolant = 20_000;
    let mut jobs = periodic(time::now(), TEMPERATURE_PERIOD, TEMPERATURE_PERIOD);
    loop {
        time::burn(Nanos::from_micros(400));
        coolant += (90_000 - coolant) / 64;
        writer.write(coolant);
        jobs.wait();
    }
}

//! The controller: every 5 ms, from the newest readings to a command.

#![no_std]
#![no_main]

use diapason_engine::{CONTROL_PERIOD, Engine};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::sync::{Mutex, Semaphore};
use diapason_rt::thread::periodic;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

/// The operator's limit when nothing was said, in revolutions per minute.
const LIMIT: u64 = 6000;

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("the controller failed: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let engine = Engine::attach()?;
    let (crank, throttle) = (engine.crank(), engine.throttle());
    let temperature = engine.temperature();
    let injector = Mutex::open("injector")?;
    let command = Semaphore::open("command")?;
    let operator = Mailbox::open("orders")?;
    let (mut limit, mut last) = (LIMIT, 0);
    let mut jobs = periodic(time::now(), CONTROL_PERIOD, CONTROL_PERIOD);
    loop {
        limit = new_limit(&operator).unwrap_or(limit);
        let reading = crank.read();
        if reading.sequence < last {
            log!("the crank's readings went back from {last} to {}", reading.sequence);
        }
        last = reading.sequence;
        let (fuel, spark) = time::work("engine.control", || {
            time::burn(Nanos::from_micros(300));
            control(reading.speed, throttle.read(), temperature.read(), limit)
        });
        // The actuators hold the mutex for a while; what they are doing then is as urgent as this.
        let guard = injector.lock()?;
        engine.set_command(fuel, spark);
        drop(guard);
        command.give()?;
        jobs.wait();
    }
}

/// Returns the operator's last limit, if there is a new one.
fn new_limit(operator: &Mailbox) -> Option<u64> {
    let message = operator.receive(Nanos::ZERO).ok()?;
    let limit = message.bytes().first_chunk().map(|word| u64::from_le_bytes(*word))?;
    log!("operator's limit: {limit} rpm (priority {})", message.priority);
    Some(limit)
}

/// Fuel in microlitres and spark advance in thousandths of a degree.
fn control(speed: u64, throttle: u64, coolant: u64, limit: u64) -> (u64, u64) {
    let cold = (90_000u64.saturating_sub(coolant)) / 3_000;
    let fuel = if speed >= limit { 0 } else { 8 + throttle / 25 + cold };
    let spark = 8_000 + speed * 5 / 2;
    (fuel, spark)
}

//! The actuators: injector and spark, each driven by its own thread on the same command.

#![no_std]
#![no_main]

use diapason_engine::Engine;
use diapason_hints::hints;
use diapason_rt::sync::{Condition, Guard, Mutex, Semaphore};
use diapason_rt::thread::spawn;
use diapason_rt::{Arguments, Errno, Nanos, body, entry, log, time};

entry!(main);
body!(Spark = spark);

const SPARK_PRIORITY: u8 = 36;

fn main(_: Arguments) {
    if let Err(errno) = inject() {
        log!("the injector failed: {errno:?}");
    }
}

/// Inject what each command says, then tell the spark.
#[hints]
fn inject() -> Result<(), Errno> {
    let engine = Engine::attach()?;
    let (command, injector) = (Semaphore::open("command")?, Mutex::open("injector")?);
    let injected = Condition::open("injected")?;
    let _spark = spawn::<Spark>("spark", SPARK_PRIORITY, 0)?;
    loop {
        command.take(Nanos::FOREVER)?;
        let guard = injector.lock()?;
        let (fuel, _) = engine.command();
        time::burn(Nanos::from_micros(40 + fuel));
        drop(guard);
        injected.signal()?;
    }
}

fn spark(_: u64) -> u64 {
    match fire() {
        Ok(()) => 0,
        Err(errno) => {
            log!("the spark failed: {errno:?}");
            1
        }
    }
}

/// Fire after each injection.
fn fire() -> Result<(), Errno> {
    let engine = Engine::attach()?;
    let (injector, injected) = (Mutex::open("injector")?, Condition::open("injected")?);
    let mut guard: Guard<'_> = injector.lock()?;
    loop {
        injected.wait(&mut guard, Nanos::FOREVER)?;
        let (_, spark) = engine.command();
        time::burn(Nanos::from_micros(20 + spark / 1_000));
    }
}

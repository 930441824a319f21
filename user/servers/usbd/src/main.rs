//! The USB server: drives the host controller, and serves what is plugged into it.
//!
//! Its threads share the server under one mutex. One manages: commands, ports, time. The others are
//! bottom halves, one for each service: it runs on a VCPU of its own for those who wait for what
//! its devices send, and wakes them. All do the same: lock, whatever is due, unlock, wake.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod change;
mod channels;
mod hardware;
mod policy;
mod served;
mod server;
mod services;
mod slots;

use alloc::boxed::Box;
use alloc::vec::Vec;
use diapason_rt::event::Event;
use diapason_rt::locked::Locked;
use diapason_rt::memory::{Dma, Registers};
use diapason_rt::sync::Semaphore;
use diapason_rt::thread::{self, Task};
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Arguments, Errno, Nanos, entry, heap, log, time};
use diapason_usb::xhci::{Buses, Controller};
use hardware::{Bar, Shared};
use policy::Home;
use server::{Cause, Fresh, Server};
use services::Offers;
use slots::Pool;

entry!(main);
heap!(128 * 1024);

/// The priority of all threads, each on a VCPU of its own.
const PRIORITY: u8 = 1;

/// What a thread does besides serving its interrupter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Duty {
    /// It watches the time, and lets its interrupter wait: no controller has to keep the distance.
    Manage,
    /// Nothing.
    Receive,
}

/// A thread of the server: what it waits for, and whom it wakes.
struct Half {
    server: &'static Locked<Server>,
    interrupter: u16,
    message: Event,
    duty: Duty,
    /// What the simulator calls what it does.
    work: &'static str,
    bells: &'static [Semaphore],
}

fn main(_: Arguments) {
    if let Err(errno) = serve() {
        log!("no USB: {errno:?}");
    }
}

fn serve() -> Result<(), Errno> {
    let message = |number: u16| Event::message(policy::DEVICE, number as u8);
    let managing = message(policy::MANAGING)?;
    let offers = services::offered()?;
    let homes: Vec<&'static Home> = offers.iter().map(|(_, home)| *home).collect();
    let (server, bells) = build(offers)?;
    for (interrupter, home) in (1..).zip(homes) {
        let (message, duty, work) = (message(interrupter)?, Duty::Receive, home.work);
        let bottom = Box::new(Half { server, interrupter, message, duty, work, bells });
        thread::start(Vcpu::open(home.vcpu)?, home.thread, PRIORITY, Box::leak(bottom))?;
    }
    let (interrupter, message, duty) = (policy::MANAGING, managing, Duty::Manage);
    let work = "usbd.manage";
    Box::leak(Box::new(Half { server, interrupter, message, duty, work, bells })).run();
    Ok(())
}

/// The server, its controller being started, and all its bells.
fn build(offers: Offers) -> Result<(&'static Locked<Server>, &'static [Semaphore]), Errno> {
    let limits = policy::limits(offers.len());
    let registers = Registers::map(policy::DEVICE)?;
    let rings = Shared(Dma::attach(policy::RINGS)?);
    let pool = Pool::new(Dma::attach(policy::BUFFERS)?, limits.devices.into());
    let made = Controller::new(Bar(registers), rings, limits, &Buses::default());
    let granted = made.map_err(|why| log!("the limits: {why:?}")).and_then(|mut driver| {
        let granted = driver.grant(pool.window());
        granted.map(|()| driver).map_err(|why| log!("memory of transfers: {why:?}"))
    });
    let driver = granted.map_err(|()| Errno::Exhausted)?;
    let server = Server::new(driver, pool, offers, time::now());
    let bells = server.bells().leak();
    Ok((Box::leak(Box::new(Locked::new(server))), bells))
}

impl Task for Half {
    fn run(&'static self) -> u64 {
        let mut cause = Cause::Time;
        loop {
            let (fresh, wake) = match self.server.lock() {
                Ok(mut server) => {
                    let now = time::now();
                    let fresh = time::work(self.work, || server.attend(cause, now));
                    (fresh, server.next_wake())
                }
                Err(errno) => return stop(errno),
            };
            self.ring(fresh);
            cause = match self.wait(wake) {
                Ok(cause) => cause,
                Err(errno) => return stop(errno),
            };
        }
    }
}

impl Half {
    fn wait(&self, wake: Nanos) -> Result<Cause, Errno> {
        let managing = self.duty == Duty::Manage;
        let deadline = if managing { wake } else { Nanos::FOREVER };
        match self.message.wait(deadline) {
            Ok(_) => {
                if managing {
                    // No other interrupt comes until this one is handled.
                    time::sleep(policy::PACE);
                }
                Ok(Cause::Interrupt(self.interrupter))
            }
            Err(Errno::TimedOut) => Ok(Cause::Time),
            Err(errno) => Err(errno),
        }
    }

    fn ring(&self, fresh: Fresh) {
        for (number, bell) in self.bells.iter().enumerate() {
            if fresh >> number & 1 != 0 {
                // A semaphore at its limit has been given often enough.
                let _ = bell.give();
            }
        }
    }
}

fn stop(errno: Errno) -> u64 {
    log!("a thread of the server ends: {errno:?}");
    1
}

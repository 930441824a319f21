//! The USB server: drives the host controller, and serves a CAN interface plugged into it.
//!
//! Two threads share the server under one mutex. One manages: commands, ports, time. The other is
//! the bottom half of what CAN channels receive: it runs on a VCPU of its own, puts frames into
//! pipes and wakes their readers. Both do the same: lock, whatever is due, unlock, wake.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod channels;
mod hardware;
mod interface;
mod policy;
mod server;
mod slots;

use alloc::boxed::Box;
use channels::Channels;
use diapason_rt::event::Event;
use diapason_rt::locked::Locked;
use diapason_rt::memory::{Dma, Registers};
use diapason_rt::sync::Semaphore;
use diapason_rt::thread::{self, Task};
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Arguments, Errno, Nanos, entry, heap, log, time};
use diapason_usb::xhci::{Buses, Controller};
use diapason_usbd::CHANNELS;
use hardware::{Bar, Shared};
use server::{Cause, Server};
use slots::Slots;

entry!(main);
heap!(128 * 1024);

/// The priority of both threads, each on a VCPU of its own.
const PRIORITY: u8 = 1;

/// What a thread does besides serving its interrupter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Duty {
    /// It watches the time, and lets its interrupter wait: no controller has to keep the distance.
    Manage,
    /// Nothing.
    Receive,
}

impl Duty {
    /// What the simulator calls its work.
    const fn work(self) -> &'static str {
        match self {
            Duty::Manage => "usbd.manage",
            Duty::Receive => "usbd.receive",
        }
    }
}

/// A thread of the server: what it waits for.
struct Half {
    server: &'static Locked<Server>,
    interrupter: u16,
    message: Event,
    duty: Duty,
    ready: [Semaphore; CHANNELS],
}

fn main(_: Arguments) {
    if let Err(errno) = serve() {
        log!("no USB: {errno:?}");
    }
}

fn serve() -> Result<(), Errno> {
    let message = |number: u16| Event::message(policy::DEVICE, number as u8);
    let (managing, receiving) = (message(policy::MANAGING)?, message(policy::CAN)?);
    let (channels, ready) = Channels::new()?;
    let server = build(channels)?;
    let half = |interrupter, message, duty| Half { server, interrupter, message, duty, ready };
    let bottom = Box::leak(Box::new(half(policy::CAN, receiving, Duty::Receive)));
    thread::start(Vcpu::open(policy::RECEIVING)?, "receive", PRIORITY, bottom)?;
    let main = Box::leak(Box::new(half(policy::MANAGING, managing, Duty::Manage)));
    main.run();
    Ok(())
}

/// The server, its controller being started.
fn build(channels: Channels) -> Result<&'static Locked<Server>, Errno> {
    let registers = Registers::map(policy::DEVICE)?;
    let rings = Shared(Dma::attach(policy::RINGS)?);
    let slots = Slots::new(Dma::attach(policy::BUFFERS)?).ok_or(Errno::Exhausted)?;
    let made = Controller::new(Bar(registers), rings, policy::LIMITS, &Buses::default());
    let granted = made.map_err(|why| log!("the limits: {why:?}")).and_then(|mut driver| {
        let granted = driver.grant(slots.window());
        granted.map(|()| driver).map_err(|why| log!("memory of transfers: {why:?}"))
    });
    let driver = granted.map_err(|()| Errno::Exhausted)?;
    let server = Server::new(driver, slots, channels, time::now());
    Ok(Box::leak(Box::new(Locked::new(server))))
}

impl Task for Half {
    fn run(&'static self) -> u64 {
        let mut cause = Cause::Time;
        loop {
            let (fresh, wake) = match self.server.lock() {
                Ok(mut server) => {
                    let now = time::now();
                    let fresh = time::work(self.duty.work(), || server.attend(cause, now));
                    (fresh, server.next_wake())
                }
                Err(errno) => return stop(errno),
            };
            self.wake_readers(fresh);
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

    fn wake_readers(&self, fresh: channels::Fresh) {
        for (channel, ready) in self.ready.iter().enumerate() {
            if fresh & 1 << channel != 0 {
                // A semaphore at its limit has been given often enough.
                let _ = ready.give();
            }
        }
    }
}

fn stop(errno: Errno) -> u64 {
    log!("a thread of the server ends: {errno:?}");
    1
}

//! The process of the USB server: its start, its threads, and what they wait for. `diapason-usbd`
//! makes the decisions.
//!
//! The threads share the server under one mutex. One manages: commands, ports, time. The others are
//! bottom halves, one for each service: it runs on a VCPU of its own for those who wait for what
//! its devices send, and wakes them. All do the same: lock, whatever is due, unlock, wake.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod ground;
mod times;
mod tune;

use alloc::boxed::Box;
use alloc::vec::Vec;
use diapason_contract::needs;
use diapason_contract::threads::{self, Home};
use diapason_rt::event::Event;
use diapason_rt::locked::Locked;
use diapason_rt::settings::Room;
use diapason_rt::sync::Semaphore;
use diapason_rt::thread::{self, Task};
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Arguments, Errno, Nanos, entry, heap, log, time};
use diapason_usbd::policy;
use diapason_usbd::{Cause, Fresh, Offers, Pipes, Told, offered};
use ground::Ground;
use times::Watch;

/// The server of this process.
type Server = diapason_usbd::Server<Ground>;

entry!(main);
heap!(128 * 1024);

/// The description's settings, by name.
static SETTINGS: Room = Room::new();

/// The priority of all threads, each on a VCPU of its own.
const PRIORITY: u8 = 1;

/// The duty of a thread besides serving its interrupter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Duty {
    /// It watches the time.
    Manage,
    Receive,
}

/// The event that a thread waits for.
enum Source {
    Message(u16, Event),
    /// Clients that want something.
    Asked(Semaphore),
    /// The same, what they want being in mailboxes.
    Mailboxes(Event),
}

impl Source {
    /// Why it looks for the first time: what is in the mailboxes by then, nobody has heard of.
    const fn first(&self) -> Cause {
        match self {
            Source::Message(..) | Source::Asked(_) => Cause::Time,
            Source::Mailboxes(_) => Cause::Asked,
        }
    }
}

/// A thread of the server: what it waits for, and whom it wakes.
struct Half {
    server: &'static Locked<Server>,
    source: Source,
    duty: Duty,
    /// Its interrupts are handled so much later.
    pace: Nanos,
    /// The simulator's name for its work.
    work: &'static str,
    bells: Bells,
}

/// The semaphores to give.
type Bells = &'static [Semaphore];

fn main(_: Arguments) {
    if let Err(errno) = serve(&Told::read(&SETTINGS.read())) {
        log!("no USB: {errno:?}");
    }
}

fn serve(told: &Told) -> Result<(), Errno> {
    let managing = message(policy::MANAGING)?;
    if !told.is_can_alone() {
        HEAP.grow(policy::HEAP_MORE)?;
    }
    let ground = Ground::new(told.hears_clients())?;
    let offers = offered(&ground, told)?;
    let homes = homes(&offers)?;
    let server = diapason_usbd::Server::open(&ground, offers, told, time::now())?;
    let bells = server.bells().into_iter().map(Semaphore::open).collect::<Result<Vec<_>, _>>()?;
    let bells: Bells = bells.leak();
    let server: &'static Locked<Server> = Box::leak(Box::new(Locked::new(server)));
    for (interrupter, (home, asked)) in (1..).zip(homes) {
        let start = |source, name| {
            let Home { pace, work, .. } = *home;
            let half = Half { server, source, duty: Duty::Receive, pace, work, bells };
            thread::start(Vcpu::open(home.vcpu)?, name, PRIORITY, Box::leak(Box::new(half)))
        };
        start(Source::Message(interrupter, message(interrupter)?), home.thread)?;
        if let Some(asked) = asked {
            start(Source::Asked(asked), "asked")?;
        }
    }
    let Ground { sending, .. } = ground;
    if let Some(event) = sending {
        let (source, duty) = (Source::Mailboxes(event), Duty::Receive);
        let Home { pace, work, .. } = threads::SEND;
        let half = Half { server, source, duty, pace, work, bells };
        let vcpu = Vcpu::open(threads::SEND.vcpu)?;
        thread::start(vcpu, threads::SEND.thread, PRIORITY, Box::leak(Box::new(half)))?;
    }
    if !told.pipes.places.is_empty() {
        tune(server, told.pipes.clone(), bells)?;
    }
    let (source, work) = (Source::Message(policy::MANAGING, managing), threads::MANAGE);
    let (duty, pace) = (Duty::Manage, policy::PACE);
    Box::leak(Box::new(Half { server, source, duty, pace, work, bells })).run();
    Ok(())
}

fn message(number: u16) -> Result<Event, Errno> {
    Event::message(needs::CONTROLLER, number as u8)
}

/// Where bottom halves are at home, and what clients of each give when they want something.
fn homes(offers: &Offers<Ground>) -> Result<Vec<(&'static Home, Option<Semaphore>)>, Errno> {
    let homes = offers.iter().filter_map(|offer| offer.home.map(|home| (home, &offer.service)));
    let homes =
        homes.map(|(home, service)| Ok((home, service.asked().map(Semaphore::open).transpose()?)));
    homes.collect()
}

/// Answer those who want tuned pipes.
fn tune(server: &'static Locked<Server>, pipes: Pipes, bells: Bells) -> Result<(), Errno> {
    let broker = tune::Broker { server, pipes, bells };
    let Home { vcpu, thread, .. } = threads::TUNE;
    thread::start(Vcpu::open(vcpu)?, thread, PRIORITY, Box::leak(Box::new(broker)))?;
    Ok(())
}

impl Task for Half {
    fn run(&'static self) -> u64 {
        let mut cause = self.source.first();
        let mut watch = Watch::new(self.is_timed());
        loop {
            watch.woken();
            let (fresh, wake) = match self.server.lock() {
                Ok(mut server) => {
                    let now = time::now();
                    watch.begun(now.0);
                    let fresh = time::work(self.work, || server.attend(cause, now));
                    let managing = self.duty == Duty::Manage;
                    (fresh, if managing { server.next_wake() } else { Nanos::FOREVER })
                }
                Err(errno) => return stop(errno),
            };
            watch.done();
            ring(self.bells, fresh);
            watch.told();
            cause = match self.wait(wake) {
                Ok(cause) => cause,
                Err(errno) => return stop(errno),
            };
        }
    }
}

impl Half {
    /// Is it the one whose times are to be told?
    fn is_timed(&self) -> bool {
        let first = matches!(self.source, Source::Message(1, _));
        first && self.server.lock().is_ok_and(|server| server.tells(policy::tell::TIMES))
    }

    fn wait(&self, deadline: Nanos) -> Result<Cause, Errno> {
        let (occurred, cause) = match &self.source {
            Source::Message(interrupter, message) => {
                (message.wait(deadline).map(|_| ()), Cause::Interrupt(*interrupter))
            }
            Source::Asked(asked) => (asked.take(deadline), Cause::Asked),
            Source::Mailboxes(event) => {
                // Rate-limits requests: after serving one, the thread rests before it listens
                // again.
                time::sleep(policy::REST);
                (event.wait(deadline).map(|_| ()), Cause::Asked)
            }
        };
        match occurred {
            Ok(()) => {
                if matches!(cause, Cause::Interrupt(_)) && self.pace > Nanos::ZERO {
                    // No other interrupt comes until this one is handled.
                    time::sleep(self.pace);
                }
                Ok(cause)
            }
            Err(Errno::TimedOut) => Ok(Cause::Time),
            Err(errno) => Err(errno),
        }
    }
}

/// Wake those who have something new, when nobody holds the server.
fn ring(bells: Bells, fresh: Fresh) {
    for (number, bell) in bells.iter().enumerate() {
        if fresh >> number & 1 != 0 {
            // A semaphore at its limit has been given often enough.
            let _ = bell.give();
        }
    }
}

fn stop(errno: Errno) -> u64 {
    log!("a thread of the server ends: {errno:?}");
    1
}

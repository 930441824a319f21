//! The process of the USB server: its start, its threads, and what they wait for. `diapason-usbd`
//! makes the decisions.
//!
//! One thread manages: commands, ports, time. The others are bottom halves, one for each branch of
//! the server. A bottom half runs on a VCPU of its own for the clients of its devices, and wakes
//! them. It locks its own branch only, does everything that is due there, unlocks, and wakes. If
//! that left something for the part that all share, it locks that next.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod ground;
mod times;
mod tune;

use alloc::boxed::Box;
use alloc::vec::Vec;
use diapason_abi::Key;
use diapason_contract::settings::Saying;
use diapason_contract::threads::{self, Home};
use diapason_contract::{link, needs};
use diapason_rt::event::Event;
use diapason_rt::settings;
use diapason_rt::sync::Semaphore;
use diapason_rt::thread::{self, Task};
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Arguments, Errno, Nanos, entry, heap, log, time};
use diapason_usbd::platform::Guarded as _;
use diapason_usbd::policy;
use diapason_usbd::{Attended, Branch, Branches, Fresh, ServerSettings, WakeCause, offered};
use ground::{Chamber, Ground};
use times::Watch;

/// The server of this process.
type Server = diapason_usbd::UsbServer<Ground>;
/// The branch of a thread, behind its lock.
type Own = Chamber<Branch<Ground>>;

entry!(main);
heap!(needs::HEAP.0 as usize);

/// The priority of all threads, each on a VCPU of its own.
const PRIORITY: u8 = 1;

/// The event that a thread waits for.
enum Source {
    Message(u16, Event),
    /// Clients that want something.
    Asked(Semaphore),
    /// Clients whose wishes are in mailboxes.
    Mailboxes(Event),
}

impl Source {
    /// Returns why it looks for the first time: what is in the mailboxes by then, nobody has heard
    /// of.
    const fn first(&self) -> WakeCause {
        match self {
            Source::Message(..) | Source::Asked(_) => WakeCause::Time,
            Source::Mailboxes(_) => WakeCause::Asked,
        }
    }
}

/// The parts of the server that all threads use.
#[derive(Clone)]
struct Common {
    server: &'static Chamber<Server>,
    branches: &'static Branches<Ground>,
    /// The simulator's names for the works of branches.
    works: &'static [Works],
    /// The semaphores to give.
    bells: &'static [Semaphore],
    /// The semaphore by which the debug capability is enabled, if that is for this server to say.
    enable: Option<Semaphore>,
}

/// A thread of the server: what it waits for, and its branch.
struct Half {
    common: Common,
    source: Source,
    branch: u16,
    own: &'static Own,
    /// The thread's interrupts are handled so much later, and it rests so long between two asks.
    pace: Nanos,
    works: Works,
}

/// The keys of a branch's works: whenever a thread attends to it, for each transfer, and for each
/// message.
#[derive(Clone, Copy)]
struct Works {
    work: Key,
    transfer: Option<Key>,
    each: Option<Key>,
}

impl Works {
    fn of(home: &Home) -> Works {
        let part = |name: &str| (!name.is_empty()).then(|| Key::new(name));
        Works { work: Key::new(home.work), transfer: part(home.transfer), each: part(home.each) }
    }

    /// Attends to a branch.
    fn attend(self, branch: &mut Branch<Ground>, cause: WakeCause, now: Nanos) -> Attended {
        let attended = time::work_of(self.work, || branch.attend(cause, now));
        for (part, count) in [(self.transfer, attended.transfers), (self.each, attended.messages)] {
            if let Some(part) = part {
                (0..count).for_each(|_| time::work_of(part, || ()));
            }
        }
        attended
    }
}

/// The thread that manages.
struct Manager {
    common: Common,
    message: Event,
}

fn main(_: Arguments) {
    if let Err(errno) = serve(&ServerSettings::read(&settings::read())) {
        log!("no USB: {errno:?}");
    }
}

fn serve(told: &ServerSettings) -> Result<(), Errno> {
    let managing = message(policy::MANAGING)?;
    if !told.is_small {
        HEAP.grow(needs::HEAP.1 as usize)?;
    }
    let interfaces = 0..told.pipes.interfaces.len();
    let ground = Ground::new(interfaces.map(|number| told.hears_clients(number)))?;
    let offers = offered(&ground, told)?;
    let homes = offers.iter().filter_map(|offer| offer.home);
    let homes = homes.map(|home| Ok((home, home.asked.map(Semaphore::open).transpose()?)));
    let homes = homes.collect::<Result<Vec<_>, Errno>>()?;
    let server = diapason_usbd::UsbServer::open(&ground, offers, told, time::now())?;
    let bells = server.bells().into_iter().map(Semaphore::open).collect::<Result<Vec<_>, _>>()?;
    let works: Vec<_> = homes.iter().map(|(home, _)| Works::of(home)).collect();
    let (branches, cans) = (&*Box::leak(Box::new(server.branches())), server.can_branches());
    let server: &'static Chamber<Server> = Box::leak(Box::new(Chamber::new(server)));
    server.open()?;
    let enable = told.enables().then(|| Semaphore::open(link::ENABLE)).transpose()?;
    let common = Common { server, branches, works: works.leak(), bells: bells.leak(), enable };
    let start = |source, branch, home: &Home, name| {
        let (common, pace, works) = (common.clone(), home.pace, Works::of(home));
        let half = Half { common, source, branch, own: branches.of(branch), pace, works };
        thread::start(Vcpu::open(home.vcpu)?, name, PRIORITY, Box::leak(Box::new(half)))
    };
    for (branch, (home, asked)) in (1..).zip(homes) {
        start(Source::Message(branch, message(branch)?), branch, home, home.thread)?;
        if let Some(asked) = asked {
            start(Source::Asked(asked), branch, home, "asked")?;
        }
    }
    for ((event, branch), home) in ground.sending.into_iter().zip(&cans).zip(&threads::SENDERS) {
        if let Some(event) = event {
            start(Source::Mailboxes(event), *branch, home, home.thread)?;
        }
    }
    if let (false, Some(branch)) = (told.pipes.places.is_empty(), cans.first().copied()) {
        let (common, own, pipes) = (common.clone(), branches.of(branch), told.pipes.clone());
        let broker = tune::Broker { common, branch, own, pipes };
        let Home { vcpu, thread, .. } = threads::TUNE;
        thread::start(Vcpu::open(vcpu)?, thread, PRIORITY, Box::leak(Box::new(broker)))?;
    }
    Manager { common, message: managing }.run()
}

fn message(number: u16) -> Result<Event, Errno> {
    Event::message(needs::CONTROLLER, number as u8)
}

impl Common {
    /// Attends to the server.
    fn manage(&self, cause: WakeCause) {
        let enables = self.server.enter(|server| {
            let now = time::now();
            time::work(threads::MANAGE, || server.attend(cause, now));
            server.take_enable()
        });
        if let (true, Some(enable)) = (enables, &self.enable) {
            let _ = enable.give();
        }
    }

    /// Attends to a branch if something is due in it.
    fn visit(&self, number: u16) -> Attended {
        let works = self.works[usize::from(number) - 1];
        let attended = self.branches.of(number).enter(|branch| {
            let now = time::now();
            if branch.is_due(now) {
                works.attend(branch, WakeCause::Time, now)
            } else {
                branch.outlook()
            }
        });
        self.ring(attended.fresh);
        attended
    }

    /// Takes to the server what a branch left for it, until it leaves nothing.
    fn settle(&self, branch: u16, mut attended: Attended) -> Attended {
        while attended.posts {
            self.manage(WakeCause::Posts(branch));
            attended = self.visit(branch);
        }
        attended
    }

    /// Wakes clients that have something new. The caller holds no lock.
    fn ring(&self, fresh: Fresh) {
        for (number, bell) in self.bells.iter().enumerate() {
            if fresh >> number & 1 != 0 {
                // A semaphore at its limit has been given often enough.
                let _ = bell.give();
            }
        }
    }
}

impl Manager {
    /// Attends to the server, then to each branch that has something due.
    fn run(&self) -> Result<(), Errno> {
        let mut cause = WakeCause::Time;
        loop {
            self.common.manage(cause);
            let mut wake = Nanos::FOREVER;
            for branch in 1..=self.common.branches.count() {
                let attended = self.common.visit(branch);
                wake = wake.min(self.common.settle(branch, attended).wake);
            }
            let wake = wake.min(self.common.server.enter(|server| server.next_wake()));
            // Bottom halves may set earlier times meanwhile.
            let wake = wake.min(time::now() + policy::LOOK);
            cause = match self.message.wait(wake) {
                Ok(_) => {
                    // No other interrupt comes until this one is handled.
                    time::sleep(policy::PACE);
                    WakeCause::Interrupt(policy::MANAGING)
                }
                // The wake time is zero if something is due at once.
                Err(Errno::TimedOut | Errno::WouldBlock) => WakeCause::Time,
                Err(errno) => return Err(errno),
            };
        }
    }
}

impl Task for Half {
    fn run(&'static self) -> u64 {
        let mut cause = self.source.first();
        let mut watch = Watch::new(self.is_timed());
        loop {
            watch.woken();
            let attended = self.own.enter(|branch| {
                let now = time::now();
                watch.begun(now.0);
                self.works.attend(branch, cause, now)
            });
            watch.done();
            self.common.ring(attended.fresh);
            watch.told();
            self.common.settle(self.branch, attended);
            cause = match self.wait() {
                Ok(cause) => cause,
                Err(errno) => return stop(errno),
            };
        }
    }
}

impl Half {
    /// Returns whether it is the half whose times are to be told.
    fn is_timed(&self) -> bool {
        let first = matches!(self.source, Source::Message(1, _));
        first && self.common.server.enter(|server| server.tells(Saying::Times))
    }

    fn wait(&self) -> Result<WakeCause, Errno> {
        let deadline = Nanos::FOREVER;
        let (occurred, cause) = match &self.source {
            Source::Message(interrupter, message) => {
                (message.wait(deadline).map(|_| ()), WakeCause::Interrupt(*interrupter))
            }
            Source::Asked(asked) => {
                // A client that asks without a pause would never let this thread wait. The bottom
                // half is behind it on the same VCPU, and would not run.
                if self.pace > Nanos::ZERO {
                    time::sleep(self.pace);
                }
                (asked.take(deadline), WakeCause::Asked)
            }
            Source::Mailboxes(event) => {
                // Rate-limits requests: after serving one, the thread rests before it listens
                // again.
                time::sleep(policy::REST);
                (event.wait(deadline).map(|_| ()), WakeCause::Asked)
            }
        };
        match occurred {
            Ok(()) => {
                if matches!(cause, WakeCause::Interrupt(_)) && self.pace > Nanos::ZERO {
                    // No other interrupt comes until this one is handled.
                    time::sleep(self.pace);
                }
                Ok(cause)
            }
            Err(Errno::TimedOut) => Ok(WakeCause::Time),
            Err(errno) => Err(errno),
        }
    }
}

fn stop(errno: Errno) -> u64 {
    log!("a thread of the server ends: {errno:?}");
    1
}

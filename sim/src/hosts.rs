//! Several hosts in one simulation: whose turn it is.
//!
//! Turns are conservative. The actions of a host's devices at one instant reach another host no
//! earlier than a cable's delay later. So the host that is behind may run until the others could
//! have done something that reaches it, and until they could have answered what it did: it never
//! misses anything, and the order makes no difference.
//!
//! Each host has its own clock. Hosts are compared by the clock of the world.
//!
//! A host that loses its power has its next turn when the power is back. By then everything that
//! the others sent before is on its way, and it finds the cables as they are.

use crate::bus::Bus;
use crate::cores::Cores;
use crate::faults::Upsets;
use crate::machine::Simulated;
use crate::memory::Commons;
use crate::observe::{Observer, Said};
use crate::processor::{Ending, Processor, Stop};
use crate::region::Region;
use crate::{Ended, Life, Options, StartError};
use diapason_abi::Nanos;
use diapason_abi::archive::Archive;
use diapason_core::host::KernelMemory;
use diapason_devices::faulty::OwnClock;

/// A core of a host, over all lives of the host.
pub(crate) struct Seated<'m> {
    pub archive: &'m Archive<'m>,
    pub options: Options,
    pub region: Region,
    /// Memory for the kernels of the lives to come.
    pub memories: std::slice::IterMut<'m, KernelMemory>,
}

/// A host that takes part, over all its lives.
pub(crate) struct Host<'m> {
    cores: Vec<Seated<'m>>,
    state: State<'m>,
}

/// The state of a host.
enum State<'m> {
    Runs(Cores<'m>),
    /// It has no power until then.
    Off(Nanos, Vec<Parts<'m>>),
    /// Its devices stay where they are: others that run on would take a cable for pulled.
    Ended {
        ended: Vec<Ended>,
        _devices: Vec<Bus>,
    },
}

impl State<'_> {
    /// The state of a host in which another is about to be written.
    const NONE: Self = State::Ended { ended: Vec::new(), _devices: Vec::new() };
}

/// The parts of a core that outlive a loss of power.
struct Parts<'m> {
    bus: Bus,
    upsets: Upsets,
    observer: &'m mut dyn Observer,
}

/// Returns how many lives a host can have.
pub(crate) fn lives(options: &Options) -> usize {
    let losses = options.upsets.iter();
    1 + losses.filter(|(_, upset, _)| matches!(upset, crate::Upset::PowerLoss(_))).count()
}

impl<'m> Host<'m> {
    /// Returns a host that is off until its first power. Each core has memory for each of its
    /// lives, and comes with its devices and observer.
    pub fn new(
        cores: Vec<(Seated<'m>, (Bus, &'m mut dyn Observer))>,
    ) -> Result<Host<'m>, StartError> {
        let (mut seated, mut parts, mut start) = (Vec::new(), Vec::new(), Nanos::ZERO);
        for (core, (bus, observer)) in cores {
            let options = &core.options;
            start = options.world.host(options.start);
            parts.push(Parts { bus, upsets: options.upsets(), observer });
            seated.push(core);
        }
        let mut host = Host { cores: seated, state: State::Off(start, parts) };
        // A host that cannot run at all is refused before anything runs.
        host.boot()?;
        Ok(host)
    }

    /// Starts a host that is off.
    fn boot(&mut self) -> Result<(), StartError> {
        let (now, parts) = match std::mem::replace(&mut self.state, State::NONE) {
            State::Off(now, parts) => (now, parts),
            other => {
                self.state = other;
                return Ok(());
            }
        };
        let (mut commons, mut running) = (Commons::default(), Vec::new());
        for (core, Parts { bus, upsets, observer }) in self.cores.iter_mut().zip(parts) {
            let (archive, options) = (core.archive, &core.options);
            // There is memory for each loss of power.
            let Some(memory) = core.memories.next() else { return Ok(()) };
            let machine = Simulated::load(archive, bus, core.region, &mut commons)?;
            let life = Life { machine, options, upsets, observer, now };
            running.push(life.boot(archive, memory));
        }
        self.state = State::Runs(Cores::new(running));
        Ok(())
    }

    /// Returns the clock of the world, as its cores see it.
    fn world(&self) -> OwnClock {
        self.cores.first().map(|core| core.options.world.clone()).unwrap_or_default()
    }

    /// A lower bound of the time at which it does something next, by the clock of the world; none
    /// if it has ended.
    fn next(&mut self) -> Option<Nanos> {
        let next = match &mut self.state {
            State::Runs(cores) => cores.next(),
            State::Off(back, _) => *back,
            State::Ended { .. } => return None,
        };
        Some(self.world().own(next))
    }

    /// Does everything up to `limit` by the clock of the world.
    fn run(&mut self, limit: Nanos, delay: Nanos) -> Result<(), StartError> {
        if let State::Off(back, parts) = &mut self.state {
            for parts in parts {
                parts.observer.hear(Said::Boots(*back));
                parts.bus.power_cycle(*back);
            }
            self.boot()?;
        }
        let limit = self.world().host(limit);
        let State::Runs(cores) = &mut self.state else { return Ok(()) };
        if let Some(stop) = cores.run(limit, echo(delay)) {
            self.stops(stop);
        }
        Ok(())
    }

    /// It ends, or is off for a time.
    fn stops(&mut self, stop: Stop) {
        let running = std::mem::replace(&mut self.state, State::NONE);
        let State::Runs(cores) = running else { return };
        let Stop::PowerLost(back) = stop else {
            let (ended, _devices) = cores.ended();
            self.state = State::Ended { ended, _devices };
            return;
        };
        let (Some(seat), Some(mut processor)) = (self.cores.first(), cores.only()) else { return };
        let horizon = seat.options.world.host(Nanos(seat.archive.header.horizon));
        let time = processor.close();
        let Processor { machine, upsets, observer, .. } = processor;
        let mut bus = machine.bus;
        // Other hosts find its ends of the cables dead.
        bus.power_cycle(time);
        self.state = match back < horizon {
            true => State::Off(back, vec![Parts { bus, upsets, observer }]),
            false => {
                let ended = vec![Ended { ending: Ending::Finished, time }];
                State::Ended { ended, _devices: vec![bus] }
            }
        };
    }
}

/// Runs hosts beside each other until each has ended, and says how its cores did, in their order.
/// `delay` is the least time in which one can notice what another did; longer than nothing.
pub(crate) fn race(hosts: &mut [Host<'_>], delay: Nanos) -> Result<Vec<Vec<Ended>>, StartError> {
    while let Some((turn, others)) = turn(hosts) {
        hosts[turn].run(others + delay, delay)?;
    }
    let ended = |host: &Host<'_>| match &host.state {
        State::Ended { ended, .. } => Some(ended.clone()),
        State::Runs(_) | State::Off(..) => None,
    };
    Ok(hosts.iter().filter_map(ended).collect())
}

/// Returns the time, by any host's clock, in which no answer can come: less than two delays by the
/// clock of the world, which runs apart from a host's by 200 ppm at most.
fn echo(delay: Nanos) -> Nanos {
    let both = delay.0.saturating_mul(2);
    Nanos((both - 1 - both / 5_000).max(1))
}

/// The host that is behind, and when one of the others does something next, left to itself.
fn turn(hosts: &mut [Host<'_>]) -> Option<(usize, Nanos)> {
    let (mut turn, mut others) = (None, Nanos::FOREVER);
    for (index, host) in hosts.iter_mut().enumerate() {
        let Some(next) = host.next() else { continue };
        match turn {
            Some((_, least)) if least <= next => others = others.min(next),
            _ => {
                others = turn.map_or(others, |(_, least)| least);
                turn = Some((index, next));
            }
        }
    }
    turn.map(|(index, _)| (index, others))
}

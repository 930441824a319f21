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

/// A host that takes part, over all its lives.
pub(crate) struct Host<'m, O> {
    archive: &'m Archive<'m>,
    options: Options,
    region: Region,
    /// Memory for the kernels of the lives to come.
    memories: std::slice::IterMut<'m, KernelMemory>,
    state: State<'m, O>,
}

/// The state of a host.
enum State<'m, O> {
    Runs(Box<Processor<'m, O>>),
    /// It has no power until then.
    Off(Nanos, Box<Parts<O>>),
    /// Its devices stay where they are: others that run on would take a cable for pulled.
    Ended {
        ended: Ended,
        _devices: Option<Bus>,
    },
}

impl<O> State<'_, O> {
    /// The state of a host in which another is about to be written.
    const NONE: Self = State::Ended {
        ended: Ended { ending: Ending::Finished, time: Nanos::ZERO },
        _devices: None,
    };

    fn ended(ending: Ending, time: Nanos, devices: Bus) -> Self {
        State::Ended { ended: Ended { ending, time }, _devices: Some(devices) }
    }
}

/// The parts of a host that outlive a loss of power.
struct Parts<O> {
    bus: Bus,
    upsets: Upsets,
    observer: O,
}

/// Returns how many lives a host can have.
pub(crate) fn lives(options: &Options) -> usize {
    let losses = options.upsets.iter();
    1 + losses.filter(|(_, upset, _)| matches!(upset, crate::Upset::PowerLoss(_))).count()
}

impl<'m, O: Observer> Host<'m, O> {
    /// Returns a host that is off until its first power. It has memory for each of its lives.
    pub fn new(
        archive: &'m Archive<'m>,
        options: Options,
        number: usize,
        memories: &'m mut [KernelMemory],
        (bus, observer): (Bus, O),
    ) -> Result<Host<'m, O>, StartError> {
        let (upsets, start) = (options.upsets(), options.world.host(options.start));
        let parts = Box::new(Parts { bus, upsets, observer });
        let (region, memories) = (Region::of(number), memories.iter_mut());
        let state = State::Off(start, parts);
        let mut host = Host { archive, options, region, memories, state };
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
        // There is memory for each loss of power.
        let Some(memory) = self.memories.next() else { return Ok(()) };
        let Parts { bus, upsets, observer } = *parts;
        let machine = Simulated::load(self.archive, bus, self.region, &mut Commons::default())?;
        let life = Life { machine, options: &self.options, upsets, observer, now };
        self.state = State::Runs(Box::new(life.boot(self.archive, memory)));
        Ok(())
    }

    /// A lower bound of the time at which it does something next, by the clock of the world; none
    /// if it has ended.
    fn next(&mut self) -> Option<Nanos> {
        let world = &self.options.world;
        match &mut self.state {
            State::Runs(processor) => {
                // Something may be under way to it that was not when it stopped.
                processor.machine.bus.ask_again();
                Some(world.own(processor.next()))
            }
            State::Off(back, _) => Some(world.own(*back)),
            State::Ended { .. } => None,
        }
    }

    /// Does everything up to `limit` by the clock of the world.
    fn run(&mut self, limit: Nanos, delay: Nanos) -> Result<(), StartError> {
        if let State::Off(back, parts) = &mut self.state {
            parts.observer.hear(Said::Boots(*back));
            parts.bus.power_cycle(*back);
            self.boot()?;
        }
        let State::Runs(processor) = &mut self.state else { return Ok(()) };
        processor.machine.resume();
        let stop = processor.run(self.options.world.host(limit), echo(delay));
        processor.machine.rest();
        if let Some(stop) = stop {
            self.stops(stop);
        }
        Ok(())
    }

    /// It ends, or is off for a time.
    fn stops(&mut self, stop: Stop) {
        let running = std::mem::replace(&mut self.state, State::NONE);
        let State::Runs(mut processor) = running else { return };
        let time = processor.close();
        let horizon = self.options.world.host(Nanos(self.archive.header.horizon));
        let Processor { machine, upsets, observer, .. } = *processor;
        let mut bus = machine.bus;
        self.state = match stop {
            Stop::Ended(ending) => State::ended(ending, time, bus),
            Stop::PowerLost(back) => {
                // Other hosts find its ends of the cables dead.
                bus.power_cycle(time);
                match back < horizon {
                    true => State::Off(back, Box::new(Parts { bus, upsets, observer })),
                    false => State::ended(Ending::Finished, time, bus),
                }
            }
        };
    }
}

/// Runs hosts beside each other until each has ended, and says how, in their order. `delay` is the
/// least time in which one can notice what another did; longer than nothing.
pub(crate) fn race<O: Observer>(
    hosts: &mut [Host<'_, O>],
    delay: Nanos,
) -> Result<Vec<Ended>, StartError> {
    while let Some((turn, others)) = turn(hosts) {
        hosts[turn].run(others + delay, delay)?;
    }
    let ended = |host: &Host<'_, O>| match host.state {
        State::Ended { ended, .. } => Some(ended),
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
fn turn<O: Observer>(hosts: &mut [Host<'_, O>]) -> Option<(usize, Nanos)> {
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

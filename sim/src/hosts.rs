//! Several hosts in one simulation: whose turn it is.
//!
//! Turns are conservative. The actions of a host's devices at one instant reach another host no
//! earlier than a cable's delay later. So the host that is behind may run until the others could
//! have done something that reaches it, and until they could have answered what it did: it never
//! misses anything, and the order makes no difference.
//!
//! Each host has its own clock. Hosts are compared by the clock of the world.

use crate::observe::Observer;
use crate::processor::{Ending, Processor, Stop};
use diapason_abi::Nanos;

/// Runs hosts beside each other until each has ended, and says how, in their order. `delay` is the
/// least time in which one can notice what another did; longer than nothing.
pub(crate) fn race<O: Observer>(
    hosts: &mut [Processor<'_, O>],
    delay: Nanos,
) -> Vec<(Ending, Nanos)> {
    let mut ended: Vec<Option<(Ending, Nanos)>> = vec![None; hosts.len()];
    while let Some((turn, others)) = turn(hosts, &ended) {
        let limit = hosts[turn].world.host(others + delay);
        hosts[turn].machine.resume();
        let stop = hosts[turn].run(limit, echo(delay));
        hosts[turn].machine.rest();
        let ending = stop.map(|stop| match stop {
            Stop::Ended(ending) => ending,
            Stop::PowerLost(_) => Ending::Halted,
        });
        ended[turn] = ending.map(|ending| (ending, hosts[turn].close()));
    }
    ended.into_iter().flatten().collect()
}

/// Returns the time, by any host's clock, in which no answer can come: less than two delays by the
/// clock of the world, which runs apart from a host's by 200 ppm at most.
fn echo(delay: Nanos) -> Nanos {
    let both = delay.0.saturating_mul(2);
    Nanos((both - 1 - both / 5_000).max(1))
}

/// The host that is behind, and when one of the others does something next, left to itself.
fn turn<O: Observer>(
    hosts: &mut [Processor<'_, O>],
    ended: &[Option<(Ending, Nanos)>],
) -> Option<(usize, Nanos)> {
    let (mut turn, mut others) = (None, Nanos::FOREVER);
    let running = ended.iter().enumerate().filter(|(_, ended)| ended.is_none());
    for (index, _) in running {
        // Something may be under way to it that was not when it stopped.
        hosts[index].machine.bus.ask_again();
        let next = hosts[index].world.own(hosts[index].next());
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

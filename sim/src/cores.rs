//! Several cores of one host: each has its own kernel and its part of the devices; what they share
//! is memory and doorbells.
//!
//! Memory has no delay, so turns are exact: the core that does something next goes first, of two
//! that do at one instant the one with the lower number, and it stops where another one's turn
//! begins. Between two traps a program is native and takes no time, so nobody sees half of what it
//! does there, unless it says where others may come in between (`step()`).

use crate::observe::Observer;
use crate::processor::{Ending, Processor, Stop};
use diapason_abi::Nanos;

/// From the end of the kernel entry that rings a doorbell to the instant at which another core can
/// be interrupted by it. An assumption about interrupts between processors, not a measurement.
pub const RING: Nanos = Nanos::from_micros(1);

/// Runs the cores of a host until each has ended, and says how, in their order. A core that ends
/// because of what is wrong takes the others along.
pub(crate) fn interleave<O: Observer>(cores: &mut [Processor<'_, O>]) -> Vec<(Ending, Nanos)> {
    let mut ended: Vec<Option<(Ending, Nanos)>> = vec![None; cores.len()];
    while let Some((turn, limit)) = turn(cores, &ended) {
        cores[turn].machine.resume();
        let stop = cores[turn].run(limit, Nanos::FOREVER);
        cores[turn].machine.rest();
        for (core, bell, at) in std::mem::take(&mut cores[turn].rung) {
            if let Some(core) = cores.get_mut(usize::from(core)) {
                core.machine.bus.ring(bell, at + RING);
            }
        }
        let ending = match stop {
            None => continue,
            Some(Stop::Ended(ending)) => ending,
            Some(Stop::PowerLost(_)) => Ending::Halted,
        };
        let goes_on = matches!(ending, Ending::Finished | Ending::Halted);
        for (index, core) in cores.iter_mut().enumerate() {
            if ended[index].is_none() && (index == turn || !goes_on) {
                ended[index] = Some((ending, core.close()));
            }
        }
    }
    ended.into_iter().flatten().collect()
}

/// The core that does something next, and where its turn ends.
fn turn<O: Observer>(
    cores: &[Processor<'_, O>],
    ended: &[Option<(Ending, Nanos)>],
) -> Option<(usize, Nanos)> {
    let running = cores.iter().enumerate().filter(|(index, _)| ended[*index].is_none());
    let next: Vec<(Nanos, usize)> = running.map(|(index, core)| (core.next(), index)).collect();
    let (_, turn) = *next.iter().min()?;
    Some((turn, limit(turn, &next)))
}

/// Where the turn of a core ends, if these do something next then: at one instant, those with lower
/// numbers go first.
fn limit(turn: usize, next: &[(Nanos, usize)]) -> Nanos {
    let others = next.iter().filter(|(_, index)| *index != turn);
    let first = |(at, index): &(Nanos, usize)| *at + Nanos(u64::from(turn < *index));
    others.map(first).min().unwrap_or(Nanos::FOREVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_one_instant_the_lower_number_goes_first() {
        let next = [(Nanos(5), 0), (Nanos(5), 1), (Nanos(9), 2)];
        assert_eq!(limit(0, &next), Nanos(6));
        assert_eq!(limit(1, &[(Nanos(6), 0), (Nanos(5), 1), (Nanos(9), 2)]), Nanos(6));
        assert_eq!(limit(2, &[(Nanos(6), 0), (Nanos(8), 1), (Nanos(5), 2)]), Nanos(6));
        assert_eq!(limit(0, &[(Nanos(5), 0)]), Nanos::FOREVER);
    }
}

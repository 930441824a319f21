//! Several cores of one host: each has its own kernel and its part of the devices; what they share
//! is memory and doorbells.
//!
//! Memory has no delay, so turns are exact: the core that does something next goes first, of two
//! that do at one instant the one with the lower number, and it stops where another one's turn
//! begins. Between two traps a program is native and takes no time, so nobody sees half of what it
//! does there, unless it says where others may come in between (`step()`).

use crate::Ended;
use crate::bus::Bus;
use crate::processor::{Ending, Processor, Stop};
use diapason_abi::Nanos;

/// From the end of the kernel entry that rings a doorbell to the instant at which another core can
/// be interrupted by it. An assumption about interrupts between processors, not a measurement.
pub const RING: Nanos = Nanos::from_micros(1);

/// The cores of a host that has power, each with how it ended.
pub(crate) struct Cores<'m>(Vec<(Processor<'m>, Option<Ended>)>);

impl<'m> Cores<'m> {
    /// Returns the cores of a host that is switched on.
    pub fn new(all: Vec<Processor<'m>>) -> Cores<'m> {
        Cores(all.into_iter().map(|core| (core, None)).collect())
    }

    /// Returns the cores that have not ended, each with when it does something next.
    fn running(&self) -> impl Iterator<Item = (Nanos, usize)> {
        let running = self.0.iter().enumerate().filter(|(_, (_, ended))| ended.is_none());
        running.map(|(index, (core, _))| (core.next(), index))
    }

    /// Returns a lower bound of the time at which one of them does something next.
    pub fn next(&mut self) -> Nanos {
        // Something may be under way to them that was not when they stopped.
        self.0.iter_mut().for_each(|(core, _)| core.machine.bus.ask_again());
        self.running().map(|(next, _)| next).min().unwrap_or(Nanos::FOREVER)
    }

    /// Runs them up to `limit`, or until each has ended. The actions of their devices can be
    /// answered after `echo`, so they stop there, too. A core that ends because of what is wrong
    /// takes the others along.
    pub fn run(&mut self, mut limit: Nanos, echo: Nanos) -> Option<Stop> {
        loop {
            let next: Vec<(Nanos, usize)> = self.running().collect();
            let (_, turn) = *next.iter().min()?;
            let (core, _) = &mut self.0[turn];
            core.machine.resume();
            let stop = core.run(limit.min(self::limit(turn, &next)), echo);
            core.machine.rest();
            limit = limit.min(core.answer);
            for (to, bell, at) in std::mem::take(&mut core.rung) {
                if let Some((core, _)) = self.0.get_mut(usize::from(to)) {
                    core.machine.bus.ring(bell, at + RING);
                }
            }
            match stop {
                None => {}
                Some(Stop::PowerLost(_)) if self.0.len() == 1 => return stop,
                Some(Stop::PowerLost(_)) => self.end(turn, Ending::Halted),
                Some(Stop::Ended(ending)) => self.end(turn, ending),
            }
            if self.running().all(|(next, _)| next >= limit) {
                let last = self.0.iter().map(|(_, ended)| ended.map(|it| Stop::Ended(it.ending)));
                return last.min_by_key(Option::is_some)?;
            }
        }
    }

    /// The core `turn` ends so, and the others with it if something is wrong.
    fn end(&mut self, turn: usize, ending: Ending) {
        let goes_on = matches!(ending, Ending::Finished | Ending::Halted);
        for (index, (core, ended)) in self.0.iter_mut().enumerate() {
            if ended.is_none() && (index == turn || !goes_on) {
                *ended = Some(Ended { ending, time: core.close() });
            }
        }
    }

    /// Returns how each ended, and their devices.
    pub fn ended(self) -> (Vec<Ended>, Vec<Bus>) {
        let each = self.0.into_iter();
        each.filter_map(|(core, ended)| Some((ended?, core.machine.bus))).unzip()
    }

    /// Returns the only core of a host.
    pub fn only(mut self) -> Option<Processor<'m>> {
        self.0.pop().map(|(core, _)| core)
    }
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

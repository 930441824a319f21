//! The faults, and their times. Everything is said before a run, so that it can be had again; what
//! is random was drawn before. Each fault is noted when it happens, in the words of who asked for
//! it.

use diapason_abi::Nanos;
use std::collections::VecDeque;

/// A mishap around a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerMishap {
    /// Nothing at the controller: a device does it by itself at that time.
    Device,
    /// The next interrupt never arrives.
    LoseInterrupt,
    /// The next interrupt arrives so much later.
    DelayInterrupt(Nanos),
    /// The next interrupt arrives, and again so much later.
    RepeatInterrupt(Nanos),
    /// The device at this connector is pulled, and plugged in again so much later.
    Unplug(u8, Nanos),
    /// The link of this connector breaks down.
    LoseLink(u8),
    /// The controller halts with a host system error.
    SystemError,
    /// The controller breaks, until it is reset.
    ControllerError,
    /// The controller writes to memory that nobody has.
    StrayDma,
}

/// An upset of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Upset {
    /// The thread of this process that runs next executes an invalid instruction.
    Crash(u16),
    /// The declared work of a process takes so many times as long.
    Overrun { process: u16, times: u64, until: Nanos },
    /// The power fails, and is back so much later.
    PowerLoss(Nanos),
}

/// A fault to come: when, what, and in which words.
pub type Planned<F> = (Nanos, F, String);

/// Faults to come, in order of time.
#[derive(Clone, Debug)]
pub(crate) struct Plan<F>(VecDeque<Planned<F>>);

impl<F> Plan<F> {
    /// Returns a plan of these faults in the order of their times.
    pub fn new(mut faults: Vec<Planned<F>>) -> Plan<F> {
        faults.sort_by_key(|(at, ..)| *at);
        Plan(faults.into())
    }

    /// Adds a fault behind those of the same time.
    pub fn add(&mut self, fault: Planned<F>) {
        let place = self.0.partition_point(|(at, ..)| *at <= fault.0);
        self.0.insert(place, fault);
    }

    /// Returns when the next one comes.
    pub fn next(&self) -> Nanos {
        self.0.front().map_or(Nanos::FOREVER, |(at, ..)| *at)
    }

    /// One that is due, and what is said about it.
    pub fn take(&mut self, now: Nanos) -> Option<(F, String)> {
        let (_, fault, words) = self.0.pop_front_if(|(at, ..)| *at <= now)?;
        Some((fault, words))
    }
}

/// The upsets of a host, to come and under way.
#[derive(Clone, Debug)]
pub(crate) struct Upsets {
    plan: Plan<Upset>,
    crashes: Vec<u16>,
    overruns: Vec<(u16, u64, Nanos)>,
}

impl Upsets {
    /// Returns these upsets, of which none has happened.
    pub fn new(upsets: Vec<Planned<Upset>>) -> Upsets {
        Upsets { plan: Plan::new(upsets), crashes: Vec::new(), overruns: Vec::new() }
    }

    /// Returns when the next one comes.
    pub fn next(&self) -> Nanos {
        self.plan.next()
    }

    /// The one that is due begins: its words, and if the power is lost, when it is back.
    pub fn begin(&mut self, now: Nanos) -> Option<(String, Option<Nanos>)> {
        let (upset, words) = self.plan.take(now)?;
        match upset {
            Upset::Crash(process) => self.crashes.push(process),
            Upset::Overrun { process, times, until } => {
                self.overruns.push((process, times, until));
            }
            Upset::PowerLoss(off) => {
                (self.crashes, self.overruns) = (Vec::new(), Vec::new());
                return Some((words, Some(now + off)));
            }
        }
        Some((words, None))
    }

    /// Returns whether a thread of this process crashes now.
    pub fn crash(&mut self, process: u16) -> bool {
        let found = self.crashes.iter().position(|crash| *crash == process);
        found.map(|index| self.crashes.swap_remove(index)).is_some()
    }

    /// Returns how long a process takes for what should take it `span`.
    pub fn stretch(&self, process: u16, span: Nanos, now: Nanos) -> Nanos {
        let is_it = |(who, _, until): &&(u16, u64, Nanos)| *who == process && now < *until;
        let times = self.overruns.iter().filter(is_it).map(|(_, times, _)| *times).max();
        Nanos(span.0.saturating_mul(times.unwrap_or(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned<F>(at: u64, fault: F) -> Planned<F> {
        (Nanos(at), fault, String::from("x"))
    }

    #[test]
    fn faults_come_in_order_of_time_and_then_of_the_text() {
        let mut plan = Plan::new(vec![planned(5, 'b'), planned(1, 'a'), planned(5, 'c')]);
        plan.add(planned(5, 'd'));
        assert_eq!(plan.next(), Nanos(1));
        let mut taken = Vec::new();
        while let Some((fault, _)) = plan.take(Nanos(5)) {
            taken.push(fault);
        }
        assert_eq!(taken, ['a', 'b', 'c', 'd']);
        assert_eq!(plan.next(), Nanos::FOREVER);
    }

    #[test]
    fn upsets_hit_their_process_in_their_time() {
        let overrun = Upset::Overrun { process: 2, times: 3, until: Nanos(20) };
        let mut upsets = Upsets::new(vec![planned(10, overrun), planned(10, Upset::Crash(2))]);
        assert_eq!(upsets.begin(Nanos(9)), None);
        while upsets.begin(Nanos(10)).is_some() {}
        let stretched = |process, now| upsets.stretch(process, Nanos(7), Nanos(now)).0;
        assert_eq!([stretched(2, 19), stretched(2, 20), stretched(1, 19)], [21, 7, 7]);
        assert!(!upsets.crash(1) && upsets.crash(2) && !upsets.crash(2));
    }

    #[test]
    fn without_power_nothing_else_goes_on() {
        let loss = Upset::PowerLoss(Nanos(5));
        let mut upsets = Upsets::new(vec![planned(10, Upset::Crash(2)), planned(10, loss)]);
        assert_eq!(upsets.begin(Nanos(10)), Some((String::from("x"), None)));
        assert_eq!(upsets.begin(Nanos(10)), Some((String::from("x"), Some(Nanos(15)))));
        assert!(!upsets.crash(2));
    }
}

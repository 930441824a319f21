//! Algorithm 4 as a state machine of one host: initialise, wait, enumerate, enable.
//!
//! The host tells it the time and what it senses at its ports; it answers with the next deed. It
//! differs from the algorithm in two ways: a wait that lasts too long is reported by name, and a
//! target that comes back after a loss is enumerated again.

use crate::lists::Lists;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// A host's view of the port to a debug target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sensed {
    /// No device is attached at a port to it.
    Absent,
    /// The target's debug device is attached and not enumerated.
    Attached,
    /// The target's debug device is enumerated.
    Linked,
}

/// The next act of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Deed {
    /// Enable the debug capability.
    Enable,
    /// Enumerate what is attached.
    Enumerate,
    /// Report that this host has not been sensed for longer than the patience.
    Late(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Phase {
    Initialised,
    Waiting,
    Enumerated,
    Done,
}

/// The state of one host that follows its list.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Formation {
    awaits: Vec<usize>,
    enables: bool,
    leads: bool,
    patience: Nanos,
    phase: Phase,
    /// Since when each awaited host has been absent; `None`: it is there, or was reported.
    absent: Vec<Option<Nanos>>,
}

impl Formation {
    /// Returns the state of `host` at `now`, when its controller is initialised.
    #[must_use]
    pub fn new(lists: &Lists, host: usize, patience: Nanos, now: Nanos) -> Formation {
        let parts = (lists.enables[host], lists.leads(host));
        Formation::of(lists.awaits[host].clone(), parts, patience, now)
    }

    /// Returns the state of a host that waits for `awaits`, whatever these numbers stand for. It
    /// enables, and it leads, if the first and the second flag say so.
    #[must_use]
    pub fn of(
        awaits: Vec<usize>,
        (enables, leads): (bool, bool),
        patience: Nanos,
        now: Nanos,
    ) -> Formation {
        let absent = alloc::vec![Some(now); awaits.len()];
        Formation { awaits, enables, leads, patience, phase: Phase::Initialised, absent }
    }

    /// Returns what to do at `now`, if anything. The host does it before it asks again.
    pub fn next(&mut self, now: Nanos, sense: impl Fn(usize) -> Sensed) -> Option<Deed> {
        let senses: Vec<Sensed> = self.awaits.iter().map(|host| sense(*host)).collect();
        match self.phase {
            Phase::Initialised => {
                self.phase = Phase::Waiting;
                if self.leads {
                    return Some(Deed::Enable);
                }
                self.next(now, sense)
            }
            Phase::Waiting if !senses.contains(&Sensed::Absent) => {
                self.phase = Phase::Enumerated;
                Some(Deed::Enumerate)
            }
            Phase::Enumerated => {
                self.phase = Phase::Done;
                if self.enables && !self.leads {
                    return Some(Deed::Enable);
                }
                self.next(now, sense)
            }
            Phase::Done if senses.contains(&Sensed::Attached) => Some(Deed::Enumerate),
            Phase::Waiting | Phase::Done => self.late(now, &senses),
        }
    }

    /// Returns the report on a host that is absent for too long. There is one for each absence.
    fn late(&mut self, now: Nanos, senses: &[Sensed]) -> Option<Deed> {
        let each = self.awaits.iter().zip(senses).zip(&mut self.absent);
        for ((host, sense), since) in each {
            match (sense, *since) {
                (Sensed::Absent, Some(begun)) if now >= begun + self.patience => {
                    *since = None;
                    return Some(Deed::Late(*host));
                }
                (Sensed::Absent, _) => {}
                _ => *since = Some(now),
            }
        }
        None
    }

    /// Returns whether the host has done all that its list asks for, and is linked to each host
    /// on it.
    #[must_use]
    pub fn is_formed(&self, sense: impl Fn(usize) -> Sensed) -> bool {
        let mut senses = self.awaits.iter().map(|host| sense(*host));
        self.phase == Phase::Done && senses.all(|sense| sense == Sensed::Linked)
    }
}

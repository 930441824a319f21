//! Why an endpoint is refused, in numbers, and what would have fit.

use crate::judge::{Broken, Judge};
use crate::limits::EndpointId;
use crate::nonsense::InvalidDemand;
use crate::time::Picos;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// The reason for refusing an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalReason {
    /// Wherever it starts, some slot has not enough time left; the numbers are of the best start.
    Slot {
        /// The slot of the hyperperiod.
        slot: u32,
        /// The time that the slot lacks.
        missing: Picos,
    },
    /// The endpoint fits into the slots, but a guarantee breaks.
    Guarantee(Broken),
    /// The endpoint is itself asynchronous, and its guarantee does not hold even without periodic
    /// endpoints.
    Alone(Broken),
}

/// The nearest demand that would have fit in its place, everything else unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FittingDemand {
    /// Packets per transfer (periodic) or bytes per guarantee (asynchronous) that would fit at the
    /// same period.
    pub amount: Option<u32>,
    /// The period in slots at which the wanted amount fits.
    pub period: Option<u32>,
}

/// An endpoint that gets no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointRefusal {
    pub id: EndpointId,
    pub reason: RefusalReason,
    /// The nearest demand that fits.
    pub would_fit: FittingDemand,
}

/// Why a bus has no schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoSchedule {
    /// The description makes no sense: the caller's mistake.
    Nonsense(InvalidDemand),
    /// The bus makes sense and does not fit.
    Refused(EndpointRefusal),
}

impl From<InvalidDemand> for NoSchedule {
    fn from(nonsense: InvalidDemand) -> NoSchedule {
        NoSchedule::Nonsense(nonsense)
    }
}

impl Broken {
    /// Returns the broken guarantee in words, with a name for the endpoint.
    #[must_use]
    pub fn describe(&self, name: impl Fn(EndpointId) -> String) -> String {
        let worst = match self.worst {
            Some(worst) => worst.to_string(),
            None => format!("more than {}", self.limit.times(Judge::HORIZON)),
        };
        let (id, limit) = (name(self.id), self.limit);
        format!("a transfer of {id} could take {worst} instead of the guaranteed {limit}")
    }
}

impl FittingDemand {
    /// Returns the nearest demand in words; the amount is counted in `unit`.
    #[must_use]
    pub fn describe(&self, unit: &str) -> String {
        match *self {
            FittingDemand { amount: None, period: None } => {
                "nothing of it fits at any period: take something off the bus".to_string()
            }
            FittingDemand { amount: Some(n), period: None } => format!("{n} {unit} would fit"),
            FittingDemand { amount: None, period: Some(t) } => {
                format!("it would fit with a period of {t} slots")
            }
            FittingDemand { amount: Some(n), period: Some(t) } => {
                format!("{n} {unit} would fit at its period, all of it at a period of {t} slots")
            }
        }
    }
}

impl EndpointRefusal {
    /// Why, in words, with names for the endpoints.
    #[must_use]
    pub fn why(&self, name: impl Fn(EndpointId) -> String) -> String {
        match self.reason {
            RefusalReason::Slot { slot, missing } => {
                format!("slot {slot} lacks {missing}, and no other start is better")
            }
            RefusalReason::Guarantee(broken) => broken.describe(name),
            RefusalReason::Alone(broken) => {
                format!("{}, even without periodic endpoints", broken.describe(name))
            }
        }
    }

    /// Returns the nearest demand in words.
    #[must_use]
    pub fn instead(&self) -> String {
        self.would_fit.describe(match self.reason {
            RefusalReason::Slot { .. } | RefusalReason::Guarantee(_) => "packet(s)",
            RefusalReason::Alone(_) => "byte(s)",
        })
    }
}

impl fmt::Display for EndpointRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.why(|id| id.to_string());
        write!(f, "{} does not fit: {why}; {}", self.id, self.instead())
    }
}

impl fmt::Display for NoSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSchedule::Nonsense(nonsense) => nonsense.fmt(f),
            NoSchedule::Refused(refusal) => refusal.fmt(f),
        }
    }
}

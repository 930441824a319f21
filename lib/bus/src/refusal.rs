//! Why an endpoint is refused, in numbers, and what would have fit.

use crate::endpoint::{EndpointId, Nonsense};
use crate::judge::{Broken, Judge};
use crate::time::Picos;
use core::fmt;

/// What stands in the way of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Wherever it starts, some slot has not enough time left; the numbers are of the best start.
    Slot {
        /// The slot of the hyperperiod.
        slot: u32,
        /// So much more time would be needed in it.
        missing: Picos,
    },
    /// It fits into the slots, but a guarantee breaks.
    Guarantee(Broken),
    /// It is itself asynchronous, and its guarantee does not hold even without periodic endpoints.
    Alone(Broken),
}

/// What would have fit in its place, everything else being where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WouldFit {
    /// So many packets per transfer (periodic) or bytes per guarantee (asynchronous) at the same
    /// period.
    pub amount: Option<u32>,
    /// The same amount at this period in slots.
    pub period: Option<u32>,
}

/// An endpoint that gets no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Which.
    pub id: EndpointId,
    /// Why.
    pub reason: Reason,
    /// What instead.
    pub would_fit: WouldFit,
}

/// Why a bus has no schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// The description makes no sense: the caller's mistake.
    Nonsense(Nonsense),
    /// It makes sense and does not fit.
    Refused(Refusal),
}

impl From<Nonsense> for Unfit {
    fn from(nonsense: Nonsense) -> Unfit {
        Unfit::Nonsense(nonsense)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a transfer of {} could take ", self.id)?;
        match self.worst {
            Some(worst) => write!(f, "{worst}")?,
            None => write!(f, "more than {}", self.limit.times(Judge::HORIZON))?,
        }
        write!(f, " instead of the guaranteed {}", self.limit)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not fit: ", self.id)?;
        let unit = match self.reason {
            Reason::Slot { slot, missing } => {
                write!(f, "slot {slot} lacks {missing}, and no other start is better")?;
                "packet(s)"
            }
            Reason::Guarantee(broken) => {
                write!(f, "{broken}")?;
                "packet(s)"
            }
            Reason::Alone(broken) => {
                write!(f, "{broken}, even without periodic endpoints")?;
                "byte(s)"
            }
        };
        match self.would_fit {
            WouldFit { amount: None, period: None } => {
                write!(f, "; nothing of it fits at any period: take something off the bus")
            }
            WouldFit { amount: Some(n), period: None } => write!(f, "; {n} {unit} would fit"),
            WouldFit { amount: None, period: Some(t) } => {
                write!(f, "; it would fit with a period of {t} slots")
            }
            WouldFit { amount: Some(n), period: Some(t) } => write!(
                f,
                "; {n} {unit} would fit at its period, all of it at a period of {t} slots"
            ),
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Nonsense(nonsense) => nonsense.fmt(f),
            Unfit::Refused(refusal) => refusal.fmt(f),
        }
    }
}

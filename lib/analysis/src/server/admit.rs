//! The test a promise rests on: every Main VCPU gets its budget in every period.

use super::fit;
use super::model::{Nonsense, Queue, SharedCore};
use super::response::Response;
use super::test::{Shortfall, test};
use alloc::vec::Vec;
use core::fmt;
use diapason_abi::Nanos;

/// Every VCPU gets what it was promised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admission {
    /// One answer per Main VCPU, in their order.
    pub responses: Vec<Response>,
}

/// The first VCPU that fails, and what would have fit in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdmissionRefusal {
    /// The VCPU, the first in the order of precedence.
    pub vcpu: usize,
    pub queue: Queue,
    /// The VCPU's period, by which it must have had its budget.
    pub limit: Nanos,
    pub failure: Shortfall,
    /// The largest budget at its period with which the whole system holds; `None`: not even 1 ns.
    pub largest_budget: Option<Nanos>,
    /// The smallest period found for its budget with which the whole system holds.
    pub smallest_period: Option<Nanos>,
    /// The part of every budget that would fit, per mille; `None`: not even 1 ns of each.
    pub breakdown: Option<u64>,
}

/// Why a system is not admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// The description makes no sense.
    Nonsense(Nonsense),
    /// The system makes sense and does not fit.
    Refused(AdmissionRefusal),
}

/// Returns the exact test for the FP queue, the demand test for each DP queue.
///
/// # Errors
/// Returns an error if the system makes no sense, or names the first VCPU that does not get its
/// budget in every period.
pub fn admit(system: &SharedCore) -> Result<Admission, Unfit> {
    system.check().map_err(Unfit::Nonsense)?;
    let order = system.precedence();
    let mut responses = Vec::with_capacity(order.len());
    match test(system, &order, 0, |response| responses.push(response)) {
        Ok(()) => {
            responses.sort_by_key(|response| response.vcpu);
            Ok(Admission { responses })
        }
        Err((vcpu, failure)) => {
            let main = &system.mains[vcpu];
            Err(Unfit::Refused(AdmissionRefusal {
                vcpu,
                queue: main.queue,
                limit: main.period,
                failure,
                largest_budget: fit::largest_budget(system, vcpu),
                smallest_period: fit::smallest_period(system, vcpu),
                breakdown: fit::breakdown(system),
            }))
        }
    }
}

/// Returns the verdict of [`admit`] alone: the first VCPU that fails, and why. `None`: all hold.
///
/// # Errors
/// The description makes no sense.
pub fn first_failure(system: &SharedCore) -> Result<Option<(usize, Shortfall)>, Nonsense> {
    system.check()?;
    Ok(test(system, &system.precedence(), 0, |_| ()).err())
}

impl fmt::Display for AdmissionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (vcpu, limit) = (self.vcpu, self.limit.0);
        match self.failure {
            Shortfall::Late(Some(Nanos(response))) => {
                let late = response.saturating_sub(limit);
                write!(f, "VCPU {vcpu} has its budget after {response} ns, {late} ns too late")?;
            }
            Shortfall::Late(None) => {
                write!(f, "VCPU {vcpu} never gets its budget: the VCPUs above it leave nothing")?;
            }
            Shortfall::Overfull { window: Nanos(window), demand: Nanos(demand) } => {
                write!(f, "VCPU {vcpu}: {demand} ns are due within some {window} ns")?;
            }
            Shortfall::Overload => {
                write!(f, "VCPU {vcpu}: its queue and those above want more than the processor")?;
            }
            Shortfall::Undecided => {
                write!(f, "VCPU {vcpu} is too close to the edge to be decided")?
            }
        }
        match self.largest_budget {
            Some(Nanos(budget)) => write!(f, "; in {limit} ns a budget of {budget} ns fits")?,
            None => write!(f, "; in {limit} ns no budget fits")?,
        }
        match self.smallest_period {
            Some(Nanos(period)) => write!(f, ", and its budget fits in a period of {period} ns")?,
            None => write!(f, ", and its budget in no period: take something from others")?,
        }
        match self.breakdown {
            Some(factor) => write!(f, "; with {factor} per mille of all budgets everything fits"),
            None => write!(f, "; no budgets fit at all: I/O VCPUs and the kernel leave too little"),
        }
    }
}

impl fmt::Display for Nonsense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Nonsense::NothingReserved(vcpu) => {
                write!(f, "VCPU {vcpu} reserves nothing: give it a budget and a period above zero")
            }
            Nonsense::BudgetOverPeriod(vcpu, Nanos(period)) => {
                write!(f, "VCPU {vcpu} has more budget than period: at most {period} ns fit")
            }
            Nonsense::NoChunks(vcpu) => {
                write!(f, "VCPU {vcpu} has no place for a replenishment: give it at least one")
            }
            Nonsense::AbsurdPeriod(vcpu) => {
                let Nanos(most) = super::model::PERIOD_MAX;
                write!(f, "VCPU {vcpu} has a period of more than 73 years: at most {most} ns")
            }
            Nonsense::ServesNobody(io) => {
                write!(f, "I/O VCPU {io} works for nobody: name a Main VCPU it serves")
            }
            Nonsense::ServesUnknown(io, main) => {
                write!(f, "I/O VCPU {io} works for VCPU {main}, which does not exist: name another")
            }
            Nonsense::EmptyQuantum(io, Nanos(least)) => write!(
                f,
                "I/O VCPU {io} has less than 1 ns per grant: its cap and the periods it serves \
                 must be at least {least} ns"
            ),
            Nonsense::BudgetLost(vcpu, Nanos(least)) => write!(
                f,
                "VCPU {vcpu}: the kernel takes more than half of its budget: give it at least \
                 {least} ns, or shorter lists to it and those above it"
            ),
            Nonsense::GrantLost(io, Nanos(least)) => write!(
                f,
                "I/O VCPU {io}: the kernel takes more than half of its grant: one must be at least \
                 {least} ns, so give it more, or let it serve longer periods"
            ),
            Nonsense::NoGap(source) => {
                write!(f, "interrupt {source} has no least distance: give it one above zero")
            }
        }
    }
}

//! VCPUs that are servers: response of budget, supply, demand, and the tests that admit them.
//!
//! A [`SharedCore`] is what shares one core. [`admit`] is the exact test: every Main VCPU gets its
//! whole budget in every period, whatever the others do. From the same numbers follow how long a
//! piece of work takes ([`Supply`], [`IoSupply`]), and what it costs to share a mutex
//! ([`inherit`]).
//!
//! Everything is integer arithmetic that saturates: a number too large to be computed is a demand
//! that does not fit, never a small one, so whatever is put in, a promise is not made by accident.
//! `docs/analysis.md` states the theorems, their assumptions, and how a running system checks them.

mod admit;
mod arith;
mod behind;
mod closed;
mod deadlines;
mod demand;
mod fit;
mod half;
pub mod inherit;
mod io;
mod level;
mod loss;
mod model;
mod response;
mod service;
mod stream;
mod supply;
pub mod tasks;
mod test;
mod waking;

pub use admit::{Admission, AdmissionRefusal, Unfit, admit, first_failure};
#[cfg(feature = "counted")]
pub use arith::TERMS;
pub use arith::{ONE, Utilization};
pub use closed::{ClosedForm, equation_one, wide};
pub use diapason_pipe::bill::Found;
pub use fit::{breakdown, largest_budget, smallest_period};
pub use half::BottomHalf;
pub use io::{IoSupply, SharedIo};
pub use level::{Interference, Late};
pub use model::{
    InterruptSource, IoVcpu, Losses, MainVcpu, Nonsense, PERIOD_MAX, Queue, SharedCore, Woken,
};
pub use response::Response;
pub use stream::Stream;
pub use supply::{BudgetServer, Supply};
pub use test::Shortfall;

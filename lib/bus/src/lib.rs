//! USB bus schedules: which periodic endpoint transmits in which microframe, how long a bulk
//! transfer takes at worst, and which endpoints are refused.
//!
//! Pure decisions: no hardware, no clock. Times are whole picoseconds ([`Picos`]); what is promised
//! leaves as nanoseconds, rounded up. Theory and evidence: `docs/bus.md`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

/// The example in the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod arrange;
mod board;
mod endpoint;
mod judge;
mod limits;
mod modes;
mod nonsense;
mod packet;
pub mod place;
mod plan;
mod refusal;
pub mod reserve;
mod rotation;
mod scheduler;
#[cfg(feature = "sim")]
pub mod sim;
mod time;
pub mod tree;
pub mod uniform;
mod worst;

pub use endpoint::{
    Async, BusInstance, Criticality, Guarantee, PeriodicEndpoint, Starts, Unit, check,
};
pub use judge::Broken;
pub use limits::{BYTES_MAX, ENDPOINTS_MAX, EndpointId, GUARANTEE_SLOTS_MAX, PERIOD_MAX};
pub use modes::{ModeChange, ModePlan, NoModes, plan_modes};
pub use nonsense::InvalidDemand;
pub use packet::{Coding, Direction, Speed, Transfer, packet_time};
pub use plan::{BusPlan, Placed, Promise, plan};
pub use refusal::{EndpointRefusal, FittingDemand, NoSchedule, RefusalReason};
pub use rotation::Rotation;
pub use scheduler::{BusScheduler, Moves, ScheduleChange};
pub use time::Picos;
pub use worst::Pattern;

//! The planner: what can be promised about a described system before anything runs.
//!
//! The theory is in `diapason-analysis`, `diapason-pipe` and `diapason-bus`; here a description
//! becomes their input, with what the kernel costs from `diapason-costs`, and their answers become
//! bills, refusals and one verdict. [`Plan::of`] computes all of it once. [`Plan::clear`] is the
//! only way to a boot archive.
//!
//! Rule of this room: total functions over values. A command draws a plan; it decides nothing.

#![forbid(unsafe_code)]

mod adapters;
pub mod allocate;
mod assumed;
pub mod beside;
mod blocks;
mod boot;
pub mod bus;
mod calls;
mod cameras;
pub mod can;
pub mod chains;
pub mod core;
mod driver;
mod endpoints;
mod frames;
pub mod jobs;
mod judge;
mod known;
mod machine;
mod missing;
pub mod modes;
mod mutexes;
pub mod network;
mod outputs;
mod pictures;
pub mod pipes;
mod refusal;
mod reports;
mod siblings;
mod sinks;
pub mod sockets;
pub mod start;
pub mod states;
mod supplies;
mod traffic;
pub mod tuned;
mod usb_sockets;
mod verdict;
mod wakes;

pub use assumed::{Assumed, AssumedVcpu};
pub use boot::{Cleared, Unproved};
pub use bus::Bused;
pub use network::{
    CommonTerms, CommonTime, FlowBill, FlowItem, FlowLeg, FlowLegs, FlowStage, Flowed, GateStep,
    LinkEnd, NetworkPlan, OtherWay, PlannedCredit, flow_legs,
};
pub use refusal::share;
pub use verdict::{FarPiped, Plan, Sum, Verdict};

use diapason_abi::Nanos;

/// Returns a length of time for people.
fn human(ns: u64) -> String {
    Nanos(ns).to_string()
}

//! The driver of an xHCI 1.0/1.1 host controller, without hardware and without a clock.
//!
//! [`Controller`] is a state machine over two traits: [`Mmio`], its registers, and [`Dma`], a
//! window of memory that it shares with the controller. Every call is given the time; none waits.
//! Policies (which configuration, which endpoints, how much they matter) are the client's;
//! mechanism (rings, contexts, ports, enumeration, recovery, admission) is here.
//!
//! The driver believes the controller only as far as it names something that is under way.

mod access;
mod budget;
mod build;
mod change;
mod command;
mod configure;
mod controller;
mod device;
mod enumerate;
mod event_ring;
mod finish;
mod lane;
mod limits;
mod pipe;
mod port;
mod pump;
mod recover;
mod report;
mod ring;
mod start;
mod state;
mod transfer;

pub use access::{Buffer, Dma, Mmio};
pub use budget::{Buses, EndpointPlan};
pub use build::When;
pub use controller::Controller;
pub use device::HubPlan;
pub use diapason_bus::Guarantee;
pub use event_ring::Handled;
pub use lane::{Lane, Lanes, Together};
pub use limits::{Limits, Unusable, Window};
pub use report::{
    Counters, Death, DeviceFailure, DeviceId, Finished, Notice, PoolRoom, Refused, TransferId,
    TransferOutcome, Waiting,
};
pub use state::{Capabilities, ControllerState};
pub use transfer::Request;

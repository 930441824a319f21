//! Time-sensitive networking (IEEE 802.1Qbv, 802.1Qav) without hardware: gate lists, the shaper of
//! a port, a store-and-forward switch, clocks that are kept together, and bounds of delays.
//!
//! Times are nanoseconds on a clock that the caller chooses. Lengths of frames are times on the
//! wire, from the preamble to the end of the gap. Nothing here reads a clock or sends anything.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bound;
mod clock;
mod credit;
mod egress;
mod gates;
mod paced;
mod refusal;
mod route;
mod switch;
mod wire;

pub use bound::{PortDelays, PortModel, QueueDelay, TrafficFlow};
pub use clock::ServoClock;
pub use credit::CreditSpan;
pub use egress::{Egress, EgressStep, Shaping};
pub use gates::{GateEntry, GateList, GateWindow};
pub use paced::{PacedEgress, frame_ns, paced_ns};
pub use refusal::GateRefusal;
pub use route::{EndToEnd, FlowRoute, RoutedPort, end_to_end};
pub use switch::{PortDeparture, QueueBooks, StoreForward};
pub use wire::{GAP, LinkRate, PREAMBLE, wire_bytes};

/// Number of traffic classes of a port.
pub const CLASSES: usize = 8;

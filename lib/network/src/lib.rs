//! Graphs of hosts that cables join: the order in which hosts enable and enumerate, the choice of
//! debug cables, and the routes of messages.
//!
//! Pure decisions: no hardware, no clock. A debug cable joins a debug target, which enables the
//! debug capability of its controller, and a debug host, which enumerates it. Theory, tables and
//! evidence: `docs/network.md`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

/// The example in the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod assign;
mod flaws;
mod formation;
mod lists;
mod order;
mod routes;
pub mod shapes;
mod topology;
pub mod world;

pub use assign::{Cabling, Fewest, Orientation, choose, orient};
pub use flaws::{Flaw, flaws};
pub use formation::{Deed, Formation, Sensed};
pub use lists::Lists;
pub use order::{Act, Occurrence, rounds};
pub use routes::{Leg, Routes, circle};
pub use topology::{Edge, Jack, Topology};

//! Work common to all classes: keep transfers to the host pending, send, and ask one question at a
//! time.

mod errand;
mod lane;
mod pipe;
mod send;

pub(super) use errand::Errand;
pub use lane::ROOM as LANE_ROOM;
pub(super) use lane::{Lane, Span};
pub(super) use pipe::{Inlet, Pipe};
pub(super) use send::{Messages, Outlet};

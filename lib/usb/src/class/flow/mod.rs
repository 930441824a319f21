//! What all classes do: keep transfers to the host pending, send, and ask one thing at a time.

mod errand;
mod lane;
mod pipe;
mod send;

pub(super) use errand::Errand;
pub use lane::ROOM as LANE_ROOM;
pub(super) use lane::{Lane, Span};
pub(super) use pipe::{Inlet, Pipe};
pub(super) use send::{Messages, Outlet};

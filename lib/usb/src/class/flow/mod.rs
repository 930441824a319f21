//! What all classes do: keep transfers to the host pending, send, and ask one thing at a time.

mod errand;
mod pipe;
mod send;

pub(super) use errand::Errand;
pub(super) use pipe::{Inlet, Pipe};
pub(super) use send::{Messages, Outlet};

//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod bus;
mod candump;
mod dbc;
mod exchange;
mod fd_bus;
mod fd_lengths;
mod fd_wire;
mod in_order;
mod mts;
mod mts_clock;
mod mts_nodes;
mod port;
mod response;
mod socketcand;
mod support;
mod timing;
mod wire;

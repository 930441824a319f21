//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod beside;
mod blocks;
mod buffers;
mod bus_time;
mod common_time;
mod controller;
mod controller_mts;
mod deadline_monotonic;
mod detours;
mod endpoints;
mod ethernet;
mod extremes;
mod flows;
mod heard;
mod interfaces;
mod jobs;
mod known;
mod large;
mod mail;
mod messages;
mod missing;
mod modes;
mod mts_life;
mod mutexes;
mod network;
mod pairs;
mod pictures;
mod routers;
mod sink_chains;
mod sinks;
mod sockets;
mod sources;
mod start;
mod states;
mod traffic;

//! The server on the model of a controller, with models of devices and clients that misbehave.

mod blocks;
mod branches;
mod channels;
mod clients;
mod endpoints;
mod flexible;
mod frames;
mod ground;
mod hubs;
mod interfaces;
mod lending;
mod links;
mod machine;
mod modes;
mod pairs;
mod pictures;
mod sinks;
mod streams;
mod tuned;

//! `tpipe` as a decision: what a pipe asks for, what its thread gets, or why not.
//!
//! A driver states what its device can do ([`Attributes`]) and what its threads cost ([`Driver`]).
//! A request for a pipe states a quality of service ([`Qos`]). A [`PipeEndpoint`] holds the pipes
//! that are open: to open, change or close one it computes everything again, asks whether the
//! processor has room for it, and either changes as a whole or not at all.
//!
//! Pipes that a description declares are in the endpoint, too ([`PipeEndpoint::beside`]): they take
//! a place and arrive beside those that come and go.
//!
//! A pipe goes one way, or through its thread and back to the device ([`Route`]): then it takes two
//! places, and has one latency from end to end.
//!
//! The period of a pipe's thread is T = B/λ as in [USB 2023] ([`little`]), shortened until the bill
//! of the pipe says that its buffer cannot overflow and its latency is kept, whatever the phase.
//!
//! ```
//! use diapason_abi::Nanos;
//! use diapason_pipe::tuned::little;
//! // The worked example of [USB 2023]: 128 bytes at 512 kbit/s.
//! assert_eq!(little(128 * 8, 512_000, Nanos::from_secs(1)), Nanos::from_millis(2));
//! ```

mod agree;
mod claim;
mod endpoint;
mod exchange;
mod onward;
mod refused;
mod suggest;
mod wish;

pub use agree::{Agreement, Terms};
pub use endpoint::PipeEndpoint;
pub use exchange::{
    ANSWER_BYTES, Granted, PipeAnswer, PipeCommand, PipeRequest, REQUEST_BYTES, RequestOutcome,
};
pub use refused::{RefusedPipe, WhyRefused, WouldFit};
pub use wish::{Attributes, Driver, Outward, Qos, ReaderThreads, Receiver, Route, Shares, little};

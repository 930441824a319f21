//! What the clients of the USB server's CAN channels share: what came, what was sent, and what a
//! chain of threads passes on.

#![no_std]
#![forbid(unsafe_code)]

pub mod chain;
pub mod passed;
pub mod stream;
pub mod tally;

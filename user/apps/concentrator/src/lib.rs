//! The common parts of the clients of the USB server's CAN channels: received messages, sent
//! messages, and messages that a chain of threads passes on.

#![no_std]
#![forbid(unsafe_code)]

pub mod chain;
pub mod passed;
pub mod stream;
pub mod tally;

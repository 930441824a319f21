//! The common parts of the clients of the USB server's CAN channels: received messages, sent
//! messages, and what the threads of a chain agree on.

#![no_std]
#![forbid(unsafe_code)]

pub mod chain;
pub mod reading;
pub mod stream;
pub mod tally;
pub mod writing;

//! Schedulability theory: what can be promised about a system before anything runs.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(feature = "attack")]
pub mod attack;
pub mod server;

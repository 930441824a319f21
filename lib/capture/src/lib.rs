//! Captures that Wireshark reads: [`pcap`] is the file, [`usb`] and [`can`] are what is in it.
//! [`asc`] and [`blf`] are logs of CAN buses for other tools, and [`log`] tells them apart.
//! [`perfetto`] is a trace of a whole run.
//!
//! Nothing here opens files or has a clock: events go in, bytes come out. [`ReorderBuffer`] puts
//! events into the order of time that a file wants when they become known in another one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod asc;
pub mod blf;
pub mod can;
pub mod log;
mod order;
pub mod pcap;
pub mod perfetto;
pub mod usb;

pub use order::ReorderBuffer;

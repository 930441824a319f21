//! Models of USB devices, written once for the simulated controller and for QEMU's.
//!
//! A device sees its bus: transactions come in, handshakes go out. What it is behind that (a
//! sensor, five CAN controllers, the other end of a cable) has explicit time and nothing else, so
//! the same calls at the same times give the same bytes.
#![forbid(unsafe_code)]

mod device;

pub use device::{Answer, Device, Handshake, Stall};

//! Clients' ends of what the USB server serves besides CAN: pipes, and memory that devices fill.
//! Names and layouts are those of `diapason_contract`. CAN channels: `diapason_canlib`.

#![no_std]
#![forbid(unsafe_code)]

pub mod camera;
mod client;
pub mod disk;
pub mod keyboard;
pub mod link;
pub mod network;
pub mod sensor;
pub mod times;

pub use client::UsbClient;

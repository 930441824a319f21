//! Clients' ends of what the USB server serves besides CAN: pipes, and memory that devices fill.
//! Names and layouts are those of `diapason_contract`. CAN channels: `diapason_canlib`.
//!
//! A service that only tells has an [`inlet`], and one that is asked and answers a [`UsbClient`].
//! The reader of a `[[pipe]]` has an [`Inbox`], which measures what passes it. [`usb_open`] opens
//! that of any device's endpoint, [`Pictures`] has those of a camera, and [`Blocks`] those of a
//! disk. [`usb_open_to`] opens the pipe to any device's endpoint, [`BlockWriter`] writes to a disk,
//! and [`network`] has the frames of a network device.
//! The modules are the ends that are more than these.

#![no_std]
#![forbid(unsafe_code)]

mod answered;
mod block_writer;
mod blocks;
pub mod camera;
mod client;
mod frame_writer;
mod frames;
mod inbox;
pub mod link;
pub mod modes;
pub mod network;
mod outbox;
mod pictures;
pub mod times;

pub use block_writer::{BlockPlace, BlockWriter, NoRoom};
pub use blocks::{BlockRun, Blocks};
pub use client::{UsbClient, inlet};
pub use diapason_contract::source::{EndpointAttributes, PipeSource};
pub use diapason_contract::{disk, keyboard, sensor, sink};
pub use diapason_pipe::Reader;
pub use inbox::{Arrived, Inbox, Packets, usb_open};
pub use outbox::{NotWritten, UsbWriter, usb_open_to};
pub use pictures::Pictures;

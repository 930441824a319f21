//! CAN without hardware and without a clock: frames to the bit, a bus to the bit, and what can be
//! promised about both.
//!
//! [`wire`] says what a frame looks like on the wire and how long it is, [`fd`] says it of frames
//! of CAN FD; [`Bus`] is a bus of controllers with explicit time; [`response`] and [`mts`] bound
//! what it does; [`candump`] reads and writes logs, [`dbc`] reads which signals are in frames,
//! [`socketcand`] speaks with tools of other hosts, [`toucan`] drives a controller. The theory and
//! its evidence: `docs/can.md`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod adapters;
pub mod bus;
pub mod candump;
pub mod canlib;
pub mod dbc;
pub mod decode;
pub mod exchange;
pub mod fd;
pub mod filter;
pub mod frame;
pub mod in_order;
pub mod mts;
pub mod response;
pub mod socketcand;
pub mod timing;
pub mod toucan;
pub mod wire;

pub use bus::Bus;
pub use decode::{FrameDecoder, WireError, decode};
pub use embedded_can::{ExtendedId, Id, StandardId};
pub use fd::{AnyFrame, FdFrame};
pub use filter::{Filter, accepts};
pub use frame::{CanFrame, FrameRefusal};
pub use timing::{BitRate, BitTiming};

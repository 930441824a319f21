//! The USB server as a library: the controller, what is plugged into it, and what becomes of it for
//! clients. It decides; the process `usbd` starts its threads, waits, and wakes clients.
//!
//! Each bottom half has a [`Branch`] behind a lock of its own: its interrupter, its devices, their
//! service. The [`UsbServer`] behind one more lock has the parts that all share: commands, ports,
//! the bus schedule. A bottom half locks its branch, attends to it, unlocks, and wakes clients.
//! Only if that left something for the server does it lock that. The server's ground is a
//! [`Platform`], so that it runs in tests, too.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod attended;
mod branch;
mod change;
mod client;
mod forming;
mod furnished;
mod listing;
mod modes;
mod order;
mod papers;
mod places;
pub mod platform;
mod plugged;
pub mod policy;
mod posts;
mod presence;
mod served;
mod server;
mod services;
mod serving;
mod slots;
mod told;
pub mod tuned;
mod unserved;

pub use attended::{Attended, Fresh, WakeCause};
pub use branch::{Branch, Branches};
pub use places::PlaceOrder;
pub use platform::Platform;
pub use presence::Presence;
pub use server::UsbServer;
pub use services::{Offer, Offers, offered};
pub use told::{Pipes, ServerSettings};

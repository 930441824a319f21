//! The USB server as a library: the controller, what is plugged into it, and what becomes of it for
//! clients. It decides; the process `usbd` starts its threads, waits, and wakes clients.
//!
//! All threads share a [`Server`] under one mutex, and each does the same: lock,
//! [`Server::attend`], unlock, wake. The server's ground is a [`Platform`], so that it runs in
//! tests, too.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod change;
mod channels;
mod client;
mod listing;
mod places;
pub mod platform;
pub mod policy;
mod served;
mod server;
mod services;
mod slots;
mod told;
pub mod tuned;
mod unserved;

pub use places::Order;
pub use platform::Platform;
pub use server::{Cause, Fresh, Server};
pub use services::{Offer, Offers, Service, offered};
pub use told::{Pipes, Told};

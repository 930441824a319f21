//! Device models behind QEMU's `usb-redir`, in step with the guest's virtual clock.
//!
//! [`protocol`] is usbredir as bytes; [`Redirected`] answers a guest with a device model, at
//! explicit time; [`plugin`] builds what makes QEMU wait; [`Server`] joins them: the guest stands
//! still at every slice until the devices have caught up. How to use it: this crate's README.
#![forbid(unsafe_code)]

pub mod plugin;
pub mod protocol;
mod redirected;
mod server;

pub use redirected::{Journal, Redirected, Trouble};
pub use server::{CONTROLLER, Ending, Failure, Plan, Report, Server};

//! Device models behind QEMU's `usb-redir`, in step with the guest's virtual clock.
//!
//! [`protocol`] is usbredir as bytes; [`Redirected`] answers a guest with a device model, at
//! explicit time; [`plugin`] builds what makes QEMU wait; [`DeviceServer`] joins them: the guest
//! stands still at every slice until the devices have caught up. [`linux`] is a guest with somebody
//! else's drivers. How to use it: this crate's README.
#![forbid(unsafe_code)]

mod emulator;
pub mod firmware;
pub mod linux;
pub mod plugin;
pub mod protocol;
mod redirected;
mod server;

pub use emulator::Emulator;
pub use redirected::{Journal, PacketDirection, Redirected, Spoken, Trouble};
pub use server::{
    AdapterFrame, CONTROLLER, DeviceServer, RunEnding, RunError, RunPlan, RunReport, Stop,
    WIRES_MAX, Wires,
};

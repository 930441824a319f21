//! USB without hardware: what goes over the wire and what a host controller reads and writes.
//!
//! [`setup`] and its neighbours are the wire's side; [`trb`], [`context`] and [`register`] are the
//! numbers of an xHCI 1.1 controller, shared by the driver and by the model it is tested against
//! (that both read them right is shown in QEMU, whose controller is somebody else's).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod class;
pub mod context;
pub mod debug_target;
pub mod descriptor;
pub mod register;
pub mod setup;
pub mod trb;
pub mod xhci;

pub use diapason_bus::Speed;
pub use setup::Setup;

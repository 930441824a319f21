//! Models of USB devices, written once for the simulated controller and for QEMU's, and of a CAN
//! controller with message buffers ([`toucan`]).
//!
//! A device sees its bus: transactions come in, handshakes go out. The inside of a model (a sensor,
//! five CAN controllers, the other end of a cable) has explicit time and nothing else, so the same
//! calls at the same times give the same bytes.
#![forbid(unsafe_code)]

pub mod actuator;
pub mod bridge;
pub mod camera;
pub mod can;
pub mod descriptors;
mod device;
pub mod disk;
pub mod faulty;
pub mod gs_usb;
pub mod hub;
pub mod instrument;
pub mod keyboard;
pub mod kvaser;
pub mod network;
mod other_speed;
pub mod restarting;
pub mod restless;
pub mod sensor;
pub mod servo;
pub mod standard;
pub mod toucan;

pub use device::{Answer, Handshake, Stall, UsbDevice};

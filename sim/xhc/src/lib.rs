//! An xHCI 1.1 host controller as software sees it: registers, rings, contexts, and buses that take
//! time.
//!
//! [`Xhc`] is driven by register accesses and by [`Xhc::advance`]; it reaches memory through
//! [`Memory`] and its devices through `diapason_devices::Device`. Every packet occupies its bus as
//! long as `diapason_bus::packet_time` says. There is no clock and no chance in it.
#![forbid(unsafe_code)]

mod bandwidth;
mod command;
mod config;
mod contexts;
mod debug;
mod endpoint;
mod extended;
mod faults;
mod interrupter;
mod isoch;
mod lent;
mod memory;
mod operational;
mod packet;
mod port;
mod report;
mod ring;
mod schedule;
mod slot;
mod tape;
mod trace;
mod transfer;
mod xhc;

pub use config::{Config, ControllerTimes, Group, Protocol};
pub use debug::{CableEnd, DebugConfig};
pub use diapason_bus::Coding;
pub use extended::{DOORBELLS, EXTENDED, OPERATIONAL, RUNTIME};
pub use interrupter::{Disturbance, InterruptMessage};
pub use lent::Misuse;
pub use memory::{Denial, Denied, Memory};
pub use tape::TransferRecord;
pub use trace::{BusPacket, PacketOutcome, TraceCounts};
pub use xhc::{WINDOW, Xhc};

//! Tuned pipes: programs ask, the endpoint decides, the processor is reserved, channels are told.
//!
//! All of it happens on a thread and a VCPU of its own, so that a decision, which takes a while,
//! delays no message, and a program that asks without end only those that ask. The server is locked
//! only to tell its channels who listens.

mod base;
mod office;
mod reserve;

pub use base::guarantee;
pub use office::Office;

use crate::places::Order;
use diapason_abi::Errno;

/// The server, as decisions need it.
pub trait Interface {
    /// Returns whether a device with tuned pipes is there.
    ///
    /// # Errors
    /// The server cannot be asked any more.
    fn has_device(&mut self) -> Result<bool, Errno>;

    /// Tells the channels who listens and writes.
    ///
    /// # Errors
    /// The server cannot be told any more.
    fn order(&mut self, order: &Order) -> Result<(), Errno>;
}

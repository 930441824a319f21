//! Tuned pipes: programs ask, the endpoint decides, the processor is reserved, channels are told.
//!
//! All of it happens on a thread and a VCPU of its own, so that a decision, which takes a while,
//! delays no message, and a program that asks without end only those that ask. A branch is locked
//! only to tell its channels who listens: whether an interface is there is seen without a lock.

mod base;
mod office;
mod reserve;

pub use base::guarantee;
pub use office::Office;

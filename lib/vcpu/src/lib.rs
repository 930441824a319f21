//! Virtual CPUs: what a reserved share of a processor is, as pure state machines with explicit
//! time.
//!
//! A *main VCPU* is a sporadic server with a budget and a period ([`SporadicServer`], rules S1–S5);
//! an *I/O VCPU* serves bottom halves with a share of the processor and borrows the period of the
//! main VCPU it works for ([`Pibs`], rules P1–P4). [`admission`] decides in integers whether a core
//! can keep one more promise. The kernel embeds these types; nothing here reads a clock, allocates
//! or knows a thread. With the feature `sim` comes [`sim`], a processor to attack them on.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "sim")]
extern crate alloc;

pub mod admission;
mod pibs;
#[cfg(feature = "sim")]
pub mod sim;
mod sporadic;

pub use pibs::{Pibs, PibsCounters};
pub use sporadic::{CHUNKS, Chunk, SporadicCounters, SporadicServer};

use diapason_abi::Nanos;

/// The longest period a VCPU may have, about 18 minutes: below it no product of a time and a share
/// leaves 64 bits.
pub const PERIOD_MAX: Nanos = Nanos(1 << 40);

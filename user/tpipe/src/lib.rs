//! Tuned pipes for programs: `tpipe` of the article, with its quality of service and its bound.
//!
//! A program says what it wants of a channel ([`Qos`]) and which function gets its messages. The
//! USB server decides whether that can be promised, sets the reservation of the pipe's thread, and
//! answers with the bound, or with the reason and what would fit; nothing has changed then.
//!
//! ```ignore
//! struct Brakes;
//! impl Function for Brakes {
//!     fn message(&self, message: &Message) { /* … */ }
//! }
//! static BRAKES: Thread<Brakes> = Thread::new(0, Brakes);
//!
//! let qos = Qos { latency, tput, buffer, execution, burst };
//! let mut pipe = tpipe(Endpoint { place: 0, channel: 4 }, &qos, &BRAKES, deadline)?;
//! pipe.renegotiate(&better, deadline)?;
//! pipe.close(deadline)?;
//! ```
//!
//! The places for such pipes, their memory, their mailboxes and the VCPUs of their threads are in
//! the description: what is opened while the system runs cannot run out of anything.

#![no_std]
#![forbid(unsafe_code)]

pub mod agreement;
mod error;
mod function;
mod pipe;

pub use diapason_abi::pipe::TunedReport;
pub use diapason_canlib::{Arrival, LOST_BEFORE, Message, OUTSIDE, Phase};
pub use diapason_pipe::tuned::{Granted, Qos, Reason, Refused, WouldFit};
pub use error::Error;
pub use function::{Function, Thread};
pub use pipe::{Endpoint, Pipe, tpipe};

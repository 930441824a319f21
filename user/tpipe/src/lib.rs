//! Tuned pipes for programs: `tpipe` of [USB 2023], with its quality of service and its bound.
//!
//! A program says what it wants of a channel ([`Qos`]) and which function gets its messages. The
//! USB server decides whether that can be promised, sets the reservation of the pipe's thread, and
//! answers with the bound, or with the reason and what would fit; nothing has changed then.
//!
//! ```ignore
//! struct Brakes;
//! impl TunedFunction for Brakes {
//!     fn message(&self, message: &TimedFrame) { /* … */ }
//! }
//! static BRAKES: TunedThread<Brakes> = TunedThread::new(0, Brakes);
//!
//! let qos = Qos { latency, tput, buffer, execution, burst };
//! let mut pipe = tpipe(Endpoint { place: 0, route: Route::From(4) }, &qos, &BRAKES, deadline)?;
//! pipe.renegotiate(&better, deadline)?;
//! pipe.close(deadline)?;
//! ```
//!
//! The same call opens a pipe to a device, whose thread is a [`TunedWriter`] that asks a
//! [`TunedSource`] for messages once in each period, and one through the program, whose [`Passer`]
//! has a [`Passage`] from one channel to another and one bound for the whole way.
//!
//! The thread of a pipe measures, and reports once a second how its pipe does; a program has no
//! part in that.
//!
//! The places for such pipes, their memory, their mailboxes and the VCPUs of their threads are in
//! the description: what is opened while the system runs cannot run out of anything.

#![no_std]
#![forbid(unsafe_code)]

pub mod agreement;
mod error;
mod function;
mod passage;
mod pipe;
mod reading;
mod source;
mod work;
mod writing;

pub use diapason_canlib::{CanFrame, LOST_BEFORE, OUTSIDE, Phase, ReceivedFrame, TimedFrame};
pub use diapason_pipe::measured::{TunedReport, WrittenReport};
pub use diapason_pipe::tuned::{Granted, Qos, RefusedPipe, Route, WhyRefused, WouldFit};
pub use error::PipeError;
pub use function::{TunedFunction, TunedThread};
pub use passage::{Passage, Passer};
pub use pipe::{Endpoint, Pipe, tpipe};
pub use source::{Outbox, TunedSource, TunedWriter};
pub use work::TunedWork;

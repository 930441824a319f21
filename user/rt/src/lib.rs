//! The runtime of a user program: start-up, system calls and a safe, blocking-style API over them.
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//! use diapason_rt::{Arguments, entry, log, thread};
//!
//! entry!(main);
//! fn main(_: Arguments) {
//!     let mut jobs = thread::periodic(time::now(), Nanos::from_millis(5), Nanos::from_millis(5));
//!     loop {
//!         log!("one job");
//!         jobs.wait();
//!     }
//! }
//! ```
//!
//! Errors that a correct program must expect are `Err`; misuse (a wild pointer, a handle never
//! given out) ends the process in the kernel, so it has no representation here. All `unsafe` of a
//! program is in this crate and in `diapason-state`.

#![no_std]

use diapason_routines as _;

mod attached;
pub mod event;
pub mod heap;
pub mod hint;
pub mod locked;
pub mod log;
pub mod mailbox;
pub mod memory;
pub mod pipe;
pub mod process;
pub mod server;
pub mod settings;
pub mod start;
pub mod state;
pub mod sync;
pub mod sys;
pub mod thread;
pub mod time;
pub mod vcpu;

pub use diapason_abi::{Errno, FaultCause, FaultReport, Nanos};
pub use diapason_pipe::measured::{ChainGauge, ChainMessage};
pub use hint::Hint;
pub use start::Arguments;

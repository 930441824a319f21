//! Tuned pipes: a bounded ring of records between one writer and one reader, and its promises.
//!
//! A driver's bottom half puts what a device sent into the ring, a user's thread takes it out.
//! Neither ever waits, retries or calls the kernel. The two may be different processes, at
//! different addresses, on one core or two, and need not trust each other.
//!
//! * [`Ring`] is the shared memory, valid when zeroed; [`Writer`] and [`Reader`] are its ends.
//! * [`size`] says how many slots make overflow impossible while everybody keeps the contract.
//! * [`meter`] says whether what arrives keeps its contract.
//! * [`intake`] takes messages of several writers, and holds each writer to its contract.
//! * [`clock`] says how long messages took between clocks that drift.
//! * [`measured`] has what is measured of pipes, and the words in which that is reported.
//! * [`bill`] says how long a message takes at most from end to end, and why.
//! * [`tuned`] decides whether a pipe can be had, and on which terms.
//!
//! ```
//! use diapason_abi::Nanos;
//! use diapason_pipe::{Ring, size::{self, Bucket}};
//! use diapason_state::plain;
//!
//! plain! {
//!     /// A CAN frame and when it came.
//!     pub struct Received { at: u64, data: [u8; 8], id: u32, length: u32 }
//! }
//! const FRAMES: &[Bucket] = &[Bucket::per_second(2752)];
//! const N: usize = size::capacity(FRAMES, Nanos::from_millis(10), Nanos::from_millis(20));
//! assert_eq!(N, 83);
//!
//! let mut ring = Ring::<Received, N>::new();
//! let (mut writer, mut reader) = ring.split();
//! let frame = Received { at: 7, data: [1; 8], id: 0x123, length: 8 };
//! assert_eq!(writer.push(&frame), Ok(()));
//! assert_eq!(reader.pop().map(|frame| frame.id), Some(0x123));
//! assert!(reader.pop().is_none());
//! ```
//!
//! `docs/pipes-proofs.md` of the workspace has the argument for both.
//!
//! Rule of this room: no hardware, no system call, no allocation, no waiting.

#![cfg_attr(not(test), no_std)]

pub mod bill;
pub mod clock;
pub mod hold;
pub mod intake;
pub mod measured;
pub mod meter;

mod reader;
mod ring;
pub mod size;
mod slot;
pub mod tuned;
mod writer;

pub use reader::Reader;
pub use ring::{Corrupt, Ring, RingFull, StaticRing};
pub use writer::Writer;

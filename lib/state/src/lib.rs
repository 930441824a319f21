//! State messages: one writer, any number of readers, the last value wins, and nobody ever waits.
//!
//! A sensor reading or a set-point is a *state*: only the newest value matters, everybody may look
//! at it, and looking does not consume it. A queue is the wrong shape for that, and a lock makes
//! tasks wait for each other. Here a write and a read are a handful of plain loads and stores,
//! without a system call and without a retry loop:
//!
//! * [`StateWord`]: the value fits into a machine word. One atomic store, one atomic load.
//! * [`StateBuffer`]: a larger value. A circular buffer of `N` slots; readers copy the newest slot
//!   while the writer fills the next one. How deep `N` must be so that the writer never catches up
//!   with a reader follows from periods and deadlines: [`depth`].
//!
//! There is one [`StateWriter`] by ownership (it is not `Clone`); a [`StateReader`] is `Copy`. Both
//! cells are plain memory, valid when zeroed, and may lie in a segment shared between processes.
//! `docs/state-messages.md` of the workspace states the theorem behind `N` and proves it.
//!
//! ```
//! use diapason_abi::Nanos;
//! use diapason_state::depth::{ReaderTiming, WriterTiming, depth_one_core};
//! use diapason_state::{StateBuffer, plain};
//!
//! plain! {
//!     /// The position that the tracker publishes.
//!     pub struct Pose { x: f64, y: f64, heading: f64 }
//! }
//! const TRACKER: WriterTiming = WriterTiming::new(Nanos::from_millis(5), Nanos::from_millis(5));
//! const DISPLAY: ReaderTiming =
//!     ReaderTiming::new(Nanos::from_millis(8), Nanos::from_millis(6), Nanos::from_micros(2));
//! const N: usize = depth_one_core(TRACKER, &[DISPLAY]);
//!
//! let mut cell = StateBuffer::<Pose, N>::new();
//! let (mut writer, reader) = cell.split();
//! writer.write(Pose { x: 1.0, y: 2.0, heading: 0.5 });
//! assert_eq!(reader.read().y, 2.0);
//! assert_eq!(reader.read().y, 2.0); // reading does not consume
//! ```
//!
//! Rule of this room: no hardware, no system call, no allocation, no waiting, no run-time error.
//! [`Step`] and [`CopyInOnePiece`] bring in what the machine must provide.

#![cfg_attr(not(test), no_std)]

mod buffer;
mod copy;
pub mod depth;
mod handle;
#[doc(hidden)]
pub mod plain;
mod slow;
mod step;
mod word;

pub use buffer::{Overtaken, StateBuffer};
pub use handle::{StateCell, StateReader, StateWriter, StaticState};
pub use plain::Plain;
pub use slow::{CopyInOnePiece, SLOW_BYTES_MAX};
pub use step::{NoStep, Step};
pub use word::StateWord;

//! The agreement of the threads of the example's chains.

use diapason_pipe::measured::MESSAGE_WORDS;
use diapason_rt::{Nanos, time};

/// The mailbox from the reader to the controller.
pub const READINGS: &str = "readings";
/// That from the controller to the writer.
pub const COMMANDS: &str = "commands";
/// The state message from the reader to the display.
pub const NEWEST: &str = "newest";
/// Slots of it: so many writes at least while it is being read, which takes a few microseconds of a
/// reader that may be preempted for a few milliseconds.
pub const SLOTS: usize = 32;
/// The value of the state message.
pub type Value = [u64; MESSAGE_WORDS];

/// Returns when a thread ends that ends after so many seconds; 0 is never.
pub fn end_after(seconds: u64) -> Nanos {
    if seconds == 0 { Nanos::FOREVER } else { time::now() + Nanos::from_secs(seconds) }
}

//! Modes of operation: which streams run, and how a program asks the server for another mode.
//!
//! A program writes what it wants into the pipe of asks. The server answers each ask once: at once
//! if it refuses, or else when the change is over. The server looks at the pipe whenever its
//! managing thread is awake.

use diapason_state::plain;

/// The bytes of an interval that each stream has in each mode: a setting of one word for each
/// mode, with 16 bits for each stream, the first in the lowest. A stream with 0 is stopped.
pub const MODES: &str = "modes";
/// The time that must pass from one change to the next, in ns: a setting of one word.
pub const REST: &str = "mode-rest";

/// The pipe of asks.
pub const ASKS: &str = "usb-mode.asks";
/// The pipe of answers.
pub const ANSWERS: &str = "usb-mode.answers";
/// Asks that may wait, and answers.
pub const RECORDS: usize = 4;

/// In [`ModeAnswer::answer`]: the mode is the one that runs.
pub const DONE: u32 = 0;
/// In [`ModeAnswer::answer`]: another change is under way, or was a moment ago.
pub const BUSY: u32 = 1;
/// In [`ModeAnswer::answer`]: there is no such mode.
pub const NO_MODE: u32 = 2;
/// In [`ModeAnswer::answer`]: the mode runs without a camera that failed, or sends nothing.
pub const WITHOUT: u32 = 3;

plain! {
    /// An ask for a mode.
    #[derive(Debug, PartialEq, Eq)]
    pub struct ModeAsk {
        /// The number of the mode in the description.
        pub mode: u32,
        /// A number of the program's, which the answer has again.
        pub number: u32,
    }
}

plain! {
    /// The answer to an ask.
    #[derive(Debug, PartialEq, Eq)]
    pub struct ModeAnswer {
        /// The mode that the program asked for, and the number of its ask.
        pub mode: u32,
        pub number: u32,
        /// [`DONE`], [`BUSY`], [`NO_MODE`] or [`WITHOUT`].
        pub answer: u32,
        /// Asks that were refused so far.
        pub refused: u32,
        /// When the server took the ask, in ns since boot.
        pub taken: u64,
        /// When the first interval came of the last stream that began, in ns since boot; `taken` if
        /// none began.
        pub begun: u64,
    }
}

/// Returns the bytes of an interval that a stream has in the mode with this word.
#[must_use]
pub const fn bytes(word: u64, stream: usize) -> u32 {
    (word >> (16 * (stream as u32 & 3)) & 0xffff) as u32
}

//! Names and sizes of the buffer of a pipe of CAN frames, its limits and its costs, for both of
//! its ends, descriptions and tools. `diapason_pipe` has the measurements.

mod costs;
mod envelope;

pub use costs::{AT_ONCE, BEFORE, COSTS, DriverCosts, OUTPUT_COSTS, OutputCosts};
pub use envelope::{DRIFT, ENVELOPES, Envelope, USUAL_DRIFT};

use crate::Nanos;

/// Records in the buffer of a pipe.
pub const SLOTS: usize = 256;
/// Most bytes of a record.
pub const RECORD_BYTES: usize = 40;
/// Bytes of the segment with the buffer, in whole pages: two lines of counts, then the records.
pub const BYTES: u64 = (128 + SLOTS * RECORD_BYTES).next_multiple_of(crate::PAGE) as u64;

/// Records in the buffer of a pipe to a device.
pub const OUT_SLOTS: usize = 128;
/// Most bytes of one.
pub const OUT_RECORD_BYTES: usize = 24;
/// Bytes of the segment with that buffer.
pub const OUT_BYTES: u64 =
    (128 + OUT_SLOTS * OUT_RECORD_BYTES).next_multiple_of(crate::PAGE) as u64;
/// Bytes of the segment with the reports on what became of them.
pub const REPORT_BYTES: u64 = 2 * crate::PAGE as u64;
/// The server rests so long before it listens to its clients again.
pub const REST: Nanos = Nanos::from_millis(1);
/// Requests that may wait for the server.
pub const REQUESTS: u16 = 4;

/// Most threads of a chain.
pub const HOPS: usize = 4;

/// Most places for tuned pipes.
pub const PLACES: usize = 5;
/// Questions about a tuned pipe that may wait, and answers.
pub const QUESTIONS: u16 = 2;
/// C and T of the thread of a tuned pipe that is closed.
pub const CLOSED: (Nanos, Nanos) = (Nanos::from_micros(20), Nanos::from_millis(20));

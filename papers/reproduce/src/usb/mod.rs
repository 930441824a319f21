//! Real-time USB networking, tables 3 to 6 and figure 10: figure 9's machine, three hosts in one
//! simulation. The boards send each other messages through the DX1100, whose cameras fill every
//! interval that they are given.

mod bound;
mod latency;
mod machine;
mod phases;
mod stay;
mod throughput;

pub use latency::reproduce as latency;
pub use throughput::reproduce as throughput;

use super::Effort;

/// Simulated seconds of each scenario, without the first two, in which everything starts.
const fn seconds(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 3,
        Effort::Full => 600,
        Effort::Long => 3_600,
    }
}

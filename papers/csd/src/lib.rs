//! Tasks in CSD queues, with the run-time cost of scheduling: the theory of EMERALDS, chapter 4.
//!
//! A scheduler is an [`Allocation`] of tasks to queues: rate-monotonic is one FP queue, EDF one DP
//! queue, CSD-x up to x − 1 DP queues above an FP queue. The scheduling cost of a task comes from
//! [`QueuePrices`], and depends on the lengths of the queues. [`SchedulabilityTest`] says whether
//! every deadline is met: once as the dissertation reads, once exactly. [`search`] finds the
//! allocation that costs least, [`breakdown`] how far a task set can be scaled, [`simulate`] runs
//! the schedule, and [`attack`] looks for sets that a test accepts and the schedule fails.
//!
//! Deadlines are periods throughout. Verdicts are computed in integers.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod allocation;
pub mod attack;
pub mod breakdown;
mod prices;
pub mod search;
pub mod simulate;
mod task;
mod test;
mod utilization;
pub mod workload;

pub use allocation::{Allocation, BadAllocation, QUEUES_MAX};
pub use diapason_random::Random;
pub use prices::{
    Affine, BadCounts, ChargingReading, Dissertation, DpBlock, OperationCounts, QueueList,
    QueuePrices,
};
pub use task::{BadTask, CsdTask, TaskSet};
pub use test::{DEADLINES_MAX, SchedulabilityTest, Unschedulable, check, inflate};
pub use utilization::{ONE, ratio_up};

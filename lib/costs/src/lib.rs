//! The kernel's costs, once.
//!
//! Four rooms need these numbers: the kernel admits VCPUs by them, the planner promises by them,
//! the simulator charges them, and the benchmark holds the kernel to them. They are of three kinds:
//!
//! | kind | what it means | where |
//! |---|---|---|
//! | counted | the longest path that was seen, by what causes it | [`counted`] |
//! | limit | what `plan` assumes; no count may be above it | [`limits`], [`targets`] |
//! | grace | time of a kernel path that no budget pays, so `plan` must | [`grace`] |
//!
//! Constant assertions tie them: a grace is never above its limit, a count never above its limit.
//!
//! Rule of this room: numbers and sums. No description, no clock, no allocation.
#![no_std]
#![forbid(unsafe_code)]

pub mod counted;
pub mod grace;
pub mod limits;
pub mod overheads;
pub mod section;
pub mod targets;
pub mod times;

pub use grace::{INTERRUPT_GRACE, SWITCH_GRACE};
pub use limits::{Counts, KERNEL};
pub use overheads::Prices;
pub use section::{Dimensions, Round, Tables};
pub use times::KernelTimes;

/// The kernel's servers can count every value that the archive may declare.
const _: () = assert!(diapason_abi::archive::PERIOD_MAX.0 <= diapason_vcpu::PERIOD_MAX.0);

//! Time of kernel paths that no budget pays.
//!
//! The kernel charges its own time to the VCPU that runs next. Without a grace, a VCPU that is
//! preempted often would pay for switches that others cause. So the kernel gives a fixed time free
//! with each switch to a described VCPU, twice for each replenishment at most, and with each
//! interrupt of a device. What a switch takes beyond its grace is charged to the budget of the VCPU
//! that runs next: a thread has that much less of it.
//!
//! Three numbers belong to a switch, and they mean different things:
//!
//! | number | what it is |
//! |---|---|
//! | [`SWITCH_GRACE`] | what the kernel gives free: the part of a switch that no budget pays |
//! | [`KERNEL.switch`](crate::KERNEL) | what `plan` charges to everybody for a switch (κ) |
//! | [`counted`](crate::counted) | what a switch was seen to take at most |
//!
//! A promise to others holds if `plan` charges at least what is free, whatever a switch takes: the
//! rest is inside a budget that `plan` counts anyway. That is asserted below. A promise to the VCPU
//! itself has to subtract from its budget what a switch takes beyond the grace.

use crate::limits::KERNEL;
use diapason_abi::Nanos;
use diapason_abi::archive::BUDGET_MIN;

/// Time of a switch to a described VCPU that its budget does not pay: `plan` promises it besides.
pub const SWITCH_GRACE: Nanos = Nanos(780);
/// The same of a device's interrupt that switches to nobody, and what it is counted as.
pub const INTERRUPT_GRACE: Nanos = Nanos(600);

// At 1 ns for an instruction `plan` charges no less than what is free. On a faster processor
// `KernelTimes` charges the grace itself.
const _: () = assert!(SWITCH_GRACE.0 <= KERNEL.switch);
const _: () = assert!(INTERRUPT_GRACE.0 <= KERNEL.top_half);
// A grace is shorter than the smallest budget: no VCPU runs on graces alone.
const _: () = assert!(SWITCH_GRACE.0 < BUDGET_MIN.0 && INTERRUPT_GRACE.0 < BUDGET_MIN.0);

//! Time of kernel paths that no budget pays.
//!
//! The kernel charges its own time to the VCPU that runs next. Without a grace, a VCPU that is
//! preempted often would pay for switches that others cause. So the kernel gives a fixed time free
//! with each switch to a described VCPU, twice for each replenishment at most, and with each
//! interrupt of a device. The cost of a switch beyond its grace is charged to the budget of the
//! VCPU that runs next: a thread has that much less of it.
//!
//! Three numbers belong to a switch, and they mean different things:
//!
//! | number | what it is |
//! |---|---|
//! | [`counted`](crate::counted) | what a switch was seen to take at most, by short queues |
//! | [`KERNEL.switch`](crate::KERNEL) | what it is assumed to take at least |
//! | [`KernelTimes::switch`](crate::KernelTimes::switch) | what is free; `plan` charges it (κ) |
//!
//! A promise to others holds if `plan` charges at least what is free, whatever a switch takes: the
//! rest is inside a budget that `plan` counts anyway. That is asserted below. A promise to the VCPU
//! itself has to subtract from its budget what a switch takes beyond the grace:
//! [`KernelTimes::lost`](crate::KernelTimes::lost). So the grace is the longest counted path after which another thread goes
//! on, at the clock of the description, but for the end of a process. Time that `plan` counts once
//! is cheaper than budget that each VCPU must have in reserve for the beginnings of all above it.
//! The archive tells the kernel how long it is: a kernel that had it in its code would be another
//! one whenever it is counted.

use crate::limits::KERNEL;
use diapason_abi::Nanos;
use diapason_abi::archive::BUDGET_MIN;

/// The least time of a switch to a described VCPU that its budget does not pay: that of a fast
/// processor. `plan` promises it besides.
pub const SWITCH_GRACE: Nanos = Nanos(780);
/// The least time of a device's interrupt that switches to nobody, and what it is counted as.
pub const INTERRUPT_GRACE: Nanos = Nanos(600);

// At 1 ns for an instruction `plan` charges no less than what is free at least. `KernelTimes`
// itself charges for all that is free beyond that.
const _: () = assert!(SWITCH_GRACE.0 <= KERNEL.switch);
const _: () = assert!(INTERRUPT_GRACE.0 <= KERNEL.top_half);
// A grace is shorter than the smallest budget: no VCPU runs on graces alone.
const _: () = assert!(SWITCH_GRACE.0 < BUDGET_MIN.0 && INTERRUPT_GRACE.0 < BUDGET_MIN.0);

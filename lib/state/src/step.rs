//! Preemption points inside the copies, for machines that cannot interrupt native code.
//!
//! On metal an interrupt may fall between any two instructions. A simulator that runs native code
//! sees everything between two traps as one instant, so it would never find a torn read. Each
//! shared access of this crate that is part of a longer operation is therefore preceded by one
//! call of [`Step::step`]. The default [`NoStep`] compiles to nothing.

/// A hook called before each shared access of a multi-word operation.
///
/// The runtime may choose an implementation that is inert on metal and a preemption point in the
/// simulator; the tests of this crate choose one that explores every interleaving.
pub trait Step {
    /// The caller may be preempted here.
    fn step();
}

/// The default: no preemption point, no instruction.
#[derive(Clone, Copy, Debug)]
pub struct NoStep;

impl Step for NoStep {
    #[inline(always)]
    fn step() {}
}

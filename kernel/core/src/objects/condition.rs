//! Condition variables and the threads that wait for their signal.

use crate::ids::ConditionTag;
use crate::objects::thread::ThreadQueue;
use crate::pool::{FREE, Pooled};
/// One condition variable slot.
pub struct Condition {
    /// Its handle, or [`FREE`] while it does not exist.
    pub handle: u64,
    pub(crate) generation: u32,
    pub(crate) allowed: u64,
    pub(crate) key: u64,
    pub(crate) waiters: ThreadQueue,
}

impl Pooled for Condition {
    type Tag = ConditionTag;
}

impl Condition {
    /// A slot that nobody may use.
    pub const EMPTY: Condition =
        Condition { handle: FREE, generation: 0, allowed: 0, key: 0, waiters: ThreadQueue::EMPTY };

    /// Returns whether a new object may use this slot. A slot whose generations are used up stays
    /// empty for ever, so that no old handle becomes valid again.
    pub(crate) fn is_spare(&self) -> bool {
        self.handle == FREE && self.generation < u32::MAX
    }
}

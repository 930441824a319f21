//! Condition variables and the threads that wait for their signal.

use crate::ids::{ConditionId, ConditionTag};
use crate::objects::thread::ThreadQueue;
use crate::pool::{FREE, Id, Pooled, Private};
use diapason_abi::{Handle, Kind};
/// One condition variable slot.
pub struct Condition {
    /// The condition's handle, or [`FREE`] while it does not exist.
    pub handle: u64,
    pub(crate) generation: u32,
    pub(crate) allowed: u64,
    pub(crate) key: u64,
    pub(crate) waiters: ThreadQueue,
    pub(crate) next_free: ConditionId,
}

impl Pooled for Condition {
    type Tag = ConditionTag;
}

impl Condition {
    /// A slot that nobody may use.
    pub const EMPTY: Condition = Condition {
        handle: FREE,
        generation: 0,
        allowed: 0,
        key: 0,
        waiters: ThreadQueue::EMPTY,
        next_free: Id::NONE,
    };
}

impl Condition {
    /// Returns whether `handle` names a condition here that was deleted, and has waiters that have
    /// not been sent away yet.
    pub(crate) fn ends(&self, handle: u64) -> bool {
        let named = Handle::new(Kind::Condition, Handle(handle).index(), self.generation).0;
        self.handle == FREE && self.waiters.head.is_some() && named == handle
    }
}

impl Private for Condition {
    /// A slot whose generations are used up stays empty for ever, so that no old handle becomes
    /// valid again.
    fn is_spare(&self) -> bool {
        self.handle == FREE && self.generation < u32::MAX
    }

    fn link(&mut self) -> &mut ConditionId {
        &mut self.next_free
    }
}

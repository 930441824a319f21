//! Mutexes and counting semaphores.

use crate::ids::{SemaphoreId, SemaphoreTag, ThreadId};
use crate::objects::thread::{Thread, ThreadQueue};
use crate::pool::{FREE, Id, Pooled, Private};
use diapason_abi::call::OWNER_DIED;
use diapason_abi::{Handle, Kind};

/// One semaphore slot, declared or private.
pub struct Semaphore {
    /// The semaphore's handle, or [`FREE`] while it does not exist.
    pub handle: u64,
    pub(crate) generation: u32,
    /// Processes that may use it.
    pub(crate) allowed: u64,
    /// The semaphore's name; 0 for a private slot.
    pub(crate) key: u64,
    /// Count it is created with (declared ones), or `MUTEX`.
    pub(crate) initial: u64,
    pub mutex: bool,
    /// The number of times the semaphore can be taken without waiting: 0 or 1 for a mutex.
    pub count: u32,
    /// The owner of the mutex.
    pub owner: ThreadId,
    /// An owner ended while holding it and nobody has been told.
    pub(crate) owner_died: bool,
    /// The mutex its owner took before this one and still holds; of a free place, the next one.
    pub(crate) next_held: SemaphoreId,
    /// The threads that wait for a counting semaphore, most urgent first.
    pub(crate) waiters: ThreadQueue,
}

impl Pooled for Semaphore {
    type Tag = SemaphoreTag;
}

impl Semaphore {
    /// A slot that nobody may use.
    pub const EMPTY: Semaphore = Semaphore {
        handle: FREE,
        generation: 0,
        allowed: 0,
        key: 0,
        initial: 0,
        mutex: false,
        count: 0,
        owner: Id::NONE,
        owner_died: false,
        next_held: Id::NONE,
        waiters: ThreadQueue::EMPTY,
    };

    /// Hands this mutex to `thread`. The mutex is free and has the id `own`; the thread has the id
    /// `owner`, waits for the mutex and has no alarm set.
    #[inline(always)]
    pub(crate) fn hand_to(&mut self, own: SemaphoreId, thread: &mut Thread, owner: ThreadId) {
        self.count = 0;
        self.owner = owner;
        self.next_held = core::mem::replace(&mut thread.held, own);
        if thread.result == 0 && core::mem::replace(&mut self.owner_died, false) {
            thread.result = OWNER_DIED;
        }
        thread.has_result = true;
        thread.wait = thread.after;
    }
}

impl Semaphore {
    /// Returns whether `handle` names a semaphore here that was deleted, and has waiters that have
    /// not been sent away yet.
    pub(crate) fn ends(&self, handle: u64) -> bool {
        let named = Handle::new(Kind::Semaphore, Handle(handle).index(), self.generation).0;
        self.handle == FREE && self.waiters.head.is_some() && named == handle
    }
}

impl Private for Semaphore {
    /// A slot whose generations are used up stays empty for ever, so that no old handle becomes
    /// valid again.
    fn is_spare(&self) -> bool {
        self.handle == FREE && self.generation < u32::MAX
    }

    fn link(&mut self) -> &mut SemaphoreId {
        &mut self.next_held
    }
}

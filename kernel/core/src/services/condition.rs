//! Condition variables: wait for a signal without holding the mutex, hold it again afterwards.
//!
//! A signal with nobody waiting has no effect. A woken thread does not run to find the mutex taken:
//! it has its place again, and the holder of the mutex runs there first.

use crate::ids::{ConditionId, ThreadId};
use crate::kernel::{Flow, Kernel, Refused, Step};
use crate::objects::thread::{ThreadQueue, Wait};
use crate::pool::{FREE, Id, Private};
use crate::services::end::Left;
use diapason_abi::call::PARTIAL;
use diapason_abi::{Errno, Handle, Key, Kind, Nanos, SIGNAL_BATCH, encode_result};
use diapason_costs::Round;

impl Kernel<'_> {
    #[inline(always)]
    pub(crate) fn condition(&self, handle: u64) -> Option<ConditionId> {
        let c = self.conditions.get(handle as u16)?;
        let named = c.handle == handle && c.allowed & self.grant != 0;
        named.then_some(Id::new(handle as u16))
    }

    /// The condition for the long ways, or why it is refused.
    #[inline(never)]
    pub(crate) fn find_condition(&self, handle: u64) -> Result<ConditionId, Refused> {
        self.condition(handle).ok_or_else(|| {
            let slot = self.conditions.get(handle as u16);
            let mine = slot.filter(|c| c.allowed & self.grant != 0);
            let generation = mine.map(|c| c.generation);
            self.stale_or_misused(Handle(handle), Kind::Condition, generation)
        })
    }

    pub(crate) fn cv_create(&mut self, key: u64) -> Step {
        let id = if key == Key::PRIVATE.0 {
            let p = &mut self.processes[self.process];
            p.made = true;
            p.conditions.take(&mut self.conditions).ok_or(Refused::Errno(Errno::Exhausted))?
        } else {
            let named = self.named_conditions;
            self.granted_among(&self.conditions, named, key, |c| (c.key, c.allowed))?
        };
        if self.conditions[id].waiters.head.is_some() && self.conditions[id].handle == FREE {
            // Its deletion was not brought to an end.
            self.wake_for_good(id);
            return Err(Refused::Errno(Errno::Busy));
        }
        let c = &mut self.conditions[id];
        if c.handle == FREE {
            if !c.is_spare() {
                return Err(Refused::Errno(Errno::Exhausted));
            }
            c.generation += 1;
            c.handle = Handle::new(Kind::Condition, id.index(), c.generation).0;
            c.waiters = ThreadQueue::EMPTY;
        }
        Ok(Flow::Same(c.handle))
    }

    /// `CvDelete(condition)`. It is gone at once, but an entry sends only a few waiters away: while
    /// there are more, the call is to be repeated.
    pub(crate) fn cv_delete(&mut self, handle: u64) -> Step {
        let id = match self.conditions.get(handle as u16) {
            Some(c) if c.ends(handle) && c.allowed & self.grant != 0 => Id::new(handle as u16),
            _ => self.find_condition(handle)?,
        };
        let nobody = self.conditions[id].waiters.is_empty();
        self.conditions[id].handle = FREE;
        if !self.wake_for_good(id) {
            return Ok(Flow::Done(PARTIAL));
        }
        if self.conditions[id].key == Key::PRIVATE.0 {
            let own = &mut self.processes[self.process].conditions;
            own.give_back(&mut self.conditions, id);
        }
        Ok(if nobody { Flow::Same(0) } else { Flow::Done(0) })
    }

    /// Gives the waiters of a condition that is gone `Gone`, with their mutex. Returns whether
    /// none is left.
    fn wake_for_good(&mut self, id: ConditionId) -> bool {
        let (gone, mut left) = (encode_result(Err(Errno::Gone)), Left(self.stage));
        while self.conditions[id].waiters.head.is_some() {
            if !left.take(Round::SendAway) {
                return false;
            }
            self.wake_first(id, gone);
        }
        true
    }

    /// The most urgent waiter gets its mutex back, or in line for it.
    fn wake_first(&mut self, id: ConditionId, result: u64) {
        let thread = self.conditions[id].waiters.head;
        self.conditions[id].waiters.remove(&mut self.threads, thread);
        self.reacquire(thread, result);
    }

    /// A waiter gives up.
    pub(crate) fn leave_condition(&mut self, thread: ThreadId, id: ConditionId) {
        self.conditions[id].waiters.remove(&mut self.threads, thread);
    }

    pub(crate) fn cv_wait(&mut self, handle: u64, mutex: u64, deadline: Nanos) -> Step {
        let id = self.find_condition(handle)?;
        let mutex = self.find_semaphore(mutex)?;
        let thread = self.running();
        if self.semaphores[mutex].owner != thread {
            return Err(Refused::Errno(Errno::NotOwner));
        }
        self.may_wait(deadline)?;
        self.release(mutex)?;
        self.block(thread, Wait::Condition(id), Wait::Nothing, deadline);
        // The handle names one life of the mutex's slot: a signal may come after its deletion.
        self.threads[thread].wanted = self.semaphores[mutex].handle;
        self.conditions[id].waiters.insert_by_urgency(&mut self.threads, thread);
        Ok(Flow::Away)
    }

    /// `CvSignal`, when nobody waits.
    #[inline(always)]
    pub(crate) fn quick_signal(&self, handle: u64) -> Option<u64> {
        let id = self.condition(handle)?;
        self.conditions[id].waiters.is_empty().then_some(0)
    }

    pub(crate) fn cv_signal(&mut self, handle: u64, most: u64) -> Step {
        let id = self.find_condition(handle)?;
        let mut woken = 0;
        while woken < most.min(SIGNAL_BATCH as u64) && !self.conditions[id].waiters.is_empty() {
            self.wake_first(id, 0);
            woken += 1;
        }
        Ok(Flow::Done(woken))
    }
}

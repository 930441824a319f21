//! Semaphores: mutexes with an owner and inheritance, and counting semaphores.
//!
//! A thread that waits for a mutex keeps its place in the ready queue, and the owner runs in it
//! (`helping`). Therefore a mutex keeps no list of waiters, and unlocking it gives nothing back. A
//! thread that waits for a counting semaphore is in its list, most urgent first.

use crate::ids::{SemaphoreId, ThreadId};
use crate::kernel::{Flow, Kernel, Refused, Step};
use crate::objects::thread::{ThreadQueue, Wait};
use crate::pool::{FREE, Id, Private};
use crate::services::end::Left;
use crate::walks::walk;
use diapason_abi::call::{MUTEX, OWNER_DIED, PARTIAL};
use diapason_abi::{Errno, Handle, Key, Kind, Nanos};
use diapason_costs::Round;
use diapason_costs::section::LATER_MAX;

impl Kernel<'_> {
    /// The semaphore a handle of the running process names.
    #[inline(always)]
    pub(crate) fn semaphore(&self, handle: u64) -> Option<SemaphoreId> {
        let s = self.semaphores.get(handle as u16)?;
        let named = s.handle == handle && s.allowed & self.grant != 0;
        named.then_some(Id::new(handle as u16))
    }

    /// The semaphore for the long ways, or why it is refused.
    #[inline(never)]
    pub(crate) fn find_semaphore(&self, handle: u64) -> Result<SemaphoreId, Refused> {
        self.semaphore(handle).ok_or_else(|| {
            let slot = self.semaphores.get(handle as u16);
            let mine = slot.filter(|s| s.allowed & self.grant != 0);
            let generation = mine.map(|s| s.generation);
            self.stale_or_misused(Handle(handle), Kind::Semaphore, generation)
        })
    }

    /// `SemCreate(key, initial)`: create it, or find the one that exists.
    pub(crate) fn sem_create(&mut self, key: u64, initial: u64) -> Step {
        let id = if key == Key::PRIVATE.0 {
            let p = &mut self.processes[self.process];
            p.made = true;
            p.semaphores.take(&mut self.semaphores).ok_or(Refused::Errno(Errno::Exhausted))?
        } else {
            let named = self.named_semaphores;
            self.granted_among(&self.semaphores, named, key, |s| (s.key, s.allowed))?
        };
        if self.semaphores[id].waiters.head.is_some() && self.semaphores[id].handle == FREE {
            // Its deletion was not brought to an end.
            self.send_waiters_away(id);
            return Err(Refused::Errno(Errno::Busy));
        }
        let s = &mut self.semaphores[id];
        if s.handle == FREE {
            if !s.is_spare() {
                return Err(Refused::Errno(Errno::Exhausted));
            }
            let initial = if key == Key::PRIVATE.0 { initial } else { s.initial };
            s.generation += 1;
            s.handle = Handle::new(Kind::Semaphore, id.index(), s.generation).0;
            s.mutex = initial == MUTEX;
            s.count = if s.mutex { 1 } else { u32::try_from(initial).unwrap_or(u32::MAX) };
            s.owner = Id::NONE;
            s.owner_died = false;
            s.waiters = ThreadQueue::EMPTY;
        }
        Ok(Flow::Same(s.handle))
    }

    /// `SemDelete(semaphore)`. It is gone at once, but an entry sends only a few waiters away:
    /// while there are more, the call is to be repeated.
    pub(crate) fn sem_delete(&mut self, handle: u64) -> Step {
        let id = match self.semaphores.get(handle as u16) {
            Some(s) if s.ends(handle) && s.allowed & self.grant != 0 => Id::new(handle as u16),
            _ => self.find_semaphore(handle)?,
        };
        let owner = self.semaphores[id].owner;
        if owner.is_some() && !self.disown(id) {
            return Err(Refused::Errno(Errno::Busy));
        }
        let nobody = owner.is_none() && self.semaphores[id].waiters.is_empty();
        self.semaphores[id].handle = FREE;
        if !self.send_waiters_away(id) {
            return Ok(Flow::Done(PARTIAL));
        }
        if owner.is_some() {
            self.unpark_all(self.end_of_waits(owner));
        }
        if self.semaphores[id].key == Key::PRIVATE.0 {
            let own = &mut self.processes[self.process].semaphores;
            own.give_back(&mut self.semaphores, id);
        }
        Ok(if nobody { Flow::Same(0) } else { Flow::Done(0) })
    }

    /// The waiters of a semaphore that is gone learn of it; those of a mutex do when their turn
    /// comes. Returns whether none is left.
    fn send_waiters_away(&mut self, id: SemaphoreId) -> bool {
        let mut left = Left(self.stage);
        while self.semaphores[id].waiters.head.is_some() {
            if !left.take(Round::SendAway) {
                return false;
            }
            self.send_away(self.semaphores[id].waiters.head, Errno::Gone);
        }
        true
    }

    /// The running thread takes a semaphore if it is free. Returns what the lock call returns.
    #[inline(always)]
    fn try_take(&mut self, id: SemaphoreId) -> Option<u64> {
        let thread = self.scheduler.running;
        let s = &mut self.semaphores[id];
        if s.count == 0 {
            return None;
        }
        let t = &mut self.threads[thread];
        t.wait = Wait::Nothing;
        if s.mutex {
            s.count = 0;
            s.owner = thread;
            s.next_held = core::mem::replace(&mut t.held, id);
            return Some(if core::mem::replace(&mut s.owner_died, false) { OWNER_DIED } else { 0 });
        }
        s.count -= 1;
        Some(0)
    }

    /// Its owner no longer holds it: usually the one taken last is let go first. False, and nothing
    /// is done, if the owner took too many others later and still holds them.
    #[inline(never)]
    fn disown(&mut self, id: SemaphoreId) -> bool {
        let s = &mut self.semaphores[id];
        let (owner, next) = (s.owner, s.next_held);
        let held = &mut self.threads[owner].held;
        if *held == id {
            *held = next;
        } else {
            let first = *held;
            if !self.unlink_held(first, id, next) {
                return false;
            }
        }
        self.semaphores[id].owner = Id::NONE;
        true
    }

    #[cold]
    fn unlink_held(&mut self, first: SemaphoreId, id: SemaphoreId, next: SemaphoreId) -> bool {
        let mut at = first;
        for _ in 0..LATER_MAX {
            walk(Round::Link, 1);
            let below = self.semaphores[at].next_held;
            if below == id {
                self.semaphores[at].next_held = next;
                return true;
            }
            at = below;
        }
        false
    }

    /// `SemLock`, when it can be done without waiting.
    #[inline(always)]
    pub(crate) fn quick_lock(&mut self, handle: u64) -> Option<u64> {
        let id = self.semaphore(handle)?;
        self.try_take(id)
    }

    /// `SemUnlock`, when nobody waits who is more urgent: the running thread is in its own place.
    #[inline(always)]
    pub(crate) fn quick_unlock(&mut self, handle: u64) -> Option<u64> {
        let id = self.semaphore(handle)?;
        let s = &mut self.semaphores[id];
        let thread = self.scheduler.running;
        if s.owner == thread {
            if self.scheduler.place != thread {
                return None;
            }
            let held = &mut self.threads[thread].held;
            // Let go in another order than taken: the list is mended on the long path.
            if *held != id {
                return None;
            }
            s.count = 1;
            s.owner = Id::NONE;
            *held = s.next_held;
        } else if s.mutex || !s.waiters.is_empty() {
            return None;
        } else {
            s.count = s.count.checked_add(1)?;
        }
        Some(0)
    }

    /// `SemLock(semaphore, deadline, hint)` and `SemTryLock(semaphore)`.
    #[inline(never)]
    pub(crate) fn sem_lock(&mut self, handle: u64, deadline: Nanos, hint: u64) -> Step {
        let id = self.find_semaphore(handle)?;
        if let Some(result) = self.try_take(id) {
            return Ok(Flow::Done(result));
        }
        self.may_wait(deadline)?;
        let thread = self.running();
        let s = &self.semaphores[id];
        let (mutex, owner) = (s.mutex, s.owner);
        let after = self.hinted(hint);
        if mutex {
            if self.end_of_waits(owner) == thread {
                return Err(Refused::Errno(Errno::Deadlock));
            }
            self.threads[thread].wanted = handle;
            self.wait_in_place(thread, Wait::Mutex(id), after, deadline);
        } else {
            self.block(thread, Wait::Semaphore(id), after, deadline);
            self.semaphores[id].waiters.insert_by_urgency(&mut self.threads, thread);
        }
        Ok(Flow::Away)
    }

    /// From owner to owner of the mutexes they wait for: the last.
    #[inline(always)]
    pub(crate) fn end_of_waits(&self, first: ThreadId) -> ThreadId {
        if let Wait::Mutex(_) = self.threads[first].wait { self.end_of_chain(first) } else { first }
    }

    #[inline(always)]
    pub(crate) fn sem_unlock(&mut self, handle: u64) -> Step {
        let id = self.find_semaphore(handle)?;
        let s = &mut self.semaphores[id];
        if s.mutex {
            if s.owner != self.scheduler.running {
                return Err(Refused::Errno(Errno::NotOwner));
            }
            self.release(id)?;
        } else if s.waiters.is_empty() {
            s.count = s.count.checked_add(1).ok_or(Refused::Errno(Errno::Full))?;
        } else {
            let waiter = s.waiters.head;
            s.waiters.remove(&mut self.threads, waiter);
            self.wake(waiter, 0);
        }
        Ok(Flow::Done(0))
    }

    /// The owner of a mutex lets it go: the waiter that is chosen first takes it.
    #[inline(always)]
    pub(crate) fn release(&mut self, id: SemaphoreId) -> Result<(), Refused> {
        if !self.disown(id) {
            return Err(Refused::Errno(Errno::Busy));
        }
        self.semaphores[id].count = 1;
        Ok(())
    }

    /// A thread ends while holding mutexes. Returns whether it has let all go.
    #[inline(always)]
    pub(crate) fn abandon_held(&mut self, thread: ThreadId, left: &mut Left) -> bool {
        while self.threads[thread].held.is_some() {
            if !left.take(Round::Release) {
                return false;
            }
            let id = self.threads[thread].held;
            self.semaphores[id].owner_died = true;
            // It is the one taken last.
            let _ = self.release(id);
        }
        true
    }

    /// A thread that waited on a condition wants its mutex again; then its call returns `result`,
    /// or an error, without the mutex, if that was deleted meanwhile or waiting for it would close
    /// a circle.
    pub(crate) fn reacquire(&mut self, thread: ThreadId, result: u64) {
        let id = self.threads[thread].wanted_mutex();
        let s = &self.semaphores[id];
        if s.handle != self.threads[thread].wanted {
            self.wake_with(thread, Errno::Gone);
        } else if s.owner.is_some() && self.end_of_waits(s.owner) == thread {
            self.wake_with(thread, Errno::Deadlock);
        } else {
            self.cancel_alarm(thread);
            let t = &mut self.threads[thread];
            t.wait = Wait::Mutex(id);
            t.result = result;
            self.give_place(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::semaphore::Semaphore;

    #[test]
    fn a_worn_out_slot_is_not_given_out_again() {
        let worn = Semaphore { generation: u32::MAX, ..Semaphore::EMPTY };
        let nearly = Semaphore { generation: u32::MAX - 1, ..Semaphore::EMPTY };
        assert!(nearly.is_spare() && !worn.is_spare());
    }
}

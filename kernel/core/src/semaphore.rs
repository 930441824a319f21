//! Semaphores: mutexes with an owner and priority inheritance, and counting semaphores.
//!
//! The owner of a mutex has at least the priority of everybody who waits for any mutex it holds,
//! through chains of owners that wait themselves. That is one rule, kept by one function,
//! [`Kernel::update_priority`], which is called whenever a waiter comes or goes.

use crate::kernel::{Flow, Kernel, Refused, Step};
use crate::pool::{FREE, Id};
use crate::queue::ThreadQueue;
use crate::thread::{State, ThreadId, Wait};
use diapason_abi::call::{MUTEX, OWNER_DIED};
use diapason_abi::{Errno, Handle, Key, Kind, Nanos};

/// Names a semaphore.
pub type SemaphoreId = Id<Semaphore>;

/// One semaphore slot, declared or private.
pub struct Semaphore {
    /// Its handle, or [`FREE`] while it does not exist.
    pub handle: u64,
    pub(crate) generation: u32,
    /// Processes that may use it.
    pub(crate) allowed: u64,
    /// Its name; 0 for a private slot.
    pub(crate) key: u64,
    /// Count it is created with (declared ones), or `MUTEX`.
    pub(crate) initial: u64,
    /// Has an owner.
    pub mutex: bool,
    /// How often it can be taken without waiting: 0 or 1 for a mutex.
    pub count: u32,
    /// Who holds the mutex.
    pub owner: ThreadId,
    /// An owner ended while holding it and nobody has been told.
    pub(crate) owner_died: bool,
    /// The mutex its owner took before this one and still holds.
    pub(crate) next_held: SemaphoreId,
    /// Who waits, most urgent first.
    pub(crate) waiters: ThreadQueue,
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

    /// May a new object live here? A slot whose generations are used up stays empty for ever, so
    /// that no old handle becomes valid again.
    fn is_spare(&self) -> bool {
        self.handle == FREE && self.generation < u32::MAX
    }
}

impl Kernel<'_> {
    /// The semaphore a handle of the running process names.
    #[inline(always)]
    pub(crate) fn semaphore(&self, handle: u64) -> Result<SemaphoreId, Refused> {
        match self.semaphores.get(handle as u16) {
            Some(s) if s.handle == handle && s.allowed & self.grant != 0 => {
                Ok(Id::new(handle as u16))
            }
            slot => {
                let mine = slot.filter(|s| s.allowed & self.grant != 0);
                let kind = Kind::Semaphore;
                Err(self.stale_or_misused(Handle(handle), kind, mine.map(|s| s.generation)))
            }
        }
    }

    /// `SemCreate(key, initial)`: create it, or find the one that exists.
    pub(crate) fn sem_create(&mut self, key: u64, initial: u64) -> Step {
        let id = if key == Key::PRIVATE.0 {
            let own = self.processes[self.process].semaphores;
            let free = own.ids().find(|s| self.semaphores[*s].is_spare());
            free.ok_or(Refused::Errno(Errno::Exhausted))?
        } else {
            let found = self.semaphores.ids().find(|s| self.semaphores[*s].key == key);
            self.granted(found, key, |kernel, s| kernel.semaphores[s].allowed)?
        };
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
        Ok(Flow::Done(s.handle))
    }

    /// `SemDelete(semaphore)`.
    pub(crate) fn sem_delete(&mut self, handle: u64) -> Step {
        let id = self.semaphore(handle)?;
        self.destroy_semaphore(id);
        Ok(Flow::Done(0))
    }

    /// End a semaphore that exists: its waiters learn that it is gone, its owner gives back what
    /// they lent.
    pub(crate) fn destroy_semaphore(&mut self, id: SemaphoreId) {
        self.semaphores[id].handle = FREE;
        while self.semaphores[id].waiters.head.is_some() {
            let waiter = self.semaphores[id].waiters.head;
            self.semaphores[id].waiters.remove(&mut self.threads, waiter);
            self.wake_with(waiter, Errno::Gone);
        }
        let owner = self.semaphores[id].owner;
        if owner.is_some() {
            self.disown(id);
            self.update_priority(owner);
        }
    }

    /// Take a semaphore that is free. Returns what the lock call returns.
    #[inline(always)]
    pub(crate) fn take(&mut self, id: SemaphoreId, thread: ThreadId) -> u64 {
        let s = &mut self.semaphores[id];
        s.count -= 1;
        if s.mutex { self.own(id, thread, 0) } else { 0 }
    }

    /// `thread` holds the mutex from now on. Returns what its call returns: `result`, or if that is
    /// zero whether an owner died; else the next owner is told.
    #[inline(always)]
    fn own(&mut self, id: SemaphoreId, thread: ThreadId, result: u64) -> u64 {
        let s = &mut self.semaphores[id];
        s.owner = thread;
        s.next_held = core::mem::replace(&mut self.threads[thread].held, id);
        let tell = result == 0 && core::mem::replace(&mut s.owner_died, false);
        if tell { OWNER_DIED } else { result }
    }

    /// Its owner no longer holds it: usually the one taken last is let go first.
    #[inline(always)]
    fn disown(&mut self, id: SemaphoreId) {
        let s = &mut self.semaphores[id];
        let (owner, next) = (s.owner, s.next_held);
        s.owner = Id::NONE;
        let held = &mut self.threads[owner].held;
        if *held == id {
            *held = next;
        } else {
            let first = *held;
            self.unlink_held(first, id, next);
        }
    }

    #[cold]
    fn unlink_held(&mut self, first: SemaphoreId, id: SemaphoreId, next: SemaphoreId) {
        let mut at = first;
        while self.semaphores[at].next_held != id {
            at = self.semaphores[at].next_held;
        }
        self.semaphores[at].next_held = next;
    }

    /// `SemLock`, when it can be done without waiting.
    #[inline(always)]
    pub(crate) fn quick_lock(&mut self, handle: u64) -> Option<u64> {
        let id = self.semaphore(handle).ok()?;
        (self.semaphores[id].count > 0).then(|| self.take(id, self.running()))
    }

    /// `SemUnlock`, when nobody waits.
    #[inline(always)]
    pub(crate) fn quick_unlock(&mut self, handle: u64) -> Option<u64> {
        let id = self.semaphore(handle).ok()?;
        let s = &mut self.semaphores[id];
        if !s.waiters.is_empty() {
            return None;
        }
        let thread = self.scheduler.running;
        if s.owner == thread {
            let held = &mut self.threads[thread].held;
            // Let go in another order than taken: the list is mended on the long path.
            if *held != id {
                return None;
            }
            s.count = 1;
            s.owner = Id::NONE;
            *held = s.next_held;
        } else if s.mutex {
            return None;
        } else {
            s.count = s.count.checked_add(1)?;
        }
        Some(0)
    }

    /// `SemLock(semaphore, deadline)` and `SemTryLock(semaphore)`.
    #[inline(always)]
    pub(crate) fn sem_lock(&mut self, handle: u64, deadline: Nanos) -> Step {
        let id = self.semaphore(handle)?;
        let thread = self.running();
        let s = &self.semaphores[id];
        if s.count > 0 {
            return Ok(Flow::Done(self.take(id, thread)));
        }
        self.may_wait(deadline)?;
        if s.mutex && (s.owner == thread || self.waits_for(s.owner, thread)) {
            return Err(Refused::Errno(Errno::Deadlock));
        }
        self.block(thread, Wait::Semaphore(id), deadline);
        self.join_waiters(id, thread);
        Ok(Flow::Away)
    }

    /// Does `first`, through owners of mutexes, wait for `thread`?
    #[inline(always)]
    fn waits_for(&self, first: ThreadId, thread: ThreadId) -> bool {
        let mut owner = first;
        while owner.is_some() && owner != thread {
            owner = match self.threads[owner].wait {
                Wait::Semaphore(s) => self.semaphores[s].owner,
                _ => return false,
            };
        }
        owner.is_some()
    }

    #[inline(always)]
    fn join_waiters(&mut self, id: SemaphoreId, thread: ThreadId) {
        let s = &mut self.semaphores[id];
        s.waiters.insert_by_priority(&mut self.threads, thread);
        let owner = s.owner;
        if owner.is_some() {
            self.lend(owner, self.threads[thread].vcpu.priority);
        }
    }

    /// A new waiter can only raise its owner, and the owners that one waits for.
    fn lend(&mut self, first: ThreadId, priority: u8) {
        let mut owner = first;
        while owner.is_some() && self.threads[owner].vcpu.priority < priority {
            owner = self.set_priority(owner, priority);
        }
    }

    /// A waiter gives up.
    pub(crate) fn leave_semaphore(&mut self, thread: ThreadId, id: SemaphoreId) {
        self.semaphores[id].waiters.remove(&mut self.threads, thread);
        let owner = self.semaphores[id].owner;
        if owner.is_some() {
            self.update_priority(owner);
        }
    }

    /// `SemUnlock(semaphore)`.
    #[inline(always)]
    pub(crate) fn sem_unlock(&mut self, handle: u64) -> Step {
        let id = self.semaphore(handle)?;
        let s = &mut self.semaphores[id];
        if s.mutex {
            if s.owner != self.scheduler.running {
                return Err(Refused::Errno(Errno::NotOwner));
            }
            self.release(id);
        } else if s.waiters.is_empty() {
            s.count = s.count.checked_add(1).ok_or(Refused::Errno(Errno::Full))?;
        } else {
            let waiter = s.waiters.head;
            s.waiters.remove(&mut self.threads, waiter);
            self.wake(waiter, 0);
        }
        Ok(Flow::Done(0))
    }

    /// The owner of a mutex lets it go: the most urgent waiter has it next.
    pub(crate) fn release(&mut self, id: SemaphoreId) {
        let owner = self.semaphores[id].owner;
        self.disown(id);
        let next = self.semaphores[id].waiters.head;
        if next.is_none() {
            self.semaphores[id].count = 1;
            return;
        }
        self.semaphores[id].waiters.remove(&mut self.threads, next);
        let result = self.own(id, next, self.threads[next].result);
        self.wake(next, result);
        let giver = &self.threads[owner];
        if giver.vcpu.priority > giver.vcpu.base {
            if giver.held.is_none() {
                // What it was lent came through this mutex alone; it runs or ends, so it waits for
                // none.
                self.set_priority(owner, giver.vcpu.base);
            } else {
                self.update_priority(owner);
            }
        }
    }

    /// A thread ends while holding mutexes.
    pub(crate) fn abandon_held(&mut self, thread: ThreadId) {
        while self.threads[thread].held.is_some() {
            let id = self.threads[thread].held;
            self.semaphores[id].owner_died = true;
            self.release(id);
        }
    }

    /// A thread that waited on a condition holds its mutex again, or waits for it. Its call will
    /// return `result`; or an error, without the mutex, if that was deleted meanwhile or waiting
    /// for it would close a cycle.
    pub(crate) fn reacquire(&mut self, thread: ThreadId, id: SemaphoreId, result: u64) {
        self.alarms.cancel(thread.index());
        let s = &self.semaphores[id];
        let generation = self.threads[thread].result;
        if s.handle == FREE || u64::from(s.generation) != generation {
            self.wake_with(thread, Errno::Gone);
        } else if self.waits_for(s.owner, thread) {
            self.wake_with(thread, Errno::Deadlock);
        } else if s.count > 0 {
            self.semaphores[id].count = 0;
            let result = self.own(id, thread, result);
            self.wake(thread, result);
        } else {
            self.threads[thread].wait = Wait::Semaphore(id);
            self.threads[thread].result = result;
            self.join_waiters(id, thread);
        }
    }

    /// Give `thread` the priority it should have: its own, or that of the most urgent thread that
    /// waits for a mutex it holds. If it waits for a mutex itself, so for that one's owner, and so
    /// on; the chain has no cycle, because `sem_lock` refuses to close one.
    pub(crate) fn update_priority(&mut self, first: ThreadId) {
        let mut thread = first;
        while thread.is_some() {
            let priority = self.due_priority(thread);
            if priority == self.threads[thread].vcpu.priority {
                return;
            }
            thread = self.set_priority(thread, priority);
        }
    }

    fn due_priority(&self, thread: ThreadId) -> u8 {
        let mut priority = self.threads[thread].vcpu.base;
        let mut held = self.threads[thread].held;
        while held.is_some() {
            let waiter = self.semaphores[held].waiters.head;
            if waiter.is_some() {
                priority = priority.max(self.threads[waiter].vcpu.priority);
            }
            held = self.semaphores[held].next_held;
        }
        priority
    }

    /// Change a priority and the thread's place in whatever list it is in. Returns the owner of
    /// the mutex it waits for, whose priority may have to follow.
    fn set_priority(&mut self, thread: ThreadId, priority: u8) -> ThreadId {
        if self.threads[thread].state == State::Ready {
            self.scheduler.change_priority(&mut self.threads, thread, priority);
            return Id::NONE;
        }
        self.threads[thread].vcpu.priority = priority;
        let (queue, owner) = match self.threads[thread].wait {
            Wait::Semaphore(s) => {
                let s = &mut self.semaphores[s];
                (&mut s.waiters, s.owner)
            }
            Wait::Condition(c, _) => (&mut self.conditions[c].waiters, Id::NONE),
            Wait::Receive(m) => (&mut self.mailboxes[m].receivers, Id::NONE),
            Wait::Send(m) => (&mut self.mailboxes[m].senders, Id::NONE),
            Wait::Nothing | Wait::Time | Wait::Event(_) | Wait::Join(_) => return Id::NONE,
        };
        queue.remove(&mut self.threads, thread);
        queue.insert_by_priority(&mut self.threads, thread);
        owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worn_out_slot_is_not_given_out_again() {
        let worn = Semaphore { generation: u32::MAX, ..Semaphore::EMPTY };
        let nearly = Semaphore { generation: u32::MAX - 1, ..Semaphore::EMPTY };
        assert!(nearly.is_spare() && !worn.is_spare());
    }
}

//! Semaphores and conditions of the model.

use super::*;
use diapason_abi::CallNumber as Call;
use diapason_abi::call::{MUTEX, OWNER_DIED};

impl Model {
    fn semaphore(&self, word: u64) -> Result<usize, Outcome> {
        self.lookup(Kind::Semaphore, word, |model, index| {
            let s = model.semaphores.get(index)?;
            Some((model.granted(s.allowed), s.alive, s.generation))
        })
    }

    fn condition(&self, word: u64) -> Result<usize, Outcome> {
        self.lookup(Kind::Condition, word, |model, index| {
            let c = model.conditions.get(index)?;
            Some((model.granted(c.allowed), c.alive, c.generation))
        })
    }

    /// Returns whether `thread` holds this semaphore, or waits behind its owners.
    fn waits_behind(&self, semaphore: usize, thread: usize) -> bool {
        let owner = self.semaphores[semaphore].owner;
        owner.is_some_and(|owner| self.end_of_chain(owner) == thread)
    }

    /// From owner to owner, to one that waits for no mutex that somebody holds.
    pub fn end_of_chain(&self, thread: usize) -> usize {
        self.awaited(thread).map_or(thread, |owner| self.end_of_chain(owner))
    }

    /// The owner of the mutex that a thread waits for.
    pub fn awaited(&self, thread: usize) -> Option<usize> {
        let (id, generation) = match self.threads[thread].life {
            Life::Blocked(Wait::Mutex(id, generation, _)) => (id, generation),
            Life::Blocked(Wait::Answer(_, mutex, ..)) => mutex,
            _ => return None,
        };
        let s = &self.semaphores[id];
        if s.alive && s.generation == generation { s.owner } else { None }
    }

    /// Ends the wait of a thread whose mutex is free, or gone.
    pub fn take_mutex(&mut self, thread: usize, id: usize, generation: u32, result: u64) {
        let s = &self.semaphores[id];
        let result = if s.alive && s.generation == generation {
            self.own(id, thread, result)
        } else {
            error(Errno::Gone)
        };
        self.go_on(thread, result);
    }

    /// The mutex a hint means, if it means one.
    pub fn hinted(&self, word: u64) -> Option<usize> {
        self.semaphore(word).ok().filter(|id| self.semaphores[*id].mutex)
    }

    /// `thread` has the mutex now; returns what its call returns.
    fn own(&mut self, id: usize, thread: usize, result: u64) -> u64 {
        let s = &mut self.semaphores[id];
        (s.owner, s.count) = (Some(thread), 0);
        self.threads[thread].held.push(id);
        if result == 0 && std::mem::take(&mut s.owner_died) { OWNER_DIED } else { result }
    }

    fn disown(&mut self, id: usize) {
        if let Some(owner) = self.semaphores[id].owner.take() {
            self.threads[owner].held.retain(|held| *held != id);
        }
    }

    /// The owner lets a mutex go.
    fn release(&mut self, id: usize) {
        self.disown(id);
        self.semaphores[id].count = 1;
    }

    /// An ending thread lets everything go, the latest first.
    pub fn abandon(&mut self, thread: usize) {
        while let Some(id) = self.threads[thread].held.last().copied() {
            self.semaphores[id].owner_died = true;
            self.release(id);
        }
    }

    /// A thread that waited on a condition wants its mutex again; it is in no queue.
    pub fn reacquire(&mut self, thread: usize, id: usize, generation: u32, result: u64) {
        let s = &self.semaphores[id];
        if !s.alive || s.generation != generation {
            self.wake(thread, error(Errno::Gone));
        } else if self.waits_behind(id, thread) {
            self.wake(thread, error(Errno::Deadlock));
        } else {
            self.threads[thread].due = None;
            self.threads[thread].life = Life::Blocked(Wait::Mutex(id, generation, result));
            self.give_place(thread);
        }
    }

    fn wake_one(&mut self, id: usize, result: u64) -> bool {
        let Some(thread) = self.first(&self.conditions[id].waiters) else { return false };
        self.conditions[id].waiters.retain(|t| *t != thread);
        let Life::Blocked(Wait::Condition(_, mutex, generation)) = self.threads[thread].life else {
            panic!("a waiter waits")
        };
        self.reacquire(thread, mutex, generation, result);
        true
    }

    pub(super) fn sync_call(&mut self, call: Call, a: [u64; 5]) -> Step {
        let caller = self.caller();
        match call {
            Call::SemCreate => self.sem_create(a[0], a[1]),
            Call::SemDelete => {
                let id = self.semaphore(a[0])?;
                self.destroy_semaphore(id);
                if self.semaphores[id].key == 0 {
                    self.freed.push((Kind::Semaphore, id));
                }
                Ok(Outcome::Done(0))
            }
            Call::SemLock => self.sem_lock(a[0], a[1], a[2]),
            Call::SemTryLock => self.sem_lock(a[0], 0, u64::MAX),
            Call::SemUnlock => self.sem_unlock(a[0]),
            Call::CvCreate => self.cv_create(a[0]),
            Call::CvDelete => {
                let id = self.condition(a[0])?;
                self.conditions[id].alive = false;
                while self.wake_one(id, error(Errno::Gone)) {}
                if self.conditions[id].key == 0 {
                    self.freed.push((Kind::Condition, id));
                }
                Ok(Outcome::Done(0))
            }
            Call::CvWait => {
                let id = self.condition(a[0])?;
                let mutex = self.semaphore(a[1])?;
                if self.semaphores[mutex].owner != Some(caller) {
                    return Err(Outcome::Refused(Errno::NotOwner));
                }
                self.may_wait(a[2])?;
                self.release(mutex);
                let generation = self.semaphores[mutex].generation;
                self.block(caller, Wait::Condition(id, mutex, generation), None, a[2]);
                self.conditions[id].waiters.push(caller);
                Ok(Outcome::Away)
            }
            _ => {
                let id = self.condition(a[0])?;
                let woken = (0..a[1].min(8)).take_while(|_| self.wake_one(id, 0)).count();
                Ok(Outcome::Done(woken as u64))
            }
        }
    }

    fn sem_create(&mut self, key: u64, initial: u64) -> Step {
        let mine = 1 << self.process();
        let id = if key == 0 {
            let own = |id: &usize| {
                let s = &self.semaphores[*id];
                s.key == 0 && s.allowed == mine
            };
            let own: Vec<_> = (0..self.semaphores.len()).filter(own).collect();
            let free = self.place_of(Kind::Semaphore, &own);
            free.ok_or(Outcome::Refused(Errno::Exhausted))?
        } else {
            let named = self.semaphores.iter().position(|s| s.key == key);
            named.ok_or(Outcome::Misuse(FaultCause::BadGrant, key))?
        };
        let s = &mut self.semaphores[id];
        if !s.alive {
            let initial = if key == 0 { initial } else { s.initial };
            s.alive = true;
            s.generation += 1;
            s.mutex = initial == MUTEX;
            s.count = if s.mutex { 1 } else { initial.min(u64::from(u32::MAX)) as u32 };
            s.owner_died = false;
        }
        Ok(Outcome::Done(handle(Kind::Semaphore, id, s.generation)))
    }

    fn destroy_semaphore(&mut self, id: usize) {
        self.semaphores[id].alive = false;
        while let Some(waiter) = self.first(&self.semaphores[id].waiters) {
            self.semaphores[id].waiters.retain(|t| *t != waiter);
            self.wake(waiter, error(Errno::Gone));
        }
        if let Some(owner) = self.semaphores[id].owner {
            self.disown(id);
            self.unpark_all(self.end_of_chain(owner));
        }
    }

    fn sem_lock(&mut self, word: u64, deadline: u64, hint: u64) -> Step {
        let (id, caller) = (self.semaphore(word)?, self.caller());
        if self.semaphores[id].count > 0 {
            self.threads[caller].hint = None;
            if self.semaphores[id].mutex {
                return Ok(Outcome::Done(self.own(id, caller, 0)));
            }
            self.semaphores[id].count -= 1;
            return Ok(Outcome::Done(0));
        }
        self.may_wait(deadline)?;
        let after = self.hinted(hint);
        if !self.semaphores[id].mutex {
            self.block(caller, Wait::Semaphore(id), after, deadline);
            self.semaphores[id].waiters.push(caller);
            return Ok(Outcome::Away);
        }
        if self.waits_behind(id, caller) {
            return Err(Outcome::Refused(Errno::Deadlock));
        }
        let generation = self.semaphores[id].generation;
        self.wait(caller, Wait::Mutex(id, generation, 0), after, deadline);
        Ok(Outcome::Away)
    }

    fn sem_unlock(&mut self, word: u64) -> Step {
        let (id, caller) = (self.semaphore(word)?, self.caller());
        let s = &mut self.semaphores[id];
        if s.mutex {
            if s.owner != Some(caller) {
                return Err(Outcome::Refused(Errno::NotOwner));
            }
            self.release(id);
        } else if s.waiters.is_empty() {
            s.count = s.count.checked_add(1).ok_or(Outcome::Refused(Errno::Full))?;
        } else if let Some(waiter) = self.first(&self.semaphores[id].waiters) {
            self.semaphores[id].waiters.retain(|t| *t != waiter);
            self.wake(waiter, 0);
        }
        Ok(Outcome::Done(0))
    }

    fn cv_create(&mut self, key: u64) -> Step {
        let mine = 1 << self.process();
        let id = if key == 0 {
            let own = |id: &usize| {
                let c = &self.conditions[*id];
                c.key == 0 && c.allowed == mine
            };
            let own: Vec<_> = (0..self.conditions.len()).filter(own).collect();
            let free = self.place_of(Kind::Condition, &own);
            free.ok_or(Outcome::Refused(Errno::Exhausted))?
        } else {
            let named = self.conditions.iter().position(|c| c.key == key);
            named.ok_or(Outcome::Misuse(FaultCause::BadGrant, key))?
        };
        let c = &mut self.conditions[id];
        c.generation += u32::from(!c.alive);
        c.alive = true;
        Ok(Outcome::Done(handle(Kind::Condition, id, c.generation)))
    }
}

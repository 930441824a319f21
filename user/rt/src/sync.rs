//! Semaphores and condition variables.

use crate::hint::Hint;
use crate::sys::{call1, call2, call3};
use diapason_abi::call::{MUTEX, OWNER_DIED, PARTIAL};
use diapason_abi::{CallNumber, Errno, Key, Nanos, SIGNAL_BATCH};

/// A mutex: one owner, to whom waiters lend their priority.
#[derive(Clone, Copy, Debug)]
pub struct Mutex(u64);

/// The mutex is held; dropping this lets it go.
#[derive(Debug)]
pub struct Guard<'a> {
    mutex: &'a Mutex,
    /// The last owner ended while holding it: what it guards may be inconsistent.
    pub owner_died: bool,
}

impl Mutex {
    /// Returns the declared mutex of this name; the first to ask creates it.
    ///
    /// # Errors
    /// None for a mutex the description grants; without the grant the process ends.
    pub fn open(name: &str) -> Result<Mutex, Errno> {
        call2::<{ CallNumber::SemCreate as u8 }>(Key::new(name).0, MUTEX).map(Mutex)
    }

    /// Returns a mutex of this process only.
    ///
    /// # Errors
    /// `Exhausted` if the process has no free semaphore.
    pub fn private() -> Result<Mutex, Errno> {
        call2::<{ CallNumber::SemCreate as u8 }>(Key::PRIVATE.0, MUTEX).map(Mutex)
    }

    /// Returns the handle as the kernel knows it.
    pub(crate) const fn raw(self) -> u64 {
        self.0
    }

    /// Returns the hint for a blocking call after which this mutex is locked next.
    #[must_use]
    #[inline(always)]
    pub fn hint(&self) -> Hint {
        Hint::handle(self.0)
    }

    /// Holds it, waiting at most until `deadline`.
    ///
    /// # Errors
    /// `TimedOut`, `Gone`, or `Deadlock` if its owner waits for the caller.
    #[inline(always)]
    pub fn lock_until(&self, deadline: Nanos) -> Result<Guard<'_>, Errno> {
        let state = call3::<{ CallNumber::SemLock as u8 }>(self.0, deadline.0, Hint::NONE.raw())?;
        Ok(Guard { mutex: self, owner_died: state == OWNER_DIED })
    }

    /// Locks the mutex.
    ///
    /// # Errors
    /// Returns `Gone` or `Deadlock`.
    #[inline(always)]
    pub fn lock(&self) -> Result<Guard<'_>, Errno> {
        self.lock_until(Nanos::FOREVER)
    }

    /// Holds it if it is free.
    ///
    /// # Errors
    /// `WouldBlock` if it is not.
    pub fn try_lock(&self) -> Result<Guard<'_>, Errno> {
        let state = call1::<{ CallNumber::SemTryLock as u8 }>(self.0)?;
        Ok(Guard { mutex: self, owner_died: state == OWNER_DIED })
    }

    /// Ends it: everybody who waits gets `Gone`.
    ///
    /// # Errors
    /// `Gone` if it was deleted before; `Busy` if its owner holds more than 64 mutexes that it took
    /// later.
    pub fn delete(self) -> Result<(), Errno> {
        while call1::<{ CallNumber::SemDelete as u8 }>(self.0)? == PARTIAL {}
        Ok(())
    }
}

impl From<&Mutex> for Hint {
    #[inline(always)]
    fn from(mutex: &Mutex) -> Hint {
        mutex.hint()
    }
}

impl Drop for Guard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let _ = call1::<{ CallNumber::SemUnlock as u8 }>(self.mutex.0);
    }
}

/// A counting semaphore that programs share.
#[derive(Clone, Copy, Debug)]
pub struct Semaphore(u64);

impl Semaphore {
    /// Returns the declared semaphore of this name; the first to ask creates it.
    ///
    /// # Errors
    /// As for [`Mutex::open`].
    pub fn open(name: &str) -> Result<Semaphore, Errno> {
        call2::<{ CallNumber::SemCreate as u8 }>(Key::new(name).0, 0).map(Semaphore)
    }

    /// Returns a semaphore of this process only.
    ///
    /// # Errors
    /// `Exhausted` if the process has no free semaphore.
    pub fn private(initial: u32) -> Result<Semaphore, Errno> {
        call2::<{ CallNumber::SemCreate as u8 }>(Key::PRIVATE.0, u64::from(initial)).map(Semaphore)
    }

    /// Takes one, waiting at most until `deadline`.
    ///
    /// # Errors
    /// `TimedOut`, `WouldBlock` (deadline zero) or `Gone`.
    #[inline(always)]
    pub fn take(&self, deadline: Nanos) -> Result<(), Errno> {
        self.take_then(deadline, Hint::NONE)
    }

    /// Does what [`Semaphore::take`] does. The thread locks `hint` next.
    ///
    /// # Errors
    /// As for [`Semaphore::take`].
    #[inline(always)]
    pub fn take_then(&self, deadline: Nanos, hint: Hint) -> Result<(), Errno> {
        call3::<{ CallNumber::SemLock as u8 }>(self.0, deadline.0, hint.raw()).map(|_| ())
    }

    /// Gives one: the most urgent waiter has it, or it lasts.
    ///
    /// # Errors
    /// `Full` at the limit of the count, or `Gone`.
    #[inline(always)]
    pub fn give(&self) -> Result<(), Errno> {
        call1::<{ CallNumber::SemUnlock as u8 }>(self.0).map(|_| ())
    }

    /// Ends it: everybody who waits gets `Gone`.
    ///
    /// # Errors
    /// `Gone` if it was deleted before.
    pub fn delete(self) -> Result<(), Errno> {
        while call1::<{ CallNumber::SemDelete as u8 }>(self.0)? == PARTIAL {}
        Ok(())
    }
}

/// A condition variable that programs share.
#[derive(Clone, Copy, Debug)]
pub struct Condition(u64);

impl Condition {
    /// Returns the declared condition of this name.
    ///
    /// # Errors
    /// As for [`Mutex::open`].
    pub fn open(name: &str) -> Result<Condition, Errno> {
        call1::<{ CallNumber::CvCreate as u8 }>(Key::new(name).0).map(Condition)
    }

    /// Returns a condition of this process only.
    ///
    /// # Errors
    /// `Exhausted` if the process has no free condition.
    pub fn private() -> Result<Condition, Errno> {
        call1::<{ CallNumber::CvCreate as u8 }>(Key::PRIVATE.0).map(Condition)
    }

    /// Lets the mutex go, waits for a signal, and holds the mutex again.
    ///
    /// # Errors
    /// `TimedOut` or, if the condition was deleted, `Gone`: the mutex is held again. `Gone` or
    /// `Deadlock` of the mutex: it is not, and the guard's release does nothing.
    pub fn wait(&self, guard: &mut Guard<'_>, deadline: Nanos) -> Result<(), Errno> {
        call3::<{ CallNumber::CvWait as u8 }>(self.0, guard.mutex.0, deadline.0).map(|_| ())
    }

    /// Wakes the most urgent waiter, if there is one.
    ///
    /// # Errors
    /// `Gone` if it was deleted.
    #[inline(always)]
    pub fn signal(&self) -> Result<bool, Errno> {
        call2::<{ CallNumber::CvSignal as u8 }>(self.0, 1).map(|woken| woken > 0)
    }

    /// Wakes everybody who waits, the most urgent first, a few at a time.
    ///
    /// # Errors
    /// `Gone` if it was deleted.
    pub fn broadcast(&self) -> Result<(), Errno> {
        while call2::<{ CallNumber::CvSignal as u8 }>(self.0, u64::MAX)? == SIGNAL_BATCH as u64 {}
        Ok(())
    }

    /// Deletes it.
    ///
    /// # Errors
    /// `Gone` if it was deleted before.
    pub fn delete(self) -> Result<(), Errno> {
        while call1::<{ CallNumber::CvDelete as u8 }>(self.0)? == PARTIAL {}
        Ok(())
    }
}

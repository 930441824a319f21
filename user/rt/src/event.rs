//! Timers, interrupts and notifications.

use crate::hint::Hint;
use crate::sys::{call0, call1, call3};
use crate::thread::{Body, JoinHandle, spawn};
use core::marker::PhantomData;
use core::ops::ControlFlow;
use diapason_abi::{CallNumber, Errno, Key, Nanos};

/// Something that occurs, and that one thread at a time waits for. A thread that waits in a loop
/// and then runs a function is what EMERALDS calls a routine.
#[derive(Debug)]
pub struct Event(u64);

impl Event {
    /// Returns an event that a mailbox raises.
    ///
    /// # Errors
    /// `Exhausted` if the process has no free event.
    pub fn new() -> Result<Event, Errno> {
        call0::<{ CallNumber::EventCreate as u8 }>().map(Event)
    }

    /// Returns the interrupt of a granted device.
    ///
    /// # Errors
    /// `Busy` if somebody has it or the device has none; `Absent` if the machine lacks the device;
    /// `Exhausted`.
    pub fn interrupt(device: &str) -> Result<Event, Errno> {
        call1::<{ CallNumber::SetIsr as u8 }>(Key::new(device).0).map(Event)
    }

    /// Message `number` of a granted PCI device, which has as many as its description's `irqs`.
    ///
    /// # Errors
    /// `Absent` if the machine lacks the device; `Busy` if somebody has the message; `Exhausted`.
    pub fn message(device: &str, number: u8) -> Result<Event, Errno> {
        call1::<{ CallNumber::SetIsr as u8 }>(Key::message(device, number).0).map(Event)
    }

    /// Waits until it has occurred; how often since the last wait. Waiting again is what lets a
    /// level-triggered interrupt through again.
    ///
    /// # Errors
    /// `WouldBlock` (deadline zero), `TimedOut`, `Busy` or `Gone`.
    #[inline(always)]
    pub fn wait(&self, deadline: Nanos) -> Result<u64, Errno> {
        self.wait_then(deadline, Hint::NONE)
    }

    /// Does what [`Event::wait`] does. The thread locks `hint` next.
    ///
    /// # Errors
    /// Waits like [`Event::wait`], with a hint.
    #[inline(always)]
    pub fn wait_then(&self, deadline: Nanos, hint: Hint) -> Result<u64, Errno> {
        loop {
            let count = call3::<{ CallNumber::EventWait as u8 }>(self.0, deadline.0, hint.raw())?;
            // Nothing occurred: an interrupt that came too soon was held back until now, and the
            // kernel lets it through when it is asked again.
            if count > 0 {
                return Ok(count);
            }
        }
    }

    /// Returns the handle as the kernel knows it.
    #[must_use]
    pub fn raw(&self) -> u64 {
        self.0
    }
}

/// A doorbell that this process may ring. The process that answers it has it as an
/// [`Event::interrupt`], on whichever core it runs.
#[derive(Clone, Copy, Debug)]
pub struct Doorbell(Key);

impl Doorbell {
    /// Returns the declared doorbell of this name.
    #[must_use]
    pub const fn new(name: &str) -> Doorbell {
        Doorbell(Key::new(name))
    }

    /// Rings it. A thread that is woken sees everything that was written to shared memory before.
    /// Rings that nobody has heard yet may be heard as one.
    ///
    /// # Errors
    /// None for a doorbell that the description grants; without the grant the process ends.
    pub fn ring(&self) -> Result<(), Errno> {
        call1::<{ CallNumber::Ring as u8 }>(self.0.0).map(|_| ())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = call1::<{ CallNumber::EventDelete as u8 }>(self.0);
    }
}

/// A timer that raises an event.
#[derive(Debug)]
pub struct Timer(Event);

impl Timer {
    /// Returns a timer that is not running.
    ///
    /// # Errors
    /// `Exhausted` if the process has no free event.
    pub fn new() -> Result<Timer, Errno> {
        call0::<{ CallNumber::TimerCreate as u8 }>().map(|handle| Timer(Event(handle)))
    }

    /// Makes the timer expire at `first`, then every `period` (zero: never again).
    ///
    /// # Errors
    /// None for a timer that exists.
    pub fn start(&self, first: Nanos, period: Nanos) -> Result<(), Errno> {
        call3::<{ CallNumber::TimerStart as u8 }>(self.0.0, first.0, period.0).map(|_| ())
    }

    /// Does not expire any more.
    ///
    /// # Errors
    /// None for a timer that exists.
    pub fn stop(&self) -> Result<(), Errno> {
        self.start(Nanos::ZERO, Nanos::ZERO)
    }

    /// Waits for an expiry; how many there were since the last wait.
    ///
    /// # Errors
    /// As for [`Event::wait`].
    #[inline(always)]
    pub fn wait(&self, deadline: Nanos) -> Result<u64, Errno> {
        self.0.wait(deadline)
    }

    /// Does what [`Timer::wait`] does. The thread locks `hint` next.
    ///
    /// # Errors
    /// As for [`Event::wait`].
    #[inline(always)]
    pub fn wait_then(&self, deadline: Nanos, hint: Hint) -> Result<u64, Errno> {
        self.0.wait_then(deadline, hint)
    }
}

/// A routine in the sense of EMERALDS: a function that runs at each occurrence of an event. It runs
/// on a thread of its own, at that thread's priority.
pub trait Routine {
    /// The event has occurred `count` times since the last run. `Break` ends the routine, its
    /// thread and its event.
    fn run(count: u64) -> ControlFlow<()>;
}

/// The thread behind a routine; its argument is the event it owns.
struct Running<R>(PhantomData<R>);

impl<R: Routine> Body for Running<R> {
    fn run(handle: u64) -> u64 {
        let event = Event(handle);
        while let Ok(count) = event.wait(Nanos::FOREVER) {
            if R::run(count).is_break() {
                break;
            }
        }
        0
    }
}

impl Event {
    /// Runs `R` at each occurrence from now on: an interrupt's bottom half, or a mailbox's
    /// notification routine. The thread owns the event.
    ///
    /// # Errors
    /// `Exhausted` if the process has no free thread.
    pub fn routine<R: Routine>(self, name: &str, priority: u8) -> Result<JoinHandle, Errno> {
        let thread = spawn::<Running<R>>(name, priority, self.0)?;
        core::mem::forget(self);
        Ok(thread)
    }
}

impl Timer {
    /// Runs `R` at `first`, then every `period` (zero: never again).
    ///
    /// # Errors
    /// `Exhausted` if the process has no free thread.
    pub fn routine<R: Routine>(
        self,
        name: &str,
        priority: u8,
        first: Nanos,
        period: Nanos,
    ) -> Result<JoinHandle, Errno> {
        self.start(first, period)?;
        self.0.routine::<R>(name, priority)
    }
}

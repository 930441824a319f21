//! Events: what interrupts, timers and arrivals raise, and one thread waits for.
//!
//! This is the one mechanism behind EMERALDS' "routines". An interrupt service routine, a timer
//! routine or a mailbox's notification routine is a user thread that waits for an event and then
//! runs its function; it is scheduled like any other thread, at its own priority.

use crate::ids::EventId;
use crate::kernel::{Flow, Kernel, Refused, Step};
use crate::machine::Machine;
use crate::objects::event::Source;
use crate::objects::thread::Wait;
use crate::pool::{FREE, Id};
use diapason_abi::archive::{Location, NONE};
use diapason_abi::{Errno, FaultCause, Handle, Kind, Nanos};

impl Kernel<'_> {
    /// The event a handle of the running process names.
    #[inline(always)]
    pub(crate) fn event(&self, handle: u64) -> Option<EventId> {
        let e = self.events.get(handle as u16)?;
        let named = e.handle == handle && e.allowed & self.grant != 0;
        named.then_some(Id::new(handle as u16))
    }

    /// The event for the long ways, or why it is refused.
    #[inline(never)]
    pub(crate) fn own_event(&self, handle: u64) -> Result<EventId, Refused> {
        self.event(handle).ok_or_else(|| {
            let slot = self.events.get(handle as u16);
            let mine = slot.filter(|e| e.allowed & self.grant != 0);
            let generation = mine.map(|e| e.generation);
            self.stale_or_misused(Handle(handle), Kind::Event, generation)
        })
    }

    /// `EventCreate()` and `TimerCreate()`: they differ only in what may raise them later.
    pub(crate) fn event_create(&mut self, source: Source) -> Step {
        let p = &mut self.processes[self.process];
        p.made = true;
        let free = p.events.take(&mut self.events);
        let id = free.ok_or(Refused::Errno(Errno::Exhausted))?;
        let e = &mut self.events[id];
        e.generation += 1;
        e.handle = Handle::new(Kind::Event, id.index(), e.generation).0;
        e.source = source;
        e.pending = 0;
        e.waiter = Id::NONE;
        Ok(Flow::Same(e.handle))
    }

    pub(crate) fn timer_start(&mut self, handle: u64, first: Nanos, period: Nanos) -> Step {
        let id = self.own_event(handle)?;
        if !matches!(self.events[id].source, Source::Timer { .. }) {
            return Err(Refused::Errno(Errno::Busy));
        }
        // Expiries that have passed count.
        if self.expires(id) {
            self.raise(id, 0);
        }
        let next = if first == Nanos::ZERO { Nanos::FOREVER } else { first };
        self.events[id].source = Source::Timer { period, next };
        let waiter = self.events[id].waiter;
        if waiter.is_some() {
            self.cancel_alarm(waiter);
            self.set_alarm(waiter, self.events[id].deadline.min(next));
        }
        Ok(Flow::Done(0))
    }

    /// Counts the expiries of a timer since the last call. Returns whether there were any.
    ///
    /// A timer has no alarm of its own. The kernel tells nobody of an expiry before a thread waits
    /// for it, and a thread that waits has an alarm. So no timer, however short its period, takes
    /// time from the threads that run.
    pub(crate) fn expires(&mut self, id: EventId) -> bool {
        let e = &mut self.events[id];
        let Source::Timer { period, next } = e.source else { return false };
        if next > self.now {
            return false;
        }
        let passed = (self.now - next).0.checked_div(period.0).unwrap_or(0);
        let after = next + Nanos((passed + 1).saturating_mul(period.0));
        let next = if period == Nanos::ZERO { Nanos::FOREVER } else { after };
        e.source = Source::Timer { period, next };
        let count = u32::try_from(passed + 1).unwrap_or(u32::MAX);
        e.pending = e.pending.saturating_add(count);
        true
    }

    /// Something happened `count` times.
    pub(crate) fn raise(&mut self, id: EventId, count: u32) {
        let e = &mut self.events[id];
        e.pending = e.pending.saturating_add(count);
        if e.waiter.is_some() {
            let waiter = e.waiter;
            let pending = core::mem::take(&mut e.pending);
            e.waiter = Id::NONE;
            self.wake(waiter, u64::from(pending));
        }
    }

    /// Counts an interrupt of a device and raises its event.
    #[inline(always)]
    pub(crate) fn interrupted<M: Machine>(&mut self, m: &mut M, device: u16) {
        if device >= self.devices.len() {
            return;
        }
        let event = self.note_interrupt(m, device);
        if event.is_some() {
            self.raise(event, 1);
        }
    }

    /// Counts an interrupt, and returns the event that it raises. A level-triggered line was held
    /// back by the machine and stays so until its thread waits again.
    #[inline(always)]
    pub(crate) fn note_interrupt<M: Machine>(&mut self, m: &mut M, device: u16) -> EventId {
        let now = self.now;
        let d = &mut self.devices[Id::new(device)];
        // How often devices interrupt is assumed by the analysis, so it is counted.
        if d.interrupts > 0 {
            d.gap = d.gap.min(now - d.last);
        }
        d.interrupts += 1;
        d.last = now;
        if d.comes_too_soon(now, self.fees.late) {
            d.held = true;
        }
        if d.record.level || d.held {
            m.set_irq(&d.record, false);
        }
        d.event
    }

    /// The words of `Record::Irq` for each device that ever interrupted.
    pub fn interrupts(&self) -> impl Iterator<Item = [u64; 3]> + '_ {
        let all = self.devices.ids().map(|id| (id, &self.devices[id]));
        let some = all.filter(|(_, d)| d.interrupts > 0);
        some.map(|(id, d)| [u64::from(id.index()), d.interrupts, d.gap.0])
    }

    /// `EventWait`, when it has occurred already.
    #[inline(always)]
    pub(crate) fn quick_event(&mut self, handle: u64) -> Option<u64> {
        let id = self.event(handle)?;
        let e = &mut self.events[id];
        let timer = matches!(e.source, Source::Timer { next, .. } if next < Nanos::FOREVER);
        if e.pending == 0 || e.waiter.is_some() || timer {
            return None;
        }
        Some(u64::from(core::mem::take(&mut e.pending)))
    }

    pub(crate) fn event_wait<M: Machine>(
        &mut self,
        m: &mut M,
        handle: u64,
        deadline: Nanos,
        hint: u64,
    ) -> Step {
        let id = self.own_event(handle)?;
        if self.events[id].waiter.is_some() {
            return Err(Refused::Errno(Errno::Busy));
        }
        self.expires(id);
        if self.events[id].pending > 0 {
            return Ok(Flow::Same(u64::from(core::mem::take(&mut self.events[id].pending))));
        }
        self.let_through(m, id);
        self.may_wait(deadline)?;
        let (thread, after) = (self.running(), self.hinted(hint));
        let e = &mut self.events[id];
        (e.waiter, e.deadline) = (thread, deadline);
        let due = deadline.min(self.rings_at(id));
        self.block(thread, Wait::Event(id), after, due);
        Ok(Flow::Away)
    }

    /// A thread that asks again, if only to poll, has served the device. The line of the device is
    /// let through, unless it is held because an interrupt came too soon.
    fn let_through<M: Machine>(&mut self, m: &mut M, id: EventId) {
        let Source::Irq(device) = self.events[id].source else { return };
        let d = &mut self.devices[Id::new(device)];
        if (d.record.level || d.held) && (!d.held || self.now >= d.next) {
            d.held = false;
            m.set_irq(&d.record, true);
        }
    }

    /// Returns when an event rings by itself: a timer that expires, and a device whose line is
    /// held. Then its thread asks again, and the line is let through.
    pub(crate) fn rings_at(&self, id: EventId) -> Nanos {
        match self.events[id].source {
            Source::Plain => Nanos::FOREVER,
            Source::Timer { next, .. } => next,
            Source::Irq(device) => self.devices[Id::new(device)].held_until(),
        }
    }

    pub(crate) fn event_delete<M: Machine>(&mut self, m: &mut M, handle: u64) -> Step {
        let id = self.own_event(handle)?;
        self.destroy_event(m, id);
        self.processes[self.process].events.give_back(&mut self.events, id);
        Ok(Flow::Done(0))
    }

    /// Ends an event that exists. Its device has none then; a mailbox notices at the next raise.
    pub(crate) fn destroy_event<M: Machine>(&mut self, m: &mut M, id: EventId) {
        self.events[id].handle = FREE;
        if let Source::Irq(device) = self.events[id].source {
            let device = &mut self.devices[Id::new(device)];
            device.event = Id::NONE;
            m.set_irq(&device.record, false);
        }
        let waiter = self.events[id].waiter;
        if waiter.is_some() {
            self.events[id].waiter = Id::NONE;
            self.wake_with(waiter, Errno::Gone);
        }
    }

    /// `SetIsr(key)`: an event for the interrupt of a granted device.
    pub(crate) fn set_isr<M: Machine>(&mut self, m: &mut M, key: u64) -> Step {
        let id = self.granted_device(key)?;
        let device = &self.devices[id];
        if device.event.is_some() || device.record.irq == NONE {
            return Err(Refused::Errno(Errno::Busy));
        }
        let Flow::Same(handle) = self.event_create(Source::Irq(id.index()))? else {
            return Ok(Flow::Away);
        };
        let device = &mut self.devices[id];
        device.event = Id::new(handle as u16);
        // A new event does not release a line that is held.
        if device.held && self.now < device.next {
            return Ok(Flow::Same(handle));
        }
        device.held = false;
        m.set_irq(&device.record, true);
        Ok(Flow::Same(handle))
    }

    /// A doorbell is rarer than an interrupt, whose way it must not make longer.
    #[inline(never)]
    fn rung<M: Machine>(&mut self, m: &mut M, device: u16) {
        self.interrupted(m, device);
    }

    /// `Ring(key)`: what waits for a doorbell is raised, here or on the core that answers it.
    pub(crate) fn ring<M: Machine>(&mut self, m: &mut M, key: u64) -> Step {
        let id = self.granted_device(key)?;
        let record = &self.devices[id].record;
        let Location::Bell { core, number } = record.location else {
            return Err(Refused::Misuse(FaultCause::BadGrant, key));
        };
        if record.irq == NONE {
            m.ring(core, number);
        } else {
            self.rung(m, id.index());
        }
        Ok(Flow::Done(0))
    }
}

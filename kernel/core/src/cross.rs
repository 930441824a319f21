//! From one VCPU to another without a decision.
//!
//! A call mostly concerns two VCPUs: the one that pays, and one that has nothing to do before or
//! after. Its list of budgets and its rank say who runs then, and all others stay as they are. So
//! one part of a budget is charged, one VCPU is woken, and the timer is set once.
//!
//! All less plain cases are left to the long way: a VCPU that goes by deadline or has no budget, an
//! alarm that is due, a chain of mutexes. The results are equal to those of that way; the tests of
//! `shortcut` compare these, too.

use crate::alarms::Alarms;
use crate::ids::{ThreadId, VcpuId};
use crate::kernel::{Cause, Kernel, Longer};
use crate::machine::Machine;
use crate::objects::alarm::Group;
use crate::objects::thread::{State, Thread, Wait};
use crate::objects::vcpu::Vcpu;
use crate::pool::{Id, Pool};
use crate::promise::{Fees, Promise};
use crate::scheduler::Scheduler;
use crate::served::HINTS;
use diapason_abi::Nanos;

/// Returns whether a thread that waits in a list can come at once: it is alone there, nobody waits
/// for it, and it has no alarm.
#[inline(always)]
pub(crate) fn is_free_to_come(t: &Thread, thread: ThreadId) -> bool {
    t.next == thread && t.parked.is_empty() && !t.alarm.is_set()
}

impl Kernel<'_> {
    /// A call of the running thread lets another one come, which waited alone: on another VCPU, or
    /// with a hint. That one's call returns `given`, and the caller's `returned`. If nothing was
    /// done (but that the payer may be charged), the call goes the long way.
    #[inline(always)]
    pub(crate) fn cross(
        &mut self,
        thread: ThreadId,
        given: u64,
        returned: u64,
        now: Nanos,
    ) -> Longer {
        let caller = self.running();
        let t = &mut self.threads[thread];
        t.result = given;
        let comes = match t.after {
            after if !HINTS || after == Wait::Nothing => self.rise(thread, thread, now),
            _ => self.cross_with_hint(thread, given, now),
        };
        let Some(comes) = comes else { return Longer::Way };
        self.entries += 1;
        if comes {
            self.threads[caller].put_result(returned);
            Longer::Over
        } else {
            Longer::Stays(returned)
        }
    }

    /// As [`Kernel::rise`] for a thread with a hint, on whichever VCPU.
    #[inline(never)]
    fn cross_with_hint(&mut self, thread: ThreadId, given: u64, now: Nanos) -> Option<bool> {
        let run = self.who_runs_for(thread);
        if run.is_none() {
            return None;
        }
        if self.threads[thread].vcpu != self.scheduler.payer {
            return self.rise(thread, run, now);
        }
        self.now = now;
        Some(self.join_ready(thread, run, given, now))
    }

    /// Returns who runs in the place of a thread whose wait ends: itself, or who holds the mutex
    /// that it will lock. Nobody: that has to be decided.
    #[inline(always)]
    pub(crate) fn who_runs_for(&self, thread: ThreadId) -> ThreadId {
        match self.threads[thread].after {
            Wait::Hint(mutex) if HINTS => self.foresee(thread, mutex),
            _ => thread,
        }
    }

    /// A thread with a hint is the first now on the VCPU that pays, or of the threads without one.
    /// True if `run`, which runs in its place, is another than before.
    #[inline(never)]
    pub(crate) fn join_ready(
        &mut self,
        thread: ThreadId,
        run: ThreadId,
        result: u64,
        now: Nanos,
    ) -> bool {
        let (caller, priority) = (self.running(), self.threads[thread].priority);
        let s = &mut self.scheduler;
        s.queue(&mut self.vcpus).come(priority, thread);
        s.place = thread;
        if run != caller {
            s.pass(&mut self.threads, caller, run, now);
        }
        let t = &mut self.threads[thread];
        t.state = State::Ready;
        t.put_result(result);
        match core::mem::replace(&mut t.wait, t.after) {
            Wait::Semaphore(id) => self.semaphores[id].waiters.head = ThreadId::NONE,
            Wait::Receive(id) => self.mailboxes[id].receivers.head = ThreadId::NONE,
            _ => {}
        }
        run != caller
    }

    /// A thread comes that waited alone, on a VCPU with nothing to do; its call returns the result
    /// that it has. True if `run` runs in its place now: its VCPU is the most urgent. None: that
    /// has to be decided, and nothing was done, but that the payer may be charged.
    #[inline(never)]
    pub(crate) fn rise(&mut self, thread: ThreadId, run: ThreadId, now: Nanos) -> Option<bool> {
        let s = &self.scheduler;
        let t = &self.threads[thread];
        let (vcpu, rings) = (t.vcpu, t.alarm.is_set());
        let v = self.vcpus.get(vcpu.index())?;
        if !v.ready.is_empty() || v.by_deadline || !s.plain {
            return None;
        }
        self.now = now;
        let rank = v.rank % 64;
        if s.eligible >> rank != 0 {
            return self.join_below(thread);
        }
        let ring = self.next_ring_with(vcpu, rank, rings);
        if ring <= self.now || !self.is_charged(self.now) {
            return None;
        }
        let budget = self.wake_for(thread, true);
        if budget == Nanos::ZERO {
            return None;
        }
        self.scheduler.begin_to_pay(
            (&mut self.threads, &mut self.vcpus),
            (&self.fees, &mut self.promise),
            (thread, run),
            (vcpu, ring, budget),
            self.now,
        );
        Some(true)
    }

    /// As [`Kernel::rise`] for a VCPU that is not the most urgent.
    #[inline(never)]
    fn join_below(&mut self, thread: ThreadId) -> Option<bool> {
        let s = &self.scheduler;
        let wakes = s.place == s.running && self.wake_for(thread, false) > Nanos::ZERO;
        wakes.then_some(false)
    }

    /// Ends the wait of a thread that waited alone, and wakes its VCPU, if that has budget. Returns
    /// the budget; if it is zero, nothing was done. The thread has the result of its call. If it
    /// waited on a condition, it gets its mutex, which is free, if it is the first (`comes`).
    #[inline(always)]
    fn wake_for(&mut self, thread: ThreadId, comes: bool) -> Nanos {
        let (mut threads, mut vcpus) = (self.threads.again(), self.vcpus.again());
        let t = &mut threads[thread];
        let v = &mut vcpus[t.vcpu];
        let rings = t.alarm.is_set();
        // An alarm that is set is due, and the first of its VCPU.
        let since = if rings { t.alarm.due() } else { self.now };
        let budget = v.try_wake(since, self.now);
        if budget == Nanos::ZERO {
            return budget;
        }
        v.ready.come(t.priority, thread);
        // One that waited for an event was in no list.
        (t.previous, t.next) = (thread, thread);
        (t.state, t.has_result) = (State::Ready, true);
        match core::mem::replace(&mut t.wait, t.after) {
            Wait::Semaphore(id) => self.semaphores[id].waiters.head = ThreadId::NONE,
            Wait::Receive(id) => self.mailboxes[id].receivers.head = ThreadId::NONE,
            Wait::Event(id) => self.events[id].waiter = ThreadId::NONE,
            Wait::Time => t.jobs.active = t.jobs.period > Nanos::ZERO,
            Wait::Condition(id) => {
                self.conditions[id].waiters.head = ThreadId::NONE;
                let mutex = t.wanted_mutex();
                if comes {
                    self.semaphores[mutex].hand_to(mutex, t, thread);
                } else {
                    (t.wait, t.has_result) = (Wait::Mutex(mutex), false);
                }
            }
            _ => {}
        }
        let rank = v.rank % 64;
        self.scheduler.eligible |= 1 << rank;
        self.alarms.wake(&threads, rank, Nanos::FOREVER);
        if rings {
            self.alarms.cancel(&mut threads, thread);
        }
        budget
    }

    /// A device interrupted, or the timer rang: mostly the thread that waits for the device, or
    /// slept until now, runs at once. True if it does: the decision is [`Kernel::resume_running`].
    /// If not, nothing was done, but that the payer may be charged.
    #[inline(always)]
    pub fn happen_plainly<M: Machine>(&mut self, m: &mut M, now: Nanos, cause: Cause) -> bool {
        let (thread, spared) = match cause {
            Cause::Irq(device) => {
                let Some(d) = self.devices.get(device) else { return false };
                let Some(e) = self.events.get(d.event.index()) else { return false };
                let thread = e.waiter;
                if thread.is_none() || self.threads[thread].alarm.is_set() {
                    return false;
                }
                self.threads[thread].result = u64::from(e.pending) + 1;
                (thread, self.fees.interrupt)
            }
            Cause::Timer => {
                let thread = self.first_to_ring(now);
                let Some(t) = self.threads.get(thread.index()) else { return false };
                if t.wait != Wait::Time || self.promise.abandoned {
                    return false;
                }
                (thread, Nanos::ZERO)
            }
            _ => return false,
        };
        if !self.threads[thread].parked.is_empty() || !self.preempt(thread, spared, now) {
            return false;
        }
        if let Cause::Irq(device) = cause {
            self.note_interrupt(m, device);
        }
        true
    }

    /// A thread that waits for an event or sleeps preempts who runs; its call returns its result. A
    /// payer that goes on is spared the entry, or nothing. False: that has to be decided.
    #[inline(always)]
    fn preempt(&mut self, thread: ThreadId, spared: Nanos, now: Nanos) -> bool {
        let run = self.who_runs_for(thread);
        if run.is_none() {
            return false;
        }
        let s = &self.scheduler;
        let payer = s.payer;
        let Thread { vcpu, priority, .. } = self.threads[thread];
        let rings = self.threads[thread].alarm.is_set();
        if vcpu != payer {
            let Some(v) = self.vcpus.get(vcpu.index()) else { return false };
            let above = s.eligible >> (v.rank % 64) == 0;
            let comes = above && self.rise(thread, run, now).is_some();
            self.entries += u64::from(comes);
            return comes;
        }
        if !s.plain || !self.scheduler.queue(&mut self.vcpus).is_above_all(priority) {
            return false;
        }
        if payer.is_none() {
            if self.alarms.next_due_with(&self.threads, rings) <= now {
                return false;
            }
        } else {
            let ring = self.next_ring_with(payer, self.vcpus[payer].rank, rings);
            if ring <= now || !self.is_charged(now) {
                return false;
            }
            let s = &mut self.scheduler;
            // The interrupt is the kernel's, and the rest of a switch stays spared.
            s.paid_since = s.paid_since.max(now) + spared;
            s.call_at = ring.min(s.paid_since + self.vcpus[payer].available(now));
        }
        let (s, mut threads) = (&mut self.scheduler, self.threads.again());
        s.queue(&mut self.vcpus).come(priority, thread);
        s.place = thread;
        if run != s.running {
            s.switch(&mut threads, run, now);
        }
        if rings {
            self.alarms.cancel(&mut threads, thread);
        }
        let t = &mut threads[thread];
        (t.state, t.has_result) = (State::Ready, true);
        (t.previous, t.next) = (thread, thread);
        if let Wait::Event(id) = core::mem::replace(&mut t.wait, t.after) {
            self.events[id].waiter = ThreadId::NONE;
        } else {
            t.jobs.active = t.jobs.period > Nanos::ZERO;
        }
        (self.now, self.entries) = (now, self.entries + 1);
        true
    }

    /// The running thread, alone at its priority and in its own place, waits alone, and `come`
    /// comes, whose VCPU has nothing to do, or nobody. If that has to be decided, the call goes the
    /// long way, and nothing was done, but that the payer may be charged.
    #[inline(never)]
    pub(crate) fn leave(
        &mut self,
        wait: Wait,
        after: Wait,
        deliver_to: u64,
        come: ThreadId,
        now: Nanos,
    ) -> Longer {
        let s = &self.scheduler;
        let (payer, caller) = (s.payer, s.running);
        if !s.plain || now >= self.next_alarm() {
            return Longer::Way;
        }
        let mut eligible = s.eligible;
        if payer.is_some() {
            let v = &self.vcpus[payer];
            let alone = v.ready.has_only(self.threads[caller].priority);
            eligible &= !(u64::from(alone) << (v.rank % 64));
        }
        let Some((run, vcpu)) = self.next_after(eligible, come) else { return Longer::Way };
        let ring = if vcpu.is_some() { self.next_ring_for(vcpu) } else { self.alarms.next_due() };
        if ring <= now || !self.is_charged(now) {
            return Longer::Way;
        }
        let (mut threads, mut vcpus) = (self.threads.again(), self.vcpus.again());
        let mut budget = Nanos::ZERO;
        if come.is_some() {
            let v = &mut vcpus[vcpu];
            budget = v.try_wake(now, now);
            if budget == Nanos::ZERO {
                return Longer::Way;
            }
            let t = &mut threads[come];
            v.ready.come(t.priority, come);
            eligible |= 1 << (v.rank % 64);
            if let Wait::Receive(id) = core::mem::replace(&mut t.wait, Wait::Nothing) {
                self.mailboxes[id].receivers.head = ThreadId::NONE;
            }
            (t.state, t.has_result) = (State::Ready, true);
            self.alarms.wake(&threads, v.rank, Nanos::FOREVER);
        } else if vcpu.is_some() {
            budget = vcpus[vcpu].available(now);
        }
        match wait {
            Wait::Semaphore(id) => self.semaphores[id].waiters.head = caller,
            Wait::Receive(id) => self.mailboxes[id].receivers.head = caller,
            _ => {}
        }
        (self.now, self.entries) = (now, self.entries + 1);
        let c = &mut threads[caller];
        (c.state, c.wait, c.after) = (State::Blocked, wait, after);
        c.deliver_to = deliver_to;
        let (priority, s) = (c.priority, &mut self.scheduler);
        s.eligible = eligible;
        let wakes = s.give_up(&mut vcpus, &mut self.alarms, &threads, priority, now);
        s.begin_to_pay(
            (&mut threads, &mut vcpus),
            (&self.fees, &mut self.promise),
            (run, run),
            (vcpu, ring.min(wakes), budget),
            now,
        );
        Longer::Over
    }

    /// Charges who pays, if there is something to pay. False if that has to be decided.
    #[inline(always)]
    pub(crate) fn is_charged(&mut self, now: Nanos) -> bool {
        let s = &self.scheduler;
        let due = s.payer.is_some() && (s.paid_since < now || s.owed > Nanos::ZERO);
        !due || self.charge_plainly(now)
    }

    /// Returns who runs when the caller has gone and these VCPUs have budget, besides that of who
    /// comes.
    #[inline(always)]
    fn next_after(&self, eligible: u64, come: ThreadId) -> Option<(ThreadId, VcpuId)> {
        if come.is_some() {
            let vcpu = self.threads[come].vcpu;
            let v = self.vcpus.get(vcpu.index())?;
            let first = v.ready.is_empty() && eligible >> (v.rank % 64) == 0;
            return (first && !v.by_deadline).then_some((come, vcpu));
        }
        let (run, vcpu) = match eligible.checked_ilog2() {
            Some(rank) => {
                let vcpu = self.scheduler.ranked(rank as u8);
                let v = &self.vcpus[vcpu];
                if v.by_deadline {
                    return None;
                }
                (v.ready.first(), vcpu)
            }
            None => (self.scheduler.unreserved.first(), Id::NONE),
        };
        let ready = run.is_some() && self.threads[run].can_go_on();
        ready.then_some((run, vcpu))
    }
}

impl Scheduler {
    /// The running thread gives up its place, at this priority of the VCPU that pays. Returns when
    /// that VCPU is to be woken, if it has nothing more to do.
    #[inline(always)]
    fn give_up(
        &mut self,
        vcpus: &mut Pool<'_, Vcpu>,
        alarms: &mut Alarms,
        threads: &Pool<'_, Thread>,
        priority: u8,
        now: Nanos,
    ) -> Nanos {
        if self.payer.is_none() {
            self.unreserved.go(priority);
            return Nanos::FOREVER;
        }
        let v = &mut vcpus[self.payer];
        v.ready.go(priority);
        if !v.ready.is_empty() {
            return Nanos::FOREVER;
        }
        v.sleep(now);
        let mut at = alarms.first_due(threads, self.payer.index() as Group);
        if at < Nanos::FOREVER {
            at = at.max(v.eligible_at());
        }
        alarms.wake(threads, v.rank, at);
        at
    }

    /// From now on `run` runs in this place, and this VCPU pays, or none: the next alarm is at
    /// `ring`, and it has so much budget.
    #[inline(always)]
    fn begin_to_pay(
        &mut self,
        (threads, vcpus): (&mut Pool<'_, Thread>, &mut Pool<'_, Vcpu>),
        accounts: (&Fees, &mut Promise),
        (place, run): (ThreadId, ThreadId),
        (vcpu, ring, budget): (VcpuId, Nanos, Nanos),
        now: Nanos,
    ) {
        self.place = place;
        if run != self.running {
            self.switch(threads, run, now);
        }
        let before = core::mem::replace(&mut self.payer, vcpu);
        if vcpu.is_none() {
            (self.paid_since, self.call_at, self.owed) = (now, Nanos::FOREVER, Nanos::ZERO);
            return;
        }
        let prepaid = core::mem::take(&mut self.prepaid);
        let (since, owed) = if before == vcpu {
            // The rest of a switch stays spared.
            (self.paid_since.max(now), Nanos::ZERO)
        } else {
            let (spared, owed) = self.spare_switch(vcpus, accounts, (before, vcpu), now);
            (now + spared, owed)
        };
        self.owed = owed;
        self.paid_since = since + prepaid;
        self.call_at = ring.min(self.paid_since + (budget - owed));
    }
}

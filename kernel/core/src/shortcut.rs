//! Short ways through calls that change who runs.
//!
//! Mostly nothing has to be decided: the next thread is the one that waited for what the call
//! gives, or the next in line, and it lives on the same VCPU, or neither has one. Then the two
//! change places here. All less plain cases (two VCPUs, an alarm, equals, a chain) are
//! left to [`Kernel::enter`]. The results here are equal to those of that way. Tests make every
//! experiment by both ways, and the storm's recording is replayed through `enter`.
//!
//! No thread that comes or goes here has an alarm, so the machine's timer stays as it is.
//!
//! The report of a fault is handed over the same way; but a process that ends may have alarms.

use crate::cross::is_free_to_come;
use crate::ids::{MailboxId, SemaphoreId, ThreadId};
use crate::kernel::{Arguments, Decision, Kernel, Longer};
use crate::machine::UserMemory;
use crate::objects::mailbox::receipt;
use crate::objects::thread::{Resumed, State, Thread, Wait};
use crate::objects::vcpu::Vcpu;
use crate::pool::Pool;
use crate::scheduler::Scheduler;
use crate::served::{HINTS, SERVERS};
use diapason_abi::call::NO_HINT;
use diapason_abi::{CallNumber, Nanos};

impl Kernel<'_> {
    /// A call of the running thread that makes another one run, if nothing has to be decided for
    /// it; else nothing is done.
    ///
    /// # Errors
    /// That it is not to go this way.
    #[inline(always)]
    pub fn shortcut(
        &mut self,
        m: &mut impl UserMemory,
        call: CallNumber,
        a: Arguments,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        match call {
            CallNumber::Yield => self.yield_to_next(now),
            CallNumber::SemLock => self.wait_for_semaphore(a, now),
            CallNumber::SemUnlock => self.unlock_and_pass(a[0], now),
            CallNumber::CvSignal => self.signal_and_pass(a, now),
            CallNumber::MboxSend => self.send_and_pass(m, a, now),
            CallNumber::MboxReceive => self.wait_for_message(a, now),
            CallNumber::MboxCall => self.exchange(m, a, now),
            _ => Err(Longer::Way),
        }
    }

    /// The next of its equals runs.
    #[inline(always)]
    fn yield_to_next(&mut self, now: impl FnOnce() -> Nanos) -> Result<Decision, Longer> {
        let (s, mut threads) = (&mut self.scheduler, self.threads.again());
        let caller = s.running;
        let c = &threads[caller];
        let (next, priority) = (c.next, c.priority);
        if s.place != caller || next == caller || !s.plain {
            return Err(Longer::Way);
        }
        if !threads[next].can_go_on() {
            return Err(Longer::Way);
        }
        let now = now();
        threads[caller].put_result(0);
        s.place = next;
        s.pass_among(&mut self.vcpus, &mut threads, (caller, next), now).lead(priority, next);
        let resumed = threads[next].go_on();
        Ok(self.passed(next, resumed, now))
    }

    /// `SemUnlock` of a mutex for which the owner ran in another one's place, or of a counting
    /// semaphore for which somebody more urgent waits.
    #[inline(always)]
    fn unlock_and_pass(
        &mut self,
        handle: u64,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        let id = self.semaphore(handle).ok_or(Longer::Way)?;
        let (s, mut threads) = (&mut self.scheduler, self.threads.again());
        let mut semaphores = self.semaphores.again();
        let caller = s.running;
        let semaphore = &mut semaphores[id];
        if !s.plain {
            return Err(Longer::Way);
        }
        if !semaphore.mutex {
            let waiter = semaphore.waiters.head;
            if waiter.is_none() {
                return Err(Longer::Way);
            }
            if !is_first(s, &mut self.vcpus, &threads, waiter)? {
                return Err(self.cross(waiter, 0, 0, now()));
            }
            if HINTS && !matches!(threads[waiter].after, Wait::Nothing) {
                return self.signal_for_lock(waiter, now);
            }
            let now = now();
            semaphore.waiters.head = ThreadId::NONE;
            let resumed = come(s, &mut self.vcpus, &mut threads, (caller, waiter), 0, now);
            return Ok(self.passed(waiter, resumed, now));
        }
        let waiter = s.place;
        let w = &threads[waiter];
        let waits = matches!(w.wait, Wait::Mutex(mutex) if mutex == id) && w.wanted == handle;
        let released = semaphore.owner == caller && threads[caller].held == id;
        if !released {
            return Err(Longer::Way);
        }
        if !waits {
            return self.unlock_for_lock(id, now);
        }
        if !matches!(w.after, Wait::Nothing) || w.alarm.is_set() {
            return Err(Longer::Way);
        }
        let now = now();
        let c = &mut threads[caller];
        c.held = semaphore.next_held;
        c.put_result(0);
        semaphore.hand_to(id, &mut threads[waiter], waiter);
        s.pass(&mut threads, caller, waiter, now);
        let resumed = threads[waiter].go_on();
        Ok(self.passed(waiter, resumed, now))
    }

    /// `SemUnlock` of a mutex by its owner, in the place of a thread that will lock it: that one
    /// runs, and finds it free.
    #[inline(always)]
    fn unlock_for_lock(
        &mut self,
        id: SemaphoreId,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        if !HINTS {
            return Err(Longer::Way);
        }
        let caller = self.running();
        let s = &mut self.scheduler;
        let place = s.place;
        let hinted = matches!(self.threads[place].wait, Wait::Hint(mutex) if mutex == id);
        if !hinted || place == caller {
            return Err(Longer::Way);
        }
        let (now, semaphore) = (now(), &mut self.semaphores[id]);
        (semaphore.count, semaphore.owner) = (1, ThreadId::NONE);
        let c = &mut self.threads[caller];
        c.held = semaphore.next_held;
        c.put_result(0);
        s.pass(&mut self.threads, caller, place, now);
        let resumed = self.threads[place].resume();
        Ok(self.passed(place, resumed, now))
    }

    /// `SemUnlock` of a counting semaphore for which somebody waits who will lock a mutex: the
    /// holder of that runs in its place. If the caller is the holder, it goes on.
    #[inline(always)]
    fn signal_for_lock(
        &mut self,
        waiter: ThreadId,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        let run = self.who_runs_for(waiter);
        let caller = self.running();
        if run.is_none() {
            return Err(Longer::Way);
        }
        if run == caller {
            return Err(self.cross(waiter, 0, 0, now()));
        }
        let now = now();
        self.threads[caller].put_result(0);
        self.join_ready(waiter, run, 0, now);
        let resumed = self.threads[run].resume();
        Ok(self.passed(run, resumed, now))
    }

    /// `CvSignal` to the only one who waits, is more urgent, and finds its mutex free.
    #[inline(always)]
    fn signal_and_pass(
        &mut self,
        a: Arguments,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        let [handle, most, ..] = a;
        let id = self.condition(handle).ok_or(Longer::Way)?;
        let (s, mut threads) = (&mut self.scheduler, self.threads.again());
        let condition = &mut self.conditions[id];
        let (caller, waiter) = (s.running, condition.waiters.head);
        if most == 0 || waiter.is_none() || !s.plain {
            return Err(Longer::Way);
        }
        let mutex = threads[waiter].wanted_mutex();
        let semaphore = &mut self.semaphores[mutex];
        if semaphore.handle != threads[waiter].wanted || semaphore.owner.is_some() {
            return Err(Longer::Way);
        }
        if !is_first(s, &mut self.vcpus, &threads, waiter)? {
            return Err(self.cross(waiter, 0, 1, now()));
        }
        let w = &mut threads[waiter];
        let now = now();
        condition.waiters.head = ThreadId::NONE;
        w.result = 0;
        semaphore.hand_to(mutex, w, waiter);
        let result = w.result;
        let resumed = come(s, &mut self.vcpus, &mut threads, (caller, waiter), result, now);
        threads[caller].result = 1;
        Ok(self.passed(waiter, resumed, now))
    }

    /// `MboxSend` to somebody more urgent who waits for a message.
    #[inline(always)]
    fn send_and_pass(
        &mut self,
        m: &mut impl UserMemory,
        a: Arguments,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        let [handle, address, length, priority, _] = a;
        let id = self.mailbox(handle).ok_or(Longer::Way)?;
        let (s, mut threads) = (&mut self.scheduler, self.threads.again());
        let mailbox = &mut self.mailboxes[id];
        let (caller, receiver) = (s.running, mailbox.receivers.head);
        let served = SERVERS && mailbox.mutex.is_some();
        if receiver.is_none() || mailbox.event.is_some() || served || !s.plain {
            return Err(Longer::Way);
        }
        let first = is_first(s, &mut self.vcpus, &threads, receiver)?;
        let r = &mut threads[receiver];
        let bytes = r.message.get_mut(..length as usize).ok_or(Longer::Way)?;
        m.copy_in(address, bytes).map_err(|_| Longer::BadAddress(address))?;
        let now = now();
        r.message_length = length as u8;
        r.message_priority = priority as u32;
        let receipt = length << 32 | u64::from(priority as u32);
        if !first || !matches!(r.after, Wait::Nothing) {
            return Err(self.cross(receiver, receipt, 0, now));
        }
        mailbox.receivers.head = ThreadId::NONE;
        let resumed = come(s, &mut self.vcpus, &mut threads, (caller, receiver), receipt, now);
        Ok(self.passed(receiver, resumed, now))
    }

    /// `SemLock` of a mutex whose owner can run in the caller's place, or of a counting semaphore
    /// that nobody else waits for.
    #[inline(always)]
    fn wait_for_semaphore(
        &mut self,
        a: Arguments,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        let [handle, deadline, hint, ..] = a;
        let id = self.semaphore(handle).ok_or(Longer::Way)?;
        let semaphore = &mut self.semaphores[id];
        if semaphore.count > 0 || deadline != Nanos::FOREVER.0 {
            return Err(Longer::Way);
        }
        if !semaphore.mutex {
            let after = self.after_wait(hint);
            let semaphore = &mut self.semaphores[id];
            let (s, mut threads) = (&mut self.scheduler, self.threads.again());
            let caller = s.running;
            if semaphore.waiters.head.is_some() {
                return Err(Longer::Way);
            }
            let next = next_in_line(s, &mut self.vcpus, caller, &threads)?;
            let (now, wait) = (now(), Wait::Semaphore(id));
            if next.is_none() {
                return Err(self.leave(wait, after, 0, next, now));
            }
            let waits = (wait, after, 0);
            semaphore.waiters.head = caller;
            let resumed = go(s, &mut self.vcpus, &mut threads, (caller, next), waits, now);
            return Ok(self.passed(next, resumed, now));
        }
        let owner = semaphore.owner;
        let (s, mut threads) = (&mut self.scheduler, self.threads.again());
        let caller = s.running;
        if s.place != caller || owner == caller || !s.plain || hint != NO_HINT {
            return Err(Longer::Way);
        }
        if !threads[owner].can_go_on() {
            return Err(Longer::Way);
        }
        let now = now();
        let c = &mut threads[caller];
        (c.wait, c.after, c.wanted, c.result) = (Wait::Mutex(id), Wait::Nothing, handle, 0);
        s.pass(&mut threads, caller, owner, now);
        let resumed = threads[owner].go_on();
        Ok(self.passed(owner, resumed, now))
    }

    /// `MboxReceive` of what is not there yet and nobody else waits for.
    #[inline(always)]
    fn wait_for_message(
        &mut self,
        a: Arguments,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        let [handle, address, deadline, hint, _] = a;
        let id = self.mailbox(handle).ok_or(Longer::Way)?;
        let mailbox = &mut self.mailboxes[id];
        let there = mailbox.first.is_some() || mailbox.receivers.head.is_some();
        if there || address == 0 || deadline != Nanos::FOREVER.0 {
            return Err(Longer::Way);
        }
        let after = self.after_wait(hint);
        let mailbox = &mut self.mailboxes[id];
        let (s, mut threads) = (&mut self.scheduler, self.threads.again());
        let caller = s.running;
        let next = next_in_line(s, &mut self.vcpus, caller, &threads)?;
        let (now, wait) = (now(), Wait::Receive(id));
        if next.is_none() {
            return Err(self.leave(wait, after, address, next, now));
        }
        let waits = (wait, after, address);
        mailbox.receivers.head = caller;
        let resumed = go(s, &mut self.vcpus, &mut threads, (caller, next), waits, now);
        Ok(self.passed(next, resumed, now))
    }

    /// A message is where it belongs, and the running thread has ended. If who waits for the
    /// message is the next to run and nothing has to be decided, it runs now.
    #[inline(always)]
    pub(crate) fn arrive_and_pass(&mut self, id: MailboxId, length: u8, priority: u32) -> bool {
        let (s, mut threads) = (&mut self.scheduler, self.threads.again());
        let mailbox = &mut self.mailboxes[id];
        let receiver = mailbox.receivers.head;
        let waits =
            receiver.is_some() && mailbox.event.is_none() && s.payer.is_none() && s.eligible == 0;
        let waits = waits && matches!(threads[receiver].after, Wait::Nothing);
        if !waits || !matches!(is_first(s, &mut self.vcpus, &threads, receiver), Ok(true)) {
            return self.arrive_across(id, length, priority);
        }
        mailbox.receivers.head = ThreadId::NONE;
        s.place = receiver;
        s.pass(&mut threads, s.running, receiver, self.now);
        let r = &mut threads[receiver];
        s.queue(&mut self.vcpus).come(r.priority, receiver);
        (r.state, r.wait, r.message_length) = (State::Ready, Wait::Nothing, length);
        r.put_result(receipt(length, priority));
        true
    }

    /// As [`Kernel::arrive_and_pass`], if there are VCPUs, or the way is not plain.
    #[inline(never)]
    fn arrive_across(&mut self, id: MailboxId, length: u8, priority: u32) -> bool {
        let mailbox = &self.mailboxes[id];
        let receiver = mailbox.receivers.head;
        let waits = receiver.is_some() && mailbox.event.is_none();
        if waits && self.threads[receiver].vcpu.is_some() {
            let r = &mut self.threads[receiver];
            r.message_length = length;
            if is_free_to_come(r, receiver) && matches!(r.after, Wait::Nothing) {
                r.result = receipt(length, priority);
                if let Some(comes) = self.rise(receiver, receiver, self.now) {
                    return comes;
                }
            }
        }
        self.arrived(id, length, priority);
        false
    }

    /// `run` has the processor.
    #[inline(always)]
    pub(crate) fn passed(&mut self, run: ThreadId, resumed: Resumed, now: Nanos) -> Decision {
        (self.now, self.entries) = (now, self.entries + 1);
        self.goes_on(run, resumed, self.next_alarm())
    }
}

/// Refuses the way unless a waiting thread can run at once when it gets the object that it waits
/// for. It must be alone in that list, and more urgent than all ready threads. Returns false if it
/// lives on another VCPU than the one that pays, whose threads are not asked.
#[inline(always)]
fn is_first(
    s: &mut Scheduler,
    vcpus: &mut Pool<'_, Vcpu>,
    threads: &Pool<'_, Thread>,
    waiter: ThreadId,
) -> Result<bool, Longer> {
    let t = &threads[waiter];
    if !is_free_to_come(t, waiter) {
        return Err(Longer::Way);
    }
    if t.vcpu != s.payer {
        return Ok(false);
    }
    if s.queue(vcpus).is_above_all(t.priority) { Ok(true) } else { Err(Longer::Way) }
}

/// Such a thread runs with that result. The caller, whose call returns 0, stays ready.
#[inline(always)]
fn come(
    s: &mut Scheduler,
    vcpus: &mut Pool<'_, Vcpu>,
    threads: &mut Pool<'_, Thread>,
    (caller, first): (ThreadId, ThreadId),
    result: u64,
    now: Nanos,
) -> Resumed {
    threads[caller].put_result(0);
    s.place = first;
    let priority = threads[first].priority;
    s.pass_among(vcpus, threads, (caller, first), now).come(priority, first);
    threads[first].come_back(result)
}

/// Returns the thread that runs when the caller waits. The caller must run in its own place and be
/// alone at its priority, and the next in line must be able to run. Returns nobody if nobody is in
/// line on the VCPU that pays.
#[inline(always)]
fn next_in_line(
    s: &mut Scheduler,
    vcpus: &mut Pool<'_, Vcpu>,
    caller: ThreadId,
    threads: &Pool<'_, Thread>,
) -> Result<ThreadId, Longer> {
    let c = &threads[caller];
    if s.place != caller || c.next != caller || !s.plain {
        return Err(Longer::Way);
    }
    let next = s.queue(vcpus).first_without(c.priority);
    if next.is_none() {
        return if s.payer.is_some() { Ok(next) } else { Err(Longer::Way) };
    }
    if threads[next].can_go_on() { Ok(next) } else { Err(Longer::Way) }
}

/// The caller waits, alone in a list, and `next` runs.
#[inline(always)]
fn go(
    s: &mut Scheduler,
    vcpus: &mut Pool<'_, Vcpu>,
    threads: &mut Pool<'_, Thread>,
    (caller, next): (ThreadId, ThreadId),
    (wait, after, deliver_to): (Wait, Wait, u64),
    now: Nanos,
) -> Resumed {
    let c = &mut threads[caller];
    (c.state, c.wait, c.after) = (State::Blocked, wait, after);
    c.deliver_to = deliver_to;
    let priority = c.priority;
    s.place = next;
    s.pass_among(vcpus, threads, (caller, next), now).go(priority);
    threads[next].go_on()
}

//! Threads: creation, blocking and waking, periodic jobs, exit and join.

use crate::ids::ThreadId;
use crate::kernel::{Flow, Kernel, Refused, Step};
use crate::machine::Machine;
use crate::objects::process::Process;
use crate::objects::thread::{Jobs, State, Thread, Wait};
use crate::pool::{FREE, Id};
use crate::services::end::Left;
use diapason_abi::call::PARTIAL;
use diapason_abi::{Errno, FaultCause, Handle, Kind, Nanos, PRIORITIES};

impl Kernel<'_> {
    /// Takes the running thread's place away; the caller puts it where it waits.
    pub(crate) fn block(&mut self, thread: ThreadId, wait: Wait, after: Wait, deadline: Nanos) {
        self.threads[thread].state = State::Blocked;
        self.wait_in_place(thread, wait, after, deadline);
        self.give_up_place(thread);
    }

    /// The running thread waits and keeps its place.
    #[inline(always)]
    pub(crate) fn wait_in_place(
        &mut self,
        thread: ThreadId,
        wait: Wait,
        after: Wait,
        deadline: Nanos,
    ) {
        let t = &mut self.threads[thread];
        t.wait = wait;
        t.after = after;
        t.result = 0;
        if deadline < Nanos::FOREVER {
            self.set_alarm(thread, deadline);
        }
    }

    /// Makes a blocked thread ready; its call returns `result`. It is in no list any more. The
    /// common case calls nothing.
    pub(crate) fn wake(&mut self, thread: ThreadId, result: u64) {
        let t = &mut self.threads[thread];
        if t.alarm.is_set() || t.vcpu.is_some() || !t.parked.is_empty() {
            return self.wake_fully(thread, result);
        }
        t.wait = t.after;
        t.result = result;
        t.has_result = true;
        t.state = State::Ready;
        self.scheduler.unreserved.insert_back(&mut self.threads, thread);
    }

    #[inline(never)]
    fn wake_fully(&mut self, thread: ThreadId, result: u64) {
        self.stop_waiting(thread, result);
        self.give_place(thread);
    }

    /// Wakes with an error.
    pub(crate) fn wake_with(&mut self, thread: ThreadId, errno: Errno) {
        self.threads[thread].deliver_to = 0;
        self.wake(thread, diapason_abi::encode_result(Err(errno)));
    }

    /// A blocked thread's alarm rang.
    pub(crate) fn timed_out(&mut self, thread: ThreadId) {
        if self.threads[thread].wait == Wait::Time {
            let result = self.threads[thread].result;
            self.threads[thread].jobs.active = self.threads[thread].jobs.period > Nanos::ZERO;
            self.wake(thread, result);
        } else if let Wait::Condition(condition) = self.threads[thread].wait {
            self.leave_condition(thread, condition);
            let timed_out = diapason_abi::encode_result(Err(Errno::TimedOut));
            self.reacquire(thread, timed_out);
        } else if let Wait::Mutex(_) = self.threads[thread].wait {
            self.leave_chain(thread);
            self.fail_in_place(thread, Errno::TimedOut);
        } else if let Wait::Event(event) = self.threads[thread].wait
            && self.rings_at(event) <= self.events[event].deadline
        {
            self.expires(event);
            self.raise(event, 0);
        } else {
            self.send_away(thread, Errno::TimedOut);
        }
    }

    /// Takes a blocked thread out of the list it waits in. It stays blocked.
    pub(crate) fn leave_queue(&mut self, thread: ThreadId) {
        match self.threads[thread].wait {
            Wait::Nothing | Wait::Hint(_) | Wait::Mutex(_) | Wait::Time => {}
            Wait::Semaphore(semaphore) => {
                self.semaphores[semaphore].waiters.remove(&mut self.threads, thread);
            }
            Wait::Condition(condition) => self.leave_condition(thread, condition),
            Wait::Receive(mailbox) => {
                self.mailboxes[mailbox].receivers.remove(&mut self.threads, thread);
            }
            Wait::Send(mailbox) => {
                self.mailboxes[mailbox].senders.remove(&mut self.threads, thread);
            }
            Wait::Event(event) => self.events[event].waiter = Id::NONE,
            Wait::Join(other) => self.threads[other].joiner = Id::NONE,
        }
    }

    /// `ThreadCreate(entry, argument, priority, name, vcpu)`.
    #[inline(never)]
    pub(crate) fn thread_create<M: Machine>(&mut self, m: &mut M, a: [u64; 5]) -> Step {
        let [entry, argument, priority, name, vcpu] = a;
        let process = self.process;
        if priority >= PRIORITIES as u64 || priority as u8 > self.processes[process].priority {
            return Err(Refused::Misuse(FaultCause::BadArgument, priority));
        }
        let range = self.processes[process].threads;
        let free = self.threads.find_in(range, Thread::is_spare);
        let thread = free.ok_or(Refused::Errno(Errno::Exhausted))?;
        let vcpu = match vcpu {
            0 => self.processes[process].vcpu,
            handle => self.own_vcpu(handle)?,
        };
        self.threads[thread].vcpu = vcpu;
        self.processes[process].live += 1;
        self.thread_start(m, thread, Some((entry, argument)), priority as u8, name);
        Ok(Flow::Done(self.threads[thread].handle))
    }

    /// Brings a free slot to life.
    pub(crate) fn thread_start<M: Machine>(
        &mut self,
        m: &mut M,
        thread: ThreadId,
        entry: Option<(u64, u64)>,
        priority: u8,
        name: u64,
    ) {
        let t = &mut self.threads[thread];
        t.generation += 1;
        t.handle = Handle::new(Kind::Thread, thread.index(), t.generation).0;
        t.priority = priority;
        t.name = name;
        (t.state, t.wait, t.held) = (State::Ready, Wait::Nothing, Id::NONE);
        (t.joiner, t.detached) = (Id::NONE, false);
        (t.has_result, t.deliver_to) = (false, 0);
        (t.jobs.period, t.jobs.active) = (Nanos::ZERO, false);
        t.urgency = u64::from(priority);
        let vcpu = t.vcpu;
        if vcpu.is_some() {
            let v = &mut self.vcpus[vcpu];
            t.urgency |= v.urgency;
            v.threads += 1;
            self.enter_vcpu(vcpu, thread);
        } else {
            self.scheduler.unreserved.insert_back(&mut self.threads, thread);
        }
        m.start_thread(thread, entry);
    }

    /// Ends a thread that holds no mutex; its slot is free afterwards unless a thread may still
    /// join it.
    pub(crate) fn thread_stop(&mut self, thread: ThreadId, ended: State) {
        self.leave_chain(thread);
        self.cancel_alarm(thread);
        let Thread { state, vcpu, .. } = self.threads[thread];
        match state {
            State::Ready | State::Parked => self.give_up_place(thread),
            State::Blocked => self.leave_queue(thread),
            State::Free | State::Ended => {}
        }
        if vcpu.is_some() && state != State::Ended {
            self.vcpus[vcpu].threads -= 1;
        }
        let t = &mut self.threads[thread];
        t.wait = Wait::Nothing;
        t.state = ended;
        t.deliver_to = 0;
        t.jobs.active = false;
        if ended == State::Free {
            t.handle = FREE;
        }
    }

    /// `ThreadExit(code)`: wakes the joiner, or leaves the code for it. A thread that holds too
    /// many mutexes for one entry has to repeat the call.
    pub(crate) fn thread_exit<M: Machine>(&mut self, m: &mut M, code: u64) -> Step {
        let thread = self.running();
        let Thread { joiner, detached, process, .. } = self.threads[thread];
        let code = code & (u64::MAX >> 1);
        if !self.abandon_held(thread, &mut Left(self.stage)) {
            return Ok(Flow::Done(PARTIAL));
        }
        if self.processes[process].live == 1 {
            self.process_exit(m, process, thread);
            return Ok(Flow::Away);
        }
        if joiner.is_some() {
            self.wake(joiner, code);
        }
        let joined = joiner.is_some() || detached;
        self.thread_stop(thread, if joined { State::Free } else { State::Ended });
        self.threads[thread].result = code;
        self.processes[process].live -= 1;
        Ok(Flow::Away)
    }

    /// A thread of the calling process.
    fn own_thread(&self, handle: u64) -> Result<ThreadId, Refused> {
        match self.threads.get(handle as u16) {
            Some(t) if t.handle == handle && t.process == self.process => {
                Ok(Id::new(handle as u16))
            }
            slot => {
                let mine = slot.filter(|t| t.process == self.process);
                Err(self.stale_or_misused(Handle(handle), Kind::Thread, mine.map(|t| t.generation)))
            }
        }
    }

    pub(crate) fn thread_join(&mut self, handle: u64, deadline: Nanos, hint: u64) -> Step {
        let thread = self.own_thread(handle)?;
        let caller = self.running();
        let t = &self.threads[thread];
        if thread == caller {
            return Err(Refused::Errno(Errno::Deadlock));
        }
        if t.detached || t.joiner.is_some() {
            return Err(Refused::Errno(Errno::Busy));
        }
        if t.state == State::Ended {
            let code = t.result;
            self.thread_stop(thread, State::Free);
            return Ok(Flow::Done(code));
        }
        self.may_wait(deadline)?;
        let after = self.hinted(hint);
        self.block(caller, Wait::Join(thread), after, deadline);
        self.threads[thread].joiner = caller;
        Ok(Flow::Away)
    }

    pub(crate) fn thread_detach(&mut self, handle: u64) -> Step {
        let thread = self.own_thread(handle)?;
        let t = &mut self.threads[thread];
        if t.detached || t.joiner.is_some() {
            return Err(Refused::Errno(Errno::Busy));
        }
        t.detached = true;
        if t.state == State::Ended {
            self.thread_stop(thread, State::Free);
        }
        Ok(Flow::Done(0))
    }

    pub(crate) fn sleep_until(&mut self, time: Nanos, hint: u64) -> Step {
        if time <= self.now {
            return Ok(Flow::Same(0));
        }
        let after = self.hinted(hint);
        self.block(self.running(), Wait::Time, after, time);
        Ok(Flow::Away)
    }

    /// `JobsStart(first, period, deadline, hint)`.
    pub(crate) fn jobs_start(
        &mut self,
        first: Nanos,
        period: Nanos,
        deadline: Nanos,
        hint: u64,
    ) -> Step {
        let after = self.hinted(hint);
        if period == Nanos::ZERO || period == Nanos::FOREVER {
            return Err(Refused::Misuse(FaultCause::BadArgument, period.0));
        }
        let thread = self.running();
        self.pay_up();
        self.threads[thread].paid = Nanos::ZERO;
        let jobs = &mut self.threads[thread].jobs;
        jobs.release = first;
        jobs.period = period;
        jobs.deadline = deadline;
        self.await_release(thread, after, 0)
    }

    /// `JobWait(hint)`: account for the job that ends, then wait for the next release. Releases
    /// that have passed entirely are passed over and count as misses: a late task catches up by
    /// dropping work, never by bunching it.
    pub(crate) fn job_wait(&mut self, hint: u64) -> Step {
        let after = self.hinted(hint);
        let (thread, now) = (self.running(), self.now);
        let period = self.threads[thread].jobs.period;
        if period == Nanos::ZERO {
            return Err(Refused::Misuse(FaultCause::BadArgument, 0));
        }
        self.pay_up();
        let cost = core::mem::take(&mut self.threads[thread].paid);
        let jobs = &mut self.threads[thread].jobs;
        let response = now - jobs.release;
        jobs.done += 1;
        jobs.misses += u64::from(response > jobs.deadline);
        jobs.response_max = jobs.response_max.max(response);
        jobs.cost_max = jobs.cost_max.max(cost);
        jobs.release += period;
        let late = now - jobs.release;
        let mut skipped = 0;
        if late >= period {
            skipped = late.0 / period.0;
            jobs.release += Nanos(skipped * period.0);
            jobs.skipped += skipped;
            jobs.misses += skipped;
        }
        self.await_release(thread, after, skipped)
    }

    fn await_release(&mut self, thread: ThreadId, after: Wait, result: u64) -> Step {
        let release = self.threads[thread].jobs.release;
        if release <= self.now {
            self.threads[thread].jobs.active = true;
            return Ok(Flow::Done(result));
        }
        self.threads[thread].jobs.active = false;
        self.block(thread, Wait::Time, after, release);
        self.threads[thread].result = result;
        Ok(Flow::Away)
    }

    /// The jobs of a thread as they stand at `now`: a job under way past its deadline is a miss
    /// already, and what it has used so far is its cost.
    #[must_use]
    pub fn jobs_at(&self, thread: ThreadId, now: Nanos) -> Jobs {
        let mut jobs = self.threads[thread].jobs;
        if jobs.active && now - jobs.release > jobs.deadline {
            jobs.misses += 1;
            jobs.response_max = jobs.response_max.max(now - jobs.release);
        }
        if jobs.active {
            jobs.cost_max = jobs.cost_max.max(self.threads[thread].paid);
        }
        jobs
    }

    /// The process a thread belongs to.
    #[must_use]
    pub fn process_of(&self, thread: ThreadId) -> &Process {
        &self.processes[self.threads[thread].process]
    }
}

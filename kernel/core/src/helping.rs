//! Priority and bandwidth inheritance by helping: the thread that runs in another's place.
//!
//! A thread that waits for a mutex keeps its place among the ready, and the owner of the mutex runs
//! in it: at that priority, on that budget. If the owner waits for a mutex itself, the owner of
//! that one runs, and so on; `sem_lock` refuses to close a circle. Nothing is lent, so nothing has
//! to be given back: an unlock is one store, and the thread chosen next finds the mutex free and
//! takes it. Each step costs the same however many threads there are.
//!
//! Two things may stand at the end of a chain besides a thread that can run:
//! - a free mutex: the thread before it takes it, and runs;
//! - an owner that waits for something else (it sleeps with the mutex held): then nobody can run in
//!   that place, and it is given up. Its thread is *parked* with that owner until the owner wakes;
//! - a server that waits for a request, and the thread before it asks: it gets the request, and
//!   runs (`serving`).
//!
//! A thread may also come back from a wait with a *hint*: the mutex it will lock next. While
//! another thread holds that mutex, there is no use in switching to the hinted one, only to switch
//! away again at its lock call: the holder runs in its place at once (EMERALDS' semaphores without
//! the extra switch). A hint decides who runs first and nothing else: it is disregarded if the
//! holder cannot run or yields, and while its own thread runs.

use crate::alarms::URGENT;
use crate::ids::{SemaphoreId, ThreadId};
use crate::kernel::Kernel;
use crate::objects::thread::{State, Wait};
use crate::pool::Id;
use crate::served::{HINTS, SERVERS};
use crate::walks::walk;
use diapason_abi::Errno;
use diapason_abi::call::NO_HINT;
use diapason_costs::Round;

impl Kernel<'_> {
    /// Returns the thread that should run. The scheduler remembers in whose place.
    #[inline(always)]
    pub fn choose(&mut self) -> ThreadId {
        if self.unsettled && self.now >= self.scheduler.call_at {
            self.pay_up();
        }
        let run = self.chosen();
        if self.vcpus.is_empty() {
            run
        } else if self.unsettled {
            self.keep_or_attend(run)
        } else {
            self.attend(run)
        }
    }

    /// If `run` goes on and the same VCPU goes on paying of its budget, there is nothing to attend
    /// to.
    #[inline(never)]
    fn keep_or_attend(&mut self, run: ThreadId) -> ThreadId {
        let goes_on = self.unsettled && self.scheduler.plain && run == self.running();
        if goes_on && self.threads[self.scheduler.place].vcpu == self.scheduler.payer {
            return run;
        }
        self.pay_up();
        self.attend(run)
    }

    /// The first place, and the thread that runs there.
    #[inline(always)]
    pub(crate) fn chosen(&mut self) -> ThreadId {
        let mut run = self.scheduler.pick(&self.vcpus);
        self.scheduler.place = run;
        if run.is_some() {
            run = match self.threads[run].wait {
                Wait::Nothing => run,
                Wait::Mutex(mutex) => self.stand_in(run, mutex),
                Wait::Hint(mutex) if HINTS => {
                    let simple = self.foresee(run, mutex);
                    if simple.is_some() { simple } else { self.help(run) }
                }
                _ => self.help(run),
            };
        }
        run
    }

    /// Returns the thread that runs in the place of one that will lock a mutex: usually the owner,
    /// or the thread itself if there is no owner or it runs already. Nobody: it is not that simple.
    #[inline(always)]
    pub(crate) fn foresee(&self, place: ThreadId, mutex: SemaphoreId) -> ThreadId {
        let owner = self.semaphores[mutex].owner;
        if owner.is_none() || place == self.scheduler.running {
            place
        } else if let Wait::Nothing = self.threads[owner].wait {
            owner
        } else {
            ThreadId::NONE
        }
    }

    /// Returns the thread that runs in the place of one that waits for a mutex: usually the owner,
    /// or the thread itself if the owner has released it.
    #[inline(always)]
    fn stand_in(&mut self, place: ThreadId, mutex: SemaphoreId) -> ThreadId {
        let s = &self.semaphores[mutex];
        if s.handle == self.threads[place].wanted {
            let owner = s.owner;
            if owner.is_none() {
                self.acquire(place, mutex);
                if let Wait::Nothing = self.threads[place].wait {
                    return place;
                }
            } else if let Wait::Nothing = self.threads[owner].wait {
                return owner;
            }
        }
        self.help(place)
    }

    /// The thread in the first place waits, or has a hint: find who can run instead. Choosing a
    /// place scans a queue, so that is done again only if this one was given up.
    #[inline(never)]
    fn help(&mut self, mut place: ThreadId) -> ThreadId {
        while place.is_some() {
            let (before, end) = self.chain(place);
            let wait = self.threads[end].wait;
            match wait {
                Wait::Nothing | Wait::Hint(_) => return end,
                Wait::Mutex(mutex) => self.acquire(end, mutex),
                Wait::Receive(_) if SERVERS && self.attend_call(before, end) => {
                    // The server's own place may come before.
                    place = self.scheduler.pick(&self.vcpus);
                    self.scheduler.place = place;
                }
                _ if matches!(self.threads[place].wait, Wait::Hint(_)) => return place,
                _ => {
                    self.park(place, end);
                    place = self.scheduler.pick(&self.vcpus);
                    self.scheduler.place = place;
                }
            }
        }
        place
    }

    /// From owner to owner: a thread that does not wait for a mutex that somebody holds.
    #[inline(always)]
    pub(crate) fn end_of_chain(&self, place: ThreadId) -> ThreadId {
        self.chain(place).1
    }

    /// The end of a chain of owners, and the thread before it.
    #[inline(never)]
    fn chain(&self, place: ThreadId) -> (ThreadId, ThreadId) {
        let (mut before, mut thread) = (place, place);
        if let Wait::Hint(mutex) = self.threads[place].wait
            && HINTS
        {
            let owner = self.semaphores[mutex].owner;
            let follow = owner.is_some() && place != self.scheduler.running;
            thread = if follow { owner } else { place };
        }
        loop {
            walk(Round::Link, 1);
            let owner = self.awaited(thread);
            if owner.is_none() {
                return (before, thread);
            }
            (before, thread) = (thread, owner);
            // A hint may close a circle; what only may be locked holds nobody up.
            if thread == place {
                return (before, thread);
            }
        }
    }

    /// The owner of the mutex that `thread` waits for, if there is one.
    pub(crate) fn awaited(&self, thread: ThreadId) -> ThreadId {
        let t = &self.threads[thread];
        match t.wait {
            Wait::Mutex(mutex) if self.semaphores[mutex].handle == t.wanted => {
                self.semaphores[mutex].owner
            }
            _ => Id::NONE,
        }
    }

    /// The mutex that `thread` waits for is free, or is gone: its call returns.
    #[inline(never)]
    fn acquire(&mut self, thread: ThreadId, mutex: SemaphoreId) {
        let t = &self.threads[thread];
        if self.semaphores[mutex].handle == t.wanted && !t.asks() {
            self.cancel_alarm(thread);
            self.receive_mutex(thread, mutex);
        } else {
            self.fail_in_place(thread, Errno::Gone);
        }
    }

    /// A thread whose alarm is not set gets the mutex that it waits for, which is free.
    #[inline(always)]
    fn receive_mutex(&mut self, thread: ThreadId, mutex: SemaphoreId) {
        let semaphore = &mut self.semaphores[mutex];
        semaphore.hand_to(mutex, &mut self.threads[thread], thread);
    }

    /// A thread that has its place goes on: its call returns `result`.
    #[inline(always)]
    pub(crate) fn stop_waiting(&mut self, thread: ThreadId, result: u64) {
        self.cancel_alarm(thread);
        let t = &mut self.threads[thread];
        t.wait = t.after;
        t.result = result;
        t.has_result = true;
    }

    /// Ends the wait of a blocked thread whose object will not come.
    #[inline(never)]
    pub(crate) fn send_away(&mut self, thread: ThreadId, errno: Errno) {
        self.leave_queue(thread);
        self.wake_with(thread, errno);
    }

    /// A thread is among the ready.
    #[inline(always)]
    fn take_place(&mut self, thread: ThreadId) {
        let vcpu = self.threads[thread].vcpu;
        if vcpu.is_some() {
            self.enter_vcpu(vcpu, thread);
        } else {
            self.scheduler.unreserved.insert_back(&mut self.threads, thread);
        }
    }

    /// A thread is not among the ready any more.
    #[inline(always)]
    pub(crate) fn give_up_place(&mut self, thread: ThreadId) {
        let vcpu = self.threads[thread].vcpu;
        if vcpu.is_some() {
            self.leave_vcpu(vcpu, thread);
        } else {
            self.scheduler.unreserved.remove(&mut self.threads, thread);
        }
    }

    /// The running thread goes behind its equals. In somebody else's place it has none; but if that
    /// one only has a hint, it may be the one that is yielded to.
    #[inline(always)]
    pub(crate) fn rotate(&mut self) {
        let thread = self.scheduler.running;
        let place = self.scheduler.place;
        if place != thread {
            if let Wait::Hint(_) = self.threads[place].wait {
                self.threads[place].wait = Wait::Nothing;
            }
            return;
        }
        let (vcpu, priority) = (self.threads[thread].vcpu, self.threads[thread].priority);
        let ready = if vcpu.is_some() {
            &mut self.vcpus[vcpu].ready
        } else {
            &mut self.scheduler.unreserved
        };
        ready.rotate(&self.threads, priority);
    }

    /// A blocked thread gets its place, and so does everybody who was parked with it.
    #[inline(never)]
    pub(crate) fn give_place(&mut self, thread: ThreadId) {
        self.threads[thread].state = State::Ready;
        self.take_place(thread);
        if !self.threads[thread].parked.is_empty() {
            self.unpark_all(thread);
        }
    }

    /// Nobody can run in this place until `end` wakes.
    fn park(&mut self, place: ThreadId, end: ThreadId) {
        walk(Round::Park, 1);
        // No alarm makes this path longer.
        self.quiet = true;
        self.give_up_place(place);
        self.threads[place].state = State::Parked;
        let mut parked = self.threads[end].parked;
        parked.push_back(&mut self.threads, place);
        self.threads[end].parked = parked;
        let urgency = self.threads[end].urgency.max(self.own_urgency(place));
        self.requeue(end, urgency);
        if self.threads[place].vcpu.is_some() {
            self.hasten(place);
        }
    }

    /// The end of a wait in this chain matters to the VCPU of `place`: it may ring at any time, and
    /// that VCPU pays for the ring.
    fn hasten(&mut self, place: ThreadId) {
        let vcpu = self.threads[place].vcpu;
        let mut thread = self.awaited(place);
        while thread.is_some() {
            walk(Round::Link, 1);
            let alarm = self.threads[thread].alarm;
            let held = alarm.is_set() && alarm.group() != URGENT;
            if held && self.threads[thread].vcpu != vcpu {
                self.cancel_alarm(thread);
                self.alarms.set(&mut self.threads, thread, alarm.due(), URGENT);
                self.levy(vcpu, self.fees.interrupt);
            }
            thread = self.awaited(thread);
        }
    }

    /// A thread that waits is urgent for the sake of those parked with it: it is served in that
    /// order.
    fn requeue(&mut self, thread: ThreadId, urgency: u64) {
        if self.threads[thread].urgency == urgency {
            return;
        }
        self.threads[thread].urgency = urgency;
        let queue = match self.threads[thread].wait {
            Wait::Semaphore(s) => &mut self.semaphores[s].waiters,
            Wait::Condition(c) => &mut self.conditions[c].waiters,
            Wait::Receive(m) => &mut self.mailboxes[m].receivers,
            Wait::Send(m) => &mut self.mailboxes[m].senders,
            _ => return,
        };
        queue.remove(&mut self.threads, thread);
        queue.insert_by_urgency(&mut self.threads, thread);
    }

    /// Everybody parked with `end` has a place again. A thread that still waits for it is parked
    /// again when its turn comes.
    #[inline(never)]
    pub(crate) fn unpark_all(&mut self, end: ThreadId) {
        loop {
            let mut parked = self.threads[end].parked;
            let place = parked.head;
            if place.is_none() {
                return self.requeue(end, self.own_urgency(end));
            }
            walk(Round::Unpark, 1);
            parked.remove(&mut self.threads, place);
            self.threads[end].parked = parked;
            self.threads[place].state = State::Ready;
            self.take_place(place);
        }
    }

    /// `thread` will not wait for its mutex any longer: if it is parked, or others who wait for
    /// what it holds are, they have their places again.
    #[inline(always)]
    pub(crate) fn leave_chain(&mut self, thread: ThreadId) {
        let end = self.end_of_waits(thread);
        if !self.threads[end].parked.is_empty() {
            self.unpark_all(end);
        }
    }

    /// Returns how urgent a thread is among all that wait for one thing: its VCPU's queue and
    /// period first, then its priority.
    #[inline(always)]
    pub(crate) fn own_urgency(&self, thread: ThreadId) -> u64 {
        let t = &self.threads[thread];
        let urgency = u64::from(t.priority);
        if t.vcpu.is_some() { urgency | self.vcpus[t.vcpu].urgency } else { urgency }
    }

    /// As [`Kernel::hinted`], mostly without a hint.
    #[inline(always)]
    pub(crate) fn after_wait(&self, hint: u64) -> Wait {
        if !HINTS || hint == NO_HINT { Wait::Nothing } else { self.hinted(hint) }
    }

    /// Returns the wait that a wait with this hint turns into when it ends. A hint changes no
    /// result: one that names no mutex of the caller's is none.
    #[inline(never)]
    pub(crate) fn hinted(&self, hint: u64) -> Wait {
        if !HINTS {
            return Wait::Nothing;
        }
        match self.semaphores.get(hint as u16) {
            Some(s) if s.handle == hint && hint != NO_HINT && s.allowed & self.grant != 0 => {
                if s.mutex { Wait::Hint(Id::new(hint as u16)) } else { Wait::Nothing }
            }
            _ => Wait::Nothing,
        }
    }

    /// Returns how urgent the most urgent place is that `thread` can run in: its own priority, or
    /// that of somebody who waits for it. For tests; the kernel itself never needs it.
    #[must_use]
    pub fn urgency(&self, thread: ThreadId) -> u8 {
        let helped = |waiter: &ThreadId| {
            let mut at = *waiter;
            while at.is_some() && at != thread {
                at = self.awaited(at);
            }
            at == thread
        };
        let waiting = self.threads.ids().filter(|t| self.threads[*t].state != State::Free);
        waiting.filter(helped).map(|t| self.threads[t].priority).max().unwrap_or(0)
    }
}

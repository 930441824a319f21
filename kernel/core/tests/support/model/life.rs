//! Threads, processes and memory of the model.

use super::*;
use diapason_abi::CallNumber as Call;
use diapason_abi::call::{NO_HINT, PARTIAL, mapped};
use diapason_abi::{FaultReport, PAGE, PAGES_PER_CALL, layout};
use diapason_core::ProcessState;

impl Model {
    fn thread(&self, word: u64) -> Result<usize, Outcome> {
        self.lookup(Kind::Thread, word, |model, index| {
            let t = model.threads.get(index)?;
            Some((t.process == model.process(), t.life != Life::Free, t.generation))
        })
    }

    fn threads_of(&self, process: usize) -> Vec<usize> {
        (0..self.threads.len()).filter(|t| self.threads[*t].process == process).collect()
    }

    /// A blocked thread leaves whatever it waits in.
    fn leave(&mut self, thread: usize) {
        let semaphores = self.semaphores.iter_mut().map(|s| &mut s.waiters);
        let conditions = self.conditions.iter_mut().map(|c| &mut c.waiters);
        let boxes = self.mailboxes.iter_mut().flat_map(|m| [&mut m.receivers, &mut m.senders]);
        semaphores.chain(conditions).chain(boxes).for_each(|q| q.retain(|t| *t != thread));
        for event in self.events.iter_mut().filter(|e| e.waiter == Some(thread)) {
            event.waiter = None;
        }
        for other in self.threads.iter_mut().filter(|t| t.joiner == Some(thread)) {
            other.joiner = None;
        }
    }

    /// A blocked thread's time has come.
    pub(super) fn time_out(&mut self, thread: usize) {
        self.threads[thread].due = None;
        match self.threads[thread].life.clone() {
            Life::Blocked(Wait::Time(result)) => {
                self.threads[thread].jobs.active = self.threads[thread].jobs.period > 0;
                self.wake(thread, result);
            }
            Life::Blocked(Wait::Condition(_, mutex, generation)) => {
                self.leave(thread);
                self.reacquire(thread, mutex, generation, error(Errno::TimedOut));
            }
            Life::Blocked(Wait::Mutex(..) | Wait::Answer(..)) => {
                self.leave_chain(thread);
                self.go_on(thread, error(Errno::TimedOut));
            }
            _ => {
                self.leave(thread);
                self.wake(thread, error(Errno::TimedOut));
            }
        }
    }

    /// A thread stops to wait for a mutex: it, and those parked with the same, have their places
    /// again.
    fn leave_chain(&mut self, thread: usize) {
        self.unpark_all(self.end_of_chain(thread));
    }

    fn start_thread(&mut self, thread: usize, priority: u8) {
        let t = &mut self.threads[thread];
        (t.life, t.priority) = (Life::Ready, priority);
        (t.hint, t.after) = (None, None);
        (t.result, t.delivery, t.joiner, t.detached) = (None, None, None, false);
        (t.jobs.period, t.jobs.active) = (0, false);
        t.generation += 1;
        self.ready.push(thread);
    }

    /// A thread ends, from whatever state.
    fn stop_thread(&mut self, thread: usize, to: Life) {
        self.leave_chain(thread);
        if matches!(self.threads[thread].life, Life::Blocked(_)) {
            self.leave(thread);
        }
        self.ready.retain(|t| *t != thread);
        let t = &mut self.threads[thread];
        (t.life, t.due, t.result, t.delivery) = (to, None, None, None);
        t.jobs.active = false;
        self.abandon(thread);
    }

    pub(super) fn start_process(&mut self, process: usize) {
        let p = &mut self.processes[process];
        p.state = ProcessState::Running;
        p.starts += 1;
        let priority = p.priority;
        self.start_thread(self.threads_of(process)[0], priority);
    }

    fn stop_process(&mut self, process: usize) {
        for thread in self.threads_of(process) {
            if self.threads[thread].life != Life::Free {
                self.stop_thread(thread, Life::Free);
            }
        }
        self.end_process(process);
    }

    /// The places of the private objects of a process.
    fn own_places(&self, process: usize) -> Vec<(Kind, usize)> {
        let mine = 1 << process;
        let events = self.events.iter().enumerate().filter(|(_, e)| e.allowed == mine);
        let semaphores = self.semaphores.iter().enumerate();
        let semaphores = semaphores.filter(|(_, s)| s.key == 0 && s.allowed == mine);
        let conditions = self.conditions.iter().enumerate();
        let conditions = conditions.filter(|(_, c)| c.key == 0 && c.allowed == mine);
        let events = events.map(|(id, _)| (Kind::Event, id));
        let semaphores = semaphores.map(|(id, _)| (Kind::Semaphore, id));
        let all = events.chain(semaphores);
        all.chain(conditions.map(|(id, _)| (Kind::Condition, id))).collect()
    }

    fn end_process(&mut self, process: usize) {
        for thread in self.threads_of(process) {
            self.threads[thread].life = Life::Free;
        }
        for id in 0..self.events.len() {
            if self.events[id].alive && self.events[id].allowed == 1 << process {
                self.destroy_event(id);
            }
        }
        let own = self.own_places(process);
        self.freed.retain(|place| !own.contains(place));
        self.touched.retain(|place| !own.contains(place));
        let private = |key, allowed| key == 0 && allowed == 1 << process;
        let semaphores = self.semaphores.iter_mut();
        semaphores.filter(|s| private(s.key, s.allowed)).for_each(|s| s.alive = false);
        let conditions = self.conditions.iter_mut();
        conditions.filter(|c| private(c.key, c.allowed)).for_each(|c| c.alive = false);
        for id in 0..self.segments.len() {
            self.detach(process, id);
        }
        self.devices.iter_mut().for_each(|d| d.mapped.retain(|p| *p != process));
        self.free_frames += std::mem::take(&mut self.processes[process].heap);
        self.processes[process].state = ProcessState::Idle;
    }

    /// The running thread did what it may not do.
    pub(super) fn fault(&mut self, cause: FaultCause, address: u64, instruction: u64) {
        let (thread, process) = (self.caller(), self.process());
        let p = &mut self.processes[process];
        p.faults += 1;
        let report = FaultReport {
            process: process as u16,
            thread: self.threads[thread].slot,
            cause,
            address,
            instruction,
            time: self.now,
            key: p.key,
            restarts: p.starts - 1,
            restarts_max: p.restarts_max,
            backoff: p.backoff,
        };
        let supervisor = p.supervisor;
        self.stop_process(process);
        self.processes[process].state = ProcessState::Faulted;
        let reports = |m: &Mailbox| supervisor.is_some() && m.faults_of == supervisor;
        if let Some(id) = self.mailboxes.iter().position(reports)
            && self.has_room(id)
        {
            self.arrive(id, &report.to_bytes(), u32::MAX);
        }
    }

    pub(super) fn thread_call(&mut self, call: Call, a: [u64; 5]) -> Step {
        let caller = self.caller();
        match call {
            Call::Yield => {
                match self.place {
                    Some(place) if place != caller => self.threads[place].hint = None,
                    _ => {
                        self.ready.retain(|t| *t != caller);
                        self.ready.push(caller);
                    }
                }
                Ok(Outcome::Done(0))
            }
            Call::ThreadExit => self.exit(a[0] & (u64::MAX >> 1)),
            Call::ThreadCreate => self.create(a[2]),
            Call::ThreadJoin => self.join(a[0], a[1], a[2]),
            Call::ThreadDetach => {
                let thread = self.thread(a[0])?;
                if self.threads[thread].detached || self.threads[thread].joiner.is_some() {
                    return Err(Outcome::Refused(Errno::Busy));
                }
                self.threads[thread].detached = true;
                if matches!(self.threads[thread].life, Life::Ended(_)) {
                    self.threads[thread].life = Life::Free;
                }
                Ok(Outcome::Done(0))
            }
            Call::SleepUntil if a[0] <= self.now => Ok(Outcome::Done(0)),
            Call::SleepUntil => {
                let after = self.hinted(a[1]);
                self.block(caller, Wait::Time(0), after, a[0]);
                Ok(Outcome::Away)
            }
            Call::JobsStart => {
                if a[1] == 0 || a[1] == u64::MAX {
                    return Err(Outcome::Misuse(FaultCause::BadArgument, a[1]));
                }
                let after = self.hinted(a[3]);
                let jobs = &mut self.threads[caller].jobs;
                (jobs.release, jobs.period, jobs.deadline) = (a[0], a[1], a[2]);
                self.await_release(after, 0)
            }
            _ => self.job_wait(a[0]),
        }
    }

    fn exit(&mut self, code: u64) -> Step {
        let (caller, process) = (self.caller(), self.process());
        let Thread { joiner, detached, .. } = self.threads[caller];
        if let Some(joiner) = joiner {
            self.wake(joiner, code);
        }
        let kept = joiner.is_none() && !detached;
        self.stop_thread(caller, if kept { Life::Ended(code) } else { Life::Free });
        let lives = |t: &&usize| matches!(self.threads[**t].life, Life::Ready | Life::Blocked(_));
        if self.threads_of(process).iter().filter(lives).count() == 0 {
            self.end_process(process);
        }
        Ok(Outcome::Away)
    }

    fn create(&mut self, priority: u64) -> Step {
        let process = self.process();
        if priority > u64::from(self.processes[process].priority) {
            return Err(Outcome::Misuse(FaultCause::BadArgument, priority));
        }
        let slots = self.threads_of(process);
        let free = slots.into_iter().find(|t| self.threads[*t].life == Life::Free);
        let thread = free.ok_or(Outcome::Refused(Errno::Exhausted))?;
        self.start_thread(thread, priority as u8);
        Ok(Outcome::Done(handle(Kind::Thread, thread, self.threads[thread].generation)))
    }

    fn join(&mut self, word: u64, deadline: u64, hint: u64) -> Step {
        let (thread, caller) = (self.thread(word)?, self.caller());
        if thread == caller {
            return Err(Outcome::Refused(Errno::Deadlock));
        }
        let t = &mut self.threads[thread];
        if t.detached || t.joiner.is_some() {
            return Err(Outcome::Refused(Errno::Busy));
        }
        if let Life::Ended(code) = t.life {
            t.life = Life::Free;
            return Ok(Outcome::Done(code));
        }
        self.may_wait(deadline)?;
        let after = self.hinted(hint);
        self.block(caller, Wait::Join(thread), after, deadline);
        self.threads[thread].joiner = Some(caller);
        Ok(Outcome::Away)
    }

    fn job_wait(&mut self, hint: u64) -> Step {
        let (caller, now) = (self.caller(), self.now);
        let after = self.hinted(hint);
        let jobs = &mut self.threads[caller].jobs;
        if jobs.period == 0 {
            return Err(Outcome::Misuse(FaultCause::BadArgument, 0));
        }
        let response = now.saturating_sub(jobs.release);
        jobs.done += 1;
        jobs.misses += u64::from(response > jobs.deadline);
        jobs.response_max = jobs.response_max.max(response);
        jobs.release += jobs.period;
        // Pass over every release whose whole period has gone by.
        let mut skipped = 0;
        while jobs.release + jobs.period <= now {
            jobs.release += jobs.period;
            skipped += 1;
        }
        jobs.skipped += skipped;
        jobs.misses += skipped;
        self.await_release(after, skipped)
    }

    fn await_release(&mut self, after: Option<usize>, result: u64) -> Step {
        let caller = self.caller();
        let jobs = &mut self.threads[caller].jobs;
        jobs.active = jobs.release <= self.now;
        if jobs.active {
            return Ok(Outcome::Done(result));
        }
        let release = jobs.release;
        self.block(caller, Wait::Time(result), after, release);
        Ok(Outcome::Away)
    }

    pub(super) fn process_call(&mut self, call: Call, a: [u64; 5]) -> Step {
        let word = a[0];
        match call {
            Call::ProcCreate => {
                let created = self.proc_create(word)?;
                let [_, mailbox, address, deadline, _] = a;
                if mailbox == 0 {
                    return Ok(created);
                }
                self.mail_call(Call::MboxReceive, [mailbox, address, deadline, NO_HINT, 0], &[])
            }
            Call::ProcKill => {
                let process = self.subordinate(word, false)?;
                if self.processes[process].state != ProcessState::Running {
                    return Err(Outcome::Refused(Errno::Gone));
                }
                self.stop_process(process);
                Ok(Outcome::Done(0))
            }
            Call::MemAlloc => self.allocate(word),
            // Nothing here can be rung.
            Call::Ring => Err(Outcome::Misuse(FaultCause::BadGrant, word)),
            Call::ShmAttach => self.attach(word),
            Call::ShmBus => {
                let id = self.segment(word)?;
                let s = &self.segments[id];
                let bus = s.bus.ok_or(Outcome::Misuse(FaultCause::BadGrant, word))?;
                if !s.attached.contains(&self.process()) {
                    return Err(Outcome::Refused(Errno::Gone));
                }
                Ok(Outcome::Done(mapped(bus, s.pages)))
            }
            Call::ShmDetach => {
                let id = self.segment(word)?;
                if !self.segments[id].attached.contains(&self.process()) {
                    return Err(Outcome::Refused(Errno::Gone));
                }
                self.detach(self.process(), id);
                Ok(Outcome::Done(0))
            }
            _ => {
                let named = self.devices.iter().position(|d| d.key == word);
                let id = named.ok_or(Outcome::Misuse(FaultCause::BadGrant, word))?;
                if self.devices[id].absent {
                    return Err(Outcome::Refused(Errno::Absent));
                }
                let process = self.process();
                self.devices[id].mapped.push(process);
                let address = layout::device(process as u16, id as u16);
                Ok(Outcome::Done(mapped(address, 1)))
            }
        }
    }

    fn subordinate(&self, key: u64, starting: bool) -> Result<usize, Outcome> {
        let me = self.process();
        let may = |p: &Process| p.supervisor == Some(me) || starting && p.starters >> me & 1 == 1;
        let named = self.processes.iter().position(|p| p.key == key);
        let named = named.filter(|id| may(&self.processes[*id]));
        named.ok_or(Outcome::Misuse(FaultCause::BadGrant, key))
    }

    fn proc_create(&mut self, key: u64) -> Step {
        let process = self.subordinate(key, true)?;
        if self.processes[process].state == ProcessState::Running {
            return Err(Outcome::Refused(Errno::Busy));
        }
        self.start_process(process);
        Ok(Outcome::Done(0))
    }

    fn allocate(&mut self, pages: u64) -> Step {
        if pages == 0 || pages > PAGES_PER_CALL as u64 {
            return Err(Outcome::Misuse(FaultCause::BadArgument, pages));
        }
        let process = self.process();
        let p = &mut self.processes[process];
        if u64::from(p.heap) + pages > u64::from(p.heap_max) {
            return Err(Outcome::Misuse(FaultCause::Quota, pages));
        }
        let at = layout::base(process as u16) + layout::HEAP + u64::from(p.heap) * PAGE as u64;
        p.heap += pages as u32;
        self.free_frames -= pages as u32;
        Ok(Outcome::Done(at))
    }

    fn segment(&self, key: u64) -> Result<usize, Outcome> {
        let named = self.segments.iter().position(|s| s.key == key);
        named.ok_or(Outcome::Misuse(FaultCause::BadGrant, key))
    }

    fn attach(&mut self, key: u64) -> Step {
        let (id, process) = (self.segment(key)?, self.process());
        let s = &mut self.segments[id];
        let more = (s.pages - s.prepared).min(PAGES_PER_CALL as u32);
        s.prepared += more;
        if s.bus.is_none() {
            self.free_frames -= more;
        }
        if s.prepared < s.pages {
            return Ok(Outcome::Done(PARTIAL | u64::from(s.prepared)));
        }
        s.attached.push(process);
        Ok(Outcome::Done(layout::segment(process as u16, id as u16)))
    }

    fn detach(&mut self, process: usize, id: usize) {
        let s = &mut self.segments[id];
        let had = s.attached.contains(&process);
        s.attached.retain(|p| *p != process);
        if had && s.attached.is_empty() {
            let frames = std::mem::take(&mut s.prepared);
            self.free_frames += if s.bus.is_none() { frames } else { 0 };
        }
    }
}

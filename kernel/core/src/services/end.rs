//! The end of a process, in stages.
//!
//! An entry ends at most `diapason_costs::section::STAGE` of a process, which ends the rest itself:
//! its window is hidden, so whichever of its threads goes on faults at once, and each fault is a
//! stage. One of its threads, the reaper, stays until everything else is gone. So the stages have
//! the place, the budget and the preemption of the process that ends, and no other process pays for
//! them. The last stage is the only one after which another thread goes on. Its time beyond a
//! switch is charged to the VCPU of the reaper.
//!
//! The process can be started again, and its supervisor hears of its fault, when nothing of it is
//! left. A process that may start it can take part: `ProcCreate` is a stage, too, until then.

use crate::ids::{EventTag, ProcessId, ThreadId};
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::objects::process::ProcessState;
use crate::objects::thread::{State, Wait};
use crate::pool::{FREE, Id, Range};
use crate::walks::walk;
use diapason_abi::MESSAGE_BYTES;
use diapason_abi::record::Record;
use diapason_costs::Round;

/// The rounds that an entry may still go through, as instructions.
pub(crate) struct Left(pub u64);

impl Left {
    /// Takes one round. False if there is no room for it in this entry.
    #[inline(always)]
    pub fn take(&mut self, round: Round) -> bool {
        let enough = self.0 >= round.price();
        if enough {
            self.0 -= round.price();
            walk(round, 1);
        }
        enough
    }

    /// Takes as many rounds as there is room for, and no more than `most`.
    #[inline(always)]
    fn take_most(&mut self, round: Round, most: u16) -> u16 {
        let room = self.0 / round.price();
        let taken = if room < u64::from(most) { room as u16 } else { most };
        self.0 -= round.price() * u64::from(taken);
        walk(round, taken.into());
        taken
    }
}

impl Kernel<'_> {
    /// Begins the end of a process; `reaper` is one of its threads and waits for nothing. Returns
    /// whether nothing of the process is left already.
    #[inline(always)]
    pub(crate) fn begin_end<M: Machine>(
        &mut self,
        m: &mut M,
        id: ProcessId,
        reaper: ThreadId,
    ) -> bool {
        self.mark_ending(id, reaper);
        let ended = self.stage(m, id);
        if !ended {
            self.hide(m, id);
        }
        ended
    }

    #[inline(always)]
    pub(crate) fn mark_ending(&mut self, id: ProcessId, reaper: ThreadId) {
        let p = &mut self.processes[id];
        p.state = ProcessState::Ending;
        (p.reaper, p.reaped) = (reaper, 0);
        self.threads[reaper].wait = Wait::Nothing;
    }

    #[inline(never)]
    pub(crate) fn hide<M: Machine>(&mut self, m: &mut M, id: ProcessId) {
        if !core::mem::replace(&mut self.processes[id].hidden, true) {
            m.show_process(id, false);
        }
    }

    /// One more stage of the end of a process. Returns whether the supervisor that hears of it
    /// runs already; it may only if `pass`.
    #[inline(never)]
    pub(crate) fn reap<M: Machine>(&mut self, m: &mut M, id: ProcessId, pass: bool) -> bool {
        if !self.one_stage(m, id) {
            return false;
        }
        let p = &mut self.processes[id];
        if !core::mem::take(&mut p.blamed) {
            m.emit(Record::Ended, &[self.now.0, id.index().into()]);
            return false;
        }
        p.state = ProcessState::Faulted;
        let report = self.threads[p.reaper].message;
        self.tell(m, id, &report, pass)
    }

    /// Tells the supervisor of a process of its fault. Returns whether it runs already; it may only
    /// if `pass`.
    #[inline(always)]
    pub(crate) fn tell<M: Machine>(
        &mut self,
        m: &mut M,
        id: ProcessId,
        report: &[u8; MESSAGE_BYTES],
        pass: bool,
    ) -> bool {
        let reports = self.processes[id].reports;
        if reports.is_none() {
            return false;
        }
        let Some(place) = self.incoming(reports) else {
            m.emit(Record::ReportLost, &[id.index().into()]);
            return false;
        };
        *place = *report;
        if pass {
            return self.arrive_and_pass(reports, MESSAGE_BYTES as u8, u32::MAX);
        }
        self.arrived(reports, MESSAGE_BYTES as u8, u32::MAX);
        false
    }

    /// As [`Kernel::stage`], for all ways but that of a fault.
    #[inline(never)]
    pub(crate) fn one_stage<M: Machine>(&mut self, m: &mut M, id: ProcessId) -> bool {
        self.stage(m, id)
    }

    /// Ends as much of a process as one entry may. Returns whether nothing is left.
    #[inline(always)]
    fn stage<M: Machine>(&mut self, m: &mut M, id: ProcessId) -> bool {
        self.quiet = true;
        let mut left = Left(self.stage);
        let ended = self.stop_threads(id, &mut left)
            && (!self.processes[id].made || self.end_made(m, id, &mut left))
            && self.hide_all(m, id, &mut left);
        if ended {
            self.finish_end(m, id);
        }
        ended
    }

    /// Stops all threads but the reaper, which only lets its mutexes go.
    #[inline(always)]
    fn stop_threads(&mut self, id: ProcessId, left: &mut Left) -> bool {
        loop {
            let p = &self.processes[id];
            if p.reaped >= p.threads.count.into() {
                return true;
            }
            let thread = Id::new(p.threads.first + p.reaped as u16);
            let (reaper, state) = (p.reaper, self.threads[thread].state);
            if !left.take(Round::Look) {
                return false;
            }
            if state != State::Free {
                if self.threads[thread].held.is_some() {
                    // Nobody stays parked for the sake of a mutex that is free.
                    self.leave_chain(thread);
                    if !self.abandon_held(thread, left) {
                        return false;
                    }
                }
                if thread != reaper && !self.stop_one(id, thread, left) {
                    return false;
                }
            }
            self.processes[id].reaped += 1;
        }
    }

    #[inline(never)]
    fn stop_one(&mut self, id: ProcessId, thread: ThreadId, left: &mut Left) -> bool {
        let taken = left.take(Round::Stop);
        if taken {
            let alive = self.threads[thread].state != State::Ended;
            self.processes[id].live -= u16::from(alive);
            self.thread_stop(thread, State::Free);
        }
        taken
    }

    /// Ends what the process made for itself. Its VCPUs stay as long as its last thread.
    #[inline(never)]
    fn end_made<M: Machine>(&mut self, m: &mut M, id: ProcessId, left: &mut Left) -> bool {
        let p = &self.processes[id];
        let mut at = p.reaped - u32::from(p.threads.count);
        let (events, conditions) = (p.events.used(), p.conditions.used());
        let semaphores = p.semaphores.used();
        let mut done = 0;
        while at < events.count.into() {
            let event: Id<EventTag> = Id::new(events.first + at as u16);
            let alive = self.events[event].handle != FREE;
            if !left.take(if alive { Round::Event } else { Round::Look }) {
                break;
            }
            if alive {
                self.destroy_event(m, event);
            }
            (at, done) = (at + 1, done + 1);
        }
        let mut rest = |before: u32, range: Range| {
            let passed = at.saturating_sub(before);
            let count = u32::from(range.count).saturating_sub(passed) as u16;
            let taken = if at < before { 0 } else { left.take_most(Round::Look, count) };
            (at, done) = (at + u32::from(taken), done + u32::from(taken));
            Range { first: range.first + passed as u16, count: taken }
        };
        let before = u32::from(events.count);
        let some = rest(before, conditions);
        let before = before + u32::from(conditions.count);
        let others = rest(before, semaphores);
        let all = before + u32::from(semaphores.count);
        let ended = at >= all;
        for condition in self.conditions.of(some) {
            condition.handle = FREE;
        }
        for semaphore in self.semaphores.of(others) {
            semaphore.handle = FREE;
        }
        self.processes[id].reaped += done;
        ended
    }

    /// Hides the segments and devices that the process has.
    #[inline(always)]
    fn hide_all<M: Machine>(&mut self, m: &mut M, id: ProcessId, left: &mut Left) -> bool {
        let p = &self.processes[id];
        (p.segments | p.devices == 0) || self.hide_some(m, id, left)
    }

    #[inline(never)]
    fn hide_some<M: Machine>(&mut self, m: &mut M, id: ProcessId, left: &mut Left) -> bool {
        while let Some(index) = self.processes[id].segments.checked_ilog2() {
            if !left.take(Round::Hide) {
                return false;
            }
            self.processes[id].segments &= !(1 << index);
            self.detach(m, id, index as u16);
        }
        while let Some(index) = self.processes[id].devices.checked_ilog2() {
            if !left.take(Round::Hide) {
                return false;
            }
            self.processes[id].devices &= !(1 << index);
            self.unmap(m, id, index as u16);
        }
        true
    }

    /// The reaper is the last of the process: it goes, and with it the VCPUs and the heap.
    #[inline(always)]
    fn finish_end<M: Machine>(&mut self, m: &mut M, id: ProcessId) {
        let p = &mut self.processes[id];
        let (reaper, heap) = (p.reaper, p.heap.count);
        let (vcpus, made) = (p.vcpus, core::mem::take(&mut p.made));
        (p.state, p.live) = (ProcessState::Idle, 0);
        let vcpu = self.threads[reaper].vcpu;
        if vcpu.is_some() {
            let fee = self.fees.path - self.fees.switch;
            self.levy(vcpu, fee);
            self.scheduler.prepaid = fee;
        }
        walk(Round::Stop, 1);
        self.thread_stop(reaper, State::Free);
        if made {
            self.processes[id].forget_objects();
            for vcpu in vcpus.ids() {
                walk(Round::Look, 1);
                self.abandon_vcpu(vcpu);
            }
        }
        if heap > 0 {
            self.free_heap(m, id);
        }
        if core::mem::take(&mut self.processes[id].hidden) {
            m.show_process(id, true);
        }
    }
}

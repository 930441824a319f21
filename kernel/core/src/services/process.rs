//! Processes: start, fault, end, and what their supervisor hears of it.

use crate::ids::EventTag;
use crate::ids::ProcessId;
use crate::kernel::{Arguments, Fault, Flow, Kernel, Refused, Step};
use crate::machine::Machine;
use crate::objects::process::{Process, ProcessState};
use crate::objects::thread::State;
use crate::pool::{FREE, Id};
use crate::walks::walk;
use core::mem::take;
use diapason_abi::call::NO_HINT;
use diapason_abi::record::Record;
use diapason_abi::{Errno, FaultCause, FaultReport, MESSAGE_BYTES, Nanos};
use diapason_costs::Round;

impl Kernel<'_> {
    /// `ProcCreate(key, mailbox, address, deadline)`: by a process that may start it, or its
    /// supervisor. With a mailbox, the caller then receives from it.
    pub(crate) fn proc_create<M: Machine>(&mut self, m: &mut M, a: Arguments) -> Step {
        let [key, mailbox, address, deadline, _] = a;
        let id = self.known_process(key, true)?;
        match self.processes[id].state {
            ProcessState::Refused => return Err(Refused::Errno(Errno::Gone)),
            ProcessState::Running => return Err(Refused::Errno(Errno::Busy)),
            ProcessState::Idle | ProcessState::Faulted => self.process_start(m, id),
        }
        if mailbox == 0 {
            return Ok(Flow::Done(0));
        }
        self.mbox_receive(m, mailbox, address, Nanos(deadline), NO_HINT)
    }

    /// `ProcCreate` up to where the caller receives; if that is not as plain as can be, nothing is
    /// done.
    #[inline(always)]
    pub fn start_plainly<M: Machine>(
        &mut self,
        m: &mut M,
        key: u64,
        now: impl FnOnce() -> Nanos,
    ) -> bool {
        let Ok(id) = self.known_process(key, true) else { return false };
        let down = matches!(self.processes[id].state, ProcessState::Idle | ProcessState::Faulted);
        let starts = down && self.scheduler.payer.is_none();
        if starts {
            self.now = now();
            self.process_start(m, id);
        }
        starts
    }

    /// `ProcKill(key)`: by its supervisor.
    pub(crate) fn proc_kill<M: Machine>(&mut self, m: &mut M, key: u64) -> Step {
        let id = self.known_process(key, false)?;
        if self.processes[id].state != ProcessState::Running {
            return Err(Refused::Errno(Errno::Gone));
        }
        self.process_exit(m, id);
        Ok(Flow::Done(0))
    }

    #[inline(always)]
    fn known_process(&self, key: u64, starting: bool) -> Result<ProcessId, Refused> {
        let id = self.processes.find(|p| p.key == key);
        let may =
            |p: &Process| p.supervisor == self.process || starting && p.starters & self.grant != 0;
        id.filter(|id| may(&self.processes[*id])).ok_or(Refused::Misuse(FaultCause::BadGrant, key))
    }

    /// Runs a process's first thread. Nothing of an earlier life is left by now.
    pub(crate) fn process_start<M: Machine>(&mut self, m: &mut M, id: ProcessId) {
        let p = &mut self.processes[id];
        p.state = ProcessState::Running;
        p.starts += 1;
        p.live = 1;
        let (thread, priority, starts) = (Id::new(p.threads.first), p.priority, p.starts);
        self.threads[thread].vcpu = p.vcpu;
        let words = [self.now.0, u64::from(id.index()), u64::from(starts)];
        m.emit(Record::Started, &words);
        self.thread_start(m, thread, None, priority, 0);
    }

    /// Stops every thread of a process, then ends it.
    #[inline(always)]
    fn process_stop<M: Machine>(&mut self, m: &mut M, id: ProcessId) {
        self.quiet = true;
        for thread in self.processes[id].threads.ids() {
            if self.threads[thread].state != State::Free {
                walk(Round::Stop, 1);
                self.thread_stop(thread, State::Free);
            }
        }
        self.process_end(m, id);
    }

    /// A process has no threads any more: everything it owned goes back.
    fn process_end<M: Machine>(&mut self, m: &mut M, id: ProcessId) {
        let p = &mut self.processes[id];
        p.state = ProcessState::Idle;
        p.live = 0;
        let pages = p.heap.count;
        let (segments, devices) = (take(&mut p.segments), take(&mut p.devices));
        if take(&mut p.made) {
            self.destroy_made(m, id);
        }
        self.detach_all(m, id, segments);
        if devices != 0 {
            self.unmap_all(m, id, devices);
        }
        if pages > 0 {
            self.free_heap(m, id);
        }
    }

    /// The running process, which makes something of its own.
    pub(crate) fn maker(&mut self) -> &Process {
        let p = &mut self.processes[self.process];
        p.made = true;
        p
    }

    /// Ends whatever a process without threads made for itself.
    #[inline(never)]
    fn destroy_made<M: Machine>(&mut self, m: &mut M, id: ProcessId) {
        let p = &self.processes[id];
        let (semaphores, conditions) = (p.semaphores, p.conditions);
        let (events, vcpus) = (p.events, p.vcpus);
        self.end_arrivals(events);
        let own = semaphores.count + conditions.count + vcpus.count;
        walk(Round::Look, own.into());
        for event in events.ids::<EventTag>() {
            walk(Round::Event, 1);
            if self.events[event].handle != FREE {
                self.destroy_event(m, event);
            }
        }
        for condition in self.conditions.of(conditions) {
            condition.handle = FREE;
        }
        for semaphore in self.semaphores.of(semaphores) {
            semaphore.handle = FREE;
        }
        for vcpu in vcpus.ids() {
            self.abandon_vcpu(vcpu);
        }
    }

    /// A process ends, and not by a fault: that has a record of its own.
    #[inline(never)]
    pub(crate) fn process_exit<M: Machine>(&mut self, m: &mut M, id: ProcessId) {
        self.process_stop(m, id);
        m.emit(Record::Ended, &[self.now.0, id.index().into()]);
    }

    /// Ends the process of the running thread, which did what it may not do, and tells its
    /// supervisor. Returns whether the supervisor runs already.
    #[inline(never)]
    pub(crate) fn fault<M: Machine>(&mut self, m: &mut M, fault: Fault) -> bool {
        let (thread, id) = (self.running(), self.process);
        let (now, slot) = (self.now.0, self.threads[thread].slot);
        let Fault { cause, address, instruction } = fault;
        let words = [now, id.index().into(), slot.into(), cause as u64, address, instruction];
        m.emit(Record::Fault, &words);
        self.process_stop(m, id);
        let p = &mut self.processes[id];
        p.state = ProcessState::Faulted;
        p.faults += 1;
        let reports = p.reports;
        if reports.is_none() {
            if p.supervises {
                m.supervisor_died(id);
            }
            return false;
        }
        let report = FaultReport {
            process: id.index(),
            thread: slot,
            cause,
            address,
            instruction,
            time: now,
            key: p.key,
            restarts: p.starts - 1,
            restarts_max: p.restarts_max,
            backoff: p.backoff,
        };
        let Some(place) = self.incoming(reports) else {
            m.emit(Record::ReportLost, &[id.index().into()]);
            return false;
        };
        *place = report.to_bytes();
        self.arrive_and_pass(reports, MESSAGE_BYTES as u8, u32::MAX)
    }
}

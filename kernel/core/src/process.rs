//! Processes: start, fault, end, and what their supervisor hears of it.

use crate::event::Event;
use crate::kernel::{Fault, Flow, Kernel, Refused, Step};
use crate::machine::Machine;
use crate::mailbox::MailboxId;
use crate::memory::Chain;
use crate::pool::{FREE, Id, Range};
use crate::thread::State;
use crate::vcpu::VcpuId;
use diapason_abi::record::Record;
use diapason_abi::{Errno, FaultCause, FaultReport};

/// Names a process, by its place in the description.
pub type ProcessId = Id<Process>;

impl ProcessId {
    /// Its bit in grants.
    #[inline(always)]
    pub(crate) fn grant(self) -> u64 {
        1 << (self.index() & 63)
    }
}

/// Where a process is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ProcessState {
    /// Its program was refused at boot.
    Refused = 0,
    /// Not started, or ended.
    Idle = 1,
    /// It has threads.
    Running = 2,
    /// Ended by a fault.
    Faulted = 3,
}

/// One declared process. Its shares of the pools are fixed ranges.
pub struct Process {
    pub(crate) key: u64,
    /// Where it is in its life.
    pub state: ProcessState,
    /// Ceiling for its threads.
    pub priority: u8,
    /// Threads that have not ended.
    pub(crate) live: u16,
    /// Its thread slots.
    pub threads: Range,
    /// Its private semaphores.
    pub(crate) semaphores: Range,
    /// Its private conditions.
    pub(crate) conditions: Range,
    /// Its events.
    pub(crate) events: Range,
    /// VCPUs it may make.
    pub(crate) vcpus: Range,
    /// The VCPU its threads run on if they do not say.
    pub(crate) vcpu: VcpuId,
    /// Heap pages it has.
    pub heap: Chain,
    /// Heap pages it may have.
    pub heap_max: u32,
    /// Segments it has attached, and devices it has mapped, one bit each.
    pub(crate) segments: u64,
    pub(crate) devices: u64,
    /// Processes that may start it.
    pub(crate) starters: u64,
    /// The process told of its faults, and the mailbox that takes the reports.
    pub(crate) supervisor: ProcessId,
    pub(crate) reports: MailboxId,
    /// Others are supervised by it.
    pub(crate) supervises: bool,
    pub(crate) restarts_max: u32,
    pub(crate) backoff: u64,
    /// Starts so far.
    pub starts: u32,
    /// Faults so far.
    pub faults: u32,
}

impl Process {
    /// Nothing declared.
    pub const EMPTY: Process = Process {
        key: 0,
        state: ProcessState::Refused,
        priority: 0,
        live: 0,
        threads: Range::EMPTY,
        semaphores: Range::EMPTY,
        conditions: Range::EMPTY,
        events: Range::EMPTY,
        vcpus: Range::EMPTY,
        vcpu: Id::NONE,
        heap: Chain::EMPTY,
        heap_max: 0,
        segments: 0,
        devices: 0,
        starters: 0,
        supervisor: Id::NONE,
        reports: Id::NONE,
        supervises: false,
        restarts_max: 0,
        backoff: 0,
        starts: 0,
        faults: 0,
    };
}

impl Kernel<'_> {
    /// `ProcCreate(key)`: by a process that may start it, or its supervisor.
    pub(crate) fn proc_create<M: Machine>(&mut self, m: &mut M, key: u64) -> Step {
        let id = self.known_process(key, true)?;
        match self.processes[id].state {
            ProcessState::Refused => Err(Refused::Errno(Errno::Gone)),
            ProcessState::Running => Err(Refused::Errno(Errno::Busy)),
            ProcessState::Idle | ProcessState::Faulted => {
                self.process_start(m, id);
                Ok(Flow::Done(0))
            }
        }
    }

    /// `ProcKill(key)`: by its supervisor.
    pub(crate) fn proc_kill<M: Machine>(&mut self, m: &mut M, key: u64) -> Step {
        let id = self.known_process(key, false)?;
        if self.processes[id].state != ProcessState::Running {
            return Err(Refused::Errno(Errno::Gone));
        }
        self.process_stop(m, id);
        self.note_end(m, id);
        Ok(Flow::Done(0))
    }

    fn known_process(&self, key: u64, starting: bool) -> Result<ProcessId, Refused> {
        let id = self.processes.ids().find(|p| self.processes[*p].key == key);
        let may =
            |p: &Process| p.supervisor == self.process || starting && p.starters & self.grant != 0;
        id.filter(|id| may(&self.processes[*id])).ok_or(Refused::Misuse(FaultCause::BadGrant, key))
    }

    /// Run a process's first thread. Nothing of an earlier life is left by now.
    pub(crate) fn process_start<M: Machine>(&mut self, m: &mut M, id: ProcessId) {
        let p = &mut self.processes[id];
        p.state = ProcessState::Running;
        p.starts += 1;
        p.live = 0;
        let (thread, priority, starts) = (Id::new(p.threads.first), p.priority, p.starts);
        self.threads[thread].vcpu = p.vcpu;
        let words = [self.now.0, u64::from(id.index()), u64::from(starts)];
        m.emit(Record::Started, &words);
        self.thread_start(m, thread, None, priority, 0);
    }

    /// Stop every thread of a process, then end it.
    pub(crate) fn process_stop<M: Machine>(&mut self, m: &mut M, id: ProcessId) {
        for thread in self.processes[id].threads.ids() {
            if self.threads[thread].state != State::Free {
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
        let (semaphores, conditions) = (p.semaphores, p.conditions);
        let (events, vcpus) = (p.events, p.vcpus);
        self.end_arrivals(events);
        for event in events.ids::<Event>() {
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
        self.give_back(m, id);
    }

    /// A process ended, and not by a fault: that has a record of its own.
    fn note_end<M: Machine>(&self, m: &mut M, id: ProcessId) {
        m.emit(Record::Ended, &[self.now.0, u64::from(id.index())]);
    }

    /// The last thread of a process is about to end: nobody can join those before it any more.
    pub(crate) fn process_exit<M: Machine>(&mut self, m: &mut M, id: ProcessId) {
        self.process_stop(m, id);
        self.note_end(m, id);
    }

    /// The running thread did what it may not do: its process ends and its supervisor hears of it.
    pub(crate) fn fault<M: Machine>(&mut self, m: &mut M, fault: Fault) {
        let (thread, id) = (self.running(), self.process);
        let p = &mut self.processes[id];
        p.faults += 1;
        let report = FaultReport {
            process: id.index(),
            thread: self.threads[thread].slot,
            cause: fault.cause,
            address: fault.address,
            instruction: fault.instruction,
            time: self.now.0,
            key: p.key,
            restarts: p.starts - 1,
            restarts_max: p.restarts_max,
            backoff: p.backoff,
        };
        let (reports, supervises) = (p.reports, p.supervises);
        let words = [
            report.time,
            u64::from(report.process),
            u64::from(report.thread),
            report.cause as u64,
            report.address,
            report.instruction,
        ];
        m.emit(Record::Fault, &words);
        self.process_stop(m, id);
        self.processes[id].state = ProcessState::Faulted;
        if reports.is_none() {
            if supervises {
                m.supervisor_died(id);
            }
        } else if self.has_room(reports) {
            let length = diapason_abi::MESSAGE_BYTES as u8;
            self.arrive(reports, &report.to_bytes(), length, u32::MAX);
        } else {
            m.emit(Record::ReportLost, &[u64::from(id.index())]);
        }
    }
}

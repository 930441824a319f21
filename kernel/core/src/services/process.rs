//! Processes: start, fault, end, and what their supervisor hears of it.

use crate::ids::{ProcessId, ThreadId, VcpuId};
use crate::kernel::{Arguments, Fault, Flow, Kernel, Refused, Step};
use crate::machine::Machine;
use crate::objects::process::{Process, ProcessState};
use crate::objects::thread::{State, Thread, Wait};
use crate::pool::Id;
use diapason_abi::call::{NO_HINT, PARTIAL};
use diapason_abi::record::Record;
use diapason_abi::{Errno, FaultCause, FaultReport, Nanos};

impl Kernel<'_> {
    /// `ProcCreate(key, mailbox, address, deadline)`: by a process that may start it, or its
    /// supervisor. With a mailbox, the caller then receives from it. While an earlier life of the
    /// process ends, the call is a stage of that, and is to be repeated.
    pub(crate) fn proc_create<M: Machine>(&mut self, m: &mut M, a: Arguments) -> Step {
        let [key, mailbox, address, deadline, _] = a;
        let id = self.known_process(key, true)?;
        match self.processes[id].state {
            ProcessState::Refused => return Err(Refused::Errno(Errno::Gone)),
            ProcessState::Running => return Err(Refused::Errno(Errno::Busy)),
            ProcessState::Ending => {
                self.pay_up();
                self.reap(m, id, false);
                return Ok(Flow::Done(PARTIAL));
            }
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
        let vcpu = self.processes[id].vcpu;
        let reserved = self.scheduler.payer.is_some();
        if !down || vcpu.is_some() && !reserved {
            return false;
        }
        let now = now();
        if reserved && !self.starts_beside(vcpu, now) {
            return false;
        }
        self.now = now;
        self.process_start(m, id);
        true
    }

    /// Charges the VCPU that pays. Returns whether who runs stays the first, and pays as before, if
    /// a thread of this VCPU, or without one, becomes ready.
    #[inline(never)]
    fn starts_beside(&mut self, vcpu: VcpuId, now: Nanos) -> bool {
        let payer = &self.vcpus[self.scheduler.payer];
        let below = match self.vcpus.get(vcpu.index()) {
            Some(v) => v.rank <= payer.rank && !v.by_deadline && !payer.by_deadline,
            None => true,
        };
        let starts = self.scheduler.plain && below && self.is_charged(now);
        self.unsettled = false;
        starts
    }

    /// `ProcKill(key)`: by its supervisor.
    pub(crate) fn proc_kill<M: Machine>(&mut self, m: &mut M, key: u64) -> Step {
        let id = self.known_process(key, false)?;
        if self.processes[id].state != ProcessState::Running {
            return Err(Refused::Errno(Errno::Gone));
        }
        let reaper = self.rouse_one(id);
        self.process_exit(m, id, reaper);
        Ok(Flow::Done(0))
    }

    /// A thread of a process, which waits for nothing any more.
    fn rouse_one(&mut self, id: ProcessId) -> ThreadId {
        let threads = self.processes[id].threads;
        let lives = |t: &Thread| !matches!(t.state, State::Free | State::Ended);
        let Some(thread) = self.threads.find_in(threads, lives) else {
            return Id::new(threads.first);
        };
        match (self.threads[thread].state, self.threads[thread].wait) {
            (State::Blocked, _) => self.send_away(thread, Errno::Gone),
            (_, Wait::Mutex(_)) => {
                self.leave_chain(thread);
                self.fail_in_place(thread, Errno::Gone);
            }
            _ => {}
        }
        thread
    }

    /// The machine stopped an access of a device, or an interrupt, that the description does not
    /// grant. The device falls silent. Each process that has it faults as soon as it would go on:
    /// the end is its own work, at its priority and on its budget.
    #[inline(never)]
    pub(crate) fn stray<M: Machine>(&mut self, m: &mut M, device: u16, address: u64, fault: u64) {
        let known = self.devices.get(device).map(|d| d.mapped);
        let name = known.map_or(u64::MAX, |_| device.into());
        m.emit(Record::Stray, &[self.now.0, name, address, fault]);
        let Some(mut mapped) = known else { return };
        m.set_bus_master(device, false);
        while let Some(index) = mapped.checked_ilog2() {
            mapped &= !(1 << index);
            let id = Id::new(index as u16);
            let p = &mut self.processes[id];
            if p.state == ProcessState::Running && !p.hidden {
                p.strayed_to = address;
                self.rouse_one(id);
                self.hide(m, id);
            }
        }
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

    /// The running process, which makes something of its own.
    pub(crate) fn maker(&mut self) -> &Process {
        let p = &mut self.processes[self.process];
        p.made = true;
        p
    }

    /// A process ends, and not by a fault: that has a record of its own. `reaper` is one of its
    /// threads, and waits for nothing.
    #[inline(never)]
    pub(crate) fn process_exit<M: Machine>(&mut self, m: &mut M, id: ProcessId, reaper: ThreadId) {
        self.processes[id].blamed = false;
        self.mark_ending(id, reaper);
        if !self.one_stage(m, id) {
            self.hide(m, id);
        } else {
            m.emit(Record::Ended, &[self.now.0, id.index().into()]);
        }
    }

    /// Ends the process of the running thread, which did what it may not do, and tells its
    /// supervisor. Returns whether the supervisor runs already.
    #[inline(never)]
    pub(crate) fn fault<M: Machine>(&mut self, m: &mut M, fault: Fault) -> bool {
        let (thread, id) = (self.running(), self.process);
        if self.processes[id].state == ProcessState::Ending {
            return self.reap(m, id, true);
        }
        let (now, slot) = (self.now.0, self.threads[thread].slot);
        let Fault { mut cause, mut address, instruction } = fault;
        if self.processes[id].hidden {
            (cause, address) = (FaultCause::StrayDma, self.processes[id].strayed_to);
        }
        let words = [now, id.index().into(), slot.into(), cause as u64, address, instruction];
        m.emit(Record::Fault, &words);
        let p = &mut self.processes[id];
        p.faults += 1;
        p.blamed = true;
        if p.reports.is_none() && p.supervises {
            m.supervisor_died(id);
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
        let report = report.to_bytes();
        if !self.begin_end(m, id, thread) {
            self.threads[thread].message = report;
            return false;
        }
        let p = &mut self.processes[id];
        p.state = ProcessState::Faulted;
        p.blamed = false;
        self.tell(m, id, &report, true)
    }
}

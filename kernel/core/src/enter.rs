//! The ways into the kernel of one core, dispatch of calls, and the decision that comes out.

use crate::alarms::PLAIN;
use crate::ids::{ProcessId, ThreadId};
use crate::kernel::{Arguments, Cause, Decision, Fault, Flow, Kernel, Longer, Refused, Step};
use crate::machine::{Machine, UserMemory};
use crate::objects::event::Source;
use crate::objects::process::ProcessState;
use crate::objects::thread::Resumed;
use diapason_abi::call::{Counter, MEASUREMENT, NO_HINT};
use diapason_abi::record::{MEASURED_WORDS, Record};
use diapason_abi::{CallNumber, FaultCause, Nanos, encode_result};

/// Most alarms handled in one entry. More that are due make the alarm of the decision lie in the
/// past, so the machine calls again; interrupts get their turn in between.
const ALARMS_PER_ENTRY: usize = 8;
/// Longest line a program can log at once.
const LOG_BYTES: usize = 112;

impl Kernel<'_> {
    /// Completes a call that changes nothing about who runs, or returns `None` having done nothing.
    /// Needs no clock.
    #[inline(always)]
    pub fn quick<M: Machine>(&mut self, m: &mut M, number: u64, a: Arguments) -> Option<u64> {
        match CallNumber::decode(number)? {
            CallNumber::Log => self.quick_log(m, a[0], a[1]),
            call => self.complete(m, call, a).ok(),
        }
    }

    /// Completes a call that needs nothing of the machine but memory.
    ///
    /// # Errors
    /// That it is not to go this way.
    #[inline(always)]
    pub fn complete(
        &mut self,
        m: &mut impl UserMemory,
        call: CallNumber,
        a: Arguments,
    ) -> Result<u64, Longer> {
        let completed = match call {
            CallNumber::Null => Some(0),
            CallNumber::Yield => {
                let s = &self.scheduler;
                (s.place == s.running && s.alone(&self.threads)).then_some(0)
            }
            CallNumber::SemLock | CallNumber::SemTryLock => self.quick_lock(a[0]),
            CallNumber::SemUnlock => self.quick_unlock(a[0]),
            CallNumber::CvSignal => self.quick_signal(a[0]),
            CallNumber::MboxSend => return self.quick_send(m, a[0], a[1], a[2], a[3]),
            CallNumber::MboxReceive => return self.quick_receive(m, a[0], a[1]),
            CallNumber::EventWait => self.quick_event(a[0]),
            _ => None,
        };
        completed.ok_or(Longer::Way)
    }

    fn quick_log<M: Machine>(&mut self, m: &mut M, address: u64, length: u64) -> Option<u64> {
        if length == MEASUREMENT {
            return self.measured(m, address);
        }
        let mut text = [0; LOG_BYTES];
        let text = text.get_mut(..length as usize)?;
        m.copy_in(address, text).ok()?;
        m.log(self.process, text);
        Some(0)
    }

    /// A measurement: the process is the caller, whatever the words say.
    fn measured<M: Machine>(&mut self, m: &mut M, address: u64) -> Option<u64> {
        let mut words = [0; 1 + MEASURED_WORDS];
        words[0] = self.process.index().into();
        let mut bytes = [0; 8 * MEASURED_WORDS];
        m.copy_in(address, &mut bytes).ok()?;
        for (word, bytes) in words[1..].iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        m.emit(Record::Measured, &words);
        Some(0)
    }

    /// Everything else: account for what happened, and decide who runs.
    pub fn enter<M: Machine>(&mut self, m: &mut M, now: Nanos, cause: Cause) -> Decision {
        match cause {
            Cause::Syscall(number, arguments) => self.call(m, now, number, arguments),
            Cause::Fault(fault) => {
                if self.faulted(m, now, fault) {
                    return self.resume_running();
                }
            }
            _ => self.happen(m, now, cause),
        }
        self.decide()
    }

    /// Does the first half of [`Kernel::enter`] for a fault. True if the supervisor runs now.
    #[inline(always)]
    pub fn faulted<M: Machine>(&mut self, m: &mut M, now: Nanos, fault: Fault) -> bool {
        self.begin(now, Nanos::ZERO);
        self.fault(m, fault)
    }

    /// The second half if there is nothing left to decide.
    #[inline(always)]
    pub fn resume_running(&mut self) -> Decision {
        self.resume(self.running(), self.next_alarm())
    }

    #[inline(always)]
    fn resume(&mut self, run: ThreadId, alarm: Nanos) -> Decision {
        let resumed = self.threads[run].resume();
        self.goes_on(run, resumed, alarm)
    }

    /// The first half of [`Kernel::enter`] for a call.
    #[inline(always)]
    pub fn call<M: Machine>(&mut self, m: &mut M, now: Nanos, number: u64, a: Arguments) {
        self.begin(now, Nanos::ZERO);
        self.syscall(m, number, a);
    }

    /// The first half of [`Kernel::enter`] for causes that are no fault and no call.
    #[inline(always)]
    pub fn happen<M: Machine>(&mut self, m: &mut M, now: Nanos, cause: Cause) {
        let device = matches!(cause, Cause::Irq(_));
        self.begin(now, if device { self.fees.interrupt } else { Nanos::ZERO });
        self.quiet = false;
        match cause {
            Cause::Timer => self.expire(),
            Cause::Irq(device) => self.interrupted(m, device),
            Cause::Boot => self.boot(m),
            Cause::Fault(_) | Cause::Syscall(..) => {}
        }
    }

    /// Charges the payer up to now.
    #[inline(always)]
    fn begin(&mut self, now: Nanos, grace: Nanos) {
        self.now = now;
        self.entries += 1;
        self.quiet = self.scheduler.payer.is_none();
        if !self.quiet {
            self.settle();
            self.scheduler.grace = grace;
        }
    }

    /// The second half: who runs, and what its call returns.
    #[inline(always)]
    pub fn decide(&mut self) -> Decision {
        let run = self.choose();
        if run != self.scheduler.running {
            self.scheduler.switch(&mut self.threads, run, self.now);
        }
        let alarm = self.next_alarm();
        if run.is_some() {
            self.resume(run, alarm)
        } else {
            Decision { run, result: None, deliver_to: 0, alarm }
        }
    }

    /// `run` has the processor.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, run: ThreadId, resumed: Resumed, alarm: Nanos) -> Decision {
        (self.process, self.grant) = (resumed.process, resumed.process.grant());
        let (result, deliver_to) = (resumed.result, resumed.deliver_to);
        Decision { run, result, deliver_to, alarm }
    }

    /// Returns when the next alarm may ring, or the budget of the VCPU that pays ends.
    #[inline(always)]
    #[must_use]
    pub fn next_alarm(&self) -> Nanos {
        let reserved = self.scheduler.call_at;
        if reserved == Nanos::FOREVER { self.alarms.next_due() } else { reserved }
    }

    /// Returns when the kernel was entered last.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Returns how often the kernel was entered, calls that changed no schedule apart.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The process whose thread runs.
    #[inline(always)]
    #[must_use]
    pub fn process(&self) -> ProcessId {
        self.process
    }

    #[inline(always)]
    fn syscall<M: Machine>(&mut self, m: &mut M, number: u64, arguments: Arguments) {
        let thread = self.running();
        let result = match self.dispatch(m, number, arguments) {
            Ok(Flow::Away) => return,
            Ok(Flow::Done(value)) => value,
            Err(Refused::Errno(errno)) => encode_result(Err(errno)),
            Err(Refused::Misuse(cause, address)) => {
                let instruction = m.instruction();
                self.fault(m, Fault { cause, address, instruction });
                return;
            }
        };
        let t = &mut self.threads[thread];
        t.result = result;
        t.has_result = true;
    }

    #[inline(always)]
    fn dispatch<M: Machine>(&mut self, m: &mut M, number: u64, a: Arguments) -> Step {
        let Some(call) = CallNumber::decode(number) else {
            return Err(Refused::Misuse(FaultCause::BadCall, number));
        };
        match call {
            CallNumber::Null => Ok(Flow::Done(0)),
            CallNumber::Yield => {
                self.rotate();
                Ok(Flow::Done(0))
            }
            CallNumber::ThreadExit => self.thread_exit(m, a[0]),
            CallNumber::ThreadCreate => self.thread_create(m, a),
            CallNumber::ThreadJoin => self.thread_join(a[0], Nanos(a[1]), a[2]),
            CallNumber::ThreadDetach => self.thread_detach(a[0]),
            CallNumber::SleepUntil => self.sleep_until(Nanos(a[0]), a[1]),
            CallNumber::JobsStart => self.jobs_start(Nanos(a[0]), Nanos(a[1]), Nanos(a[2]), a[3]),
            CallNumber::JobWait => self.job_wait(a[0]),
            CallNumber::SemCreate => self.sem_create(a[0], a[1]),
            CallNumber::SemDelete => self.sem_delete(a[0]),
            CallNumber::SemLock => self.sem_lock(a[0], Nanos(a[1]), a[2]),
            CallNumber::SemTryLock => self.sem_lock(a[0], Nanos::ZERO, NO_HINT),
            CallNumber::SemUnlock => self.sem_unlock(a[0]),
            CallNumber::CvCreate => self.cv_create(a[0]),
            CallNumber::CvDelete => self.cv_delete(a[0]),
            CallNumber::CvWait => self.cv_wait(a[0], a[1], Nanos(a[2])),
            CallNumber::CvSignal => self.cv_signal(a[0], a[1]),
            CallNumber::MboxCreate => self.mbox_create(a[0], a[1]),
            CallNumber::MboxDelete => self.mbox_delete(a[0]),
            CallNumber::MboxSend => self.mbox_send(m, a),
            CallNumber::MboxReceive => self.mbox_receive(m, a[0], a[1], Nanos(a[2]), a[3]),
            CallNumber::MboxCall => self.mbox_call(m, a),
            CallNumber::ShmAttach => self.shm_attach(m, a[0]),
            CallNumber::ShmDetach => self.shm_detach(m, a[0]),
            CallNumber::ShmBus => self.shm_bus(m, a[0]),
            CallNumber::MemAlloc => self.mem_alloc(m, a[0]),
            CallNumber::TimerCreate => {
                self.event_create(Source::Timer { period: Nanos::ZERO, next: Nanos::FOREVER })
            }
            CallNumber::TimerStart => self.timer_start(a[0], Nanos(a[1]), Nanos(a[2])),
            CallNumber::EventCreate => self.event_create(Source::Plain),
            CallNumber::EventWait => self.event_wait(m, a[0], Nanos(a[1]), a[2]),
            CallNumber::EventDelete => self.event_delete(m, a[0]),
            CallNumber::MapDevice => self.map_device(m, a[0]),
            CallNumber::SetIsr => self.set_isr(m, a[0]),
            CallNumber::Ring => self.ring(m, a[0]),
            CallNumber::ProcCreate => self.proc_create(m, a),
            CallNumber::ProcKill => self.proc_kill(m, a[0]),
            CallNumber::ReadSlow => self.read_slow(m, a[0], a[1], a[2]),
            CallNumber::Log => Err(self.bad_log(a[0], a[1])),
            CallNumber::Count => self.count(m, a[0]),
            CallNumber::VcpuCreate => self.vcpu_create(a),
            CallNumber::VcpuSet => self.vcpu_set(a[0], a[1], a[2]),
            CallNumber::VcpuDelete => self.vcpu_delete(a[0]),
            CallNumber::VcpuFit => self.vcpu_fit(a[0]),
            CallNumber::Fail => Err(Refused::Misuse(FaultCause::Panic, a[0])),
        }
    }

    /// A log call that `quick` did not complete.
    fn bad_log(&self, address: u64, length: u64) -> Refused {
        if length > LOG_BYTES as u64 && length != MEASUREMENT {
            Refused::Misuse(FaultCause::BadArgument, length)
        } else {
            Refused::Misuse(FaultCause::BadAddress, address)
        }
    }

    /// `ReadSlow(to, from, length)`: at most a page, so that the copy stays a short path.
    fn read_slow<M: Machine>(&mut self, m: &mut M, to: u64, from: u64, length: u64) -> Step {
        const LONGEST: u64 = 4096;
        if length > LONGEST {
            return Err(Refused::Misuse(FaultCause::BadArgument, length));
        }
        // Its ends are tried first: what cannot be copied is not half copied before the fault.
        let last = length.saturating_sub(1);
        let ends = (to.wrapping_add(last), from.wrapping_add(last), length.min(1));
        for (to, piece, length) in [ends, (to, from, length)] {
            let bad = Refused::Misuse(FaultCause::BadAddress, from);
            m.copy_user(to, piece, length).map_err(|_| bad)?;
        }
        Ok(Flow::Done(0))
    }

    /// `Count(which)`: of the caller itself, or of the machine to whom that was granted.
    fn count<M: Machine>(&mut self, m: &mut M, which: u64) -> Step {
        if which == Counter::CpuTime as u64 {
            let t = &self.threads[self.running()];
            return Ok(Flow::Done((t.used + (self.now - self.scheduler.since)).0));
        }
        if !self.processes[self.process()].counters {
            return Err(Refused::Misuse(FaultCause::BadGrant, which));
        }
        Ok(Flow::Done(m.counter(which)))
    }

    fn boot<M: Machine>(&mut self, m: &mut M) {
        for mailbox in self.mailboxes.ids() {
            if self.mailboxes[mailbox].faults_of.is_some() {
                self.open_mailbox(mailbox);
            }
        }
        for process in self.processes.ids() {
            // Config marks what starts at boot by state; a refused program stays refused.
            if self.processes[process].state == ProcessState::Running {
                self.process_start(m, process);
            }
        }
    }

    fn expire(&mut self) {
        if self.promise.abandoned {
            // Enough for one entry: what is due makes the machine call again.
            return self.reclaim_vcpu();
        }
        if !self.vcpus.is_empty() {
            // Due alarms ring at the choice of the next thread.
            return;
        }
        for _ in 0..ALARMS_PER_ENTRY {
            if self.alarms.next_due() > self.now {
                return;
            }
            let thread = self.alarms.first(PLAIN);
            self.alarms.cancel(&mut self.threads, thread);
            self.timed_out(thread);
        }
    }
}

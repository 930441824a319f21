//! The ways into the kernel of one core, dispatch of calls, and the decision that comes out.

use crate::alarms::PLAIN;
use crate::ids::{ProcessId, ThreadId};
use crate::kernel::{Arguments, Cause, Decision, Fault, Flow, Kernel, Longer, Refused, Step};
use crate::machine::{Machine, UserMemory};
use crate::objects::event::Source;
use crate::objects::process::ProcessState;
use crate::objects::thread::Resumed;
use crate::served::SERVED;
use diapason_abi::call::{Counter, MEASUREMENT, NO_HINT};
use diapason_abi::record::{MEASURED_WORDS, Record};
use diapason_abi::served::Facility;
use diapason_abi::{CallNumber, FaultCause, Nanos, encode_result};

/// Most alarms handled in one entry. More that are due make the alarm of the decision lie in the
/// past, so the machine calls again; interrupts get their turn in between.
const ALARMS_PER_ENTRY: usize = 8;
/// Longest line a program can log at once.
const LOG_BYTES: usize = 112;

/// The table of all calls and what they do. A call that this kernel does not serve does what
/// follows `else`, and nothing of its own is linked.
macro_rules! served {
    ($call:expr, else $refusal:expr; $($name:ident => $done:expr,)*) => {
        match $call {
            $(CallNumber::$name => {
                const IS_SERVED: bool = SERVED.has_call(CallNumber::$name);
                if IS_SERVED { $done } else { $refusal }
            })*
        }
    };
}

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
            Cause::Syscall(number, arguments) => {
                if let Some(result) = self.call(m, now, number, arguments) {
                    return self.goes_back(result);
                }
            }
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
        self.begin(now);
        self.pay_up();
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

    /// The first half of [`Kernel::enter`] for a call. If it returns the call's result, there is no
    /// second half: the caller goes on, and all else is as it was.
    #[inline(always)]
    pub fn call<M: Machine>(
        &mut self,
        m: &mut M,
        now: Nanos,
        number: u64,
        a: Arguments,
    ) -> Option<u64> {
        self.begin(now);
        self.syscall(m, number, a)
    }

    /// The decision after a call that changed nothing about who runs.
    pub fn goes_back(&self, result: u64) -> Decision {
        let (run, alarm) = (self.running(), self.next_alarm());
        Decision { run, result: Some(result), deliver_to: 0, alarm }
    }

    /// The first half of [`Kernel::enter`] for causes that are no fault and no call.
    #[inline(always)]
    pub fn happen<M: Machine>(&mut self, m: &mut M, now: Nanos, cause: Cause) {
        let device = matches!(cause, Cause::Irq(_));
        self.begin(now);
        self.pay_up();
        self.scheduler.grace = if device { self.fees.interrupt } else { Nanos::ZERO };
        self.quiet = false;
        match cause {
            Cause::Timer => self.expire(),
            Cause::Irq(device) => self.interrupted(m, device),
            Cause::Stray(device, address, fault) if SERVED.has(Facility::Devices) => {
                self.stray(m, device, address, fault);
            }
            Cause::Boot => self.boot(m),
            Cause::Fault(_) | Cause::Syscall(..) | Cause::Stray(..) => {}
        }
    }

    /// An entry begins. The payer is charged when that makes a difference: mostly a call changes
    /// neither who pays nor what there is to pay with.
    #[inline(always)]
    fn begin(&mut self, now: Nanos) {
        self.now = now;
        self.entries += 1;
        self.unsettled = self.scheduler.payer.is_some();
        self.quiet = !self.unsettled;
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
    fn syscall<M: Machine>(&mut self, m: &mut M, number: u64, arguments: Arguments) -> Option<u64> {
        let thread = self.running();
        let result = match self.dispatch(m, number, arguments) {
            Ok(Flow::Away) => return None,
            Ok(Flow::Same(value)) => return Some(value),
            Ok(Flow::Done(value)) => value,
            Err(Refused::Errno(errno)) => encode_result(Err(errno)),
            Err(Refused::Misuse(cause, address)) => {
                let instruction = m.instruction();
                self.pay_up();
                self.fault(m, Fault { cause, address, instruction });
                return None;
            }
        };
        self.threads[thread].put_result(result);
        None
    }

    #[inline(always)]
    fn dispatch<M: Machine>(&mut self, m: &mut M, number: u64, a: Arguments) -> Step {
        let Some(call) = CallNumber::decode(number) else {
            return Err(Refused::Misuse(FaultCause::BadCall, number));
        };
        served! { call, else Err(Refused::Misuse(FaultCause::BadCall, number));
            Null => Ok(Flow::Same(0)),
            Yield => {
                self.rotate();
                Ok(Flow::Done(0))
            },
            ThreadExit => self.thread_exit(m, a[0]),
            ThreadCreate => self.thread_create(m, a),
            ThreadJoin => self.thread_join(a[0], Nanos(a[1]), a[2]),
            ThreadDetach => self.thread_detach(a[0]),
            SleepUntil => self.sleep_until(Nanos(a[0]), a[1]),
            JobsStart => self.jobs_start(Nanos(a[0]), Nanos(a[1]), Nanos(a[2]), a[3]),
            JobWait => self.job_wait(a[0]),
            SemCreate => self.sem_create(a[0], a[1]),
            SemDelete => self.sem_delete(a[0]),
            SemLock => self.sem_lock(a[0], Nanos(a[1]), a[2]),
            SemTryLock => self.sem_lock(a[0], Nanos::ZERO, NO_HINT),
            SemUnlock => self.sem_unlock(a[0]),
            CvCreate => self.cv_create(a[0]),
            CvDelete => self.cv_delete(a[0]),
            CvWait => self.cv_wait(a[0], a[1], Nanos(a[2])),
            CvSignal => self.cv_signal(a[0], a[1]),
            MboxCreate => self.mbox_create(a[0], a[1]),
            MboxDelete => self.mbox_delete(a[0]),
            MboxSend => self.mbox_send(m, a),
            MboxReceive => self.mbox_receive(m, a[0], a[1], Nanos(a[2]), a[3]),
            MboxCall => self.mbox_call(m, a),
            ShmAttach => self.shm_attach(m, a[0]),
            ShmDetach => self.shm_detach(m, a[0]),
            ShmBus => self.shm_bus(m, a[0]),
            MemAlloc => self.mem_alloc(m, a[0]),
            TimerCreate => {
                self.event_create(Source::Timer { period: Nanos::ZERO, next: Nanos::FOREVER })
            },
            TimerStart => self.timer_start(a[0], Nanos(a[1]), Nanos(a[2])),
            EventCreate => self.event_create(Source::Plain),
            EventWait => self.event_wait(m, a[0], Nanos(a[1]), a[2]),
            EventDelete => self.event_delete(m, a[0]),
            MapDevice => self.map_device(m, a[0]),
            SetIsr => self.set_isr(m, a[0]),
            Ring => self.ring(m, a[0]),
            ProcCreate => self.proc_create(m, a),
            ProcKill => self.proc_kill(m, a[0]),
            ReadSlow => self.read_slow(m, a[0], a[1], a[2]),
            Log => Err(self.bad_log(a[0], a[1])),
            Count => self.count(m, a[0]),
            VcpuCreate => self.vcpu_create(a),
            VcpuSet => self.vcpu_set(a[0], a[1], a[2]),
            VcpuDelete => self.vcpu_delete(a[0]),
            VcpuFit => self.vcpu_fit(a[0]),
            Fail => Err(Refused::Misuse(FaultCause::Panic, a[0])),
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
        Ok(Flow::Same(0))
    }

    /// `Count(which)`: of the caller itself, or of the machine to whom that was granted.
    fn count<M: Machine>(&mut self, m: &mut M, which: u64) -> Step {
        if which == Counter::CpuTime as u64 {
            let t = &self.threads[self.running()];
            return Ok(Flow::Same((t.used + (self.now - self.scheduler.since)).0));
        }
        if !self.processes[self.process()].counters {
            return Err(Refused::Misuse(FaultCause::BadGrant, which));
        }
        Ok(Flow::Same(m.counter(which)))
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

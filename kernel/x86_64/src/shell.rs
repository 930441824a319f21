//! Around the core: every entry comes in here, and what the core decides is done here.
//!
//! The order matters and is fixed: read the clock once, enter the core, set the timer, switch the
//! address space, deliver a message into it, and only then return to `entry.s`, which switches
//! registers. If the delivery fails, that is a fault of the receiver, and the core is entered again.

use crate::apic::LocalApic;
use crate::clock::Clock;
use crate::console::{announce, console};
use crate::context::Context;
use crate::cpu;
use crate::fatal::leave;
use crate::machine::Metal;
use crate::percpu::shell;
use crate::tables::{FIRST_DEVICE, TIMER};
use diapason_abi::record::{Record, exit};
use diapason_abi::recorder::{Entry, EntryKind};
use diapason_abi::{FaultCause, Nanos, layout};
use diapason_core::{Arguments, Cause, Decision, Fault, Kernel};

/// What a run asked to be observed. `any` is the one test on fast paths.
#[derive(Clone, Copy, Default)]
pub struct Observe {
    pub any: bool,
    pub record: bool,
    pub watch: bool,
}

/// One core's kernel with its hardware.
pub struct Shell {
    pub kernel: Kernel<'static>,
    pub metal: Metal,
    pub clock: Clock,
    pub timer: LocalApic,
    /// What the timer is set to.
    pub armed: Nanos,
    /// When the run ends.
    pub horizon: Nanos,
    /// Somebody outside could still wake a thread.
    pub has_devices: bool,
    pub entries: u64,
    /// What caused the longest path.
    pub longest_cause: u64,
}

/// What `entry.s` gets back from a system call: its result, and the context to continue with: 0 for
/// the caller's, 1 for none.
#[repr(C)]
pub struct Exit {
    value: u64,
    next: usize,
}

/// `entry.s`: nobody runs.
const IDLE: usize = 1;

#[unsafe(no_mangle)]
extern "C" fn on_syscall(a0: u64, a1: u64, a2: u64, a3: u64, a4: u64, number: u64) -> Exit {
    // SAFETY: once per entry.
    let shell = unsafe { shell() };
    let arguments = [a0, a1, a2, a3, a4];
    if shell.metal.observe.any {
        return shell.observed_syscall(number, arguments);
    }
    match shell.kernel.quick(&mut shell.metal, number, arguments) {
        Some(value) => Exit { value, next: 0 },
        None => shell.syscall(number, arguments),
    }
}

#[unsafe(no_mangle)]
extern "C" fn on_trap(context: &mut Context) -> usize {
    // SAFETY: once per entry.
    let shell = unsafe { shell() };
    let start = shell.watch_start();
    let cause = shell.cause_of(context);
    let next = shell.enter(cause);
    shell.watch_end(start, 256 + context.vector);
    next
}

#[unsafe(no_mangle)]
extern "C" fn on_idle_trap(vector: u64) -> usize {
    // SAFETY: once per entry.
    let shell = unsafe { shell() };
    let start = shell.watch_start();
    let cause = shell.interrupt(vector);
    let next = shell.enter(cause);
    shell.watch_end(start, 256 + vector);
    next
}

/// Nobody wants the processor: let the console speak. Interrupts get their chance in between.
#[unsafe(no_mangle)]
extern "C" fn on_idle() {
    // SAFETY: once per visit of the idle loop; the references end here.
    unsafe {
        while console().drain() {
            core::arch::asm!("sti", "nop", "cli", options(nomem, nostack));
        }
    }
}

impl Shell {
    #[inline(never)]
    fn syscall(&mut self, number: u64, arguments: Arguments) -> Exit {
        let caller = self.kernel.scheduler.running;
        let now = self.clock.now();
        let decision = self.kernel.enter(&mut self.metal, now, Cause::Syscall(number, arguments));
        if decision.run == caller && decision.deliver_to == 0 {
            self.arm(decision.alarm);
            return Exit { value: decision.result.unwrap_or(0), next: 0 };
        }
        Exit { value: 0, next: self.settle(decision) }
    }

    #[cold]
    fn observed_syscall(&mut self, number: u64, arguments: Arguments) -> Exit {
        let start = self.watch_start();
        let exit = match self.kernel.quick(&mut self.metal, number, arguments) {
            Some(value) => {
                self.record(EntryKind::Quick, number, Nanos::ZERO, arguments, None, value);
                Exit { value, next: 0 }
            }
            None => {
                let caller = self.kernel.scheduler.running;
                let next = self.enter(Cause::Syscall(number, arguments));
                let same = self.kernel.scheduler.running == caller && next > IDLE;
                // The context's rax holds the result; a caller that goes on never left.
                let value = if same { self.context(caller.index()).rax } else { 0 };
                Exit { value, next: if same { 0 } else { next } }
            }
        };
        self.watch_end(start, number);
        exit
    }

    /// Enter the core and do what it decides; returns the context to continue with.
    #[inline(always)]
    pub fn enter(&mut self, cause: Cause) -> usize {
        let now = self.clock.now();
        self.entries += 1;
        let decision = self.kernel.enter(&mut self.metal, now, cause);
        if self.metal.observe.any {
            self.record_entry(cause, now, &decision);
        }
        self.settle(decision)
    }

    fn settle(&mut self, mut decision: Decision) -> usize {
        loop {
            self.arm(decision.alarm);
            if decision.run.is_none() {
                self.idle_for_good(&decision);
                return IDLE;
            }
            let index = decision.run.index();
            let process = self.kernel.threads[decision.run].process.index();
            self.metal.enter_space(process);
            if let Some(result) = decision.result {
                self.context(index).rax = result;
            }
            if decision.deliver_to == 0 || self.deliver(&decision).is_some() {
                return core::ptr::from_mut(self.context(index)) as usize;
            }
            decision = self.delivery_fault(decision.deliver_to);
        }
    }

    #[inline(always)]
    fn context(&mut self, thread: u16) -> &mut Context {
        &mut self.metal.contexts[thread as usize]
    }

    fn deliver(&mut self, decision: &Decision) -> Option<()> {
        use diapason_core::Machine;
        // Not an access of the core's: the recording has no place for it.
        let observe = core::mem::take(&mut self.metal.observe);
        let message = self.kernel.threads[decision.run].message();
        let done = self.metal.copy_out(decision.deliver_to, message);
        self.metal.observe = observe;
        done.ok()
    }

    #[cold]
    fn delivery_fault(&mut self, address: u64) -> Decision {
        let fault = Fault { cause: FaultCause::BadAddress, address, instruction: 0 };
        let now = self.clock.now();
        let decision = self.kernel.enter(&mut self.metal, now, Cause::Fault(fault));
        if self.metal.observe.any {
            self.record_entry(Cause::Fault(fault), now, &decision);
        }
        decision
    }

    /// Set the timer, if it is not set to that already. What is due is due in a tick: the thread
    /// gets one instruction, and an alarm can never be missed.
    #[inline(always)]
    fn arm(&mut self, alarm: Nanos) {
        let alarm = alarm.min(self.horizon);
        if alarm != self.armed {
            self.set_timer(alarm);
        }
        if self.metal.supervisor_died {
            self.finish(exit::SUPERVISOR_DIED);
        }
    }

    fn set_timer(&mut self, alarm: Nanos) {
        self.armed = alarm;
        if self.timer.deadline_mode {
            self.metal.counts.msr += 1;
            let forever = alarm == Nanos::FOREVER;
            self.timer.set_deadline(if forever { 0 } else { self.clock.counter_at(alarm) });
        } else {
            self.metal.counts.mmio += 1;
            let ticks = match alarm {
                Nanos::FOREVER => 0,
                _ => self.clock.timer_ticks(alarm - self.clock.now()),
            };
            self.timer.count_down(ticks);
        }
    }

    /// Why a thread was interrupted.
    #[inline(always)]
    fn cause_of(&mut self, context: &Context) -> Cause {
        if context.vector >= TIMER {
            return self.interrupt(context.vector);
        }
        Cause::Fault(self.fault_of(context))
    }

    /// An interrupt: acknowledge it and say what it means.
    #[inline(always)]
    fn interrupt(&mut self, vector: u64) -> Cause {
        self.metal.counts.mmio += 1;
        self.timer.end_of_interrupt();
        if vector == TIMER {
            // Whatever it was set to, it is not any more.
            self.armed = Nanos::FOREVER;
            if self.clock.now() >= self.horizon {
                self.finish(exit::FINISHED);
            }
            return Cause::Timer;
        }
        match vector.checked_sub(FIRST_DEVICE) {
            Some(index) => Cause::Irq(self.metal.device_of(index as usize)),
            None => Cause::Timer,
        }
    }

    fn fault_of(&self, context: &Context) -> Fault {
        const FETCH: u64 = 1 << 4;
        const WRITE: u64 = 1 << 1;
        let mut address = 0;
        let cause = match context.vector {
            0 => FaultCause::Divide,
            1 | 3 | 4 => FaultCause::Debug,
            5 | 6 => FaultCause::Instruction,
            7 | 16 | 19 => FaultCause::FloatingPoint,
            14 => {
                address = cpu::fault_address();
                if context.error & FETCH != 0 {
                    FaultCause::Execute
                } else if layout::is_stack_guard(self.metal.current, address) {
                    FaultCause::StackOverflow
                } else if context.error & WRITE != 0 {
                    FaultCause::Write
                } else {
                    FaultCause::Read
                }
            }
            17 => FaultCause::Alignment,
            _ => FaultCause::Privilege,
        };
        Fault { cause, address, instruction: context.rip }
    }

    /// Nobody can run: if nothing will ever change that, the run is over.
    fn idle_for_good(&mut self, decision: &Decision) {
        let hopeless = decision.alarm == Nanos::FOREVER && !self.has_devices;
        if hopeless && self.horizon == Nanos::FOREVER {
            announce(Record::Halted, &[self.clock.now().0]);
            self.finish(exit::HALTED);
        }
    }

    fn watch_start(&self) -> u64 {
        if self.metal.observe.watch { cpu::counter() } else { 0 }
    }

    fn watch_end(&mut self, start: u64, cause: u64) {
        if self.metal.observe.watch {
            let length = cpu::counter() - start;
            if length > self.metal.longest {
                self.metal.longest = length;
                self.longest_cause = cause;
            }
        }
    }

    fn record_entry(&mut self, cause: Cause, now: Nanos, d: &Decision) {
        let (kind, number, arguments) = match cause {
            Cause::Boot => (EntryKind::Boot, 0, [0; 5]),
            Cause::Timer => (EntryKind::Timer, 0, [0; 5]),
            Cause::Irq(device) => (EntryKind::Irq, 0, [u64::from(device), 0, 0, 0, 0]),
            Cause::Syscall(number, arguments) => (EntryKind::Syscall, number, arguments),
            Cause::Fault(f) => {
                (EntryKind::Fault, 0, [f.cause as u64, f.address, f.instruction, 0, 0])
            }
        };
        self.record(kind, number, now, arguments, Some(d), d.result.unwrap_or(0));
    }

    fn record(
        &mut self,
        kind: EntryKind,
        number: u64,
        now: Nanos,
        arguments: Arguments,
        decision: Option<&Decision>,
        result: u64,
    ) {
        if !self.metal.observe.record {
            return;
        }
        self.metal.recorder.entry(&Entry {
            kind,
            // No call has such a number; the core refuses all of them alike.
            detail: number.min(0xfffe) as u16,
            run: decision.map_or(u16::MAX, |d| d.run.index()),
            has_result: decision.is_some_and(|d| d.result.is_some()),
            now: now.0,
            arguments,
            result,
            alarm: decision.map_or(0, |d| d.alarm.0),
        });
    }

    /// The run is over: say how it went, and stop.
    pub fn finish(&mut self, status: u8) -> ! {
        let now = self.clock.now();
        let scheduler = &mut self.kernel.scheduler;
        // Charge what has run since the last change.
        scheduler.switch(&mut self.kernel.threads, scheduler.running, now);
        let idle = self.kernel.scheduler.idle;
        for id in self.kernel.threads.ids() {
            let t = &self.kernel.threads[id];
            if t.generation > 0 {
                let jobs = self.kernel.jobs_at(id, now);
                let (process, slot) = (u64::from(t.process.index()), u64::from(t.slot));
                let response = jobs.response_max.0;
                announce(
                    Record::Thread,
                    &[process, slot, t.name, t.vcpu.used.0, jobs.done, jobs.misses, response, jobs.skipped],
                );
            }
        }
        for id in self.kernel.processes.ids() {
            let p = &self.kernel.processes[id];
            let (starts, faults) = (u64::from(p.starts), u64::from(p.faults));
            let words = [u64::from(id.index()), starts, faults, u64::from(p.heap.count), p.state as u64];
            announce(Record::Process, &words);
        }
        self.last_words(now, idle);
        leave(status)
    }

    fn last_words(&mut self, now: Nanos, idle: Nanos) {
        if self.metal.observe.record {
            let (written, lost) = self.metal.recorder.dump();
            announce(Record::Recorded, &[written, lost]);
        }
        if self.metal.observe.watch {
            announce(Record::LongestPath, &[self.metal.longest, self.longest_cause]);
        }
        // SAFETY: the end of the run; the reference ends here.
        let lost = unsafe { console() }.lost();
        if lost > 0 {
            announce(Record::ConsoleLost, &[lost]);
        }
        let c = self.metal.counts;
        announce(Record::End, &[now.0, idle.0, self.entries, c.cr3, c.msr, c.mmio]);
    }
}

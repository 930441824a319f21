//! Around the core: every entry comes in here, and what the core decides is done here.
//!
//! The order matters and is fixed: read the clock once, enter the core, set the timer, switch the
//! address space, deliver a message into it, and only then return to `entry.s`, which switches
//! registers. A receiver whose message cannot be delivered faults when it goes on: no entry decides
//! twice, so the length of a path and the depth of the stack have a bound.

use crate::apic::LocalApic;
use crate::clock::Clock;
use crate::console::{self, Console, announce, console};
use crate::context::Context;
use crate::cpu;
use crate::fatal::rest;
use crate::machine::{Metal, Unobserved};
use crate::percpu::shell;
use crate::tables::{FIRST_DEVICE, FIRST_INTERRUPT, TIMER};
use crate::watch::{Paths, VECTORS_FROM};
use diapason_abi::record::{Record, exit};
use diapason_abi::recorder::Entry;
use diapason_abi::results::GRACE;
use diapason_abi::{CallNumber, FaultCause, Nanos, PROCESSES_MAX, layout};
use diapason_core::{Arguments, Cause, Decision, Fault, Kernel, Longer, Machine};

/// One core's kernel with its hardware. The kernel comes first, where the instructions that reach
/// its pools are short.
#[repr(C)]
pub struct Shell {
    pub kernel: Kernel<'static>,
    pub metal: Metal,
    pub clock: Clock,
    pub timer: LocalApic,
    /// The time that the timer is set to.
    pub armed: Nanos,
    /// When the run ends.
    pub horizon: Nanos,
    /// Somebody outside could still wake a thread.
    pub has_devices: bool,
    /// The costs of paths, if the run is watched.
    pub paths: Paths,
    /// Why the kernel was entered, if the run is recorded.
    pub noted: Cause,
}

/// The answer to `entry.s` after a system call: its result, and the context to continue with: 0 for
/// the caller's, 1 for none.
#[repr(C)]
pub struct Exit {
    pub value: u64,
    pub next: usize,
}

const IDLE: usize = 1;

/// Where a thread goes on that cannot take its message: in the half of the addresses that no
/// program has. A program that jumps there says the same of itself.
const UNDELIVERED: u64 = 0xffff_ffff_ffff_f000;

#[unsafe(no_mangle)]
extern "C" fn on_trap(context: &mut Context) -> usize {
    // SAFETY: the only reference of this entry.
    let mut shell = unsafe { shell() };
    if shell.metal.observe.any() {
        return shell.observed_trap(context);
    }
    if context.vector < FIRST_INTERRUPT {
        let fault = shell.fault_of(context);
        return shell.faulted(fault);
    }
    let cause = shell.interrupt(context.vector);
    shell.enter(cause)
}

#[unsafe(no_mangle)]
extern "C" fn on_idle_trap(vector: u64) -> usize {
    // SAFETY: the only reference of this entry.
    let mut shell = unsafe { shell() };
    let start = shell.watch_start();
    let cause = shell.interrupt(vector);
    let next = shell.enter(cause);
    shell.watch_end(start, VECTORS_FROM + vector, next == IDLE);
    next
}

/// Nobody wants the processor: let the console speak. Interrupts get their chance in between.
#[unsafe(no_mangle)]
extern "C" fn on_idle() {
    // SAFETY: each reference ends with its statement. An interrupt between the two instructions may
    // run anything and write anything, and never comes back here: this frame is then abandoned. So
    // the compiler must not keep memory in registers across it.
    unsafe {
        while console().drain() {
            core::arch::asm!("sti", "nop", "cli", options(nostack));
        }
    }
    if console::is_taken() {
        rest(exit::FINISHED);
    }
}

/// Nothing that the long path left in vector registers, r9 and r10 reaches the caller. The kernel
/// uses four vector registers, and none in calls that [`Kernel::quick`] completes: `cargo xtask
/// tidy` looks. `entry.s` clears the other registers.
#[inline(never)]
fn forget_registers() {
    // SAFETY: clears registers that a function may clobber.
    unsafe {
        core::arch::asm!(
            "xorps xmm0, xmm0", "xorps xmm1, xmm1", "xorps xmm2, xmm2", "xorps xmm3, xmm3",
            "xor r9d, r9d", "xor r10d, r10d",
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("r9") _, out("r10") _,
            options(nomem, nostack),
        );
    }
}

/// Says how many records found no room on the console, and how many lines of each process.
#[inline(never)]
fn tell_losses() {
    // SAFETY: the end of the run; each reference ends with the look.
    let look = |by: &dyn Fn(&mut Console) -> u64| by(unsafe { console() });
    for process in 0..PROCESSES_MAX {
        let lines = look(&|console| console.lines_lost(process));
        if lines > 0 {
            announce(Record::LinesLost, &[process as u64, lines]);
        }
    }
    let lost = look(&|console| console.lost());
    if lost > 0 {
        announce(Record::ConsoleLost, &[lost]);
    }
}

impl Shell {
    #[inline(never)]
    fn observed_trap(&mut self, context: &Context) -> usize {
        let start = self.watch_start();
        let next = if context.vector < FIRST_INTERRUPT {
            self.faulted(self.fault_of(context))
        } else {
            let cause = self.interrupt(context.vector);
            self.enter(cause)
        };
        let stayed = next == context.place();
        self.watch_end(start, VECTORS_FROM + context.vector, stayed);
        next
    }

    /// A frequent call, if it changes nothing about who runs.
    #[inline(always)]
    pub fn quick(&mut self, call: CallNumber, arguments: Arguments) -> Result<Exit, Longer> {
        let value = self.kernel.complete(&mut Unobserved(&self.metal), call, arguments)?;
        Ok(Exit { value, next: 0 })
    }

    /// A frequent call, if it makes another thread run and nothing has to be decided for that. The
    /// timer stays as it is.
    #[inline(always)]
    pub fn shortcut(&mut self, call: CallNumber, arguments: Arguments) -> Result<Exit, Longer> {
        let memory = &mut Unobserved(&self.metal);
        let clock = &self.clock;
        let decision = self.kernel.shortcut(memory, call, arguments, || clock.now())?;
        let next = self.put_on(&decision);
        if matches!(call, CallNumber::MboxSend | CallNumber::MboxCall) {
            self.deliver(&decision);
        } else if decision.result.is_some() && decision.deliver_to != 0 {
            self.deliver_late(&decision);
        }
        Ok(Exit { value: 0, next })
    }

    /// A call led from one VCPU to another, and the thread that the core named goes on.
    pub fn over(&mut self) -> Exit {
        Exit { value: 0, next: self.resume() }
    }

    /// A call let a less urgent thread come, and the caller goes on with this result.
    pub fn stays(value: u64) -> Exit {
        forget_registers();
        Exit { value, next: 0 }
    }

    /// Nothing has to be decided: the thread that the core named goes on.
    #[inline(never)]
    fn resume(&mut self) -> usize {
        // The timer comes first, so that no register has to be kept while it is set.
        self.arm(self.kernel.next_alarm());
        let decision = self.kernel.resume_running();
        if self.metal.observe.record() {
            self.keep(&decision);
        }
        self.show(decision)
    }

    /// Timer, address space, result, message: then the chosen thread can go on.
    #[inline(always)]
    fn go_on(&mut self, decision: Decision) -> usize {
        self.arm(decision.alarm);
        self.show(decision)
    }

    /// Address space, result, message.
    #[inline(always)]
    fn show(&mut self, decision: Decision) -> usize {
        let next = self.put_on(&decision);
        if decision.deliver_to != 0 {
            self.deliver_late(&decision);
        }
        next
    }

    /// Starts a process, if nothing has to be decided for it.
    #[inline(always)]
    pub fn start(&mut self, key: u64) -> bool {
        let clock = &self.clock;
        self.kernel.start_plainly(&mut self.metal, key, || clock.now())
    }

    /// The calling thread named memory at `address` that it does not have.
    #[cold]
    #[inline(never)]
    pub fn bad_address(&mut self, address: u64) -> Exit {
        let (cause, instruction) = (FaultCause::BadAddress, self.metal.instruction());
        let next = self.faulted(Fault { cause, address, instruction });
        Exit { value: 0, next }
    }

    /// A line of text, if its memory is there.
    #[inline(always)]
    pub fn log(&mut self, call: CallNumber, arguments: Arguments) -> Result<Exit, Longer> {
        let logged = self.kernel.quick(&mut self.metal, call as u64, arguments);
        let value = logged.ok_or(Longer::Way)?;
        forget_registers();
        Ok(Exit { value, next: 0 })
    }

    /// A call that is observed, if it changes nothing about who runs.
    pub fn observed_call(&mut self, number: u64, arguments: Arguments) -> Option<Exit> {
        if let Some(value) = self.kernel.quick(&mut self.metal, number, arguments) {
            self.record_quick(number, arguments, value);
            forget_registers();
            return Some(Exit { value, next: 0 });
        }
        self.noted = Cause::Syscall(number, arguments);
        None
    }

    /// Any call, however rare.
    #[inline(always)]
    pub fn any_call(&mut self, number: u64, arguments: Arguments) -> Exit {
        let caller = self.kernel.scheduler.running;
        let result = self.kernel.call(&mut self.metal, self.clock.now(), number, arguments);
        if let Some(value) = result {
            if self.metal.observe.record() {
                self.keep_call(value);
            }
            forget_registers();
            return Exit { value, next: 0 };
        }
        let next = self.conclude();
        let context = self.context(caller.index());
        if next == context.place() {
            let value = context.rax;
            forget_registers();
            return Exit { value, next: 0 };
        }
        Exit { value: 0, next }
    }

    /// Enters the core with any cause but a call or a fault; returns the context to continue with.
    #[inline(never)]
    pub fn enter(&mut self, cause: Cause) -> usize {
        if self.metal.observe.record() {
            self.noted = cause;
        }
        let now = self.clock.now();
        if self.kernel.happen_plainly(&mut self.metal, now, cause) {
            return self.resume();
        }
        self.kernel.happen(&mut self.metal, now, cause);
        self.conclude()
    }

    /// The running thread faulted: mostly its supervisor runs, and there is nothing to decide.
    #[inline(never)]
    pub fn faulted(&mut self, fault: Fault) -> usize {
        let told = self.kernel.faulted(&mut self.metal, self.clock.now(), fault);
        if self.metal.observe.record() {
            self.noted = Cause::Fault(fault);
            if told {
                return self.resume();
            }
        } else if told {
            let decision = self.kernel.resume_running();
            self.arm(decision.alarm);
            let next = self.put_on(&decision);
            self.deliver(&decision);
            return next;
        }
        self.conclude()
    }

    /// Decides who runs, and lets it go on.
    #[inline(never)]
    fn conclude(&mut self) -> usize {
        let decision = self.kernel.decide();
        if self.metal.supervisor_died {
            self.finish(exit::SUPERVISOR_DIED);
        }
        if self.metal.observe.record() {
            self.keep(&decision);
        }
        if decision.run.is_none() {
            self.arm(decision.alarm);
            return self.nobody(decision.alarm);
        }
        self.go_on(decision)
    }

    /// Records why the kernel was entered and what it decided.
    #[inline(always)]
    fn keep(&mut self, decision: &Decision) {
        self.metal.recorder.entry(&self.noted.entry(self.kernel.now(), decision));
    }

    #[cold]
    #[inline(never)]
    fn keep_call(&mut self, result: u64) {
        self.keep(&self.kernel.goes_back(result));
    }

    /// Makes the chosen thread's memory visible and gives its call what it returns.
    #[inline(always)]
    fn put_on(&mut self, decision: &Decision) -> usize {
        let process = self.kernel.process().index();
        let context = self.metal.enter_space(process, decision.run.index());
        if let Some(result) = decision.result {
            context.rax = result;
        }
        context.place()
    }

    #[inline(always)]
    fn context(&mut self, thread: u16) -> &mut Context {
        &mut self.metal.contexts[thread as usize]
    }

    /// The chosen thread's message goes into its memory, which is visible now. A thread without
    /// memory for it goes on where no code is, so that its fault is an entry of its own.
    #[inline(always)]
    fn deliver(&mut self, decision: &Decision) {
        let Decision { run, deliver_to, .. } = *decision;
        if !self.metal.deliver(deliver_to, self.kernel.threads[run].message()) {
            self.undeliverable(run.index(), deliver_to);
        }
    }

    #[inline(never)]
    fn deliver_late(&mut self, decision: &Decision) {
        self.deliver(decision);
    }

    #[cold]
    #[inline(never)]
    fn undeliverable(&mut self, thread: u16, address: u64) {
        let context = self.context(thread);
        (context.rip, context.rax) = (UNDELIVERED, address);
    }

    /// The timer is to ring at `alarm`, or when the run ends.
    #[inline(always)]
    fn arm(&mut self, alarm: Nanos) {
        let alarm = alarm.min(self.horizon);
        if alarm != self.armed {
            self.set_timer(alarm);
        }
    }

    /// Sets the timer. An alarm that is due comes in a tick, so none is missed.
    #[inline(never)]
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

    /// An interrupt: acknowledge it and say what it means.
    #[inline(always)]
    fn interrupt(&mut self, vector: u64) -> Cause {
        self.metal.counts.mmio += 1;
        self.timer.end_of_interrupt();
        if vector == TIMER {
            // The timer is not set any more, whatever it was set to. It is set to the horizon or to
            // an alarm before that, so an alarm needs no look at the clock.
            let armed = core::mem::replace(&mut self.armed, Nanos::FOREVER);
            if armed >= self.horizon && self.clock.now() >= self.horizon {
                self.end();
            }
            return Cause::Timer;
        }
        match vector.checked_sub(FIRST_DEVICE) {
            Some(index) => self.metal.interrupt(index as usize),
            None => Cause::Timer,
        }
    }

    #[inline(always)]
    fn fault_of(&self, context: &Context) -> Fault {
        if context.rip == UNDELIVERED {
            return Fault::undelivered(context.rax);
        }
        let is_guard = |address| layout::is_stack_guard(self.metal.current, address);
        let Context { vector, error, .. } = *context;
        let (cause, address) = FaultCause::of_trap(vector, error, cpu::fault_address, is_guard);
        Fault { cause, address, instruction: context.rip }
    }

    /// Nobody can run: if nothing will ever change that, the run is over.
    #[inline(never)]
    fn nobody(&mut self, alarm: Nanos) -> usize {
        let hopeless = alarm == Nanos::FOREVER && !self.has_devices;
        if hopeless && self.horizon == Nanos::FOREVER {
            announce(Record::Halted, &[self.clock.now().0]);
            self.finish(exit::HALTED);
        }
        IDLE
    }

    /// Returns the counter at the start of a path, or 0 if no path is watched.
    pub fn watch_start(&self) -> u64 {
        if self.metal.observe.watch() { cpu::counter() } else { 0 }
    }

    /// A path that began at `start` ends; `stayed`: with the one that was there before.
    pub fn watch_end(&mut self, start: u64, cause: u64, stayed: bool) {
        if self.metal.observe.watch() {
            let length = cpu::counter() - start;
            if length > self.metal.longest {
                self.metal.longest = length;
                self.paths.longest_cause = cause;
            }
            self.paths.note(cause, length, stayed);
        }
    }

    /// Keeps a call that changed no schedule.
    fn record_quick(&mut self, number: u64, arguments: Arguments, result: u64) {
        if self.metal.observe.record() {
            self.metal.recorder.entry(&Entry::quick(number, arguments, result));
        }
    }

    /// The run is over: say how it went, and stop.
    pub fn finish(&mut self, status: u8) -> ! {
        if console::is_closed() {
            rest(exit::FINISHED);
        }
        self.conclusion();
        rest(status)
    }

    /// The horizon was reached. If a process still has lines of the console to take, the system
    /// goes on for that, and nothing of it is recorded.
    #[cold]
    #[inline(never)]
    fn end(&mut self) {
        if console::is_closed() {
            rest(exit::FINISHED);
        }
        self.conclusion();
        if !console::close() {
            rest(exit::FINISHED);
        }
        self.horizon = self.clock.now() + GRACE;
    }

    /// Says how the run went.
    #[inline(never)]
    fn conclusion(&mut self) {
        let now = self.clock.now();
        self.kernel.final_accounts(now, announce);
        let idle = self.kernel.scheduler.idle;
        self.last_words(now, idle);
    }

    fn last_words(&mut self, now: Nanos, idle: Nanos) {
        if self.metal.observe.record() {
            let (written, lost) = self.metal.recorder.dump();
            announce(Record::Recorded, &[written, lost]);
        }
        if self.metal.observe.watch() {
            self.paths.announce();
            announce(Record::LongestPath, &[self.metal.longest, self.paths.longest_cause]);
        }
        tell_losses();
        let c = self.metal.counts;
        let (retired, levied) = (self.kernel.retired().0, self.kernel.levied().0);
        let entries = self.kernel.entries();
        let words = [now.0, idle.0, entries, c.cr3, c.msr, c.mmio, retired, levied];
        announce(Record::End, &words);
    }
}

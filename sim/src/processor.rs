//! One core: the kernel's shell, at virtual time.
//!
//! It does what the shell on the metal does, in the same order: enter the core with a cause, make
//! the chosen thread's memory visible, deliver its message, go on with it. The operations that take
//! time on the metal take time here, by the table of costs and by the rounds of the kernel's loops.
//! Between two traps a program takes none.

use crate::Options;
use crate::context::Trap;
use crate::faults::Upsets;
use crate::glance::Glance;
use crate::guard;
use crate::machine::Simulated;
use crate::observe::{Moment, Observer, Said};
use crate::watched::Watcher;
use crate::works::Works;
use diapason_abi::record::Record;
use diapason_abi::recorder::Entry;
use diapason_abi::{CallNumber, FaultCause, Nanos, layout};
use diapason_core::{Arguments, Cause, Decision, Fault, Kernel, ThreadId, take_walked};
use diapason_costs::counted::{Cost, Costs, KernelEntry};

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The horizon was reached.
    Finished,
    /// Nothing is left that could run.
    Halted,
    /// A process that nobody supervises faulted.
    SupervisorDied,
    /// Time stands still, and this device is why; without one, the running thread. Only a model or
    /// the simulator itself can do that.
    Stuck(Option<u16>),
}

/// Why a host stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// The run is over.
    Ended(Ending),
    /// The host has no power until then.
    PowerLost(Nanos),
}

/// Looks at the clock that may see the same instant: whatever happens, time soon passes.
const LOOKS: u32 = 100_000;

/// Watches whether time passes.
#[derive(Default)]
struct Still {
    at: Nanos,
    looks: u32,
}

impl Still {
    /// Looks once more. Returns whether time has stood still for too many looks.
    fn lasts(&mut self, now: Nanos) -> bool {
        let looks = if now == self.at { self.looks + 1 } else { 0 };
        (self.at, self.looks) = (now, looks);
        looks > LOOKS
    }
}

/// A thread that only consumes time traps so often: the watchdog sees that it is alive.
const WATCHED: Nanos = Nanos::from_millis(10);

/// Returns the name of a cause in the table of costs.
const fn entry(cause: &Cause) -> KernelEntry {
    match *cause {
        Cause::Boot => KernelEntry::Boot,
        Cause::Timer => KernelEntry::Timer,
        Cause::Irq(_) | Cause::Stray(..) => KernelEntry::Interrupt,
        Cause::Fault(_) => KernelEntry::Fault,
        Cause::Syscall(number, _) => KernelEntry::Call(number),
    }
}

/// The cost of a call that ends its process.
const MISTAKE: Cause =
    Cause::Fault(Fault { cause: FaultCause::BadCall, address: 0, instruction: 0 });

/// The core with its programs.
pub(crate) struct Processor<'a> {
    pub kernel: Kernel<'a>,
    pub machine: Simulated,
    pub costs: Costs,
    pub works: Works,
    pub upsets: Upsets,
    watcher: Watcher,
    check: bool,
    pub observer: &'a mut dyn Observer,
    pub now: Nanos,
    alarm: Nanos,
    run: ThreadId,
    /// The thread that ran up to a trap since the last glance.
    ran: ThreadId,
    horizon: Nanos,
    still: Still,
    booted: bool,
    /// Where its turn ends, and how long its devices wait for an answer from another host.
    limit: Nanos,
    echo: Nanos,
    /// When the first answer to what its devices did since its turn began can come.
    pub answer: Nanos,
    /// Doorbells of other cores that it rang: which core, which of them, and when.
    pub rung: Vec<(u16, u16, Nanos)>,
}

impl<'a> Processor<'a> {
    /// Returns a core that is switched on at `now`.
    pub fn new(
        kernel: Kernel<'a>,
        machine: Simulated,
        options: &Options,
        upsets: Upsets,
        (observer, now): (&'a mut dyn Observer, Nanos),
    ) -> Self {
        let Options { costs, works, check, .. } = options.clone();
        let watcher = Watcher::new(&options.watched);
        Processor {
            kernel,
            machine,
            costs,
            works,
            upsets,
            watcher,
            check,
            observer,
            now,
            alarm: Nanos::FOREVER,
            run: ThreadId::NONE,
            ran: ThreadId::NONE,
            still: Still::default(),
            horizon: Nanos::FOREVER,
            booted: false,
            limit: Nanos::FOREVER,
            echo: Nanos::FOREVER,
            answer: Nanos::FOREVER,
            rung: Vec::new(),
        }
    }

    /// Lets the core run until `horizon`.
    pub fn until(mut self, horizon: Nanos) -> Self {
        self.horizon = horizon;
        self
    }

    /// A lower bound of the time at which the host, left to itself, does something next that could
    /// be noticed outside.
    pub fn next(&self) -> Nanos {
        if !self.booted && self.now > Nanos::ZERO {
            // Without power nothing is noticed.
            return self.now;
        }
        let busy = match () {
            () if !self.booted || self.machine.bus.interrupts() => Nanos::ZERO,
            () if self.run.is_some() => self.machine.owed[self.slot()],
            () => Nanos::FOREVER,
        };
        let own = self.alarm.min(self.horizon).min(self.upsets.next()).max(self.now);
        let own = own.min(self.now + busy);
        own.min(self.machine.bus.next_change())
    }

    /// From boot, or where it stopped before, up to `limit`, the horizon, or until nothing can
    /// happen any more; `None` if it can go on. The actions of its devices can be answered after
    /// `echo`, so it stops there, too.
    pub fn run(&mut self, limit: Nanos, echo: Nanos) -> Option<Stop> {
        (self.limit, self.echo, self.answer) = (limit, echo, Nanos::FOREVER);
        if !self.booted {
            self.booted = true;
            self.enter(Cause::Boot);
        }
        loop {
            if self.machine.supervisor_died {
                return Some(Stop::Ended(Ending::SupervisorDied));
            }
            if !self.machine.said.is_empty() {
                self.machine.said.drain(..).for_each(|said| self.observer.hear(said));
            }
            self.glance(false);
            let change = self.machine.bus.next_change();
            let due = self.alarm.min(self.horizon).min(self.upsets.next()).min(self.limit);
            if self.now >= self.horizon || self.observer.wants_end() {
                return Some(Stop::Ended(Ending::Finished));
            } else if self.still.lasts(self.now) {
                return Some(Stop::Ended(Ending::Stuck(self.machine.bus.due(self.now))));
            } else if let Some((words, power)) = self.upsets.begin(self.now) {
                self.observer.hear(Said::Fault(self.now, words));
                if let Some(back) = power {
                    return Some(Stop::PowerLost(back));
                }
            } else if change <= self.now && change < self.limit {
                // Behind the limit, too: the kernel may have taken longer than that.
                self.awaits(change);
                self.machine.advance_devices(self.now.min(self.limit - Nanos(1)));
                if let Some(stuck) = self.machine.bus.stuck() {
                    return Some(self.stop_at(stuck));
                }
            } else if self.now >= self.limit {
                return None;
            } else if let Some(device) = self.machine.bus.take_interrupt() {
                // Before the timer, as the vectors of the metal have it: no number of timers that
                // ring one after the other keeps a device waiting.
                self.enter(Cause::Irq(device));
            } else if self.alarm <= self.now {
                self.enter(Cause::Timer);
            } else if self.run.is_none() && due.min(change) == Nanos::FOREVER {
                return Some(Stop::Ended(Ending::Halted));
            } else if self.run.is_none() || self.machine.owed[self.slot()] > Nanos::ZERO {
                if let Some(stuck) = self.pass(due) {
                    return Some(self.stop_at(stuck));
                }
            } else {
                self.go_on(due.min(change));
            }
        }
    }

    /// Its devices act at `at`: the turn ends before an answer can come.
    fn awaits(&mut self, at: Nanos) {
        self.answer = self.answer.min(at + self.echo);
        self.limit = self.limit.min(self.answer);
    }

    /// Ends the run at a device that is wrong about its next change.
    fn stop_at(&mut self, (device, what): (u16, String)) -> Stop {
        self.observer.hear(Said::Note(self.now, what));
        Stop::Ended(Ending::Stuck(Some(device)))
    }

    /// Lets the observer look at everything; `ended` says that the run is over.
    pub fn glance(&mut self, ended: bool) {
        let ran = std::mem::replace(&mut self.ran, ThreadId::NONE);
        let (now, running, ran) = (self.now, self.run, ran.is_some().then_some(ran));
        let (kernel, machine) = (&self.kernel, &self.machine);
        self.observer.look(&Glance { now, kernel, running, ran, ended, machine });
    }

    fn slot(&self) -> usize {
        usize::from(self.run.index())
    }

    /// The running thread uses the time it owes, or nobody runs, until `due` at most. Returns a
    /// device that is wrong about its next change.
    fn pass(&mut self, due: Nanos) -> Option<(u16, String)> {
        let begun = self.now;
        if self.run.is_none() {
            return self.pass_devices(due);
        }
        let slot = self.slot();
        let stuck = self.pass_devices(due.min(begun + self.machine.owed[slot]));
        self.observer.moment(begun, self.now, Moment::Runs(self.run));
        self.machine.owed[slot] = self.machine.owed[slot] - (self.now - begun);
        stuck
    }

    /// Lets time pass until `due`, with each step of the devices before. No program looks at them
    /// meanwhile, so time stops earlier only where a step has an effect on the processor or the
    /// observer. Steps at `due` and steps that stay in the past are left to the caller.
    fn pass_devices(&mut self, due: Nanos) -> Option<(u16, String)> {
        loop {
            let (change, due) = (self.machine.bus.next_change(), due.min(self.limit));
            if change <= self.now {
                return None;
            } else if change >= due {
                self.now = due;
                return None;
            }
            self.now = change;
            self.awaits(change);
            self.machine.advance_devices(change);
            let stuck = self.machine.bus.stuck();
            let seen = self.machine.bus.interrupts() || !self.machine.said.is_empty();
            if stuck.is_some() || seen || self.observer.wants_end() {
                return stuck;
            }
        }
    }

    /// The running thread goes on natively, up to its next trap; what it consumes on the way ends
    /// before `due`.
    fn go_on(&mut self, due: Nanos) {
        let (slot, process) = (self.slot(), self.machine.current);
        let undelivered = std::mem::take(&mut self.machine.contexts[slot].undelivered);
        if undelivered != 0 {
            return self.enter(Cause::Fault(Fault::undelivered(undelivered)));
        }
        if self.upsets.crash(process) {
            self.machine.instruction = self.machine.contexts[slot].rip;
            return self.fault(FaultCause::Instruction, self.machine.instruction);
        }
        if self.machine.hidden >> process & 1 == 1 {
            self.machine.instruction = self.machine.contexts[slot].rip;
            return self.fault(FaultCause::Instruction, self.machine.instruction);
        }
        guard::note_resumption();
        let overruns = self.upsets.stretch(process, WATCHED, self.now) != WATCHED;
        // A processor whose memory is watched stops at every instant.
        let stops = overruns || !self.watcher.is_idle();
        let spare = if stops { Nanos::ZERO } else { (due - self.now).min(WATCHED) };
        // SAFETY: the kernel started this thread in its loaded program, and `crate::ONE` lets one
        // simulation run at a time.
        let (trap, consumed) = unsafe { self.machine.contexts[slot].resume(spare.0) };
        if consumed > 0 {
            let begun = self.now;
            self.now += Nanos(consumed);
            self.observer.moment(begun, self.now, Moment::Runs(self.run));
        }
        self.machine.instruction = self.machine.contexts[slot].rip;
        self.ran = self.run;
        let (now, running, ran) = (self.now, self.run, Some(self.run));
        let (kernel, machine, ended) = (&self.kernel, &self.machine, false);
        self.observer.trapped(&Glance { now, kernel, running, ran, ended, machine });
        self.look_at_memory();
        match trap {
            Trap::Call(number, arguments) => self.call(number, arguments),
            Trap::Now => {
                let now = self.now + self.costs.time(self.costs.clock());
                self.machine.contexts[slot].answer(now.0);
                self.owe(self.costs.clock());
            }
            Trap::Work(key) => {
                let span = self.works.time(key);
                self.observer.worked(key);
                self.machine.owed[slot] += self.upsets.stretch(process, span, self.now);
                self.owe(1);
            }
            Trap::Consume(span) => {
                let span = self.upsets.stretch(process, Nanos(span.max(1)), self.now);
                self.machine.owed[slot] += span;
            }
            Trap::Step => self.owe(self.costs.step()),
            Trap::GiveUp(place) => self.call(CallNumber::Fail as u64, [place, 0, 0, 0, 0]),
            Trap::Read(address, bytes) => {
                self.owe(self.costs.mmio());
                match self.machine.read_register(address, bytes, self.now) {
                    Some(value) => self.machine.contexts[slot].answer(value),
                    None => self.fault(FaultCause::Read, address),
                }
            }
            Trap::Write(address, value, bytes) => {
                self.owe(self.costs.mmio());
                self.awaits(self.now);
                if self.machine.write_register(address, (value, bytes), self.now).is_none() {
                    self.fault(FaultCause::Write, address);
                }
            }
            Trap::Signal => self.refused(),
        }
    }

    /// Looks whether the running thread has changed a word that is watched.
    fn look_at_memory(&mut self) {
        if self.watcher.is_idle() {
            return;
        }
        let (now, run, observer) = (self.now, self.run, &mut self.observer);
        let mut changed = false;
        let tell = |word, change, memory: &[u8]| {
            changed = true;
            observer.changed(now, run, word, change, memory);
        };
        self.watcher.changes(&mut self.machine.segments, tell);
        if changed {
            let segments = &mut self.machine.segments;
            self.observer.contents(&mut |segment: u16, offset: usize, to: &mut [u8]| {
                let memory = segments.get_mut(usize::from(segment)).map(|it| it.0.bytes());
                let from = memory.and_then(|memory| memory.get(offset..)?.get(..to.len()));
                from.map(|from| to.copy_from_slice(from)).is_some()
            });
        }
    }

    /// The running thread will use this many instructions before it goes on.
    fn owe(&mut self, instructions: u64) {
        let slot = self.slot();
        self.machine.owed[slot] += self.costs.time(instructions);
    }

    fn call(&mut self, number: u64, arguments: Arguments) {
        self.owe(self.costs.user());
        let slot = self.slot();
        // The loops of other hosts' kernels on this thread are not this one's.
        let _ = take_walked();
        if let Some(result) = self.kernel.quick(&mut self.machine, number, arguments) {
            self.machine.contexts[slot].answer(result);
            self.owe(self.costs.quick(number) + take_walked());
            self.watch(Entry::quick(number, arguments, result));
            return;
        }
        self.enter(Cause::Syscall(number, arguments));
    }

    /// Addresses in an entry are told as the metal has them.
    fn watch(&mut self, mut entry: Entry) {
        let region = self.machine.region;
        entry.arguments = entry.arguments.map(|word| region.home(word));
        entry.result = region.home(entry.result);
        self.observer.entry(&entry);
    }

    fn fault(&mut self, cause: FaultCause, address: u64) {
        let region = self.machine.region;
        let (address, instruction) = (region.home(address), region.home(self.machine.instruction));
        self.enter(Cause::Fault(Fault { cause, address, instruction }));
    }

    /// The processor refused something the thread did, or it did not come back.
    fn refused(&mut self) {
        let (report, process) = (guard::report(), self.machine.current);
        let region = self.machine.region;
        let is_guard = |address| layout::is_stack_guard(process, region.home(address));
        let (cause, address) = guard::cause(report, is_guard);
        self.machine.instruction = report.instruction;
        if report.vector.is_none() {
            self.observer.endless(self.now, self.run, region.home(report.instruction));
        }
        self.fault(cause, address);
    }

    /// Enters the core and does what it decides.
    fn enter(&mut self, cause: Cause) {
        let (begun, before) = (self.now, self.run);
        let faults = self.faults_of(before);
        self.now += self.costs.time(self.costs.before(entry(&cause)));
        let read = self.now;
        self.observer.moment(begun, read, Moment::Kernel(cause));
        let _ = take_walked();
        let decision = self.decide(cause);
        let loops = if matches!(cause, Cause::Boot) { 0 } else { take_walked() };
        self.watch(cause.entry(self.now, &decision));
        let stays = decision.run == before && before.is_some();
        let ended = before.is_some() && self.faults_of(before) != faults;
        let cause_paid = if ended { MISTAKE } else { cause };
        let Cost { after, .. } = self.costs.of(entry(&cause_paid), stays);
        self.now += self.costs.time(after + loops);
        self.observer.moment(read, self.now, Moment::Kernel(cause));
        if self.check {
            self.kernel.check_invariants();
        }
        self.note_rings();
        self.settle(&decision);
        self.observer.decided(read, self.now, &self.kernel, &decision);
    }

    /// Enters the core as the metal does: a call goes a short way if nothing has to be decided.
    fn decide(&mut self, cause: Cause) -> Decision {
        let now = self.now;
        if let Cause::Syscall(number, arguments) = cause
            && let Some(call) = CallNumber::decode(number)
        {
            let short = self.kernel.short_decision(&mut self.machine, call, arguments, now);
            if let Some(decision) = short {
                return decision;
            }
            // The table of costs has the search for a short way in the long one.
            let _ = take_walked();
        }
        self.kernel.enter(&mut self.machine, now, cause)
    }

    /// A rung doorbell ends the turn: the core that answers may do something next.
    fn note_rings(&mut self) {
        if !self.machine.rung.is_empty() {
            self.limit = self.limit.min(self.now);
            let now = self.now;
            self.rung.extend(self.machine.rung.drain(..).map(|(core, bell)| (core, bell, now)));
        }
    }

    /// Faults of the process of a thread; 0 for none.
    fn faults_of(&self, thread: ThreadId) -> u32 {
        let process = thread.is_some().then(|| self.kernel.process_of(thread));
        process.map_or(0, |process| process.faults)
    }

    /// The chosen thread's memory becomes visible and its call returns. The message is in the
    /// thread; one that cannot be delivered is a fault of its receiver, when that goes on.
    fn settle(&mut self, decision: &Decision) {
        (self.run, self.alarm) = (decision.run, decision.alarm);
        if self.run.is_none() {
            return;
        }
        let slot = self.slot();
        self.machine.enter_space(self.kernel.process().index());
        if let Some(result) = decision.result {
            self.machine.contexts[slot].answer(result);
        }
        let message = self.kernel.threads[self.run].message();
        if decision.deliver_to != 0 && !self.machine.deliver(decision.deliver_to, message) {
            self.machine.contexts[slot].undelivered = decision.deliver_to;
        }
    }
}

impl Processor<'_> {
    /// The run is over: settle the accounts and say how it went, in the records of the metal.
    pub fn close(&mut self) -> Nanos {
        let now = self.now;
        self.machine.bus.settle(now.min(self.horizon));
        let mut said = std::mem::take(&mut self.machine.said);
        let mut emit = |record, words: &[u64]| said.push(Said::Record(record, words.to_vec()));
        self.kernel.final_accounts(now, &mut emit);
        let (idle, m) = (self.kernel.scheduler.idle.0, &self.machine);
        let (retired, levied) = (self.kernel.retired().0, self.kernel.levied().0);
        let words =
            [now.0, idle, self.kernel.entries(), m.switches, 0, m.accesses, retired, levied];
        emit(Record::End, &words);
        said.into_iter().for_each(|said| self.observer.hear(said));
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_stands_still_is_noticed_and_time_that_creeps_is_not() {
        let mut still = Still::default();
        assert!((0..u64::from(4 * LOOKS)).all(|look| !still.lasts(Nanos(look / 1_000))));
        let looks = (0..2 * LOOKS).position(|_| still.lasts(Nanos::from_secs(1)));
        assert_eq!(looks, Some(LOOKS as usize + 1));
    }
}

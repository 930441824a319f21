//! A booted host, and how tests speak to it: every state is reached by calls of its own threads.

use super::plan::{Plan, key};
use super::{Call, Errno, FOREVER};
use diapason_abi::archive::Archive;
use diapason_abi::record::Record;
use diapason_abi::{FaultCause, Nanos, decode_result, layout};
use diapason_core::host::{Host, KernelMemory};
use diapason_core::{Cause, Fault, State, ThreadId, Wait};
use std::collections::BTreeMap;

/// Boots `plan` and runs `body` on it.
pub fn run<R>(plan: &Plan, body: impl FnOnce(&mut Sys<'_>) -> R) -> R {
    let bytes = plan.to_bytes();
    let archive = Archive::parse(&bytes).expect("a possible plan");
    let mut memory = KernelMemory::of(&archive);
    let kernel = memory.kernel(&archive, plan.refused);
    let mut sys = Sys { host: Host::boot(kernel), got: BTreeMap::new() };
    sys.collect();
    body(&mut sys)
}

/// The fate of a caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The caller's call returned and it still runs.
    Returned(Result<u64, Errno>),
    Blocked,
    /// The caller could go on, but somebody more urgent (or its equal, after a yield) runs.
    Preempted,
    /// The caller ended without a fault.
    Ended,
    /// The caller's process was ended by this fault, at this address.
    Faulted(FaultCause, u64),
}

/// A booted system under test.
pub struct Sys<'a> {
    /// The host under it.
    pub host: Host<'a>,
    got: BTreeMap<u16, Result<u64, Errno>>,
}

impl Sys<'_> {
    fn collect(&mut self) {
        for (thread, result) in self.host.results.drain(..) {
            self.got.insert(thread.index(), decode_result(result));
        }
    }

    /// The thread in this slot of a process.
    pub fn thread(&self, process: u16, slot: u16) -> ThreadId {
        let of = |t: &ThreadId| {
            let t = &self.host.kernel.threads[*t];
            t.process.index() == process && t.slot == slot
        };
        self.host.kernel.threads.ids().find(of).expect("a declared thread")
    }

    /// Returns the running thread.
    pub fn running(&self) -> ThreadId {
        self.host.running()
    }

    /// Returns the process of the running thread.
    pub fn running_process(&self) -> u16 {
        self.host.kernel.threads[self.running()].process.index()
    }

    /// Returns the effective priority.
    pub fn priority(&self, thread: ThreadId) -> u8 {
        self.host.kernel.urgency(thread)
    }

    /// Returns where it is in its life; one that waits for a mutex counts as blocked, though it
    /// keeps its place.
    pub fn state(&self, thread: ThreadId) -> State {
        let t = &self.host.kernel.threads[thread];
        if let Wait::Mutex(_) = t.wait { State::Blocked } else { t.state }
    }

    /// Returns the handle of a thread.
    pub fn handle(&self, thread: ThreadId) -> u64 {
        self.host.kernel.threads[thread].handle
    }

    /// The last result delivered to a thread, once.
    pub fn result(&mut self, thread: ThreadId) -> Option<Result<u64, Errno>> {
        self.got.remove(&thread.index())
    }

    /// An address in the memory of the running process.
    pub fn address(&self, offset: u64) -> u64 {
        layout::base(self.running_process()) + offset
    }

    /// Writes bytes into a process's memory.
    pub fn poke(&mut self, address: u64, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            self.host.machine.memory.insert(address + i as u64, *byte);
        }
    }

    /// Reads bytes of a process's memory.
    pub fn peek(&self, address: u64, length: usize) -> Vec<u8> {
        let byte = |at| self.host.machine.memory.get(&at).copied().unwrap_or(0);
        (address..address + length as u64).map(byte).collect()
    }

    fn last_fault(&self) -> Option<(FaultCause, u64)> {
        let (_, words) =
            self.host.machine.records.iter().rev().find(|(record, _)| *record == Record::Fault)?;
        Some((FaultCause::decode(words[3] as u8)?, words[4]))
    }

    fn faults(&self) -> usize {
        self.host.machine.records.iter().filter(|(record, _)| *record == Record::Fault).count()
    }

    /// Does something to the host as the running thread, and says what became of that.
    pub fn act(&mut self, act: impl FnOnce(&mut diapason_core::host::Host<'_>)) -> Outcome {
        let (caller, faults) = (self.running(), self.faults());
        self.got.remove(&caller.index());
        act(&mut self.host);
        self.collect();
        if self.faults() > faults {
            let (cause, address) = self.last_fault().expect("counted");
            return Outcome::Faulted(cause, address);
        }
        if let Some(result) = self.got.remove(&caller.index()) {
            return Outcome::Returned(result);
        }
        match self.state(caller) {
            State::Blocked | State::Parked => Outcome::Blocked,
            State::Ready => Outcome::Preempted,
            State::Free | State::Ended => Outcome::Ended,
        }
    }

    /// The running thread makes a call.
    pub fn call(&mut self, call: Call, arguments: &[u64]) -> Outcome {
        self.act(|host| host.call(call, arguments))
    }

    /// Calls, and expects a value at once.
    #[track_caller]
    pub fn ok(&mut self, call: Call, arguments: &[u64]) -> u64 {
        match self.call(call, arguments) {
            Outcome::Returned(Ok(value)) => value,
            other => panic!("{call:?} {arguments:x?}: {other:?}"),
        }
    }

    /// Calls, and expects an error at once.
    #[track_caller]
    pub fn err(&mut self, call: Call, arguments: &[u64]) -> Errno {
        match self.call(call, arguments) {
            Outcome::Returned(Err(errno)) => errno,
            other => panic!("{call:?} {arguments:x?}: {other:?}"),
        }
    }

    /// Makes a call that must block.
    #[track_caller]
    pub fn blocks(&mut self, call: Call, arguments: &[u64]) {
        assert_eq!(self.call(call, arguments), Outcome::Blocked, "{call:?} {arguments:x?}");
    }

    /// Calls, and expects that somebody else goes first.
    #[track_caller]
    pub fn yields(&mut self, call: Call, arguments: &[u64]) {
        assert_eq!(self.call(call, arguments), Outcome::Preempted, "{call:?} {arguments:x?}");
    }

    /// Calls, and expects a fault of this cause, which ends the process.
    #[track_caller]
    pub fn misuses(&mut self, cause: FaultCause, call: Call, arguments: &[u64]) {
        match self.call(call, arguments) {
            Outcome::Faulted(found, _) if found == cause => {}
            other => panic!("{call:?} {arguments:x?}: {other:?}"),
        }
    }

    /// The running thread faults.
    pub fn crash(&mut self, cause: FaultCause, address: u64) {
        let fault = Fault { cause, address, instruction: 0x1234 };
        let outcome = self.act(|host| host.enter(Cause::Fault(fault)));
        assert_eq!(outcome, Outcome::Faulted(cause, address));
    }

    /// A new thread of the running process; if it is more urgent than its creator, it runs now.
    #[track_caller]
    pub fn spawn(&mut self, priority: u8) -> ThreadId {
        match self.call(Call::ThreadCreate, &[0x1000, 0, u64::from(priority), 0]) {
            Outcome::Returned(Ok(_)) | Outcome::Preempted => {}
            other => panic!("spawn: {other:?}"),
        }
        self.host.machine.started.last().expect("just started").0
    }

    /// The running thread waits on an event of its own, for ever; returns the event.
    #[track_caller]
    pub fn park(&mut self) -> u64 {
        let event = self.ok(Call::EventCreate, &[]);
        self.blocks(Call::EventWait, &[event, FOREVER]);
        event
    }

    /// The running thread waits for the interrupt of a device until [`Sys::ring`].
    #[track_caller]
    pub fn await_bell(&mut self, device: &str) -> u64 {
        let event = self.ok(Call::SetIsr, &[key(device)]);
        self.blocks(Call::EventWait, &[event, FOREVER]);
        event
    }

    /// Raises a device's interrupt.
    pub fn ring(&mut self, device: u16) {
        self.host.enter(Cause::Irq(device));
        self.collect();
    }

    /// The clock reaches `time`.
    pub fn until(&mut self, time: u64) {
        self.host.advance(Nanos(time));
        self.collect();
    }

    /// Words of every record of a kind.
    pub fn records(&self, which: Record) -> Vec<Vec<u64>> {
        let of_kind = self.host.machine.records.iter().filter(|(record, _)| *record == which);
        of_kind.map(|(_, words)| words.clone()).collect()
    }

    /// Create or find a declared object.
    #[track_caller]
    pub fn open(&mut self, call: Call, name: &str) -> u64 {
        self.ok(call, &[key(name), 0])
    }

    /// The running thread locks a mutex that is free.
    #[track_caller]
    pub fn lock(&mut self, mutex: u64) {
        assert_eq!(self.ok(Call::SemLock, &[mutex, FOREVER]), 0);
    }
}

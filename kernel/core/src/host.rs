//! The core on a host: pools on the heap, a machine made of plain memory, and a replayer.
//!
//! Tests drive the core through [`Host`], which does what the metal's shell does around it: try
//! [`Kernel::quick`], else [`Kernel::enter`], then deliver a received message in the right address
//! space. [`replay`] feeds a flight recording through the same steps.

mod memory;

pub use memory::KernelMemory;

use crate::ids::{FrameId, ProcessId, ThreadId};
use crate::kernel::{Arguments, Cause, Decision, Fault, Kernel, Longer};
use crate::machine::{BadAddress, Machine, UserMemory};
use crate::pool::Id;
use diapason_abi::archive::{Archive, DeviceRecord};
use diapason_abi::call::{NO_HINT, unmapped};
use diapason_abi::record::Record;
use diapason_abi::recorder::{ENTRY_BYTES, ENTRY_WORDS, Entry, EntryKind};
use diapason_abi::{CallNumber, FaultCause, Nanos, PAGE, decode_result, layout};
use std::collections::{BTreeMap, VecDeque};

/// Where devices of [`HostMachine`] find the first frame.
pub const HOST_BUS: u64 = 0x10_0000;

/// Runs `body` with a kernel for `archive`, all programs taken as loaded.
///
/// # Panics
/// If the archive needs pools larger than their ids.
pub fn with_kernel<R>(archive: &Archive<'_>, body: impl FnOnce(Kernel<'_>) -> R) -> R {
    body(KernelMemory::of(archive).kernel(archive, 0))
}

/// The fault of a thread in a hidden window.
pub const HIDDEN: Fault = Fault { cause: FaultCause::Instruction, address: 0, instruction: 0 };

impl Kernel<'_> {
    /// Makes a call by a short way, if it has one, and returns what [`Kernel::enter`] would.
    pub fn short_decision(
        &mut self,
        m: &mut impl UserMemory,
        call: CallNumber,
        arguments: Arguments,
        now: Nanos,
    ) -> Option<Decision> {
        match self.shortcut(m, call, arguments, || now) {
            Ok(decision) => Some(decision),
            Err(Longer::Over) => Some(self.resume_running()),
            Err(Longer::Stays(result)) => Some(self.goes_back(result)),
            Err(Longer::Way | Longer::BadAddress(_)) => None,
        }
    }
}

/// Bytes of user memory a process has in [`HostMachine`], from the start of its window.
pub const USER_BYTES: u64 = 0x1_0000;

/// A machine of plain memory that remembers what it was told.
#[derive(Default)]
pub struct HostMachine {
    /// The process whose memory is visible.
    pub current: u16,
    /// User memory that was written, by address.
    pub memory: BTreeMap<u64, u8>,
    /// Records the kernel emitted.
    pub records: Vec<(Record, Vec<u64>)>,
    pub lines: Vec<(u16, Vec<u8>)>,
    /// Threads started, with entry and argument.
    pub started: Vec<(ThreadId, Option<(u64, u64)>)>,
    /// Heap pages mapped per process, segment pages mapped, which processes see which segments.
    pub heap: BTreeMap<(u16, u32), u16>,
    pub segments: BTreeMap<(u16, u32), u16>,
    /// `(process, segment)` pairs attached.
    pub attached: std::collections::BTreeSet<(u16, u16)>,
    /// `(process, device)` pairs mapped.
    pub mapped: std::collections::BTreeSet<(u16, u16)>,
    /// Devices that may access memory by themselves.
    pub masters: std::collections::BTreeSet<u16>,
    /// Interrupt lines let through.
    pub irqs: std::collections::BTreeSet<u16>,
    /// Doorbells rung on other cores: core and number.
    pub rung: Vec<(u16, u16)>,
    /// Processes whose windows are hidden, one bit each.
    pub hidden: u64,
    /// The supervisor that died, if one did.
    pub dead_supervisor: Option<ProcessId>,
}

impl HostMachine {
    fn valid(&self, address: u64, length: u64) -> Result<(), BadAddress> {
        let base = layout::base(self.current);
        let end = address.checked_add(length).ok_or(BadAddress)?;
        if length == 0 || address >= base && end <= base + USER_BYTES {
            Ok(())
        } else {
            Err(BadAddress)
        }
    }
}

impl UserMemory for HostMachine {
    fn copy_in(&mut self, address: u64, to: &mut [u8]) -> Result<(), BadAddress> {
        self.valid(address, to.len() as u64)?;
        for (i, byte) in to.iter_mut().enumerate() {
            *byte = self.memory.get(&(address + i as u64)).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn copy_out(&mut self, address: u64, from: &[u8]) -> Result<(), BadAddress> {
        self.valid(address, from.len() as u64)?;
        for (i, byte) in from.iter().enumerate() {
            self.memory.insert(address + i as u64, *byte);
        }
        Ok(())
    }

    fn copy_user(&mut self, to: u64, from: u64, length: u64) -> Result<(), BadAddress> {
        self.valid(from, length)?;
        self.valid(to, length)?;
        let mut bytes = vec![0; length as usize];
        self.copy_in(from, &mut bytes)?;
        self.copy_out(to, &bytes)
    }
}

impl Machine for HostMachine {
    fn instruction(&self) -> u64 {
        0
    }

    fn start_thread(&mut self, thread: ThreadId, entry: Option<(u64, u64)>) {
        self.started.push((thread, entry));
    }

    fn show_process(&mut self, process: ProcessId, visible: bool) {
        let bit = 1u64 << process.index();
        assert_eq!(self.hidden & bit != 0, visible, "a window is hidden or shown twice");
        self.hidden ^= bit;
    }

    fn map_heap(&mut self, process: ProcessId, page: u32, frame: FrameId) {
        let earlier = self.heap.insert((process.index(), page), frame.index());
        assert!(earlier.is_none(), "heap page mapped twice");
    }

    fn clear_heap(&mut self, process: ProcessId, pages: u32) {
        for page in 0..pages {
            assert!(self.heap.remove(&(process.index(), page)).is_some(), "page was not mapped");
        }
    }

    fn map_segment(&mut self, segment: u16, page: u32, frame: FrameId) {
        let earlier = self.segments.insert((segment, page), frame.index());
        assert!(earlier.is_none(), "segment page mapped twice");
    }

    fn clear_segment(&mut self, segment: u16, pages: u32) {
        for page in 0..pages {
            assert!(self.segments.remove(&(segment, page)).is_some(), "page was not mapped");
        }
    }

    fn attach_segment(&mut self, process: ProcessId, segment: u16, visible: bool) {
        let pair = (process.index(), segment);
        if visible {
            self.attached.insert(pair)
        } else {
            self.attached.remove(&pair)
        };
    }

    fn attach_device(&mut self, process: ProcessId, device: u16, visible: bool) {
        let pair = (process.index(), device);
        if visible {
            self.mapped.insert(pair)
        } else {
            self.mapped.remove(&pair)
        };
    }

    fn set_bus_master(&mut self, device: u16, enabled: bool) {
        let changed =
            if enabled { self.masters.insert(device) } else { self.masters.remove(&device) };
        // A device that strayed is silent before its last process ends.
        assert!(changed || !enabled, "only the first and the last process make a difference");
    }

    fn bus_address(&mut self, _segment: u16, first: FrameId) -> u64 {
        HOST_BUS + u64::from(first.index()) * PAGE as u64
    }

    fn set_irq(&mut self, device: &DeviceRecord, enabled: bool) {
        if enabled {
            self.irqs.insert(device.irq)
        } else {
            self.irqs.remove(&device.irq)
        };
    }

    fn ring(&mut self, core: u16, number: u16) {
        self.rung.push((core, number));
    }

    fn log(&mut self, process: ProcessId, text: &[u8]) {
        self.lines.push((process.index(), text.to_vec()));
    }

    fn emit(&mut self, record: Record, words: &[u64]) {
        self.records.push((record, words.to_vec()));
    }

    fn counter(&mut self, _which: u64) -> u64 {
        0
    }

    fn supervisor_died(&mut self, process: ProcessId) {
        self.dead_supervisor = Some(process);
    }
}

/// A kernel with its machine and clock, stepped by hand.
pub struct Host<'a> {
    pub kernel: Kernel<'a>,
    /// The machine under it.
    pub machine: HostMachine,
    /// The clock; advance it at will.
    pub now: Nanos,
    pub decision: Decision,
    /// Results delivered so far, in order.
    pub results: VecDeque<(ThreadId, u64)>,
    /// Short ways are tried at every so many-th entry.
    pub tried_every: u64,
    /// Calls that went the way of [`Kernel::shortcut`], by kind.
    pub shortcuts: BTreeMap<CallNumber, u64>,
    /// Interrupts whose threads ran at once.
    pub plain_interrupts: u64,
    /// Ends of sleeps after which the threads ran at once.
    pub plain_alarms: u64,
}

impl<'a> Host<'a> {
    /// Boot at time zero.
    pub fn boot(kernel: Kernel<'a>) -> Host<'a> {
        let idle = Decision { run: Id::NONE, result: None, deliver_to: 0, alarm: Nanos::FOREVER };
        let mut host = Host {
            kernel,
            machine: HostMachine::default(),
            now: Nanos::ZERO,
            decision: idle,
            results: VecDeque::new(),
            tried_every: 2,
            shortcuts: BTreeMap::new(),
            plain_interrupts: 0,
            plain_alarms: 0,
        };
        host.enter(Cause::Boot);
        host
    }

    /// Returns the running thread.
    #[must_use]
    pub fn running(&self) -> ThreadId {
        self.kernel.scheduler.running
    }

    /// Enters with a cause, checks every invariant, and delivers what is to be delivered.
    pub fn enter(&mut self, cause: Cause) {
        let tried = self.kernel.entries().is_multiple_of(self.tried_every);
        if tried && self.kernel.happen_plainly(&mut self.machine, self.now, cause) {
            match cause {
                Cause::Irq(_) => self.plain_interrupts += 1,
                _ => self.plain_alarms += 1,
            }
            let decision = self.kernel.resume_running();
            return self.follow(decision);
        }
        let decision = self.kernel.enter(&mut self.machine, self.now, cause);
        self.follow(decision);
    }

    /// Acts on a decision and what follows from it.
    fn follow(&mut self, mut decision: Decision) {
        loop {
            self.kernel.check_invariants();
            let Some((fault, run)) = self.settle(decision) else { break };
            assert_eq!(run, self.running());
            decision = self.kernel.enter(&mut self.machine, self.now, Cause::Fault(fault));
        }
    }

    /// Acts on a decision; a message that cannot be delivered is a fault of its receiver.
    fn settle(&mut self, decision: Decision) -> Option<(Fault, ThreadId)> {
        self.decision = decision;
        let run = decision.run;
        if run.is_none() {
            return None;
        }
        self.machine.current = self.kernel.threads[run].process.index();
        if self.machine.hidden >> self.machine.current & 1 == 1 {
            return Some((HIDDEN, run));
        }
        let message = self.kernel.threads[run].message();
        let failed = decision.deliver_to != 0
            && self.machine.copy_out(decision.deliver_to, message).is_err();
        if failed {
            return Some((decision.undelivered(), run));
        }
        if let Some(result) = decision.result {
            self.results.push_back((run, result));
        }
        None
    }

    /// The running thread makes a call. Of two that have a short way one goes the long way, if
    /// nobody has changed that.
    pub fn raw_call(&mut self, number: u64, arguments: Arguments) {
        let caller = self.running();
        let tried = self.kernel.entries().is_multiple_of(self.tried_every);
        let call = CallNumber::decode(number).filter(|_| tried);
        if call == Some(CallNumber::ProcCreate)
            && let [key, mailbox, address, deadline, _] = arguments
            && mailbox != 0
            && self.kernel.start_plainly(&mut self.machine, key, || self.now)
        {
            *self.shortcuts.entry(CallNumber::ProcCreate).or_default() += 1;
            let words = [mailbox, address, deadline, NO_HINT, 0];
            return self.raw_call(CallNumber::MboxReceive as u64, words);
        }
        if let Some(call) = call {
            let now = self.now;
            let decision = self.kernel.short_decision(&mut self.machine, call, arguments, now);
            if let Some(decision) = decision {
                *self.shortcuts.entry(call).or_default() += 1;
                return self.follow(decision);
            }
        }
        match self.kernel.quick(&mut self.machine, number, arguments) {
            Some(result) => {
                self.kernel.check_invariants();
                self.results.push_back((caller, result));
            }
            None => self.enter(Cause::Syscall(number, arguments)),
        }
    }

    /// The running thread makes a call.
    pub fn call(&mut self, call: CallNumber, arguments: &[u64]) {
        let mut words = [0; 5];
        if let Some(hint) = call.hint_word() {
            words[hint] = NO_HINT;
        }
        words[..arguments.len()].copy_from_slice(arguments);
        self.raw_call(call as u64, words);
    }

    /// The running thread makes a call that returns at once; its result.
    ///
    /// # Errors
    /// Returns the call's error.
    ///
    /// # Panics
    /// If the call does not return to its caller first.
    pub fn value(
        &mut self,
        call: CallNumber,
        arguments: &[u64],
    ) -> Result<u64, diapason_abi::Errno> {
        let caller = self.running();
        self.results.clear();
        self.call(call, arguments);
        let at = self.results.iter().position(|(thread, _)| *thread == caller);
        let at = at.expect("the call returns at once");
        decode_result(self.results[at].1)
    }

    /// Lets the clock reach `time`, entering for each alarm on the way.
    pub fn advance(&mut self, time: Nanos) {
        while self.kernel.next_alarm() <= time {
            self.now = self.now.max(self.kernel.next_alarm());
            self.enter(Cause::Timer);
        }
        self.now = self.now.max(time);
    }

    /// Drops results of earlier calls.
    pub fn forget_results(&mut self) {
        self.results.clear();
    }

    /// The result delivered to `thread` since the last [`Host::forget_results`].
    #[must_use]
    pub fn result_of(&self, thread: ThreadId) -> Option<Result<u64, diapason_abi::Errno>> {
        self.results.iter().find(|(t, _)| *t == thread).map(|(_, r)| decode_result(*r))
    }
}

/// Why a replay is not equal to its recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The entry, counted from zero, without `Bytes`.
    pub entry: usize,
    pub recorded: Entry,
    /// The core's decision: thread, result, alarm.
    pub decided: String,
}

/// User memory as the recording has it.
#[derive(Default)]
struct Tape {
    accesses: VecDeque<Entry>,
}

impl Tape {
    /// Returns whether the next access was recorded as a failure. Consumes the mark.
    fn failed(&mut self) -> bool {
        let failed = self.accesses.front().is_some_and(|e| e.detail == u16::MAX);
        if failed {
            self.accesses.pop_front();
        }
        failed
    }
}

/// A machine whose user memory is a recording.
#[derive(Default)]
struct ReplayMachine {
    tape: Tape,
    /// The result of the entry's call: if it asked the machine for a number, it is in here.
    counter: u64,
    inner: HostMachine,
}

impl UserMemory for ReplayMachine {
    fn copy_in(&mut self, _address: u64, to: &mut [u8]) -> Result<(), BadAddress> {
        if self.tape.failed() {
            return Err(BadAddress);
        }
        for chunk in to.chunks_mut(64) {
            let Some(entry) = self.tape.accesses.pop_front() else { return Err(BadAddress) };
            let words = &entry.to_words()[1..9];
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
        Ok(())
    }

    fn copy_out(&mut self, _address: u64, _from: &[u8]) -> Result<(), BadAddress> {
        if self.tape.failed() { Err(BadAddress) } else { Ok(()) }
    }

    fn copy_user(&mut self, _to: u64, _from: u64, _length: u64) -> Result<(), BadAddress> {
        if self.tape.failed() { Err(BadAddress) } else { Ok(()) }
    }
}

impl Machine for ReplayMachine {
    fn instruction(&self) -> u64 {
        0
    }

    fn start_thread(&mut self, _thread: ThreadId, _entry: Option<(u64, u64)>) {}

    fn show_process(&mut self, _process: ProcessId, _visible: bool) {}

    fn map_heap(&mut self, process: ProcessId, page: u32, frame: FrameId) {
        self.inner.map_heap(process, page, frame);
    }

    fn clear_heap(&mut self, process: ProcessId, pages: u32) {
        self.inner.clear_heap(process, pages);
    }

    fn map_segment(&mut self, segment: u16, page: u32, frame: FrameId) {
        self.inner.map_segment(segment, page, frame);
    }

    fn clear_segment(&mut self, segment: u16, pages: u32) {
        self.inner.clear_segment(segment, pages);
    }

    fn attach_segment(&mut self, _process: ProcessId, _segment: u16, _visible: bool) {}

    fn attach_device(&mut self, _process: ProcessId, _device: u16, _visible: bool) {}

    fn set_bus_master(&mut self, _device: u16, _enabled: bool) {}

    fn bus_address(&mut self, _segment: u16, _first: FrameId) -> u64 {
        unmapped(self.counter).0
    }

    fn set_irq(&mut self, _device: &DeviceRecord, _enabled: bool) {}

    fn ring(&mut self, _core: u16, _number: u16) {}

    fn log(&mut self, _process: ProcessId, _text: &[u8]) {}

    fn emit(&mut self, _record: Record, _words: &[u64]) {}

    fn counter(&mut self, _which: u64) -> u64 {
        self.counter
    }

    fn supervisor_died(&mut self, _process: ProcessId) {}
}

/// Feeds a recording through the core. Returns how many entries were equal.
///
/// # Errors
/// The first entry at which the core here decides otherwise.
pub fn replay(mut kernel: Kernel<'_>, recording: &[u8]) -> Result<usize, Box<Divergence>> {
    let mut machine = ReplayMachine::default();
    let mut equal = 0;
    for bytes in recording.chunks_exact(ENTRY_BYTES) {
        let mut words = [0; ENTRY_WORDS];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        }
        let Some(entry) = Entry::from_words(&words) else { break };
        if entry.kind == EntryKind::Bytes {
            machine.tape.accesses.push_back(entry);
            continue;
        }
        replay_entry(&mut kernel, &mut machine, &entry)
            .map_err(|decided| Box::new(Divergence { entry: equal, recorded: entry, decided }))?;
        kernel.check_invariants();
        equal += 1;
    }
    Ok(equal)
}

fn replay_entry(
    kernel: &mut Kernel<'_>,
    m: &mut ReplayMachine,
    entry: &Entry,
) -> Result<(), String> {
    let number = u64::from(entry.detail);
    let a = entry.arguments;
    m.counter = entry.result;
    let is_call = matches!(entry.kind, EntryKind::Quick | EntryKind::Syscall);
    if (is_call || entry.kind == EntryKind::Fault) && kernel.scheduler.running.is_none() {
        return Err(String::from("nobody runs"));
    }
    let quick = if is_call { kernel.quick(m, number, a) } else { None };
    if entry.kind == EntryKind::Quick {
        return match quick {
            Some(result) if result == entry.result => Ok(()),
            other => Err(format!("quick call: {other:?}")),
        };
    }
    if let Some(result) = quick {
        return Err(format!("completed quickly with {result:#x}"));
    }
    let cause = match entry.kind {
        EntryKind::Syscall => Cause::Syscall(number, a),
        EntryKind::Timer => Cause::Timer,
        EntryKind::Irq => Cause::Irq(a[0] as u16),
        EntryKind::Stray => Cause::Stray(a[0] as u16, a[1], a[2]),
        EntryKind::Fault => {
            let cause = FaultCause::decode(a[0] as u8).ok_or("unknown fault")?;
            Cause::Fault(Fault { cause, address: a[1], instruction: a[2] })
        }
        EntryKind::Boot | EntryKind::Quick | EntryKind::Bytes => Cause::Boot,
    };
    let d = kernel.enter(m, Nanos(entry.now), cause);
    let same = d.run.index() == entry.run
        && d.result.is_some() == entry.has_result
        && d.result.unwrap_or(0) == entry.result
        && d.alarm.0 == entry.alarm;
    if same && m.tape.accesses.is_empty() {
        Ok(())
    } else {
        Err(format!("{d:?}, {} accesses not made", m.tape.accesses.len()))
    }
}

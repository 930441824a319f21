//! A shell around the core that is fast enough for storms and keeps a flight recording: what the
//! metal's shell does, on plain memory.

use diapason_abi::CallNumber as Call;
use diapason_abi::archive::DeviceRecord;
use diapason_abi::call::NO_HINT;
use diapason_abi::record::Record;
use diapason_abi::recorder::{ENTRY_WORDS, Entry, access_words};
use diapason_abi::{Nanos, PAGE, layout};
use diapason_core::host::HIDDEN;
use diapason_core::{
    Arguments, BadAddress, Cause, Decision, FrameId, Kernel, Machine, ProcessId, ThreadId,
    UserMemory, take_walked,
};
use std::collections::BTreeMap;

/// Bytes of user memory per process.
pub const USER_BYTES: u64 = 0x1000;
/// The value of every counter of this machine.
pub const COUNTED: u64 = 12_345;

/// Plain memory, with the rules of mapping checked.
pub struct Memory {
    current: u16,
    user: Vec<Vec<u8>>,
    /// The owner of each frame: a process's heap or a segment; and its place there.
    frames: Vec<Option<(Owner, u32)>>,
    /// The flight recording, if it is kept.
    pub recording: Option<Vec<u8>>,
    /// Faults so far, by cause.
    pub faults: [u64; 32],
    /// Reports that found no room.
    pub reports_lost: u64,
    pub supervisor_died: bool,
    /// Processes whose windows are hidden, one bit each.
    pub hidden: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Heap(u16),
    Segment(u16),
}

impl Memory {
    /// For so many processes and frames.
    pub fn new(processes: usize, frames: usize, record: bool) -> Memory {
        Memory {
            current: 0,
            user: vec![vec![0; USER_BYTES as usize]; processes],
            frames: vec![None; frames],
            recording: record.then(Vec::new),
            faults: [0; 32],
            reports_lost: 0,
            supervisor_died: false,
            hidden: 0,
        }
    }

    fn range(&self, address: u64, length: u64) -> Result<std::ops::Range<usize>, BadAddress> {
        let start = address.wrapping_sub(layout::base(self.current));
        if length == 0 {
            return Ok(0..0);
        }
        match start.checked_add(length) {
            Some(end) if end <= USER_BYTES => Ok(start as usize..end as usize),
            _ => Err(BadAddress),
        }
    }

    fn keep(&mut self, words: [u64; ENTRY_WORDS]) {
        if let Some(recording) = &mut self.recording {
            recording.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        }
    }

    /// Keeps an access to user memory: the bytes read, or that it failed.
    fn keep_access(&mut self, bytes: Option<&[u8]>) {
        if self.recording.is_none() {
            return;
        }
        access_words(bytes, |words| self.keep(words));
    }

    fn give(&mut self, owner: Owner, page: u32, frame: FrameId) {
        let slot = &mut self.frames[frame.index() as usize];
        assert_eq!(slot.replace((owner, page)), None, "frame given out twice");
    }

    fn take_all(&mut self, owner: Owner, pages: u32) {
        let of_owner = |slot: &&mut Option<(Owner, u32)>| slot.is_some_and(|(o, _)| o == owner);
        let mut taken = 0;
        for slot in self.frames.iter_mut().filter(of_owner) {
            *slot = None;
            taken += 1;
        }
        assert_eq!(taken, pages, "all pages of {owner:?}");
    }
}

impl UserMemory for Memory {
    fn copy_in(&mut self, address: u64, to: &mut [u8]) -> Result<(), BadAddress> {
        let range = self.range(address, to.len() as u64);
        if let Ok(range) = range.clone() {
            to.copy_from_slice(&self.user[self.current as usize][range]);
        }
        self.keep_access(range.is_ok().then_some(to));
        range.map(drop)
    }

    fn copy_out(&mut self, address: u64, from: &[u8]) -> Result<(), BadAddress> {
        let Ok(range) = self.range(address, from.len() as u64) else {
            self.keep_access(None);
            return Err(BadAddress);
        };
        self.user[self.current as usize][range].copy_from_slice(from);
        Ok(())
    }

    fn copy_user(&mut self, to: u64, from: u64, length: u64) -> Result<(), BadAddress> {
        let (Ok(to), Ok(from)) = (self.range(to, length), self.range(from, length)) else {
            self.keep_access(None);
            return Err(BadAddress);
        };
        self.user[self.current as usize].copy_within(from, to.start);
        Ok(())
    }
}

impl Machine for Memory {
    fn instruction(&self) -> u64 {
        layout::base(self.current)
    }

    fn start_thread(&mut self, _thread: ThreadId, _entry: Option<(u64, u64)>) {}

    fn show_process(&mut self, process: ProcessId, visible: bool) {
        let bit = 1u64 << process.index();
        assert_eq!(self.hidden & bit != 0, visible, "a window is hidden or shown twice");
        self.hidden ^= bit;
    }

    fn map_heap(&mut self, process: ProcessId, page: u32, frame: FrameId) {
        self.give(Owner::Heap(process.index()), page, frame);
    }

    fn clear_heap(&mut self, process: ProcessId, pages: u32) {
        self.take_all(Owner::Heap(process.index()), pages);
    }

    fn map_segment(&mut self, segment: u16, page: u32, frame: FrameId) {
        self.give(Owner::Segment(segment), page, frame);
    }

    fn clear_segment(&mut self, segment: u16, pages: u32) {
        self.take_all(Owner::Segment(segment), pages);
    }

    fn attach_segment(&mut self, _process: ProcessId, _segment: u16, _visible: bool) {}

    fn attach_device(&mut self, _process: ProcessId, _device: u16, _visible: bool) {}

    fn set_bus_master(&mut self, _device: u16, _enabled: bool) {}

    fn bus_address(&mut self, _segment: u16, first: FrameId) -> u64 {
        u64::from(first.index()) * PAGE as u64
    }

    fn set_irq(&mut self, _device: &DeviceRecord, _enabled: bool) {}

    fn ring(&mut self, _core: u16, _number: u16) {}

    fn log(&mut self, _process: ProcessId, _text: &[u8]) {}

    fn emit(&mut self, record: Record, words: &[u64]) {
        match record {
            Record::Fault => self.faults[words[3] as usize] += 1,
            Record::ReportLost => self.reports_lost += 1,
            _ => {}
        }
    }

    fn counter(&mut self, _which: u64) -> u64 {
        COUNTED
    }

    fn supervisor_died(&mut self, _process: ProcessId) {
        self.supervisor_died = true;
    }
}

/// Kernel, machine and clock.
pub struct Shell<'a> {
    pub kernel: Kernel<'a>,
    /// The memory under it.
    pub memory: Memory,
    pub now: Nanos,
    pub decision: Decision,
    /// A hash of every decision and quick result so far.
    pub hash: u64,
    /// Results delivered by entries since somebody last looked.
    pub delivered: Vec<(ThreadId, u64)>,
    /// Calls that went a short way, by kind.
    pub shortcuts: BTreeMap<Call, u64>,
    /// Check the invariants after every so many entries (0: never).
    pub check_every: u64,
    /// The most instructions of loops in one entry.
    pub longest_walk: u64,
    entries: u64,
}

impl<'a> Shell<'a> {
    /// Boots a kernel on this memory.
    pub fn boot(mut kernel: Kernel<'a>, mut memory: Memory) -> Shell<'a> {
        let decision = kernel.enter(&mut memory, Nanos::ZERO, Cause::Boot);
        let _ = take_walked();
        let (now, hash, delivered) = (Nanos::ZERO, 0, Vec::new());
        let (shortcuts, check_every, longest_walk, entries) = (BTreeMap::new(), 1, u64::MAX, 0);
        let mut shell = Shell {
            kernel,
            memory,
            now,
            decision,
            hash,
            delivered,
            shortcuts,
            check_every,
            longest_walk,
            entries,
        };
        shell.note_entry(Cause::Boot, decision);
        shell.settle(decision);
        shell
    }

    /// Returns the running thread.
    pub fn running(&self) -> ThreadId {
        self.kernel.scheduler.running
    }

    /// The process whose thread runs.
    pub fn process(&self) -> u16 {
        self.memory.current
    }

    fn mix(&mut self, words: &[u64]) {
        for word in words {
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
    }

    fn checked(&mut self) {
        let walked = take_walked();
        assert!(walked <= self.longest_walk, "a path of {walked}, at most {}", self.longest_walk);
        self.entries += 1;
        if self.check_every > 0 && self.entries.is_multiple_of(self.check_every) {
            self.kernel.check_invariants();
        }
    }

    fn note_entry(&mut self, cause: Cause, d: Decision) {
        self.mix(&[u64::from(d.run.index()), d.result.unwrap_or(7), d.deliver_to, d.alarm.0]);
        self.checked();
        if self.memory.recording.is_none() {
            return;
        }
        let entry = cause.entry(self.now, &d);
        self.memory.keep(entry.to_words());
    }

    /// Enters the core and acts on what it decides.
    pub fn enter(&mut self, cause: Cause) -> Decision {
        let decision = self.kernel.enter(&mut self.memory, self.now, cause);
        self.note_entry(cause, decision);
        self.settle(decision)
    }

    /// Enters with the fault of the running thread if its window is hidden. Returns whether it is.
    pub fn enter_hidden(&mut self) -> bool {
        let process = self.memory.current;
        let hidden = self.running().is_some() && self.memory.hidden >> process & 1 == 1;
        if hidden {
            self.enter(Cause::Fault(HIDDEN));
        }
        hidden
    }

    fn settle(&mut self, mut decision: Decision) -> Decision {
        loop {
            self.decision = decision;
            if decision.run.is_none() {
                return decision;
            }
            self.memory.current = self.kernel.threads[decision.run].process.index();
            let address = decision.deliver_to;
            if address == 0 {
                self.delivered.extend(decision.result.map(|result| (decision.run, result)));
                return decision;
            }
            let recording = self.memory.recording.take();
            let message = self.kernel.threads[decision.run].message();
            let delivered = self.memory.copy_out(address, message);
            self.memory.recording = recording;
            if delivered.is_ok() {
                self.delivered.extend(decision.result.map(|result| (decision.run, result)));
                return decision;
            }
            let cause = Cause::Fault(decision.undelivered());
            decision = self.kernel.enter(&mut self.memory, self.now, cause);
            self.note_entry(cause, decision);
        }
    }

    /// Tries the short ways that the metal tries for a frequent call. A recording has it as if it
    /// had gone the long way.
    fn shortcut(&mut self, call: Call, arguments: Arguments) -> bool {
        let recorded = self.memory.recording.as_ref().map(Vec::len);
        let now = self.now;
        match self.kernel.short_decision(&mut self.memory, call, arguments, now) {
            Some(decision) => {
                *self.shortcuts.entry(call).or_default() += 1;
                self.note_entry(Cause::Syscall(call as u64, arguments), decision);
                self.settle(decision);
                true
            }
            None => {
                let recording = self.memory.recording.as_mut();
                recording.into_iter().zip(recorded).for_each(|(r, length)| r.truncate(length));
                false
            }
        }
    }

    /// Tries the short ways of a call that starts a process and then receives.
    fn start(&mut self, arguments: Arguments) -> bool {
        let [key, mailbox, address, deadline, _] = arguments;
        // A recording has one entry for it, with the decision of the whole.
        if mailbox == 0 || self.memory.recording.is_some() {
            return false;
        }
        let now = self.now;
        if !self.kernel.start_plainly(&mut self.memory, key, || now) {
            return false;
        }
        *self.shortcuts.entry(Call::ProcCreate).or_default() += 1;
        let words = [mailbox, address, deadline, NO_HINT, 0];
        if !self.shortcut(Call::MboxReceive, words) {
            self.enter(Cause::Syscall(Call::MboxReceive as u64, words));
        }
        true
    }

    /// The running thread makes a call; its result if it returns at once and goes on.
    pub fn call(&mut self, number: u64, arguments: Arguments) -> Option<u64> {
        let caller = self.running();
        if number == Call::ProcCreate as u64 && self.start(arguments) {
            return None;
        }
        if Call::decode(number).is_some_and(|call| self.shortcut(call, arguments)) {
            return None;
        }
        let Some(result) = self.kernel.quick(&mut self.memory, number, arguments) else {
            let decision = self.enter(Cause::Syscall(number, arguments));
            return if decision.run == caller { decision.result } else { None };
        };
        self.mix(&[number, result]);
        self.checked();
        self.memory.keep(Entry::quick(number, arguments, result).to_words());
        Some(result)
    }
}

//! The messages of a simulation to its observer. Watching changes nothing.

use crate::glance::Glance;
use diapason_abi::Nanos;
use diapason_abi::record::Record;
use diapason_abi::recorder::Entry;
use diapason_core::{Cause, Decision, Kernel, ThreadId};
use diapason_xhc::Misuse;

/// A device used memory, or was given memory, that it must not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stray {
    pub device: u16,
    pub address: u64,
    /// The misuse; nobody has the memory if there is none.
    pub misuse: Option<Misuse>,
}

/// Output of the kernel or a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    Record(Record, Vec<u64>),
    /// An event outside the host, and its time.
    Note(Nanos, String),
    /// A fault that was asked for happens now, in these words.
    Fault(Nanos, String),
    /// A device used memory that it must not.
    Stray(Nanos, Stray),
    /// The output up to now is all of a life of the host: it boots again at this instant.
    Boots(Nanos),
    /// A line of text from the process with this number.
    Log(u16, String),
}

/// An action of the processor for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    Runs(ThreadId),
    /// The kernel runs for this reason.
    Kernel(Cause),
}

/// Copies memory of the segment with this number from an offset on, if it has so much.
pub type SegmentReader<'a> = dyn FnMut(u16, usize, &mut [u8]) -> bool + 'a;

/// Somebody who watches a simulation.
pub trait Observer {
    fn hear(&mut self, said: Said) {
        let _ = said;
    }

    /// The core was entered, as the flight recorder would keep it.
    fn entry(&mut self, entry: &Entry) {
        let _ = entry;
    }

    /// The processor did something from one instant to another. Time that is not reported is idle.
    /// An entry is two moments: until the clock is read, and from then on.
    fn moment(&mut self, from: Nanos, to: Nanos, what: Moment) {
        let _ = (from, to, what);
    }

    /// The core has decided, as of `read`; what it decided begins at `now`.
    fn decided(&mut self, read: Nanos, now: Nanos, kernel: &Kernel<'_>, decision: &Decision) {
        let _ = (read, now, kernel, decision);
    }

    /// A thread changed the word of this number among those that are watched, from one value to
    /// another; `memory` is all of its segment.
    fn changed(
        &mut self,
        now: Nanos,
        thread: ThreadId,
        word: usize,
        change: (u64, u64),
        memory: &[u8],
    ) {
        let _ = (now, thread, word, change, memory);
    }

    /// Words that are watched have changed. `read` copies memory of a segment from an offset on,
    /// and returns false if the segment does not have so much.
    fn contents(&mut self, read: &mut SegmentReader<'_>) {
        let _ = read;
    }

    /// The processor is between two steps, and everything may be looked at.
    fn look(&mut self, glance: &Glance<'_, '_>) {
        let _ = glance;
    }

    /// A thread ran up to a trap, and the kernel has done nothing about it yet.
    fn trapped(&mut self, glance: &Glance<'_, '_>) {
        let _ = glance;
    }

    /// A thread ended the work with this key.
    fn worked(&mut self, key: u64) {
        let _ = key;
    }

    /// Returns whether the run is to end now, as if its horizon were here.
    fn wants_end(&self) -> bool {
        false
    }

    /// A thread ran without a trap until the watchdog ended it, at this instruction.
    fn endless(&mut self, now: Nanos, thread: ThreadId, instruction: u64) {
        let _ = (now, thread, instruction);
    }
}

impl Observer for () {}

impl<O: Observer> Observer for &mut O {
    fn hear(&mut self, said: Said) {
        (**self).hear(said);
    }

    fn entry(&mut self, entry: &Entry) {
        (**self).entry(entry);
    }

    fn moment(&mut self, from: Nanos, to: Nanos, what: Moment) {
        (**self).moment(from, to, what);
    }

    fn decided(&mut self, read: Nanos, now: Nanos, kernel: &Kernel<'_>, decision: &Decision) {
        (**self).decided(read, now, kernel, decision);
    }

    fn changed(
        &mut self,
        now: Nanos,
        thread: ThreadId,
        word: usize,
        change: (u64, u64),
        memory: &[u8],
    ) {
        (**self).changed(now, thread, word, change, memory);
    }

    fn contents(&mut self, read: &mut SegmentReader<'_>) {
        (**self).contents(read);
    }

    fn look(&mut self, glance: &Glance<'_, '_>) {
        (**self).look(glance);
    }

    fn trapped(&mut self, glance: &Glance<'_, '_>) {
        (**self).trapped(glance);
    }

    fn worked(&mut self, key: u64) {
        (**self).worked(key);
    }

    fn wants_end(&self) -> bool {
        (**self).wants_end()
    }

    fn endless(&mut self, now: Nanos, thread: ThreadId, instruction: u64) {
        (**self).endless(now, thread, instruction);
    }
}

/// Two who watch the same.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn hear(&mut self, said: Said) {
        self.0.hear(said.clone());
        self.1.hear(said);
    }

    fn entry(&mut self, entry: &Entry) {
        self.0.entry(entry);
        self.1.entry(entry);
    }

    fn moment(&mut self, from: Nanos, to: Nanos, what: Moment) {
        self.0.moment(from, to, what);
        self.1.moment(from, to, what);
    }

    fn decided(&mut self, read: Nanos, now: Nanos, kernel: &Kernel<'_>, decision: &Decision) {
        self.0.decided(read, now, kernel, decision);
        self.1.decided(read, now, kernel, decision);
    }

    fn changed(
        &mut self,
        now: Nanos,
        thread: ThreadId,
        word: usize,
        change: (u64, u64),
        memory: &[u8],
    ) {
        self.0.changed(now, thread, word, change, memory);
        self.1.changed(now, thread, word, change, memory);
    }

    fn contents(&mut self, read: &mut SegmentReader<'_>) {
        self.0.contents(read);
        self.1.contents(read);
    }

    fn look(&mut self, glance: &Glance<'_, '_>) {
        self.0.look(glance);
        self.1.look(glance);
    }

    fn trapped(&mut self, glance: &Glance<'_, '_>) {
        self.0.trapped(glance);
        self.1.trapped(glance);
    }

    fn worked(&mut self, key: u64) {
        self.0.worked(key);
        self.1.worked(key);
    }

    fn wants_end(&self) -> bool {
        self.0.wants_end() || self.1.wants_end()
    }

    fn endless(&mut self, now: Nanos, thread: ThreadId, instruction: u64) {
        self.0.endless(now, thread, instruction);
        self.1.endless(now, thread, instruction);
    }
}

/// The hash of every entry into the core: equal for equal runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trace(pub u64);

impl Default for Trace {
    fn default() -> Trace {
        Trace(0xcbf2_9ce4_8422_2325)
    }
}

impl Observer for Trace {
    fn entry(&mut self, entry: &Entry) {
        for word in entry.to_words() {
            // FNV-1a, a word at a time.
            self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

//! Reads from the flight record of a run how much time threads used.
//!
//! The record has the time of every entry into the kernel core, and who ran after it. A thread has
//! all the time from there to the next entry: its own instructions, the calls that it made, and the
//! interrupts that came meanwhile. The count is so never too small.

use crate::mark::marked;
use diapason_abi::CallNumber;
use diapason_abi::call::MUTEX;
use diapason_abi::handle::Handle;
use diapason_abi::recorder::{Entry, EntryKind};
use std::collections::{BTreeMap, BTreeSet};

/// Servers and programs start before, which takes longer than what they do later.
pub const STARTED: u64 = 500_000_000;

const NOBODY: u16 = u16::MAX;

/// How often something was seen, and how long it took.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    pub runs: u64,
    pub longest_ns: u64,
    pub total_ns: u64,
}

impl Seen {
    /// Adds what was seen elsewhere.
    pub fn add(&mut self, other: &Seen) {
        self.runs += other.runs;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
    }

    fn note(&mut self, ns: u64) {
        self.add(&Seen { runs: 1, longest_ns: ns, total_ns: ns });
    }

    /// Returns the mean, rounded up.
    #[must_use]
    pub const fn mean_ns(&self) -> u64 {
        if self.runs == 0 { 0 } else { self.total_ns.div_ceil(self.runs) }
    }
}

/// Everything that a flight record says about the use of time.
#[derive(Clone, Default, Debug)]
pub struct Accounts {
    /// By the key of the work's name and the number of the thread that did it, what the thread used
    /// since its last work or wait. The start of a thread is no part of its first work, so that one
    /// counts only after a wait.
    pub works: BTreeMap<(u64, u16), Seen>,
    /// The works that messages may be apart from, by key and thread: the longest time by how many
    /// messages there were, after the start.
    pub by_messages: BTreeMap<(u64, u16), BTreeMap<u64, u64>>,
    /// By number of the thread, what it used from one wait to the next. The first time, up to its
    /// first wait, is its start and not counted.
    pub turns: BTreeMap<u16, Seen>,
    /// By number of the thread, the VCPU that it was created on, where the program named one.
    pub places: BTreeMap<u16, u16>,
    /// When a thread ran: from, to, and its number.
    pub slices: Vec<(u64, u64, u16)>,
}

/// Time that a thread has used.
#[derive(Clone, Copy, Default)]
struct Turn {
    since_wait: u64,
    since_work: u64,
    /// The thread has waited once.
    has_begun: bool,
    /// `since_work` began with a wait or a work, and not with the thread.
    is_apart: bool,
    /// The work that was done last, if messages may be apart from it: its key, its time, and how
    /// many messages there were until now.
    whole: Option<(u64, u64, u64)>,
}

/// A call whose result tells something.
#[derive(Clone, Copy)]
enum Asked {
    /// A semaphore; it is a mutex or not.
    Semaphore(bool),
    /// A thread, on the VCPU of this handle.
    Thread(u64),
}

#[derive(Default)]
struct Reader {
    accounts: Accounts,
    running: Option<u16>,
    /// When the running thread was charged for the last time.
    charged: u64,
    turns: BTreeMap<u16, Turn>,
    asked: BTreeMap<u16, Asked>,
    mutexes: BTreeSet<u16>,
    /// The keys of works of messages, with that of the work that they may be apart from.
    parts: BTreeMap<u64, u64>,
}

impl Accounts {
    /// Reads a flight record. `parts` has the keys of works of messages, each with that of the work
    /// of a wake-up that they may be apart from.
    #[must_use]
    pub fn of(entries: &[Entry], parts: &BTreeMap<u64, u64>) -> Accounts {
        let mut reader = Reader { parts: parts.clone(), ..Reader::default() };
        for entry in entries {
            match entry.kind {
                EntryKind::Bytes => {}
                EntryKind::Quick => reader.quick(entry),
                _ => reader.enter(entry),
            }
        }
        reader.accounts
    }

    /// Returns the most that threads used together in any time of length `window`, from `after` on.
    #[must_use]
    pub fn most(&self, window: u64, after: u64, is_one: impl Fn(u16) -> bool) -> u64 {
        let slices = self.slices.iter().filter(|slice| slice.0 >= after && is_one(slice.2));
        let slices: Vec<(u64, u64)> = slices.map(|slice| (slice.0, slice.1)).collect();
        let (mut most, mut sum, mut last) = (0, 0, 0);
        // The fullest window begins with a slice. The last slice of it may reach beyond its end.
        for (from, to) in &slices {
            let end = from.saturating_add(window);
            while let Some((next, until)) = slices.get(last).filter(|slice| slice.0 < end) {
                sum += until - next;
                last += 1;
            }
            let beyond = slices[..last].last().map_or(0, |slice| slice.1.saturating_sub(end));
            most = most.max(sum - beyond);
            sum -= to - from;
        }
        most
    }
}

impl Reader {
    /// The running thread has used everything up to `now`.
    fn charge(&mut self, now: u64) {
        if let Some(thread) = self.running {
            let used = now.saturating_sub(self.charged);
            let turn = self.turns.entry(thread).or_default();
            turn.since_wait += used;
            turn.since_work += used;
            if used > 0 {
                self.accounts.slices.push((self.charged, now, thread));
            }
        }
        self.charged = self.charged.max(now);
    }

    fn quick(&mut self, entry: &Entry) {
        let Some(thread) = self.running else { return };
        match marked(entry) {
            Some((work, now)) if now >= self.charged => {
                self.charge(now);
                let turn = self.turns.entry(thread).or_default();
                let used = std::mem::take(&mut turn.since_work);
                if std::mem::replace(&mut turn.is_apart, true) {
                    self.accounts.works.entry((work, thread)).or_default().note(used);
                    if now >= STARTED {
                        self.count(thread, work, used);
                    }
                }
            }
            _ => {
                self.ask(thread, entry);
                self.answer(thread, entry.result);
            }
        }
    }

    fn enter(&mut self, entry: &Entry) {
        self.charge(entry.now);
        if let Some(thread) = self.running {
            if entry.kind == EntryKind::Syscall {
                self.ask(thread, entry);
                if self.waits(thread, entry) {
                    self.wait(thread);
                }
            }
            if entry.kind == EntryKind::Fault {
                self.turns.remove(&thread);
            }
        }
        self.running = Some(entry.run).filter(|run| *run != NOBODY);
        if let Some(thread) = self.running.filter(|_| entry.has_result) {
            self.answer(thread, entry.result);
        }
    }

    /// Returns whether a call ends what a thread does: it waits for something to do. A thread that
    /// waits for a mutex, or for room in a mailbox, is not done.
    fn waits(&self, thread: u16, entry: &Entry) -> bool {
        match CallNumber::decode(entry.detail.into()) {
            Some(CallNumber::JobWait | CallNumber::JobsStart) => true,
            Some(CallNumber::SemLock) => {
                entry.run != thread && !self.mutexes.contains(&Handle(entry.arguments[0]).index())
            }
            Some(
                CallNumber::SleepUntil
                | CallNumber::EventWait
                | CallNumber::CvWait
                | CallNumber::MboxReceive
                | CallNumber::MboxCall
                | CallNumber::ThreadJoin,
            ) => entry.run != thread,
            _ => false,
        }
    }

    fn wait(&mut self, thread: u16) {
        let turn = self.turns.entry(thread).or_default();
        let used = turn.since_wait;
        let whole = turn.whole;
        let next = Turn { has_begun: true, is_apart: true, whole, ..Turn::default() };
        if std::mem::replace(turn, next).has_begun {
            self.accounts.turns.entry(thread).or_default().note(used);
        }
    }

    /// A thread did a work, which may be a message of its last one.
    fn count(&mut self, thread: u16, work: u64, used: u64) {
        let of = self.parts.get(&work);
        let turn = self.turns.entry(thread).or_default();
        if let Some((whole, _, messages)) = &mut turn.whole
            && of == Some(whole)
        {
            *messages += 1;
            return;
        }
        let next = self.parts.values().any(|whole| *whole == work).then_some((work, used, 0));
        if let Some((whole, used, messages)) = std::mem::replace(&mut turn.whole, next) {
            let all = self.accounts.by_messages.entry((whole, thread)).or_default();
            let longest = all.entry(messages).or_default();
            *longest = used.max(*longest);
        }
    }

    fn ask(&mut self, thread: u16, entry: &Entry) {
        match CallNumber::decode(entry.detail.into()) {
            Some(CallNumber::SemCreate) => {
                self.asked.insert(thread, Asked::Semaphore(entry.arguments[1] == MUTEX));
            }
            Some(CallNumber::ThreadCreate) => {
                self.asked.insert(thread, Asked::Thread(entry.arguments[4]));
            }
            Some(CallNumber::ThreadExit) => {
                self.turns.remove(&thread);
            }
            _ => {}
        }
    }

    /// A thread gets the result of its last call.
    fn answer(&mut self, thread: u16, result: u64) {
        let Some(asked) = self.asked.remove(&thread) else { return };
        if diapason_abi::decode_result(result).is_err() {
            return;
        }
        let made = Handle(result).index();
        match asked {
            Asked::Semaphore(true) => drop(self.mutexes.insert(made)),
            Asked::Semaphore(false) => drop(self.mutexes.remove(&made)),
            Asked::Thread(0) => drop(self.accounts.places.remove(&made)),
            Asked::Thread(vcpu) => {
                self.accounts.places.insert(made, Handle(vcpu).index());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_abi::handle::Kind;

    /// An entry at `now`, after which `run` runs.
    fn at(now: u64, kind: EntryKind, run: u16) -> Entry {
        let quick = Entry::quick(0, [0; 5], 0);
        Entry { kind, now, run, ..quick }
    }

    fn call(now: u64, call: CallNumber, words: [u64; 5], run: u16, result: Option<u64>) -> Entry {
        let entry = at(now, EntryKind::Syscall, run);
        let (has_result, result) = (result.is_some(), result.unwrap_or_default());
        Entry { detail: call as u16, arguments: words, has_result, result, ..entry }
    }

    fn mark(work: u64, now: u64) -> Entry {
        Entry::quick(CallNumber::Null as u64, [work, now, 0, 0, 0], 0)
    }

    const NONE: [u64; 5] = [0; 5];

    #[test]
    fn a_work_is_what_its_thread_used_since_it_was_woken() {
        let wait = |now, run| call(now, CallNumber::EventWait, NONE, run, None);
        let entries = [
            at(0, EntryKind::Boot, 1),
            mark(7, 90),
            wait(100, NOBODY),            // the start is no turn
            at(1_000, EntryKind::Irq, 1), // 1 works 200 before 2 takes the processor for 5,000
            at(1_200, EntryKind::Timer, 2),
            call(6_200, CallNumber::SleepUntil, NONE, 1, None),
            mark(7, 6_300),
            mark(8, 6_340),
            wait(6_400, NOBODY),
            at(9_000, EntryKind::Irq, 1),
            mark(7, 9_050),
            wait(9_060, NOBODY),
        ];
        let accounts = Accounts::of(&entries, &BTreeMap::new());
        let seen = |runs, longest_ns, total_ns| Seen { runs, longest_ns, total_ns };
        assert_eq!(accounts.works[&(7, 1)], seen(2, 300, 350));
        assert_eq!(accounts.works[&(8, 1)], seen(1, 40, 40));
        assert_eq!(accounts.turns[&1], seen(2, 400, 460));
        assert_eq!(accounts.turns.get(&2), None, "it has waited once only");
        assert_eq!(accounts.works[&(7, 1)].mean_ns(), 175);
    }

    #[test]
    fn a_wake_up_is_counted_by_its_messages() {
        let wait = |now, run| call(now, CallNumber::EventWait, NONE, run, None);
        let from = STARTED;
        let entries = [
            at(0, EntryKind::Boot, 1),
            wait(100, NOBODY),
            at(from + 1_000, EntryKind::Irq, 1),
            mark(7, from + 1_200), // with two messages
            mark(9, from + 1_201),
            mark(9, from + 1_202),
            wait(from + 1_210, NOBODY),
            at(from + 2_000, EntryKind::Irq, 1),
            mark(7, from + 2_150), // with none
            wait(from + 2_160, NOBODY),
            at(from + 3_000, EntryKind::Irq, 1),
            mark(7, from + 3_190), // with two again, and faster
            mark(9, from + 3_191),
            mark(9, from + 3_192),
            mark(8, from + 3_200),
            wait(from + 3_210, NOBODY),
        ];
        let accounts = Accounts::of(&entries, &BTreeMap::from([(9, 7)]));
        assert_eq!(accounts.by_messages[&(7, 1)], BTreeMap::from([(0, 150), (2, 200)]));
        assert_eq!(accounts.works[&(9, 1)].runs, 4);
    }

    #[test]
    fn who_waits_for_a_mutex_is_not_done() {
        let mutex = Handle::new(Kind::Semaphore, 3, 1).0;
        let semaphore = Handle::new(Kind::Semaphore, 4, 1).0;
        let lock = |now, what, run| call(now, CallNumber::SemLock, [what, 0, 0, 0, 0], run, None);
        let make = |initial| [5, initial, 0, 0, 0];
        let entries = [
            at(0, EntryKind::Boot, 1),
            call(10, CallNumber::SemCreate, make(MUTEX), 1, Some(mutex)),
            Entry::quick(CallNumber::SemCreate as u64, make(0), semaphore),
            lock(20, semaphore, NOBODY),
            at(100, EntryKind::Irq, 1),
            lock(130, mutex, 2), // 30
            call(200, CallNumber::SemUnlock, [mutex, 0, 0, 0, 0], 1, Some(0)),
            lock(250, semaphore, NOBODY), // and 50
        ];
        let accounts = Accounts::of(&entries, &BTreeMap::new());
        assert_eq!(accounts.turns[&1], Seen { runs: 1, longest_ns: 80, total_ns: 80 });
    }

    #[test]
    fn threads_are_found_on_the_vcpus_that_they_were_created_on() {
        let vcpu = Handle::new(Kind::Vcpu, 6, 1).0;
        let thread = |index| Handle::new(Kind::Thread, index, 2).0;
        let create = |vcpu| [0, 0, 0, 0, vcpu];
        let entries = [
            at(0, EntryKind::Boot, 1),
            // The new thread runs first.
            call(10, CallNumber::ThreadCreate, create(vcpu), 9, None),
            call(30, CallNumber::EventWait, NONE, 1, Some(thread(9))),
            call(40, CallNumber::ThreadCreate, create(0), 1, Some(thread(10))),
        ];
        let accounts = Accounts::of(&entries, &BTreeMap::new());
        assert_eq!(accounts.places, BTreeMap::from([(9, 6)]));
    }

    #[test]
    fn the_fullest_window_is_found() {
        let slices = vec![(0, 90, 1), (100, 130, 1), (140, 150, 2), (150, 190, 1), (400, 420, 1)];
        let accounts = Accounts { slices, ..Accounts::default() };
        let of_one = |thread| thread == 1;
        assert_eq!(accounts.most(100, 0, of_one), 90);
        assert_eq!(accounts.most(100, 50, of_one), 70);
        assert_eq!(accounts.most(80, 50, of_one), 60);
        assert_eq!(accounts.most(100, 150, |thread| thread == 2), 0);
        assert_eq!(accounts.most(1_000, 0, |_| true), 190);
    }
}

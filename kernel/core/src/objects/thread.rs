//! Threads, and the lists that they are in.
//!
//! A thread is in at most one list at a time: it is ready at one priority, or waits for one object.
//! So its links live in the thread. The lists are circular: the last is the one before the first,
//! and sending the first to the back is one step.

use crate::ids::{
    ConditionId, EventId, MailboxId, ProcessId, SemaphoreId, ThreadId, ThreadTag, VcpuId,
};
use crate::objects::alarm::Alarm;
use crate::pool::{FREE, Id, Pool, Pooled};
use crate::walks::walk;
use diapason_abi::{Handle, MESSAGE_BYTES, Nanos};
use diapason_costs::Round;

/// Where a thread is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The slot is free.
    Free,
    /// The thread has a place among the ready; if it waits for a mutex, the owner runs there.
    Ready,
    /// The thread waits for a mutex whose owner, or the owner that one waits for, cannot run.
    Parked,
    /// Waiting for what [`Thread::wait`] says.
    Blocked,
    /// Ended; its exit code waits to be joined.
    Ended,
}

/// The object that a thread waits for, and so the list that it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    Nothing,
    /// Nothing; but it will lock this mutex next.
    Hint(SemaphoreId),
    /// Ownership of a mutex.
    Mutex(SemaphoreId),
    Time,
    /// Room in a counting semaphore.
    Semaphore(SemaphoreId),
    /// A signal; then the mutex it wanted.
    Condition(ConditionId),
    Receive(MailboxId),
    /// Room for its message.
    Send(MailboxId),
    Event(EventId),
    /// The end of another thread.
    Join(ThreadId),
}

/// Periodic release of a thread's jobs, and how they went.
#[derive(Clone, Copy, Debug)]
pub struct Jobs {
    /// Release of the current job.
    pub release: Nanos,
    /// Distance of releases; zero if the thread is not periodic.
    pub period: Nanos,
    /// Deadline after each release.
    pub deadline: Nanos,
    /// A job is under way (not waiting for its release).
    pub active: bool,
    pub done: u64,
    /// Jobs that ended after their deadline, or were passed over.
    pub misses: u64,
    /// Releases passed over because the job before was still under way.
    pub skipped: u64,
    /// Longest time from release to end.
    pub response_max: Nanos,
    /// Most budget that a job used.
    pub cost_max: Nanos,
}

/// The state that a thread comes back with when it gets the processor.
#[derive(Clone, Copy)]
pub(crate) struct Resumed {
    pub process: ProcessId,
    /// The result of its pending call, if it was in one.
    pub result: Option<u64>,
    /// The address for the thread's message; 0 if there is none.
    pub deliver_to: u64,
}

/// One thread slot. The fields that most entries read come first, where the instructions that reach
/// them are short.
#[repr(C)]
pub struct Thread {
    /// The thread's handle, or [`FREE`] while the slot is free.
    pub handle: u64,
    /// Result of its pending call.
    pub(crate) result: u64,
    /// The address for the message it receives, once the thread runs again; 0 if none is pending.
    pub(crate) deliver_to: u64,
    pub used: Nanos,
    /// Handle of the mutex it waits for, or will want back once a condition is signalled.
    pub(crate) wanted: u64,
    /// The thread's urgency among those that wait for the same: as its own place, or the most
    /// urgent one parked with it.
    pub(crate) urgency: u64,
    /// The object that it is blocked on.
    pub wait: Wait,
    /// The object that it waits for once this wait is over: none, or a hint.
    pub(crate) after: Wait,
    /// The thread's process, and its slot there.
    pub process: ProcessId,
    /// The VCPU it runs on, if it has one.
    pub vcpu: VcpuId,
    /// Those whose places are given up until it wakes.
    pub(crate) parked: ThreadQueue,
    /// Neighbours in the list it is in.
    pub(crate) previous: ThreadId,
    pub(crate) next: ThreadId,
    /// First of the mutexes it holds.
    pub held: SemaphoreId,
    /// The state of the thread.
    pub state: State,
    pub(crate) has_result: bool,
    /// The urgency of the thread's own place, on its VCPU or among those that have none.
    pub priority: u8,
    pub(crate) message_length: u8,
    /// How many threads have lived in this slot.
    pub generation: u32,
    pub(crate) message_priority: u32,
    /// Slot in its process: which stack it has.
    pub slot: u16,
    /// The thread that joins it.
    pub(crate) joiner: ThreadId,
    /// Nobody will join it.
    pub(crate) detached: bool,
    /// Budget of VCPUs that its own work used since its job began, whosever they are.
    pub(crate) paid: Nanos,
    /// The time at which the thread is woken at the latest, and its place among such.
    pub(crate) alarm: Alarm,
    /// Up to eight characters.
    pub name: u64,
    pub jobs: Jobs,
    /// The message it sends or has received.
    pub(crate) message: [u8; MESSAGE_BYTES],
}

impl Pooled for Thread {
    type Tag = ThreadTag;
}

impl Thread {
    /// A free slot of no process.
    pub const EMPTY: Thread = Thread {
        handle: FREE,
        generation: 0,
        state: State::Free,
        wait: Wait::Nothing,
        after: Wait::Nothing,
        wanted: FREE,
        vcpu: Id::NONE,
        priority: 0,
        urgency: 0,
        used: Nanos::ZERO,
        paid: Nanos::ZERO,
        parked: ThreadQueue::EMPTY,
        previous: Id::NONE,
        next: Id::NONE,
        held: Id::NONE,
        result: 0,
        has_result: false,
        deliver_to: 0,
        message: [0; MESSAGE_BYTES],
        message_length: 0,
        message_priority: 0,
        process: Id::NONE,
        slot: 0,
        alarm: Alarm::UNSET,
        name: 0,
        joiner: Id::NONE,
        detached: false,
        jobs: Jobs {
            release: Nanos::ZERO,
            period: Nanos::ZERO,
            deadline: Nanos::ZERO,
            active: false,
            done: 0,
            misses: 0,
            skipped: 0,
            response_max: Nanos::ZERO,
            cost_max: Nanos::ZERO,
        },
    };

    /// The message it sends or was handed.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.message[..(self.message_length as usize).min(MESSAGE_BYTES)]
    }

    /// Makes the pending call return `result`.
    #[inline(always)]
    pub(crate) fn put_result(&mut self, result: u64) {
        self.result = result;
        self.has_result = true;
    }

    /// Returns whether the thread, if ready, can run with no message to be delivered first.
    #[inline(always)]
    pub(crate) fn can_go_on(&self) -> bool {
        matches!(self.wait, Wait::Nothing) && self.deliver_to == 0
    }

    /// Such a thread gets the processor: what it comes back with.
    #[inline(always)]
    pub(crate) fn go_on(&mut self) -> Resumed {
        let result = self.has_result.then_some(self.result);
        self.has_result = false;
        Resumed { process: self.process, result, deliver_to: 0 }
    }

    /// Gives the thread the processor; returns what it comes back with.
    #[inline(always)]
    pub(crate) fn resume(&mut self) -> Resumed {
        let mut resumed = self.go_on();
        if resumed.result.is_some() {
            resumed.deliver_to = core::mem::take(&mut self.deliver_to);
        }
        resumed
    }

    /// Gives a thread that waited the processor at once, with this result.
    #[inline(always)]
    pub(crate) fn come_back(&mut self, result: u64) -> Resumed {
        (self.state, self.wait, self.has_result) = (State::Ready, Wait::Nothing, false);
        let deliver_to = core::mem::take(&mut self.deliver_to);
        Resumed { process: self.process, result: Some(result), deliver_to }
    }

    /// Returns the slot of the mutex it wants, whatever lives there now.
    #[inline(always)]
    pub(crate) fn wanted_mutex(&self) -> SemaphoreId {
        Id::new(Handle(self.wanted).index())
    }

    /// Returns whether a new object may use this slot. A slot whose generations are used up stays
    /// empty for ever, so that no old handle becomes valid again.
    pub(crate) fn is_spare(&self) -> bool {
        self.state == State::Free && self.generation < u32::MAX
    }
}

/// A circular, doubly linked list of threads.
#[derive(Clone, Copy, Debug)]
pub struct ThreadQueue {
    pub head: ThreadId,
}

impl ThreadQueue {
    pub const EMPTY: ThreadQueue = ThreadQueue { head: ThreadId::NONE };

    /// Returns whether the queue has no threads.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Adds a thread behind all others.
    #[inline(always)]
    pub fn push_back(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        if self.head.is_none() {
            self.head = thread;
            let t = &mut threads[thread];
            (t.previous, t.next) = (thread, thread);
        } else {
            insert_before(threads, self.head, thread);
        }
    }

    /// Adds behind the last thread that is at least as urgent. Walks from the less urgent end.
    #[inline(never)]
    pub fn insert_by_urgency(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        if self.head.is_none() {
            return self.push_back(threads, thread);
        }
        let urgency = threads[thread].urgency;
        let mut behind = self.head;
        loop {
            walk(Round::Pass, 1);
            let before = threads[behind].previous;
            if threads[before].urgency >= urgency {
                return insert_before(threads, behind, thread);
            }
            behind = before;
            if behind == self.head {
                insert_before(threads, behind, thread);
                self.head = thread;
                return;
            }
        }
    }

    /// Sends the first behind everybody.
    #[inline(always)]
    pub fn rotate(&mut self, threads: &Pool<'_, Thread>) {
        self.head = threads[self.head].next;
    }

    /// Takes out a thread that is in this list.
    #[inline(never)]
    pub fn remove(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        let (previous, next) = (threads[thread].previous, threads[thread].next);
        if next == thread {
            self.head = ThreadId::NONE;
            return;
        }
        threads[previous].next = next;
        threads[next].previous = previous;
        if self.head == thread {
            self.head = next;
        }
    }
}

/// Links `thread` in between `behind` and the one before it.
fn insert_before(threads: &mut Pool<'_, Thread>, behind: ThreadId, thread: ThreadId) {
    let b = &mut threads[behind];
    let before = b.previous;
    b.previous = thread;
    let t = &mut threads[thread];
    (t.previous, t.next) = (before, behind);
    threads[before].next = thread;
}

//! Mailboxes and the messages in them.
//!
//! The messages of a mailbox are a leftist heap, the most urgent first and of equals the earliest:
//! putting one in, and taking the first out, passes at most as many as a number of that size has
//! bits, or twice as many. A lone message has no neighbours, so the frequent case is a list of one.

use crate::ids::{EventId, MailboxTag, MessageId, MessageTag, ProcessId, SemaphoreId, ThreadId};
use crate::objects::thread::ThreadQueue;
use crate::pool::{FREE, Id, Pool, Pooled, Range};
use crate::walks::walk;
use diapason_abi::{Handle, Kind, MESSAGE_BYTES, Nanos};
use diapason_costs::Round;

/// A message slot. Free ones of a mailbox are linked, and have nobody left or right.
pub struct Message {
    pub(crate) bytes: [u8; MESSAGE_BYTES],
    pub(crate) length: u8,
    /// Steps to the nearest gap on the right, where the heap is less deep.
    depth: u8,
    pub(crate) priority: u32,
    /// The next free slot.
    pub(crate) next: MessageId,
    pub(crate) left: MessageId,
    right: MessageId,
    /// The message's arrival, counted in messages of its mailbox that found another one there.
    number: u64,
}

impl Pooled for Message {
    type Tag = MessageTag;
}

impl Message {
    pub const EMPTY: Message = Message {
        bytes: [0; MESSAGE_BYTES],
        length: 0,
        depth: 1,
        priority: 0,
        next: Id::NONE,
        left: Id::NONE,
        right: Id::NONE,
        number: 0,
    };

    /// Returns whether this message is received before another one.
    fn is_before(&self, other: &Message) -> bool {
        self.priority > other.priority
            || self.priority == other.priority && self.number < other.number
    }
}

/// A mailbox of the description.
pub struct Mailbox {
    /// The mailbox's handle, or [`FREE`] while it does not exist.
    pub handle: u64,
    pub(crate) generation: u32,
    pub(crate) allowed: u64,
    pub(crate) key: u64,
    pub(crate) slots: Range,
    /// The process whose fault reports are received here.
    pub(crate) faults_of: ProcessId,
    pub(crate) first: MessageId,
    pub(crate) free: MessageId,
    /// Slots that held a message in this life; the others are free and not linked yet.
    pub(crate) fresh: u16,
    arrivals: u64,
    pub(crate) receivers: ThreadQueue,
    pub(crate) senders: ThreadQueue,
    /// Raised at each arrival, if it is still in the life that it was attached in. It may have been
    /// deleted since: nobody looks through the mailboxes then.
    pub(crate) event: EventId,
    pub(crate) event_life: u32,
    /// The mutex that the server of this mailbox holds, if its callers run the server in their own
    /// place.
    pub(crate) mutex: SemaphoreId,
    /// The caller whose request the server took last. It may wait for something else by now.
    pub(crate) client: ThreadId,
    /// The budget that the server had used when it took that request.
    pub(crate) begun: Nanos,
}

impl Pooled for Mailbox {
    type Tag = MailboxTag;
}

impl Mailbox {
    /// A slot that nobody may use.
    pub const EMPTY: Mailbox = Mailbox {
        handle: FREE,
        generation: 0,
        allowed: 0,
        key: 0,
        slots: Range::EMPTY,
        faults_of: Id::NONE,
        first: Id::NONE,
        free: Id::NONE,
        fresh: 0,
        arrivals: 0,
        receivers: ThreadQueue::EMPTY,
        senders: ThreadQueue::EMPTY,
        event: Id::NONE,
        event_life: 0,
        mutex: Id::NONE,
        client: Id::NONE,
        begun: Nanos::ZERO,
    };
}

/// Returns the result of a receive call.
pub(crate) fn receipt(length: u8, priority: u32) -> u64 {
    u64::from(length) << 32 | u64::from(priority)
}

impl Mailbox {
    /// The most urgent of those who wait to receive, or to send.
    pub(crate) fn first_waiter(&self) -> ThreadId {
        if self.receivers.is_empty() { self.senders.head } else { self.receivers.head }
    }

    /// Returns whether `handle` names a mailbox here that was deleted, and has waiters that were
    /// not sent away yet.
    pub(crate) fn ends(&self, handle: u64) -> bool {
        let named = Handle::new(Kind::Mailbox, Handle(handle).index(), self.generation).0;
        self.handle == FREE && self.first_waiter().is_some() && named == handle
    }

    /// Puts the first free slot, which now holds a message, among the others.
    #[inline(never)]
    pub(crate) fn deposit(&mut self, messages: &mut Pool<'_, Message>) {
        let slot = self.free;
        self.free = core::mem::replace(&mut messages[slot].next, Id::NONE);
        self.arrivals += 1;
        messages[slot].number = self.arrivals;
        self.first = meld(messages, self.first, slot);
    }

    /// Takes the first message out, which is not alone; its slot is free.
    #[inline(never)]
    pub(crate) fn take_first(&mut self, messages: &mut Pool<'_, Message>) {
        let slot = self.first;
        let m = &mut messages[slot];
        let (left, right) = (m.left, m.right);
        (m.left, m.right, m.depth) = (Id::NONE, Id::NONE, 1);
        m.next = core::mem::replace(&mut self.free, slot);
        self.first = meld(messages, left, right);
    }

    /// Links a slot that held no message yet, if none is free and there is one.
    #[inline(always)]
    pub(crate) fn refresh(&mut self, messages: &mut Pool<'_, Message>) {
        if self.free.is_none() && self.fresh < self.slots.count {
            let slot = Id::new(self.slots.first + self.fresh);
            self.fresh += 1;
            self.free = slot;
            let m = &mut messages[slot];
            (m.next, m.left, m.right, m.depth) = (Id::NONE, Id::NONE, Id::NONE, 1);
        }
    }
}

/// Makes one heap of two. On the way down each message on the right side has the one above it where
/// the one below it belongs; on the way up that is set right.
fn meld(messages: &mut Pool<'_, Message>, mut one: MessageId, mut other: MessageId) -> MessageId {
    let mut above: MessageId = Id::NONE;
    while one.is_some() && other.is_some() {
        walk(Round::Message, 1);
        if messages[other].is_before(&messages[one]) {
            core::mem::swap(&mut one, &mut other);
        }
        let below = core::mem::replace(&mut messages[one].right, above);
        above = core::mem::replace(&mut one, below);
    }
    let mut below = if one.is_some() { one } else { other };
    while above.is_some() {
        let left = messages[above].left;
        let of = |m: MessageId| if m.is_some() { messages[m].depth } else { 0 };
        let (on_left, on_right) = (of(left), of(below));
        let m = &mut messages[above];
        let next = core::mem::replace(&mut m.right, below);
        if on_left < on_right {
            (m.left, m.right) = (below, left);
        }
        m.depth = on_left.min(on_right) + 1;
        below = core::mem::replace(&mut above, next);
    }
    below
}

/// Checks a heap of messages from `first` down. Returns how many there are.
pub(crate) fn check_heap(messages: &Pool<'_, Message>, first: MessageId) -> u16 {
    if first.is_none() {
        return 0;
    }
    let m = &messages[first];
    let depth = |m: MessageId| if m.is_some() { messages[m].depth } else { 0 };
    assert!(depth(m.left) >= depth(m.right), "the right side of a mailbox is the less deep one");
    assert_eq!(m.depth, depth(m.right) + 1, "depth of a message");
    for below in [m.left, m.right].into_iter().filter(|below| below.is_some()) {
        assert!(!messages[below].is_before(m), "messages by priority, and then as they came");
    }
    1 + check_heap(messages, m.left) + check_heap(messages, m.right)
}

//! Mailboxes and the messages in them.

use crate::ids::{EventId, MailboxTag, MessageId, MessageTag, ProcessId};
use crate::objects::thread::ThreadQueue;
use crate::pool::{FREE, Id, Pool, Pooled, Range};
use crate::walks::walk;
use diapason_abi::MESSAGE_BYTES;
use diapason_costs::Round;

/// A message slot; free ones of a mailbox are linked too.
pub struct Message {
    pub(crate) bytes: [u8; MESSAGE_BYTES],
    pub(crate) length: u8,
    pub(crate) priority: u32,
    pub(crate) next: MessageId,
}

impl Pooled for Message {
    type Tag = MessageTag;
}

impl Message {
    pub const EMPTY: Message =
        Message { bytes: [0; MESSAGE_BYTES], length: 0, priority: 0, next: Id::NONE };
}

/// A mailbox of the description.
pub struct Mailbox {
    /// Its handle, or [`FREE`] while it does not exist.
    pub handle: u64,
    pub(crate) generation: u32,
    pub(crate) allowed: u64,
    pub(crate) key: u64,
    pub(crate) slots: Range,
    /// The process whose fault reports are received here.
    pub(crate) faults_of: ProcessId,
    pub(crate) first: MessageId,
    pub(crate) free: MessageId,
    pub(crate) receivers: ThreadQueue,
    pub(crate) senders: ThreadQueue,
    /// Raised at each arrival, if it is still in the life that it was attached in. It may have been
    /// deleted since: nobody looks through the mailboxes then.
    pub(crate) event: EventId,
    pub(crate) event_life: u32,
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
        receivers: ThreadQueue::EMPTY,
        senders: ThreadQueue::EMPTY,
        event: Id::NONE,
        event_life: 0,
    };
}

/// Returns the result of a receive call.
pub(crate) fn receipt(length: u8, priority: u32) -> u64 {
    u64::from(length) << 32 | u64::from(priority)
}

impl Mailbox {
    /// Sorts the first free slot, which now holds a message, in behind those at least as urgent.
    pub(crate) fn deposit(&mut self, messages: &mut Pool<'_, Message>, priority: u32) {
        let slot = self.free;
        let (mut before, mut next) = (Id::NONE, self.first);
        while next.is_some() && messages[next].priority >= priority {
            before = next;
            next = messages[next].next;
            walk(Round::Message, 1);
        }
        self.free = core::mem::replace(&mut messages[slot].next, next);
        let link = if before.is_some() { &mut messages[before].next } else { &mut self.first };
        *link = slot;
    }
}

//! Mailboxes: bounded, sorted by message priority, the kernel copies.
//!
//! A message is at most `MESSAGE_BYTES` long. A receiver that waits gets it straight into its
//! thread's buffer and from there into its memory when it next runs, in its own address space; so
//! no path ever touches another process's memory.

use crate::ids::{EventId, MailboxId, ThreadId};
use crate::kernel::{Flow, Kernel, Longer, Refused, Step};
use crate::machine::{Machine, UserMemory};
use crate::objects::mailbox::{check_heap, receipt};
use crate::objects::thread::Wait;
use crate::pool::{FREE, Id};
use crate::served::SERVERS;
use crate::services::end::Left;
use diapason_abi::call::PARTIAL;
use diapason_abi::{Errno, FaultCause, Handle, Kind, MESSAGE_BYTES, Nanos};
use diapason_costs::Round;

impl Kernel<'_> {
    #[inline(always)]
    pub(crate) fn mailbox(&self, handle: u64) -> Option<MailboxId> {
        let b = self.mailboxes.get(handle as u16)?;
        let named = b.handle == handle && b.allowed & self.grant != 0;
        named.then_some(Id::new(handle as u16))
    }

    /// The mailbox for the long ways, or why it is refused.
    #[inline(never)]
    pub(crate) fn find_mailbox(&self, handle: u64) -> Result<MailboxId, Refused> {
        self.mailbox(handle).ok_or_else(|| {
            let slot = self.mailboxes.get(handle as u16);
            let mine = slot.filter(|b| b.allowed & self.grant != 0);
            let generation = mine.map(|b| b.generation);
            self.stale_or_misused(Handle(handle), Kind::Mailbox, generation)
        })
    }

    pub(crate) fn mbox_create(&mut self, key: u64, event: u64) -> Step {
        let id = self.granted(&self.mailboxes, key, |b| (b.key, b.allowed))?;
        let event = if event == 0 { Id::NONE } else { self.own_event(event)? };
        if self.mailboxes[id].handle == FREE && self.mailboxes[id].first_waiter().is_some() {
            // Its deletion was not brought to an end.
            self.send_all_away(id);
            return Err(Refused::Errno(Errno::Busy));
        }
        if self.mailboxes[id].handle == FREE {
            if self.mailboxes[id].generation == u32::MAX {
                return Err(Refused::Errno(Errno::Exhausted));
            }
            self.open_mailbox(id);
        }
        if event.is_some() {
            let life = self.events[event].generation;
            (self.mailboxes[id].event, self.mailboxes[id].event_life) = (event, life);
        }
        Ok(Flow::Same(self.mailboxes[id].handle))
    }

    /// Brings a declared mailbox to life, empty.
    pub(crate) fn open_mailbox(&mut self, id: MailboxId) {
        let b = &mut self.mailboxes[id];
        b.generation += 1;
        b.handle = Handle::new(Kind::Mailbox, id.index(), b.generation).0;
        b.first = Id::NONE;
        (b.free, b.fresh) = (Id::NONE, 0);
        b.event = Id::NONE;
    }

    /// `MboxDelete(mailbox)`. It is gone at once, but an entry sends only a few of those away who
    /// wait: while there are more, the call is to be repeated.
    pub(crate) fn mbox_delete(&mut self, handle: u64) -> Step {
        let id = match self.mailboxes.get(handle as u16) {
            Some(b) if b.ends(handle) && b.allowed & self.grant != 0 => Id::new(handle as u16),
            _ => self.find_mailbox(handle)?,
        };
        if self.mailboxes[id].faults_of.is_some() || self.mailboxes[id].mutex.is_some() {
            return Err(Refused::Errno(Errno::Busy));
        }
        self.mailboxes[id].handle = FREE;
        Ok(Flow::Done(if self.send_all_away(id) { 0 } else { PARTIAL }))
    }

    /// Senders and receivers of a mailbox that is gone learn of it. Returns whether none is left.
    fn send_all_away(&mut self, id: MailboxId) -> bool {
        let mut left = Left(self.stage);
        loop {
            let waiter = self.mailboxes[id].first_waiter();
            if waiter.is_none() {
                return true;
            }
            if !left.take(Round::SendAway) {
                return false;
            }
            self.send_away(waiter, Errno::Gone);
        }
    }

    /// `MboxSend`, when nobody waits for it and there is room.
    #[inline(always)]
    pub(crate) fn quick_send(
        &mut self,
        m: &mut impl UserMemory,
        handle: u64,
        address: u64,
        length: u64,
        priority: u64,
    ) -> Result<u64, Longer> {
        let id = self.mailbox(handle).ok_or(Longer::Way)?;
        let b = &mut self.mailboxes[id];
        if b.receivers.head.is_some() || b.event.is_some() || b.free.is_none() {
            return Err(Longer::Way);
        }
        let message = &mut self.messages[b.free];
        let bytes = message.bytes.get_mut(..length as usize).ok_or(Longer::Way)?;
        m.copy_in(address, bytes).map_err(|_| Longer::BadAddress(address))?;
        message.length = length as u8;
        message.priority = priority as u32;
        if b.first.is_none() {
            b.first = b.free;
            b.free = core::mem::replace(&mut message.next, Id::NONE);
        } else {
            b.deposit(&mut self.messages);
        }
        Ok(0)
    }

    /// `MboxSend(mailbox, address, length, priority, deadline)`.
    pub(crate) fn mbox_send<M: Machine>(&mut self, m: &mut M, a: [u64; 5]) -> Step {
        let [handle, address, length, priority, deadline] = a;
        let id = self.find_mailbox(handle)?;
        if SERVERS && self.mailboxes[id].mutex.is_some() {
            return Err(Refused::Misuse(FaultCause::BadArgument, handle));
        }
        // Straight to where it belongs; nothing shows if the copy fails half-way.
        let (sender, place) = (self.running(), self.incoming(id));
        let (full, place) = match place {
            Some(place) => (false, place),
            None => (true, &mut self.threads[sender].message),
        };
        let Some(bytes) = place.get_mut(..length as usize) else {
            return Err(Refused::Misuse(FaultCause::BadArgument, length));
        };
        let bad = Refused::Misuse(FaultCause::BadAddress, address);
        m.copy_in(address, bytes).map_err(|_| bad)?;
        let (length, priority) = (length as u8, priority as u32);
        if !full {
            self.arrived(id, length, priority);
            return Ok(Flow::Done(0));
        }
        if Nanos(deadline) == Nanos::ZERO {
            return Err(Refused::Errno(Errno::Full));
        }
        self.may_wait(Nanos(deadline))?;
        let t = &mut self.threads[sender];
        t.message_length = length;
        t.message_priority = priority;
        self.block(sender, Wait::Send(id), Wait::Nothing, Nanos(deadline));
        self.mailboxes[id].senders.insert_by_urgency(&mut self.threads, sender);
        Ok(Flow::Away)
    }

    /// The first receiver has its message in its buffer: it goes on.
    #[inline(never)]
    fn hand_to(&mut self, id: MailboxId, receiver: ThreadId, receipt: u64) {
        let b = &mut self.mailboxes[id];
        b.receivers.remove(&mut self.threads, receiver);
        let event = b.event;
        self.wake(receiver, receipt);
        if event.is_some() {
            self.announce(id, event);
        }
    }

    /// A message arrived: the event of the mailbox is raised, unless it was deleted.
    #[inline(never)]
    fn announce(&mut self, id: MailboxId, event: EventId) {
        let e = &self.events[event];
        if e.handle == FREE || e.generation != self.mailboxes[id].event_life {
            self.mailboxes[id].event = Id::NONE;
            return;
        }
        self.raise(event, 1);
    }

    /// The message in the first free slot of a mailbox has arrived there.
    fn keep(&mut self, id: MailboxId, length: u8, priority: u32) {
        let slot = self.mailboxes[id].free;
        let message = &mut self.messages[slot];
        message.length = length;
        message.priority = priority;
        self.mailboxes[id].deposit(&mut self.messages);
        let event = self.mailboxes[id].event;
        if event.is_some() {
            self.announce(id, event);
        }
    }

    /// `MboxReceive`, when a message is there and no sender waits for its place.
    #[inline(always)]
    pub(crate) fn quick_receive(
        &mut self,
        m: &mut impl UserMemory,
        handle: u64,
        address: u64,
    ) -> Result<u64, Longer> {
        let id = self.mailbox(handle).ok_or(Longer::Way)?;
        let b = &self.mailboxes[id];
        if b.first.is_none() || b.senders.head.is_some() {
            return Err(Longer::Way);
        }
        self.fetch(m, id, address).ok_or(Longer::BadAddress(address))
    }

    /// Copies the first message out and frees its slot; nothing happens if the address is bad.
    #[inline(always)]
    pub(crate) fn fetch(
        &mut self,
        m: &mut impl UserMemory,
        id: MailboxId,
        address: u64,
    ) -> Option<u64> {
        let b = &mut self.mailboxes[id];
        let slot = b.first;
        let message = &mut self.messages[slot];
        m.copy_out(address, message.bytes.get(..message.length as usize)?).ok()?;
        let receipt = receipt(message.length, message.priority);
        if message.left.is_some() {
            b.take_first(&mut self.messages);
            return Some(receipt);
        }
        b.first = Id::NONE;
        message.next = b.free;
        b.free = slot;
        Some(receipt)
    }

    /// `MboxReceive(mailbox, address, deadline, hint)`.
    #[inline(never)]
    pub(crate) fn mbox_receive<M: Machine>(
        &mut self,
        m: &mut M,
        handle: u64,
        address: u64,
        deadline: Nanos,
        hint: u64,
    ) -> Step {
        let id = self.find_mailbox(handle)?;
        if self.mailboxes[id].first.is_some() {
            let bad = Refused::Misuse(FaultCause::BadAddress, address);
            let result = self.fetch(m, id, address).ok_or(bad)?;
            self.admit_sender(id);
            return Ok(Flow::Done(result));
        }
        self.may_wait(deadline)?;
        if address == 0 {
            // To a waiting thread it would mean that there is nothing to deliver.
            return Err(Refused::Misuse(FaultCause::BadAddress, address));
        }
        let after = self.hinted(hint);
        self.await_message(id, address, after, deadline)
    }

    /// Nothing is there yet: the running thread waits.
    #[inline(never)]
    pub(crate) fn await_message(
        &mut self,
        id: MailboxId,
        address: u64,
        after: Wait,
        deadline: Nanos,
    ) -> Step {
        let thread = self.running();
        self.block(thread, Wait::Receive(id), after, deadline);
        self.threads[thread].deliver_to = address;
        self.mailboxes[id].receivers.insert_by_urgency(&mut self.threads, thread);
        Ok(Flow::Away)
    }

    /// A slot became free: the most urgent sender's message takes it.
    pub(crate) fn admit_sender(&mut self, id: MailboxId) {
        let sender: ThreadId = self.mailboxes[id].senders.head;
        if sender.is_none() {
            return;
        }
        self.mailboxes[id].senders.remove(&mut self.threads, sender);
        let t = &self.threads[sender];
        let (message, length, priority) = (t.message, t.message_length, t.message_priority);
        if let Some(place) = self.incoming(id) {
            *place = message;
            self.arrived(id, length, priority);
        }
        self.wake(sender, 0);
    }

    /// Returns where the next message for a mailbox belongs: to whoever waits for it, else into a
    /// free slot, if there is one.
    #[inline(always)]
    pub(crate) fn incoming(&mut self, id: MailboxId) -> Option<&mut [u8; MESSAGE_BYTES]> {
        let receiver = self.mailboxes[id].receivers.head;
        if receiver.is_some() {
            return Some(&mut self.threads[receiver].message);
        }
        // Only now: a short way to a receiver leaves the slots alone, too.
        self.mailboxes[id].refresh(&mut self.messages);
        let free = self.mailboxes[id].free;
        if free.is_some() { Some(&mut self.messages[free].bytes) } else { None }
    }

    /// A message is where it belongs.
    pub(crate) fn arrived(&mut self, id: MailboxId, length: u8, priority: u32) {
        let receiver = self.mailboxes[id].receivers.head;
        if receiver.is_some() {
            self.threads[receiver].message_length = length;
            self.hand_to(id, receiver, receipt(length, priority));
        } else {
            self.keep(id, length, priority);
        }
    }
}

impl Kernel<'_> {
    /// Returns the messages in a mailbox and its free slots, counted singly, for the invariants.
    pub(crate) fn mailbox_slots(&self, id: MailboxId) -> (u16, u16) {
        let b = &self.mailboxes[id];
        let (mut free, mut at) = (b.slots.count - b.fresh, b.free);
        while at.is_some() {
            assert!(self.messages[at].left.is_none(), "a free slot has nobody below it");
            (free, at) = (free + 1, self.messages[at].next);
        }
        (check_heap(&self.messages, b.first), free)
    }
}

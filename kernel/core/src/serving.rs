//! Calls to a server that runs in its caller's place.
//!
//! A mailbox may have a mutex, which its server holds. It holds no messages then, and nobody sends
//! to it. `MboxCall` with that mailbox on both sides asks the server: the caller waits for the
//! mutex as one waits for a mutex that is held. So it keeps its place, and the server runs there,
//! at that priority and on that budget (`helping`). Several callers are a chain each, with the same
//! end. None of them is in a list: the most urgent place is chosen, as it is for a mutex that
//! becomes free, and the request of the caller there is handed over as soon as the server waits.
//!
//! The same call of the server answers the request that it took last, and waits for the next one.
//! [`Thread::after`](crate::objects::thread::Thread) says how far a call is: [`Wait::Send`] until
//! the server has the request, and then [`Wait::Receive`]. It ends with `Gone` if the server dies,
//! lets its mutex go, or waits for another request without an answer to this one.
//!
//! A call costs its caller the time of the service, and what the server still has to do for one
//! less urgent caller: as a critical section does, and `plan` counts both alike.

use crate::cross::is_free_to_come;
use crate::ids::{MailboxId, SemaphoreId, ThreadId};
use crate::kernel::{Arguments, Decision, Flow, Kernel, Longer, Refused, Step};
use crate::machine::{Machine, UserMemory};
use crate::objects::mailbox::receipt;
use crate::objects::thread::{State, Thread, Wait};
use crate::served::SERVERS;
use diapason_abi::{Errno, FaultCause, Nanos, encode_result};

impl Thread {
    /// Returns whether the thread waits for the answer of a server, not for the server's mutex.
    #[inline(always)]
    pub(crate) fn asks(&self) -> bool {
        SERVERS && matches!(self.after, Wait::Send(_) | Wait::Receive(_))
    }

    /// Returns whether the server of this mailbox took the request of this thread and has not
    /// answered it.
    #[inline(always)]
    fn awaits_answer(&self, mailbox: MailboxId, mutex: SemaphoreId) -> bool {
        self.wait == Wait::Mutex(mutex) && self.after == Wait::Receive(mailbox)
    }
}

impl Kernel<'_> {
    /// The wait of a thread in its own place ends with an error.
    #[inline(never)]
    pub(crate) fn fail_in_place(&mut self, thread: ThreadId, errno: Errno) {
        let t = &mut self.threads[thread];
        t.deliver_to = 0;
        if t.asks() {
            t.after = Wait::Nothing;
        }
        self.stop_waiting(thread, encode_result(Err(errno)));
    }

    /// `MboxCall` with one mailbox on both sides: its server answers the request that it took last
    /// and waits for the next one, and everybody else asks the server, and keeps its place.
    #[inline(never)]
    pub(crate) fn serve_or_ask<M: Machine>(
        &mut self,
        m: &mut M,
        id: MailboxId,
        a: Arguments,
    ) -> Step {
        let [_, address, what, receive, deadline] = a;
        let (caller, deadline) = (self.running(), Nanos(deadline));
        let (mutex, client) = (self.mailboxes[id].mutex, self.mailboxes[id].client);
        if !SERVERS || mutex.is_none() {
            return Err(Refused::Misuse(FaultCause::BadArgument, receive));
        }
        self.may_wait(deadline)?;
        let (server, handle) = (self.semaphores[mutex].owner, self.semaphores[mutex].handle);
        if server.is_none() {
            return Err(Refused::Errno(Errno::Gone));
        }
        let serves = server == caller;
        if !serves && self.end_of_waits(server) == caller {
            return Err(Refused::Errno(Errno::Deadlock));
        }
        let asks = |client: ThreadId| self.threads[client].awaits_answer(id, mutex);
        let answers = serves && client.is_some() && asks(client);
        // An answer that nobody waits for any more goes to where the server's next request goes.
        let t = &mut self.threads[if answers { client } else { caller }];
        let Some(bytes) = t.message.get_mut(..(what >> 32) as usize) else {
            return Err(Refused::Misuse(FaultCause::BadArgument, what >> 32));
        };
        let copied = m.copy_in(address, bytes).is_ok();
        if !copied || address == 0 {
            return Err(Refused::Misuse(FaultCause::BadAddress, address));
        }
        (t.message_length, t.message_priority) = ((what >> 32) as u8, what as u32);
        if !serves {
            (t.wanted, t.deliver_to) = (handle, address);
            self.wait_in_place(caller, Wait::Mutex(mutex), Wait::Send(id), deadline);
            return Ok(Flow::Away);
        }
        if answers {
            self.pay_up();
            self.charge_service(id, server);
            self.threads[client].after = Wait::Nothing;
            self.stop_waiting(client, what);
        }
        self.await_message(id, address, Wait::Nothing, deadline)
    }

    /// `MboxCall` with one mailbox on both sides, if nothing has to be decided: the server waits
    /// for a request, or answers in the place of its client, and has no VCPU.
    #[inline(always)]
    pub(crate) fn converse(
        &mut self,
        m: &mut impl UserMemory,
        a: Arguments,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        let id = self.mailbox(a[0]).ok_or(Longer::Way)?;
        let (s, b) = (&self.scheduler, &self.mailboxes[id]);
        if b.mutex.is_none() || !s.plain || a[1] == 0 || a[4] != Nanos::FOREVER.0 {
            return Err(Longer::Way);
        }
        let server = self.semaphores[b.mutex].owner;
        if server.is_none() || self.threads[server].vcpu.is_some() {
            return Err(Longer::Way);
        }
        if server == s.running {
            self.answer_and_pass(m, id, a, now)
        } else {
            self.ask_and_pass(m, id, server, a, now)
        }
    }

    /// The caller asks a server that waits, which runs in its place.
    #[inline(always)]
    fn ask_and_pass(
        &mut self,
        m: &mut impl UserMemory,
        id: MailboxId,
        server: ThreadId,
        a: Arguments,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        let [_, address, what, ..] = a;
        let (s, mut threads) = (&mut self.scheduler, self.threads.again());
        let (caller, b) = (s.running, &mut self.mailboxes[id]);
        let t = &mut threads[server];
        let waits = t.wait == Wait::Receive(id) && t.after == Wait::Nothing;
        if s.place != caller || !waits || !is_free_to_come(t, server) {
            return Err(Longer::Way);
        }
        let bytes = t.message.get_mut(..(what >> 32) as usize).ok_or(Longer::Way)?;
        m.copy_in(address, bytes).map_err(|_| Longer::Way)?;
        let (begun, priority) = (t.paid, t.priority);
        let c = &mut threads[caller];
        if s.payer.is_none() && c.priority < priority {
            return Err(Longer::Way);
        }
        let now = now();
        (c.wait, c.after) = (Wait::Mutex(b.mutex), Wait::Receive(id));
        (c.wanted, c.deliver_to) = (self.semaphores[b.mutex].handle, address);
        (b.client, b.begun, b.receivers.head) = (caller, begun, ThreadId::NONE);
        threads[server].message_length = (what >> 32) as u8;
        s.unreserved.insert_back(&mut threads, server);
        s.pass(&mut threads, caller, server, now);
        let resumed = threads[server].come_back(what);
        Ok(self.passed(server, resumed, now))
    }

    /// The server answers the client in whose place it runs, and waits for the next request.
    #[inline(always)]
    fn answer_and_pass(
        &mut self,
        m: &mut impl UserMemory,
        id: MailboxId,
        a: Arguments,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        let [_, address, what, ..] = a;
        let (s, mut threads) = (&mut self.scheduler, self.threads.again());
        let (server, client, b) = (s.running, s.place, &mut self.mailboxes[id]);
        let alone = b.receivers.is_empty() && b.client == client;
        let c = &mut threads[client];
        if !alone || !c.awaits_answer(id, b.mutex) || c.alarm.is_set() {
            return Err(Longer::Way);
        }
        let bytes = c.message.get_mut(..(what >> 32) as usize).ok_or(Longer::Way)?;
        m.copy_in(address, bytes).map_err(|_| Longer::Way)?;
        let now = now();
        s.pass(&mut threads, server, client, now);
        s.unreserved.remove(&mut threads, server);
        let t = &mut threads[server];
        (t.state, t.wait, t.after) = (State::Blocked, Wait::Receive(id), Wait::Nothing);
        (t.previous, t.next, t.deliver_to) = (server, server, address);
        b.receivers.head = server;
        self.charge_service(id, server);
        let c = &mut self.threads[client];
        (c.after, c.message_length) = (Wait::Nothing, (what >> 32) as u8);
        let resumed = c.come_back(what);
        Ok(self.passed(client, resumed, now))
    }

    /// The budget that the server used for a request counts as used by the job that asked.
    #[inline(always)]
    fn charge_service(&mut self, id: MailboxId, server: ThreadId) {
        let b = &mut self.mailboxes[id];
        let client = core::mem::replace(&mut b.client, ThreadId::NONE);
        let used = self.threads[server].paid - b.begun;
        let paid = &mut self.threads[client].paid;
        paid.0 = paid.0.wrapping_add(used.0);
    }

    /// The thread in the chosen place, or one that it waits for, waits for `server`, which waits
    /// for a message. Returns whether that is a call to the server, which then goes on.
    #[inline(never)]
    pub(crate) fn attend_call(&mut self, caller: ThreadId, server: ThreadId) -> bool {
        let (c, s) = (&self.threads[caller], &self.threads[server]);
        let (Wait::Mutex(mutex), Wait::Receive(id)) = (c.wait, s.wait) else { return false };
        if self.mailboxes[id].mutex != mutex {
            return false;
        }
        if c.awaits_answer(id, mutex) {
            // The server went on without an answer.
            self.fail_in_place(caller, Errno::Gone);
            return true;
        }
        if c.after != Wait::Send(id) {
            return false;
        }
        let (message, length, priority) = (c.message, c.message_length, c.message_priority);
        let begun = s.paid;
        self.threads[caller].after = Wait::Receive(id);
        let s = &mut self.threads[server];
        (s.message, s.message_length) = (message, length);
        let b = &mut self.mailboxes[id];
        (b.client, b.begun) = (caller, begun);
        b.receivers.remove(&mut self.threads, server);
        // No alarm makes this path longer.
        self.quiet = true;
        self.wake(server, receipt(length, priority));
        true
    }
}

//! `MboxCall`: send and wait for the answer, in one entry.
//!
//! A client calls with its request, a server with its answer, so that a round trip takes two
//! entries instead of four. Mostly the other side waits for the message and is the next to run, and
//! both live on one VCPU, with no deadline and nobody who waits. Then the two change places, and
//! there is nothing to decide, and the call has a short way (`shortcut`).

use crate::cross::is_free_to_come;
use crate::ids::{MailboxId, ThreadId};
use crate::kernel::{Arguments, Decision, Flow, Kernel, Longer, Refused, Step};
use crate::machine::{Machine, UserMemory};
use crate::objects::thread::{State, Wait};
use crate::pool::Id;
use crate::served::SERVERS;
use diapason_abi::{Errno, FaultCause, Nanos};

impl Kernel<'_> {
    /// `MboxCall`, if nothing has to be decided. The message is the caller's.
    #[inline(always)]
    pub(crate) fn exchange(
        &mut self,
        m: &mut impl UserMemory,
        a: Arguments,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Decision, Longer> {
        let [send, address, what, receive, deadline] = a;
        if SERVERS && send == receive {
            return self.converse(m, a, now);
        }
        let (s, mut threads) = (&mut self.scheduler, self.threads.again());
        let caller = s.running;
        let mut boxes = self.mailboxes.again();
        let (to, from) = (boxes.get(send as u16), boxes.get(receive as u16));
        let (Some(to), Some(from)) = (to, from) else { return Err(Longer::Way) };
        if to.handle != send
            || from.handle != receive
            || to.allowed & from.allowed & self.grant == 0
        {
            return Err(Longer::Way);
        }
        let receiver = to.receivers.head;
        let waits = from.first.is_none() && from.receivers.is_empty();
        let alone = to.event.is_none() && (!SERVERS || to.mutex.is_none());
        if !waits || receiver.is_none() || !alone || deadline != Nanos::FOREVER.0 {
            return Err(Longer::Way);
        }
        let r = &mut threads[receiver];
        let comes = is_free_to_come(r, receiver) && matches!(r.after, Wait::Nothing);
        if !s.plain || address == 0 || !comes {
            return Err(Longer::Way);
        }
        let bytes = r.message.get_mut(..(what >> 32) as usize).ok_or(Longer::Way)?;
        m.copy_in(address, bytes).map_err(|_| Longer::Way)?;
        r.message_length = (what >> 32) as u8;
        let (come, vcpu) = (r.priority, r.vcpu);
        let c = &mut threads[caller];
        if c.next != caller {
            return Err(Longer::Way);
        }
        if vcpu != s.payer {
            if s.place != caller {
                return Err(Longer::Way);
            }
            threads[receiver].result = what;
            let wait = Wait::Receive(Id::new(receive as u16));
            return Err(self.leave(wait, Wait::Nothing, address, receiver, now()));
        }
        if c.vcpu != s.payer {
            return Err(Longer::Way);
        }
        if !s.queue(&mut self.vcpus).replace(c.priority, come, receiver) {
            return Err(Longer::Way);
        }
        // From here on nothing fails.
        let now = now();
        (c.state, c.wait, c.after) =
            (State::Blocked, Wait::Receive(Id::new(receive as u16)), Wait::Nothing);
        c.deliver_to = address;
        boxes[Id::new(send as u16)].receivers.head = ThreadId::NONE;
        boxes[Id::new(receive as u16)].receivers.head = caller;
        s.place = receiver;
        s.pass(&mut threads, caller, receiver, now);
        let resumed = threads[receiver].come_back(what);
        Ok(self.passed(receiver, resumed, now))
    }

    /// `MboxCall(send, address, length << 32 | priority, receive, deadline)`. All that can be
    /// refused is refused before anybody can notice the message.
    pub(crate) fn mbox_call<M: Machine>(&mut self, m: &mut M, a: [u64; 5]) -> Step {
        let [send, address, what, receive, deadline] = a;
        let (to, from) = (self.find_mailbox(send)?, self.find_mailbox(receive)?);
        let (length, deadline) = (what >> 32, Nanos(deadline));
        if to == from {
            return self.serve_or_ask(m, to, a);
        }
        if SERVERS && self.mailboxes[to].mutex.is_some() {
            return Err(Refused::Misuse(FaultCause::BadArgument, send));
        }
        let waits = self.mailboxes[from].first.is_none();
        let bad = Refused::Misuse(FaultCause::BadAddress, address);
        if waits {
            self.may_wait(deadline)?;
            if address == 0 {
                return Err(bad);
            }
        }
        let receiver = self.mailboxes[to].receivers.head;
        let bytes = self.incoming(to).ok_or(Refused::Errno(Errno::Full))?;
        let Some(bytes) = bytes.get_mut(..length as usize) else {
            return Err(Refused::Misuse(FaultCause::BadArgument, length));
        };
        m.copy_in(address, bytes).map_err(|_| bad)?;
        if !waits || receiver.is_none() {
            return self.call_around(m, to, from, a);
        }
        self.arrived(to, length as u8, what as u32);
        self.await_message(from, address, Wait::Nothing, deadline)
    }

    /// The rest of `MboxCall`, if nobody waits for what is sent, which is in the first free slot,
    /// or what the caller would wait for is there.
    #[inline(never)]
    fn call_around<M: Machine>(
        &mut self,
        m: &mut M,
        to: MailboxId,
        from: MailboxId,
        a: [u64; 5],
    ) -> Step {
        let [_, address, what, _, deadline] = a;
        let waits = self.mailboxes[from].first.is_none();
        let mut answer = 0;
        if !waits {
            let bad = Refused::Misuse(FaultCause::BadAddress, address);
            answer = self.fetch(m, from, address).ok_or(bad)?;
        }
        self.arrived(to, (what >> 32) as u8, what as u32);
        if waits {
            return self.await_message(from, address, Wait::Nothing, Nanos(deadline));
        }
        self.admit_sender(from);
        Ok(Flow::Done(answer))
    }
}

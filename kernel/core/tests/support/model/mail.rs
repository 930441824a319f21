//! Mailboxes, events, timers and interrupts of the model.

use super::*;
use diapason_abi::CallNumber as Call;
use diapason_abi::MESSAGE_BYTES;

impl Event {
    /// Returns when a timer rings: only for somebody who waits for it.
    pub(super) fn due(&self) -> Option<u64> {
        match self.source {
            Source::Timer { next: next @ 1.., .. } if self.waiter.is_some() => Some(next),
            _ => None,
        }
    }
}

impl Model {
    fn mailbox(&self, word: u64) -> Result<usize, Outcome> {
        self.lookup(Kind::Mailbox, word, |model, index| {
            let m = model.mailboxes.get(index)?;
            Some((model.granted(m.allowed), m.alive, m.generation))
        })
    }

    fn event(&self, word: u64) -> Result<usize, Outcome> {
        self.lookup(Kind::Event, word, |model, index| {
            let e = model.events.get(index)?;
            Some((model.granted(e.allowed), e.alive, e.generation))
        })
    }

    /// Something happened `count` times.
    fn raise(&mut self, id: usize, count: u64) {
        let e = &mut self.events[id];
        e.pending = (u64::from(e.pending) + count).min(u64::from(u32::MAX)) as u32;
        if e.pending > 0
            && let Some(waiter) = e.waiter.take()
        {
            let pending = std::mem::take(&mut e.pending);
            self.wake(waiter, u64::from(pending));
        }
    }

    /// Expiries of a timer up to now that nobody was told of.
    fn expiries(&mut self, id: usize) -> u64 {
        let now = self.now;
        let Source::Timer { period, next } = &mut self.events[id].source else { return 0 };
        let mut count = 0;
        while *next > 0 && *next <= now {
            *next = if *period > 0 { *next + *period } else { 0 };
            count += 1;
        }
        count
    }

    /// A timer's time has come, and somebody waits for it.
    pub(super) fn fire(&mut self, id: usize) {
        let count = self.expiries(id);
        self.raise(id, count);
    }

    /// Raises a device's interrupt.
    pub fn interrupt(&mut self, device: usize) {
        if let Some(device) = self.devices.get_mut(device) {
            device.open &= !device.level;
            if let Some(event) = device.event {
                self.raise(event, 1);
            }
        }
        self.decide();
    }

    /// Room or a receiver is there: the message arrives.
    pub(super) fn arrive(&mut self, id: usize, bytes: &[u8], priority: u32) {
        match self.first(&self.mailboxes[id].receivers) {
            Some(receiver) => {
                self.mailboxes[id].receivers.retain(|t| *t != receiver);
                let Life::Blocked(Wait::Receive(_, address)) = self.threads[receiver].life else {
                    panic!("a receiver waits")
                };
                self.threads[receiver].delivery = Some((address, bytes.to_vec()));
                self.wake(receiver, receipt(bytes, priority));
            }
            None => self.mailboxes[id].messages.push((bytes.to_vec(), priority)),
        }
        if let Some(event) = self.mailboxes[id].event {
            self.raise(event, 1);
        }
    }

    /// Returns whether a receiver waits or there is room.
    pub(super) fn has_room(&self, id: usize) -> bool {
        let m = &self.mailboxes[id];
        !m.receivers.is_empty() || m.messages.len() < m.capacity
    }

    pub(super) fn mail_call(&mut self, call: Call, a: [u64; 5], text: &[u8]) -> Step {
        match call {
            Call::MboxCreate => self.mbox_create(a[0], a[1]),
            Call::MboxDelete => self.mbox_delete(a[0]),
            Call::MboxSend => self.mbox_send(a, text),
            Call::MboxReceive => self.mbox_receive(a[0], a[1], a[2], a[3]),
            Call::MboxCall => self.mbox_call(a, text),
            Call::TimerCreate => self.event_create(Source::Timer { period: 0, next: 0 }),
            Call::TimerStart => self.timer_start(a),
            Call::EventCreate => self.event_create(Source::Plain),
            Call::EventWait => self.event_wait(a[0], a[1], a[2]),
            Call::EventDelete => {
                let id = self.event(a[0])?;
                self.destroy_event(id);
                self.freed.push((Kind::Event, id));
                Ok(Outcome::Done(0))
            }
            _ => self.set_isr(a[0]),
        }
    }

    fn mbox_create(&mut self, key: u64, event: u64) -> Step {
        let named = self.mailboxes.iter().position(|m| m.key == key);
        let may = named.filter(|id| self.granted(self.mailboxes[*id].allowed));
        let id = may.ok_or(Outcome::Misuse(FaultCause::BadGrant, key))?;
        let event = if event == 0 { None } else { Some(self.event(event)?) };
        let m = &mut self.mailboxes[id];
        if !m.alive {
            (m.alive, m.event) = (true, None);
            m.generation += 1;
        }
        m.event = event.or(m.event);
        Ok(Outcome::Done(handle(Kind::Mailbox, id, m.generation)))
    }

    fn mbox_delete(&mut self, word: u64) -> Step {
        let id = self.mailbox(word)?;
        if self.mailboxes[id].faults_of.is_some() || self.mailboxes[id].mutex.is_some() {
            return Err(Outcome::Refused(Errno::Busy));
        }
        let m = &mut self.mailboxes[id];
        (m.alive, m.event) = (false, None);
        m.messages.clear();
        for mut queue in [std::mem::take(&mut m.receivers), std::mem::take(&mut m.senders)] {
            while let Some(thread) = self.first(&queue) {
                queue.retain(|t| *t != thread);
                self.wake(thread, error(Errno::Gone));
            }
        }
        Ok(Outcome::Done(0))
    }

    fn mbox_send(&mut self, a: [u64; 5], text: &[u8]) -> Step {
        let [word, address, length, priority, deadline] = a;
        let (id, caller) = (self.mailbox(word)?, self.caller());
        if self.mailboxes[id].mutex.is_some() {
            return Err(Outcome::Misuse(FaultCause::BadArgument, word));
        }
        if length > MESSAGE_BYTES as u64 {
            return Err(Outcome::Misuse(FaultCause::BadArgument, length));
        }
        if !self.accessible(address, length) {
            return Err(Outcome::Misuse(FaultCause::BadAddress, address));
        }
        if self.has_room(id) {
            self.arrive(id, text, priority as u32);
            return Ok(Outcome::Done(0));
        }
        if deadline == 0 {
            return Err(Outcome::Refused(Errno::Full));
        }
        self.may_wait(deadline)?;
        self.block(caller, Wait::Send(id, text.to_vec(), priority as u32), None, deadline);
        self.mailboxes[id].senders.push(caller);
        Ok(Outcome::Away)
    }

    /// Returns where the message is that is received next.
    fn best(&self, id: usize) -> Option<usize> {
        let messages = &self.mailboxes[id].messages;
        let most = messages.iter().map(|(_, priority)| *priority).max()?;
        messages.iter().position(|(_, p)| *p == most)
    }

    /// A send that may not wait and a receive, if neither will be refused.
    fn mbox_call(&mut self, a: [u64; 5], text: &[u8]) -> Step {
        let [send, address, what, receive, deadline] = a;
        let (to, from) = (self.mailbox(send)?, self.mailbox(receive)?);
        if to == from {
            let Some(mutex) = self.mailboxes[to].mutex else {
                return Err(Outcome::Misuse(FaultCause::BadArgument, receive));
            };
            let answers = self.semaphores[mutex].owner == Some(self.caller());
            return if answers { self.answer(to, a, text) } else { self.ask(to, mutex, a, text) };
        }
        if self.mailboxes[to].mutex.is_some() {
            return Err(Outcome::Misuse(FaultCause::BadArgument, send));
        }
        let bad = Outcome::Misuse(FaultCause::BadAddress, address);
        let there = self.best(from).map(|at| self.mailboxes[from].messages[at].0.len() as u64);
        if there.is_none() {
            self.may_wait(deadline)?;
            if address == 0 {
                return Err(bad);
            }
        }
        if !self.has_room(to) {
            return Err(Outcome::Refused(Errno::Full));
        }
        let (length, priority) = (what >> 32, what & 0xffff_ffff);
        if length <= MESSAGE_BYTES as u64 && !self.accessible(address, there.unwrap_or(0)) {
            return Err(bad);
        }
        self.mbox_send([send, address, length, priority, 0], text)?;
        self.mbox_receive(receive, address, deadline, u64::MAX)
    }

    fn ask(&mut self, id: usize, mutex: usize, a: [u64; 5], text: &[u8]) -> Step {
        let [_, address, what, _, deadline] = a;
        self.may_wait(deadline)?;
        let s = &self.semaphores[mutex];
        let owner = s.owner.ok_or(Outcome::Refused(Errno::Gone))?;
        if self.end_of_chain(owner) == self.caller() {
            return Err(Outcome::Refused(Errno::Deadlock));
        }
        self.readable(address, what >> 32)?;
        let (lock, request) = ((mutex, s.generation), Some((text.to_vec(), what as u32)));
        self.wait(self.caller(), Wait::Answer(id, lock, address, request), None, deadline);
        Ok(Outcome::Away)
    }

    /// Refuses a request or an answer that is too long, or in no memory of the caller's.
    fn readable(&self, address: u64, length: u64) -> Result<(), Outcome> {
        if length > MESSAGE_BYTES as u64 {
            return Err(Outcome::Misuse(FaultCause::BadArgument, length));
        }
        if address == 0 || !self.accessible(address, length) {
            return Err(Outcome::Misuse(FaultCause::BadAddress, address));
        }
        Ok(())
    }

    /// The place for the answer of the client whose request was taken last, if it still waits.
    fn client(&self, id: usize) -> Option<(usize, u64)> {
        let client = self.mailboxes[id].client?;
        match self.threads[client].life {
            Life::Blocked(Wait::Answer(of, _, address, None)) if of == id => {
                Some((client, address))
            }
            _ => None,
        }
    }

    fn answer(&mut self, id: usize, a: [u64; 5], text: &[u8]) -> Step {
        let [word, address, what, _, deadline] = a;
        self.may_wait(deadline)?;
        self.readable(address, what >> 32)?;
        if let Some((client, address)) = self.client(id) {
            self.answers += 1;
            self.threads[client].delivery = Some((address, text.to_vec()));
            self.go_on(client, receipt(text, what as u32));
        }
        self.mbox_receive(word, address, deadline, u64::MAX)
    }

    /// If the server at the end of this chain waits for a request, and the thread before it asks,
    /// the server has the request. If it has it already, it will not answer.
    pub(super) fn attend_call(&mut self, first: usize, end: usize) -> bool {
        let Life::Blocked(Wait::Receive(id, to)) = self.threads[end].life else { return false };
        let chain = std::iter::successors(Some(first), |at| self.awaited(*at));
        let Some(before) = chain.take_while(|at| *at != end).last() else { return false };
        let Life::Blocked(Wait::Answer(of, _, _, request)) = &mut self.threads[before].life else {
            return false;
        };
        if *of != id {
            return false;
        }
        let Some((bytes, priority)) = request.take() else {
            self.go_on(before, error(Errno::Gone));
            return true;
        };
        let m = &mut self.mailboxes[id];
        m.client = Some(before);
        m.receivers.retain(|t| *t != end);
        let receipt = receipt(&bytes, priority);
        self.threads[end].delivery = Some((to, bytes));
        self.wake(end, receipt);
        true
    }

    fn mbox_receive(&mut self, word: u64, address: u64, deadline: u64, hint: u64) -> Step {
        let (id, caller) = (self.mailbox(word)?, self.caller());
        let bad = Outcome::Misuse(FaultCause::BadAddress, address);
        let Some(at) = self.best(id) else {
            self.may_wait(deadline)?;
            if address == 0 {
                return Err(bad);
            }
            let after = self.hinted(hint);
            self.block(caller, Wait::Receive(id, address), after, deadline);
            self.mailboxes[id].receivers.push(caller);
            return Ok(Outcome::Away);
        };
        if !self.accessible(address, self.mailboxes[id].messages[at].0.len() as u64) {
            return Err(bad);
        }
        let (bytes, priority) = self.mailboxes[id].messages.remove(at);
        let result = receipt(&bytes, priority);
        self.threads[caller].delivery = Some((address, bytes));
        if let Some(sender) = self.first(&self.mailboxes[id].senders) {
            self.mailboxes[id].senders.retain(|t| *t != sender);
            let Life::Blocked(Wait::Send(_, bytes, priority)) = self.threads[sender].life.clone()
            else {
                panic!("a sender waits")
            };
            self.arrive(id, &bytes, priority);
            self.wake(sender, 0);
        }
        Ok(Outcome::Done(result))
    }

    fn event_create(&mut self, source: Source) -> Step {
        let mine = 1 << self.process();
        let own = (0..self.events.len()).filter(|id| self.events[*id].allowed == mine);
        let free = self.place_of(Kind::Event, &own.collect::<Vec<_>>());
        let id = free.ok_or(Outcome::Refused(Errno::Exhausted))?;
        let e = &mut self.events[id];
        (e.alive, e.source, e.pending) = (true, source, 0);
        e.generation += 1;
        Ok(Outcome::Done(handle(Kind::Event, id, e.generation)))
    }

    fn timer_start(&mut self, a: [u64; 5]) -> Step {
        let id = self.event(a[0])?;
        let passed = self.expiries(id);
        let Source::Timer { period, next } = &mut self.events[id].source else {
            return Err(Outcome::Refused(Errno::Busy));
        };
        (*period, *next) = (a[2], if a[1] < u64::MAX { a[1] } else { 0 });
        self.raise(id, passed);
        Ok(Outcome::Done(0))
    }

    fn event_wait(&mut self, word: u64, deadline: u64, hint: u64) -> Step {
        let (id, caller) = (self.event(word)?, self.caller());
        if self.events[id].waiter.is_some() {
            return Err(Outcome::Refused(Errno::Busy));
        }
        let missed = self.expiries(id) as u32;
        self.events[id].pending += missed;
        let e = &mut self.events[id];
        if e.pending > 0 {
            return Ok(Outcome::Done(u64::from(std::mem::take(&mut e.pending))));
        }
        if let Source::Irq(device) = e.source {
            self.devices[device].open = true;
        }
        self.may_wait(deadline)?;
        let after = self.hinted(hint);
        self.block(caller, Wait::Event(id), after, deadline);
        self.events[id].waiter = Some(caller);
        Ok(Outcome::Away)
    }

    pub(super) fn destroy_event(&mut self, id: usize) {
        let e = &mut self.events[id];
        e.alive = false;
        let (source, waiter) = (e.source, e.waiter.take());
        if let Source::Irq(device) = source {
            (self.devices[device].event, self.devices[device].open) = (None, false);
        }
        for mailbox in self.mailboxes.iter_mut().filter(|m| m.event == Some(id)) {
            mailbox.event = None;
        }
        if let Some(waiter) = waiter {
            self.wake(waiter, error(Errno::Gone));
        }
    }

    fn set_isr(&mut self, key: u64) -> Step {
        let named = self.devices.iter().position(|d| d.key == key);
        let device = named.ok_or(Outcome::Misuse(FaultCause::BadGrant, key))?;
        if self.devices[device].absent {
            return Err(Outcome::Refused(Errno::Absent));
        }
        if self.devices[device].event.is_some() {
            return Err(Outcome::Refused(Errno::Busy));
        }
        let Outcome::Done(word) = self.event_create(Source::Irq(device))? else {
            panic!("creation returns at once")
        };
        let event = Handle(word).index() as usize;
        (self.devices[device].event, self.devices[device].open) = (Some(event), true);
        Ok(Outcome::Done(word))
    }
}

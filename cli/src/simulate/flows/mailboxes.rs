//! The mailboxes at both ends of flows, as an observer of their host hears them: every message that
//! a program sends to one, and its fate there.
//!
//! The kernel hands messages out by priority, and equal ones in their order. The router
//! takes the next message of a mailbox only after it gave the one before to a link or dropped it.
//! So each message is known without a look at its content.

use diapason_abi::call::CallNumber;
use diapason_abi::recorder::{Entry, EntryKind};
use diapason_abi::{Key, Nanos};
use diapason_contract::mail::{BoxName, MAILBOXES};
use diapason_contract::routes::{Gate, LinkRoute, PROGRAM, ROUTES};
use diapason_core::MailboxState;
use diapason_sim::Glance;
use diapason_system::System;

/// The fate of a message that a program sent to a mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoxFate {
    /// It is in the mailbox, or its sender waits for room.
    Waits,
    /// It found the mailbox full.
    Full,
    /// The program behind the mailbox took it.
    Taken,
    /// The server behind the mailbox gave it to a link: the link's number, and that of the message.
    Given(usize, usize),
    /// The server behind the mailbox took it and gave it to no link.
    Dropped,
    /// It was in the memory of a host that lost its power.
    Gone,
}

/// A message that a program sent to a mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoxMessage {
    pub fate: BoxFate,
    /// When it was sent.
    from: Nanos,
    priority: u32,
    /// The program that sent it is the one that the flow says.
    is_of_flow: bool,
}

/// A mailbox at an end of flows.
#[derive(Clone, Debug)]
pub struct BoxLog {
    /// Its number in its host.
    number: u16,
    /// The process of the server that takes its messages, or fills it.
    server: u16,
    /// The flow that begins here; nothing if messages come from a link.
    flow: Option<u32>,
    /// Messages that were sent to it, in their order.
    sent: Vec<BoxMessage>,
    /// Messages in it, in the order in which they came.
    held: Vec<usize>,
    /// Messages whose senders wait for room.
    waiting: Vec<usize>,
    /// The message that the server took and has not given to a link.
    pending: Option<usize>,
    /// Its state before the next call.
    state: MailboxState,
}

/// The mailboxes of a host at the ends of flows.
#[derive(Clone, Default, Debug)]
pub struct BoxLogs(Vec<BoxLog>);

impl BoxLogs {
    /// Returns the messages that were sent to the mailbox where a flow begins, with the times.
    pub fn begun(&self, flow: u32) -> impl Iterator<Item = (Nanos, BoxFate)> + '_ {
        let log = self.0.iter().find(|log| log.flow == Some(flow));
        let all = log.map_or(&[][..], |log| &log.sent[..]);
        all.iter().filter(|message| message.is_of_flow).map(|message| (message.from, message.fate))
    }

    /// Returns the fate of a message that a server put into a mailbox.
    #[must_use]
    pub fn fate(&self, put: Put) -> Option<BoxFate> {
        self.0.get(put.mailbox)?.sent.get(put.number).map(|message| message.fate)
    }
}

/// A message that a server put into a mailbox: the place of the mailbox among those of the host
/// that are watched, and the number of the message there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Put {
    mailbox: usize,
    number: usize,
}

/// Hears the mailboxes of a host that flows begin and end at.
#[derive(Clone, Default, Debug)]
pub struct BoxEars {
    pub logs: BoxLogs,
    /// The process whose thread may call next.
    caller: u16,
    /// The call since the last look: the mailbox, and whether a message was sent to it.
    call: Option<(usize, bool)>,
    /// The message that a server put into a mailbox last, if nobody asked for it.
    put: Option<Put>,
}

impl BoxEars {
    /// Returns the ears of a host. The settings of its servers say which mailboxes they are.
    #[must_use]
    pub fn of(system: &System) -> BoxEars {
        let mut logs: Vec<BoxLog> = Vec::new();
        let number = |key: Key| {
            let place = system.mailboxes.iter().position(|it| Key::new(&it.name) == key)?;
            u16::try_from(place).ok()
        };
        let servers = (0u16..).zip(&system.processes).filter(|(_, it)| it.program == PROGRAM);
        for (server, process) in servers {
            let boxes: Vec<BoxName> = BoxName::all(process.setting(MAILBOXES)).collect();
            for way in LinkRoute::all(process.setting(ROUTES)) {
                let (mailbox, flow) = match (way.from, way.to) {
                    (Gate::Mailbox(from), _) => {
                        (from, Some(u32::from(way.label).saturating_sub(1)))
                    }
                    (_, Gate::Mailbox(to)) => (to, None),
                    _ => continue,
                };
                let mailbox = boxes.get(mailbox).and_then(|it| number(it.mailbox));
                let Some(number) = mailbox else { continue };
                if logs.iter().all(|log| log.number != number) {
                    logs.push(BoxLog::new(number, server, flow));
                }
            }
        }
        BoxEars { logs: BoxLogs(logs), ..BoxEars::default() }
    }

    /// The core was entered.
    pub fn entry(&mut self, entry: &Entry) {
        if !matches!(entry.kind, EntryKind::Quick | EntryKind::Syscall) {
            return;
        }
        let [handle, _, _, priority, deadline] = entry.arguments;
        let sends = entry.detail == CallNumber::MboxSend as u16;
        if !sends && entry.detail != CallNumber::MboxReceive as u16 {
            return;
        }
        // The lowest bits of a handle are the number of what it names.
        let found = self.logs.0.iter().position(|log| log.number == handle as u16);
        let Some(mailbox) = found else { return };
        self.call = Some((mailbox, sends));
        if sends {
            let log = &mut self.logs.0[mailbox];
            let number = log.send(self.caller, priority as u32, Nanos(deadline));
            if log.flow.is_none() && log.server == self.caller {
                self.put = Some(Put { mailbox, number });
            }
        }
    }

    /// The processor is between two steps, at the time `now` of the world.
    pub fn look(&mut self, glance: &Glance<'_, '_>, now: Nanos) {
        if self.logs.0.is_empty() {
            return;
        }
        let kernel = glance.kernel;
        let call = self.call.take();
        for (place, log) in self.logs.0.iter_mut().enumerate() {
            let call = call.filter(|(mailbox, _)| *mailbox == place).map(|(_, sends)| sends);
            if call == Some(true)
                && let Some(last) = log.sent.last_mut()
            {
                last.from = now;
            }
            if let Some(state) = kernel.mailbox_state(log.number) {
                log.settle(call, state);
            }
        }
        if glance.running.is_some() {
            self.caller = kernel.threads[glance.running].process.index();
        }
    }

    /// A message of a flow was given to a link.
    pub fn given(&mut self, flow: u32, link: usize, number: usize) {
        let log = self.logs.0.iter_mut().find(|log| log.flow == Some(flow));
        let Some(log) = log else { return };
        if let Some(message) = log.pending.take() {
            log.sent[message].fate = BoxFate::Given(link, number);
        }
    }

    /// Returns the message that a server put into a mailbox since this was asked last.
    pub fn take_put(&mut self) -> Option<Put> {
        self.put.take()
    }

    /// The host has power again: what its memory held is lost.
    pub fn forget(&mut self) {
        (self.put, self.call) = (None, None);
        self.logs.0.iter_mut().for_each(BoxLog::forget);
    }
}

impl BoxLog {
    fn new(number: u16, server: u16, flow: Option<u32>) -> BoxLog {
        BoxLog {
            number,
            server,
            flow,
            sent: Vec::new(),
            held: Vec::new(),
            waiting: Vec::new(),
            pending: None,
            state: MailboxState::default(),
        }
    }

    /// Notes a message that a process sends, and returns its number.
    fn send(&mut self, caller: u16, priority: u32, deadline: Nanos) -> usize {
        let number = self.sent.len();
        let fate = match () {
            () if self.state.takes => {
                self.held.push(number);
                BoxFate::Waits
            }
            () if deadline == Nanos::ZERO => BoxFate::Full,
            () => {
                self.waiting.push(number);
                BoxFate::Waits
            }
        };
        let is_of_flow = (caller == self.server) != self.flow.is_some();
        self.sent.push(BoxMessage { fate, from: Nanos::ZERO, priority, is_of_flow });
        number
    }

    /// Finds out what left the mailbox and what came into it, from its state now. `call` says
    /// whether a call since the last state sent a message, or received one.
    fn settle(&mut self, call: Option<bool>, state: MailboxState) {
        let receives = call == Some(false);
        let freed = self.waiting.len().saturating_sub(state.senders);
        let admitted = if receives { freed } else { 0 };
        let left = (self.held.len() + admitted).saturating_sub(state.messages);
        for _ in 0..left {
            let Some(number) = self.first() else { break };
            // Without a call the mailbox itself has gone.
            self.take(number, if call.is_some() { BoxFate::Taken } else { BoxFate::Gone });
        }
        for number in self.waiting.drain(..freed) {
            match receives {
                true => self.held.push(number),
                // It waited for as long as it wanted to.
                false => self.sent[number].fate = BoxFate::Full,
            }
        }
        self.state = state;
    }

    /// Removes the message that the kernel hands out next.
    fn first(&mut self) -> Option<usize> {
        let urgency = |number: usize| (std::cmp::Reverse(self.sent[number].priority), number);
        let places = 0..self.held.len();
        let first = places.min_by_key(|place| urgency(self.held[*place]))?;
        Some(self.held.remove(first))
    }

    fn take(&mut self, number: usize, fate: BoxFate) {
        self.sent[number].fate = fate;
        if self.flow.is_some()
            && fate == BoxFate::Taken
            && let Some(before) = self.pending.replace(number)
        {
            self.sent[before].fate = BoxFate::Dropped;
        }
    }

    fn forget(&mut self) {
        let lost = self.held.drain(..).chain(self.waiting.drain(..)).chain(self.pending.take());
        lost.for_each(|number| self.sent[number].fate = BoxFate::Gone);
        self.state = MailboxState::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(messages: usize, takes: bool, senders: usize) -> MailboxState {
        MailboxState { messages, takes, senders }
    }

    /// Two find room, one finds none, and one waits until the server takes the most urgent. The
    /// server drops that one, and the host loses its power with the others.
    #[test]
    fn every_message_has_a_fate() {
        let mut log = BoxLog::new(0, 7, Some(3));
        log.settle(None, state(0, true, 0));
        log.send(1, 0, Nanos::ZERO);
        log.settle(Some(true), state(1, true, 0));
        log.send(1, 5, Nanos::ZERO);
        log.settle(Some(true), state(2, false, 0));
        log.send(1, 0, Nanos::ZERO);
        log.settle(Some(true), state(2, false, 0));
        log.send(1, 9, Nanos(50));
        log.settle(Some(true), state(2, false, 1));
        log.settle(Some(false), state(2, false, 0));
        let fates = |log: &BoxLog| log.sent.iter().map(|it| it.fate).collect::<Vec<_>>();
        use BoxFate::{Dropped, Full, Gone, Taken, Waits};
        assert_eq!(fates(&log), [Waits, Taken, Full, Waits]);
        log.settle(Some(false), state(1, true, 0));
        assert_eq!(fates(&log), [Waits, Dropped, Full, Taken]);
        log.forget();
        assert_eq!(fates(&log), [Gone, Dropped, Full, Gone]);
    }

    #[test]
    fn a_receiver_that_waits_has_a_message_at_once() {
        let mut log = BoxLog::new(0, 7, None);
        log.settle(None, state(0, true, 0));
        log.send(7, 0, Nanos::ZERO);
        log.settle(Some(true), state(0, true, 0));
        // Another program than the server fills the mailbox: that is no message of a flow.
        log.send(1, 0, Nanos::ZERO);
        assert_eq!(log.sent[0].fate, BoxFate::Taken);
        assert_eq!(log.sent.iter().map(|it| it.is_of_flow).collect::<Vec<_>>(), [true, false]);
        // A message whose sender waits no longer.
        log.settle(Some(true), state(1, false, 0));
        log.send(7, 0, Nanos(9));
        log.settle(Some(true), state(1, false, 1));
        log.settle(None, state(1, false, 0));
        assert_eq!(log.sent[2].fate, BoxFate::Full);
    }
}

//! The endpoint of any device that a description has a pipe to: packets of a writer to that device,
//! in their order. Each has one answer, in the same order.
//!
//! The server holds a writer to the contract of its pipe: a packet that comes too soon waits until
//! it is due, and so do those behind it. A writer that writes more finds its pipe full.

use super::clients::Clients;
use super::endpoint::reserved;
use super::judged::Judge;
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use crate::told::Pipes;
use alloc::collections::VecDeque;
use diapason_abi::{Errno, Nanos};
use diapason_contract::sensor::PACKET;
use diapason_contract::sink::{
    ANSWERS, DONE, FAILED, GONE, NONSENSE, PacketAnswer, PacketWrite, RECORDS, UNDER_WAY, WRITES,
};
use diapason_contract::threads::ServiceKind;
use diapason_pipe::{Reader, Writer};
use diapason_usb::class::sink::{self, PacketSink, SinkEvent};
use diapason_usb::xhci::EndpointPlan;

// The plan counts packets of this size.
const _: () = assert!(PACKET == sink::PACKET);
// The plan counts as many packets under way as there can be.
const _: () = assert!(UNDER_WAY == sink::DEPTH);

/// A packet that the device is to have.
#[derive(Clone, Copy)]
struct Begun {
    written: u64,
    taken: Nanos,
    /// It came too soon for its pipe.
    outside: bool,
    /// It was none, and the device does not get it.
    is_nonsense: bool,
}

/// A packet that came too soon, and when it is due.
struct Early {
    packet: PacketWrite,
    due: Nanos,
}

/// The service for one endpoint of a device.
pub(crate) struct Sink<P: Platform> {
    number: u8,
    writes: Reader<'static, PacketWrite, RECORDS>,
    answers: Writer<'static, PacketAnswer, RECORDS>,
    clients: Clients<P::Memory>,
    judge: Judge,
    begun: VecDeque<Begun>,
    early: Option<Early>,
}

impl<P: Platform> Sink<P> {
    /// Returns the service without a device.
    ///
    /// # Errors
    /// A pipe is not there.
    pub fn new(platform: &P, pipes: &Pipes) -> Result<Sink<P>, Errno> {
        Ok(Sink {
            number: pipes.sink,
            writes: platform.reader(WRITES)?,
            answers: platform.writer(ANSWERS)?,
            clients: Clients::new(),
            judge: Judge::new(ServiceKind::Sinks, pipes),
            begun: VecDeque::with_capacity(1 + UNDER_WAY),
            early: None,
        })
    }

    /// Returns the number of the endpoint; 0 of none.
    pub const fn number(&self) -> u8 {
        self.number
    }

    fn answer(&mut self, begun: Begun, status: u32, now: Nanos) {
        let Begun { written, taken, outside, is_nonsense } = begun;
        let status = if is_nonsense { NONSENSE } else { status };
        let (taken, ended, outside) = (taken.0, now.0, outside.into());
        // A writer that lets more answers wait than there is room for loses some.
        let _ = self.answers.push(&PacketAnswer { written, taken, ended, status, outside });
        self.clients.ring(1);
    }

    /// Answers the oldest packet of those that the device was to have: it has ended.
    fn end(&mut self, status: u32, now: Nanos) {
        if let Some(begun) = self.begun.pop_front() {
            self.answer(begun, status, now);
        }
        self.settle(now);
    }

    /// Answers those that are not for the device and have none before them.
    fn settle(&mut self, now: Nanos) {
        while let Some(begun) = self.begun.pop_front_if(|begun| begun.is_nonsense) {
            self.answer(begun, NONSENSE, now);
        }
    }

    /// Returns the packet that goes next, if one is due, and whether it came too soon.
    fn next(&mut self, now: Nanos) -> Option<(PacketWrite, bool)> {
        if let Some(early) = self.early.take_if(|early| now >= early.due) {
            self.judge.judge_at(Some(now), early.packet.length, now);
            return Some((early.packet, true));
        }
        if self.early.is_some() {
            return None;
        }
        let packet = self.writes.pop()?;
        let written = Nanos(packet.written);
        let judged = self.judge.judge_at(Some(written.min(now)), packet.length, now);
        let outside = judged.outside || written > now;
        match self.judge.opens().filter(|due| judged.outside && *due > now) {
            Some(due) => {
                self.early = Some(Early { packet, due });
                None
            }
            None => Some((packet, outside)),
        }
    }

    /// Returns whether one more packet may be under way.
    fn has_room(&self) -> bool {
        self.begun.len() < UNDER_WAY
    }

    /// Hands a packet over to the class.
    fn begin(
        &mut self,
        class: &mut PacketSink,
        (packet, outside): (&PacketWrite, bool),
        now: Nanos,
    ) {
        let bytes = packet.data.get(..packet.length as usize);
        let is_nonsense = !bytes.is_some_and(|bytes| class.write(bytes));
        self.begun.push_back(Begun { written: packet.written, taken: now, outside, is_nonsense });
        self.settle(now);
    }
}

impl<P: Platform> Kind<P> for Sink<P> {
    type Class = PacketSink;

    const NAME: &'static str = "an endpoint that is written to";
    const MEMORY: &'static [Shape] = &[Shape { bytes: PACKET, count: UNDER_WAY as u8 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<PacketSink> {
        PacketSink::find(&found.set, self.number)
    }

    fn plan(&self, usual: EndpointPlan) -> EndpointPlan {
        reserved(usual, self.number)
    }

    fn hear(&mut self, event: SinkEvent, now: Nanos) -> Next {
        match event {
            SinkEvent::Opened => log!(P, "endpoint {}: open to be written", self.number),
            SinkEvent::Written => self.end(DONE, now),
            SinkEvent::Lost => self.end(FAILED, now),
            SinkEvent::Failed => {
                log!(P, "endpoint {}: failed", self.number);
                return Next::End;
            }
        }
        Next::On
    }

    fn attend(&mut self, class: Option<&mut PacketSink>, now: Nanos) {
        let Some(class) = class else {
            // A writer without a device is held to its contract, too: answers at once would let it
            // wake this thread without a pause, and use up what the device needs when it comes.
            while let Some((packet, outside)) = self.next(now) {
                let (written, taken) = (packet.written, now);
                let begun = Begun { written, taken, outside, is_nonsense: false };
                self.answer(begun, GONE, now);
            }
            return;
        };
        while class.has_room() && self.has_room() {
            let Some((packet, outside)) = self.next(now) else { return };
            self.begin(class, (&packet, outside), now);
        }
    }

    fn next_wake(&self) -> Nanos {
        // Until one of those before it has ended, nothing is to be done for the next one.
        let due = self.early.as_ref().filter(|_| self.has_room()).map(|early| early.due);
        due.unwrap_or(Nanos::FOREVER)
    }

    fn forget(&mut self, now: Nanos) {
        while !self.begun.is_empty() {
            self.end(GONE, now);
        }
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}

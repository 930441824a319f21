//! The endpoint of any device that a description has a pipe to: packets of a writer to that device,
//! one after the other.
//!
//! The server holds a writer to the contract of its pipe: a packet that comes too soon waits until
//! it is due, and so do those behind it. A writer that writes more finds its pipe full.

use super::clients::Clients;
use super::judged::Judge;
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use crate::told::Pipes;
use diapason_abi::{Errno, Nanos};
use diapason_bus::Criticality;
use diapason_contract::sensor::PACKET;
use diapason_contract::sink::{
    ANSWERS, DONE, FAILED, GONE, NONSENSE, PacketAnswer, PacketWrite, RECORDS, WRITES,
};
use diapason_contract::threads::ServiceKind;
use diapason_pipe::{Reader, Writer};
use diapason_usb::class::sink::{self, PacketSink, SinkEvent};
use diapason_usb::xhci::EndpointPlan;

// The plan counts packets of this size.
const _: () = assert!(PACKET == sink::PACKET);

/// A packet that the device is to have.
#[derive(Clone, Copy)]
struct Begun {
    written: u64,
    taken: Nanos,
    /// It came too soon for its pipe.
    outside: bool,
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
    begun: Option<Begun>,
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
            begun: None,
            early: None,
        })
    }

    fn answer(&mut self, begun: Begun, status: u32, now: Nanos) {
        let Begun { written, taken, outside } = begun;
        let (taken, ended, outside) = (taken.0, now.0, outside.into());
        // A writer that lets more answers wait than there is room for loses some.
        let _ = self.answers.push(&PacketAnswer { written, taken, ended, status, outside });
        self.clients.ring(1);
    }

    /// The packet that the device was to have has ended.
    fn end(&mut self, status: u32, now: Nanos) {
        if let Some(begun) = self.begun.take() {
            self.answer(begun, status, now);
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

    /// Takes the packet that waits longest, whether it is due or not.
    fn waiting(&mut self) -> Option<PacketWrite> {
        let early = self.early.take().map(|early| early.packet);
        early.or_else(|| self.writes.pop())
    }

    /// Hands a packet over to the class.
    fn begin(
        &mut self,
        class: &mut PacketSink,
        (packet, outside): (&PacketWrite, bool),
        now: Nanos,
    ) {
        let begun = Begun { written: packet.written, taken: now, outside };
        let bytes = packet.data.get(..packet.length as usize);
        match bytes.is_some_and(|bytes| class.write(bytes)) {
            true => self.begun = Some(begun),
            false => self.answer(begun, NONSENSE, now),
        }
    }
}

impl<P: Platform> Kind<P> for Sink<P> {
    type Class = PacketSink;

    const NAME: &'static str = "an endpoint that is written to";
    const MEMORY: &'static [Shape] = &[Shape { bytes: PACKET, count: 1 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<PacketSink> {
        PacketSink::find(&found.set, self.number)
    }

    fn plan(&self, usual: EndpointPlan) -> EndpointPlan {
        // Its bill says how often it is served. No device that comes later may change that.
        let is_written = usual.endpoint.address == self.number;
        let criticality = if is_written { Criticality::High } else { usual.criticality };
        EndpointPlan { criticality, ..usual }
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
            while let Some(packet) = self.waiting() {
                let begun = Begun { written: packet.written, taken: now, outside: false };
                self.answer(begun, GONE, now);
            }
            return;
        };
        while class.is_idle() {
            let Some((packet, outside)) = self.next(now) else { return };
            self.begin(class, (&packet, outside), now);
        }
    }

    fn next_wake(&self) -> Nanos {
        // Until the device has the packet before it, nothing is to be done for the next one.
        let due = self.early.as_ref().filter(|_| self.begun.is_none()).map(|early| early.due);
        due.unwrap_or(Nanos::FOREVER)
    }

    fn forget(&mut self, now: Nanos) {
        self.end(GONE, now);
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}

//! Sensors on a serial line (CDC-ACM): packets to a pipe.

use super::clients::Clients;
use super::judged::{Judge, Judged};
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use crate::told::Pipes;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::sensor::{LOST_BEFORE, OUTSIDE, PACKET, PACKETS, Packet, QUEUED, RECORDS};
use diapason_contract::threads::ServiceKind;
use diapason_pipe::Writer;
use diapason_usb::class::cdc_acm::{CdcAcm, DEPTH, LineCoding, SerialEvent, SerialState};

// The plan counts as many transfers as the driver keeps queued.
const _: () = assert!(QUEUED == DEPTH);

/// The service for sensors.
pub(crate) struct Sensor<P: Platform> {
    packets: Writer<'static, Packet, RECORDS>,
    session: u32,
    judge: Judge,
    lost_before: bool,
    clients: Clients<P::Memory>,
}

impl<P: Platform> Sensor<P> {
    /// Returns the service without a sensor.
    ///
    /// # Errors
    /// The pipe is not there.
    pub fn new(platform: &P, pipes: &Pipes) -> Result<Sensor<P>, Errno> {
        let packets = platform.writer(PACKETS)?;
        let judge = Judge::new(ServiceKind::Sensors, pipes);
        Ok(Sensor { packets, session: 0, judge, lost_before: false, clients: Clients::new() })
    }

    fn push(&mut self, bytes: &[u8], now: Nanos) {
        let length = bytes.len().min(PACKET);
        let mut data = [0; PACKET];
        data[..length].copy_from_slice(&bytes[..length]);
        let Judged { time, moved, outside } = self.judge.judge(bytes, now);
        let narrow = |time: Nanos| u32::try_from(time.0).unwrap_or(u32::MAX);
        let outside = if outside { OUTSIDE } else { 0 };
        let lost = if core::mem::take(&mut self.lost_before) { LOST_BEFORE } else { 0 };
        // A full pipe counts what it drops; its client sees that.
        let _ = self.packets.push(&Packet {
            taken: now.0,
            time: time.0,
            length: length as u32,
            session: self.session,
            moved: narrow(moved.beyond),
            inexact: narrow(moved.inexact),
            flags: outside | lost,
            spare: 0,
            data,
        });
        self.clients.ring(1);
    }
}

impl<P: Platform> Kind<P> for Sensor<P> {
    type Class = CdcAcm;

    const NAME: &'static str = "a serial line";
    const MEMORY: &'static [Shape] = &[
        Shape { bytes: 64, count: 4 },
        Shape { bytes: PACKET, count: 16 },
        Shape { bytes: 4096, count: 1 },
    ];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<CdcAcm> {
        CdcAcm::find(&found.set, LineCoding::new(115_200))
    }

    fn is_message(event: &SerialEvent<'_>) -> bool {
        matches!(event, SerialEvent::Data(_))
    }

    fn hear(&mut self, event: SerialEvent<'_>, now: Nanos) -> Next {
        match event {
            SerialEvent::Opened => {
                self.session = self.session.wrapping_add(1);
                self.judge.restart();
                log!(P, "serial line: open");
            }
            SerialEvent::Data(bytes) => self.push(bytes, now),
            SerialEvent::State(SerialState(state)) if state & SerialState::OVERRUN != 0 => {
                log!(P, "serial line: the device lost something");
                self.lost_before = true;
            }
            SerialEvent::Failed => {
                log!(P, "serial line: failed");
                return Next::End;
            }
            SerialEvent::CodingRefused | SerialEvent::State(_) => {}
        }
        Next::On
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}

//! Sensors on a serial line (CDC-ACM): packets to a pipe.

use super::clients::Clients;
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::sensor::{PACKET, PACKETS, Packet, RECORDS};
use diapason_pipe::Writer;
use diapason_usb::class::cdc_acm::{CdcAcm, Event, LineCoding, SerialState};

/// The service for sensors.
pub(crate) struct Sensor<P: Platform> {
    packets: Writer<'static, Packet, RECORDS>,
    session: u32,
    clients: Clients<P::Memory>,
}

impl<P: Platform> Sensor<P> {
    /// Returns the service without a sensor.
    ///
    /// # Errors
    /// The pipe is not there.
    pub fn new(platform: &P) -> Result<Sensor<P>, Errno> {
        let packets = platform.writer(PACKETS)?;
        Ok(Sensor { packets, session: 0, clients: Clients::new() })
    }

    fn push(&mut self, bytes: &[u8], now: Nanos) {
        let length = bytes.len().min(PACKET);
        let mut data = [0; PACKET];
        data[..length].copy_from_slice(&bytes[..length]);
        let (taken, length, session) = (now.0, length as u32, self.session);
        // A full pipe counts what it drops; its client sees that.
        let _ = self.packets.push(&Packet { taken, length, session, data });
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

    fn hear(&mut self, event: Event<'_>, now: Nanos) -> Next {
        match event {
            Event::Opened => {
                self.session = self.session.wrapping_add(1);
                log!(P, "serial line: open");
            }
            Event::Data(bytes) => self.push(bytes, now),
            Event::State(SerialState(state)) if state & SerialState::OVERRUN != 0 => {
                log!(P, "serial line: the device lost something");
            }
            Event::Failed => {
                log!(P, "serial line: failed");
                return Next::End;
            }
            Event::CodingRefused | Event::State(_) => {}
        }
        Next::On
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}

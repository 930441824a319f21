//! Sensors on a serial line (CDC-ACM): packets to a pipe.

use super::{Found, Kind, Next};
use crate::platform::{Platform, log};
use crate::slots::Shape;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::sensor::{PACKET, PACKETS, Packet, READY, RECORDS};
use diapason_pipe::Writer;
use diapason_usb::class::cdc_acm::{CdcAcm, Event, LineCoding, SerialState};

/// The service for sensors.
pub struct Sensor {
    packets: Writer<'static, Packet, RECORDS>,
    session: u32,
    fresh: bool,
}

impl Sensor {
    /// Returns the service without a sensor.
    ///
    /// # Errors
    /// The pipe or the semaphore is not there.
    pub fn new(platform: &impl Platform) -> Result<Sensor, Errno> {
        Ok(Sensor { packets: platform.writer(PACKETS)?, session: 0, fresh: false })
    }

    fn push(&mut self, bytes: &[u8], now: Nanos) {
        let length = bytes.len().min(PACKET);
        let mut data = [0; PACKET];
        data[..length].copy_from_slice(&bytes[..length]);
        let (taken, length, session) = (now.0, length as u32, self.session);
        // A full pipe counts what it drops; its client sees that.
        let _ = self.packets.push(&Packet { taken, length, session, data });
        self.fresh = true;
    }
}

impl<P: Platform> Kind<P> for Sensor {
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

    fn bells(&self) -> &[&'static str] {
        &[READY]
    }

    fn take_fresh(&mut self) -> u32 {
        core::mem::take(&mut self.fresh).into()
    }
}

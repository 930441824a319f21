//! Sensors on a serial line (CDC-ACM): packets to a pipe.

use super::clients::Clients;
use super::judged::Judge;
use super::kind::{Kind, Next};
use super::packets::PacketOutlet;
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use crate::told::Pipes;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::sensor::{NAMES, PACKET, QUEUED};
use diapason_contract::threads::ServiceKind;
use diapason_usb::class::cdc_acm::{CdcAcm, DEPTH, LineCoding, SerialEvent, SerialState};

// The plan counts as many transfers as the driver keeps queued.
const _: () = assert!(QUEUED == DEPTH);

/// The service for sensors.
pub(crate) struct Sensor<P: Platform> {
    outlet: PacketOutlet<P>,
}

impl<P: Platform> Sensor<P> {
    /// Returns the service of a seat without its sensor.
    ///
    /// # Errors
    /// The pipe is not there.
    pub fn new(platform: &P, seat: usize, pipes: &Pipes) -> Result<Sensor<P>, Errno> {
        let judge = Judge::seated(ServiceKind::Sensors, seat, pipes);
        let outlet = PacketOutlet::new(platform, NAMES[seat].packets, judge)?;
        Ok(Sensor { outlet })
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
                self.outlet.restart();
                log!(P, "serial line: open");
            }
            SerialEvent::Data(bytes) => self.outlet.push(bytes, now),
            SerialEvent::State(SerialState(state)) if state & SerialState::OVERRUN != 0 => {
                log!(P, "serial line: the device lost something");
                self.outlet.lost();
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
        Some(&mut self.outlet.clients)
    }
}

//! A servo drive: one device that takes set points as an [`Actuator`] takes packets, and sends
//! positions as an [`Instrument`] sends them.

use crate::actuator::{self, Actuator, ActuatorManner, Noted};
use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::instrument::{self, Instrument, descriptors};
use diapason_abi::Nanos;
use diapason_usb::{Setup, Speed};

/// A model of a servo drive. Both parts have its descriptors and hear each of its requests.
#[derive(Clone, Debug)]
pub struct Servo {
    takes: Actuator,
    sends: Instrument,
}

impl Default for Servo {
    /// Returns a drive that takes each set point at once and has a position every
    /// [`instrument::PERIOD`].
    fn default() -> Servo {
        Servo::new(instrument::PERIOD, Nanos::ZERO)
    }
}

impl Servo {
    /// Returns a drive with a position each `period`. It has room for a set point `takes` after
    /// that was offered.
    #[must_use]
    pub fn new(period: Nanos, takes: Nanos) -> Servo {
        let ends =
            [[actuator::INTERRUPT, actuator::BULK], [instrument::INTERRUPT, instrument::BULK]];
        let all = descriptors((0x0004, "Servo"), &ends);
        Servo { takes: Actuator::of(all.clone(), takes), sends: Instrument::of(all, period) }
    }

    /// Returns it with this manner of treating set points.
    #[must_use]
    pub fn with(self, manner: ActuatorManner) -> Servo {
        Servo { takes: self.takes.with(manner), ..self }
    }

    /// Returns the set points that it notes.
    #[must_use]
    pub fn noted(&self) -> Noted {
        self.takes.noted()
    }
}

impl UsbDevice for Servo {
    fn speed(&self) -> Speed {
        Speed::High
    }

    fn reset(&mut self, now: Nanos) {
        self.takes.reset(now);
        self.sends.reset(now);
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        // Only the part that takes packets halts its endpoints, so its state is that of the drive.
        let _ = self.sends.control(now, setup, data);
        self.takes.control(now, setup, data)
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        self.takes.receive(now, endpoint, packet)
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        self.sends.send(now, endpoint, packet)
    }

    fn next_change(&self) -> Nanos {
        self.takes.next_change().min(self.sends.next_change())
    }

    fn advance(&mut self, now: Nanos) {
        self.takes.advance(now);
        self.sends.advance(now);
    }
}

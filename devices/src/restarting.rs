//! A device that leaves its bus and comes back when its host says so, as devices do that begin with
//! new firmware. So a script of a host pulls it at a point of the script and not of time, on any
//! controller.

use crate::device::{Answer, Handshake, Stall, UsbDevice};
use diapason_abi::Nanos;
use diapason_usb::{Setup, Speed};

/// The vendor's request to restart. Its value is the time in ms for which the device is away.
pub const RESTART: (u8, u8) = (0x40, 0xde);

/// The device answers the request, and leaves so much later.
const LEAVES: Nanos = Nanos::from_millis(5);

/// A device that knows the request besides its own.
pub struct Restarting<D> {
    device: D,
    /// When it leaves and comes back, if that is to come or not over.
    away: Option<(Nanos, Nanos)>,
    is_there: bool,
}

impl<D: UsbDevice> Restarting<D> {
    /// Returns a device that is plugged in.
    #[must_use]
    pub fn new(device: D) -> Restarting<D> {
        Restarting { device, away: None, is_there: true }
    }
}

impl<D: UsbDevice> UsbDevice for Restarting<D> {
    fn speed(&self) -> Speed {
        self.device.speed()
    }

    fn reset(&mut self, now: Nanos) {
        self.device.reset(now);
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        if (setup.kind, setup.request, setup.length) != (RESTART.0, RESTART.1, 0) {
            return self.device.control(now, setup, data);
        }
        let leaves = now + LEAVES;
        self.away = Some((leaves, leaves + Nanos::from_millis(setup.value.into())));
        Ok(Vec::new())
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        self.device.receive(now, endpoint, packet)
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        self.device.send(now, endpoint, packet)
    }

    fn next_change(&self) -> Nanos {
        let own = match self.away {
            Some((_, back)) if !self.is_there => back,
            Some((leaves, _)) => leaves,
            None => Nanos::FOREVER,
        };
        own.min(self.device.next_change())
    }

    fn advance(&mut self, now: Nanos) {
        self.device.advance(now);
        let Some((leaves, back)) = self.away else { return };
        self.is_there = now < leaves || now >= back;
        if now >= back {
            self.away = None;
        }
    }

    fn is_there(&self) -> bool {
        self.is_there && self.device.is_there()
    }

    fn unplugged(&mut self, now: Nanos) {
        self.device.unplugged(now);
    }

    fn child(&mut self, port: u8) -> Option<&mut dyn UsbDevice> {
        self.device.child(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;

    #[test]
    fn it_leaves_after_the_answer_and_comes_back() {
        let mut disk = Restarting::new(Disk::new(8));
        let setup = Setup { kind: RESTART.0, request: RESTART.1, value: 20, ..Setup::default() };
        assert_eq!(disk.control(Nanos::from_millis(1), setup, &[]), Ok(Vec::new()));
        let seen = [5, 6, 25, 26].map(|ms| {
            let next = disk.next_change();
            disk.advance(Nanos::from_millis(ms));
            (next, disk.is_there())
        });
        let [leaves, back] = [6, 26].map(Nanos::from_millis);
        let end = Nanos::FOREVER;
        assert_eq!(seen, [(leaves, true), (leaves, false), (back, false), (back, true)]);
        assert_eq!(disk.next_change(), end);
    }
}

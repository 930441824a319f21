//! The interface between every device model and its bus.

use diapason_abi::Nanos;
use diapason_usb::{Setup, Speed};

/// The device does not do that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall;

/// A device's answer to a packet that it received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handshake {
    Ack,
    /// Not now: ask again, nothing was taken.
    Nak,
    /// The endpoint is halted.
    Stall,
    /// Nothing, or something damaged.
    Error,
}

/// A device's answer to a request for a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The number of bytes of the packet; more than its length means that the device
    /// babbles (the buffer is full, the rest is lost).
    Data(usize),
    /// Not now: ask again.
    Nak,
    /// The endpoint is halted.
    Stall,
    /// Nothing, or something damaged.
    Error,
}

impl Answer {
    /// `bytes` as a packet in `buffer`; more than it holds is babble.
    #[must_use]
    pub fn packet(buffer: &mut [u8], bytes: &[u8]) -> Answer {
        for (to, from) in buffer.iter_mut().zip(bytes) {
            *to = *from;
        }
        Answer::Data(bytes.len())
    }
}

/// A device on a bus.
///
/// Time never goes backwards from one call to the next. Between calls nothing happens: the driver
/// of the device calls [`UsbDevice::advance`] no later than [`UsbDevice::next_change`] says.
/// Devices that share something (a CAN bus, a cable) may bring each other's next change forward, so
/// it is asked for again after each call.
pub trait UsbDevice {
    /// Returns how fast its link is.
    fn speed(&self) -> Speed;

    /// A reset of its port: the state of a device that was just plugged in.
    fn reset(&mut self, now: Nanos);

    /// A whole control transfer. `data` is what came with it; the answer (at most `setup.length`
    /// bytes) is empty unless the data stage goes to the host.
    ///
    /// # Errors
    /// A request the device does not do.
    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall>;

    /// A packet for the endpoint with this address.
    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake;

    /// A packet is wanted from the endpoint with this address, as long as `packet` at most.
    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer;

    /// Returns when something changes by itself: an endpoint that said [`Answer::Nak`] may have
    /// data from then on. [`Nanos::FOREVER`] if nothing will.
    fn next_change(&self) -> Nanos;

    fn advance(&mut self, now: Nanos);

    /// Returns whether a port notices it. A device behind a cable may be switched off.
    fn is_there(&self) -> bool {
        true
    }

    /// It is pulled out of its port. A device behind a cable lets its other end know.
    fn unplugged(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Returns the device at a port, from 1, of a hub whose port is enabled.
    fn child(&mut self, port: u8) -> Option<&mut dyn UsbDevice> {
        let _ = port;
        None
    }
}

/// A box of a device is a device, so that wrappers take boxes, too.
impl<D: UsbDevice + ?Sized> UsbDevice for Box<D> {
    fn speed(&self) -> Speed {
        (**self).speed()
    }

    fn reset(&mut self, now: Nanos) {
        (**self).reset(now);
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        (**self).control(now, setup, data)
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        (**self).receive(now, endpoint, packet)
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        (**self).send(now, endpoint, packet)
    }

    fn next_change(&self) -> Nanos {
        (**self).next_change()
    }

    fn advance(&mut self, now: Nanos) {
        (**self).advance(now);
    }

    fn is_there(&self) -> bool {
        (**self).is_there()
    }

    fn unplugged(&mut self, now: Nanos) {
        (**self).unplugged(now);
    }

    fn child(&mut self, port: u8) -> Option<&mut dyn UsbDevice> {
        (**self).child(port)
    }
}

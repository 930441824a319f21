//! What every device model is to its bus.

use diapason_abi::Nanos;
use diapason_usb::{Setup, Speed};

/// The device does not do that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall;

/// What a device says to a packet it got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handshake {
    /// Taken.
    Ack,
    /// Not now: ask again, nothing was taken.
    Nak,
    /// The endpoint is halted.
    Stall,
    /// Nothing, or something damaged.
    Error,
}

/// What a device says when it is asked for a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// So many bytes of the buffer are a packet; more than its length means that the device
    /// babbles (the buffer is full, the rest is lost).
    Data(usize),
    /// Not now: ask again.
    Nak,
    /// The endpoint is halted.
    Stall,
    /// Nothing, or something damaged.
    Error,
}

/// A device on a bus.
///
/// Time never goes backwards from one call to the next. Between calls nothing happens: whoever
/// drives the device calls [`Device::advance`] no later than [`Device::next_change`] says.
pub trait Device {
    /// How fast its link is.
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

    /// When something changes by itself: an endpoint that said [`Answer::Nak`] may have data from
    /// then on. [`Nanos::FOREVER`] if nothing will.
    fn next_change(&self) -> Nanos;

    /// Let time pass.
    fn advance(&mut self, now: Nanos);

    /// What is plugged into a port of it, from 1, if it is a hub whose port is enabled.
    fn child(&mut self, port: u8) -> Option<&mut dyn Device> {
        let _ = port;
        None
    }
}

//! A channel at another bit rate than its bus. It understands nothing that it hears, and nobody
//! understands what it sends.

use super::CanPlug;

/// Receive errors of a controller that is error-passive.
const PASSIVE_FROM: u16 = 128;

/// The errors that such a channel heard, as far as its controller counts them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mistuned(u16);

impl Mistuned {
    /// Returns that of a channel with this bit rate; none if it is that of the bus.
    pub fn at(hertz: u32, plug: &CanPlug) -> Option<Mistuned> {
        (plug.rate().hertz() != hertz).then_some(Mistuned(0))
    }

    /// Notes that another's frame went by, which is an error here. Returns whether it makes the
    /// controller error-passive.
    pub fn hear(&mut self) -> bool {
        let was_passive = self.is_passive();
        self.0 = (self.0 + 1).min(PASSIVE_FROM);
        self.is_passive() && !was_passive
    }

    /// Returns whether the controller is error-passive.
    pub fn is_passive(self) -> bool {
        self.0 >= PASSIVE_FROM
    }

    /// Returns the receive errors.
    pub fn errors(self) -> u8 {
        self.0 as u8
    }
}

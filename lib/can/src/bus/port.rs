//! One node seen through the `embedded-can` traits, as a driver's code sees its controller. The
//! traits have classic frames only: through them a port drops frames of CAN FD.

use super::queue::Request;
use super::{Bus, NodeId, SendRefusal, Ticket};
use crate::fd::AnyFrame;
use crate::frame::CanFrame;
use diapason_abi::Nanos;
use embedded_can::{ErrorKind, nb::Can};

/// A node at one instant. Its inbox must have room: see [`super::NodeSetup::inbox`].
pub struct Port<'a> {
    bus: &'a mut Bus,
    node: NodeId,
    now: Nanos,
}

/// Why a port refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortError {
    /// Frames were lost after those received so far: the inbox was full.
    Overrun,
    /// The node cannot send.
    Refused(SendRefusal),
}

impl embedded_can::Error for PortError {
    fn kind(&self) -> ErrorKind {
        match self {
            PortError::Overrun => ErrorKind::Overrun,
            PortError::Refused(_) => ErrorKind::Other,
        }
    }
}

impl Bus {
    /// Returns the port of `node` at `now`.
    pub fn port(&mut self, now: Nanos, node: NodeId) -> Port<'_> {
        Port { bus: self, node, now }
    }

    /// Makes room for `frame` at the cost of the least urgent request, if that is less urgent.
    fn displace(&mut self, node: NodeId, frame: &CanFrame) -> Option<Request> {
        self.land_or_walk();
        let node = self.nodes.get_mut(node.0)?;
        let busy = node.sending.as_ref().and_then(|sending| sending.request.ticket);
        let least = node.queue.least(busy)?;
        let ticket: Ticket = least.ticket?;
        if least.frame.priority() <= AnyFrame::from(*frame).priority() {
            return None;
        }
        node.queue.remove(ticket)
    }
}

impl Can for Port<'_> {
    type Frame = CanFrame;
    type Error = PortError;

    fn transmit(&mut self, frame: &CanFrame) -> Result<Option<CanFrame>, nb::Error<PortError>> {
        let refused = |refusal| nb::Error::Other(PortError::Refused(refusal));
        match self.bus.send(self.now, self.node, *frame) {
            Ok(_) => Ok(None),
            Err(SendRefusal::QueueFull { .. }) => {
                let displaced = self.bus.displace(self.node, frame).ok_or(nb::Error::WouldBlock)?;
                self.bus.send(self.now, self.node, *frame).map_err(refused)?;
                Ok(displaced.frame.classic())
            }
            Err(refusal) => Err(refused(refusal)),
        }
    }

    fn receive(&mut self) -> Result<CanFrame, nb::Error<PortError>> {
        loop {
            if let AnyFrame::Classic(frame) = self.receive_any()? {
                return Ok(frame);
            }
        }
    }
}

impl Port<'_> {
    /// Returns the oldest frame of any format that came, as [`Can::receive`] returns the classic
    /// ones.
    ///
    /// # Errors
    /// None came, or some were lost.
    pub fn receive_any(&mut self) -> Result<AnyFrame, nb::Error<PortError>> {
        self.bus.advance(self.now);
        let node = self.bus.nodes.get_mut(self.node.0);
        let node = node.ok_or(nb::Error::Other(PortError::Refused(SendRefusal::Silent)))?;
        if node.overrun && node.inbox.is_empty() {
            node.overrun = false;
            return Err(nb::Error::Other(PortError::Overrun));
        }
        node.inbox.pop_front().ok_or(nb::Error::WouldBlock)
    }
}

//! The socket of the rest as a device of `smoltcp`'s.

use diapason_netlib::{FRAME_MAX, Own, RestSocket};
use diapason_rt::{Errno, Nanos, log};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant;

pub(crate) struct RestDevice {
    socket: RestSocket,
    /// The frame that came last.
    frame: [u8; FRAME_MAX],
}

impl RestDevice {
    /// Returns the device that this socket is.
    pub const fn new(socket: RestSocket) -> RestDevice {
        RestDevice { socket, frame: [0; FRAME_MAX] }
    }

    /// Returns the addresses of the adapter.
    pub const fn own(&self) -> Own {
        self.socket.own()
    }

    /// Waits until a frame comes or `deadline` is there.
    ///
    /// # Errors
    /// Those of waiting, but for the deadline.
    pub fn wait(&mut self, deadline: Nanos) -> Result<(), Errno> {
        self.socket.wait(deadline)
    }
}

impl Device for RestDevice {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sending<'a>;

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_MAX;
        capabilities
    }

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Sending<'_>)> {
        // Without room for an answer the frame waits.
        if !self.socket.has_room() {
            return None;
        }
        let bytes = self.socket.try_recv(&mut self.frame)?;
        Some((Received(self.frame.get(..bytes)?), Sending(&mut self.socket)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        self.socket.has_room().then_some(Sending(&mut self.socket))
    }
}

/// A frame that came.
pub(crate) struct Received<'a>(&'a [u8]);

/// A frame that is about to go; there is room for it.
pub(crate) struct Sending<'a>(&'a mut RestSocket);

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let (result, sent) = self.0.send(length.min(FRAME_MAX), write);
        if let Err(errno) = sent {
            log!("a frame is lost: {errno:?}");
        }
        result
    }
}

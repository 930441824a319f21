//! The connection of one device.

use super::RunError;
use super::socket::{accept, is_gone};
use crate::redirected::{Redirected, Trouble};
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// Most bytes sent at once: they fit into a socket that is empty.
const SEND_MAX: usize = 32 << 10;
/// If so many bytes came at once, the socket may have been full, and QEMU may have more. A socket
/// holds at least a hundred packets, however small.
const MANY: usize = 2 << 10;

/// The reason why reading failed.
pub(crate) enum ReadFailure {
    Io(io::Error),
    Trouble(Trouble),
}

impl ReadFailure {
    /// Returns the failure of the server that this is, for the device with this index.
    pub fn at(self, index: usize, now: Nanos) -> RunError {
        match self {
            ReadFailure::Io(error) => RunError::Io("hear QEMU", error),
            ReadFailure::Trouble(trouble) => RunError::Device(index, now, trouble),
        }
    }
}

/// The connection to the guest's controller.
pub(crate) struct Link(UnixStream);

impl Link {
    /// Accepts the connection of a device, which must come within `patience`.
    pub fn accept(listener: &UnixListener, patience: Duration) -> Result<Link, RunError> {
        let stream = accept(listener, patience)?;
        stream.set_nonblocking(true).map_err(|error| RunError::Io("use a socket", error))?;
        Ok(Link(stream))
    }

    /// Hands all that has come to the device. Returns whether QEMU may have more to send.
    pub fn read<D: UsbDevice + ?Sized>(
        &mut self,
        device: &mut Redirected<D>,
    ) -> Result<bool, ReadFailure> {
        let (mut buffer, mut total) = ([0; 16 << 10], 0);
        loop {
            match self.0.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    total += count;
                    device.receive(&buffer[..count]).map_err(ReadFailure::Trouble)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_gone(&error) => break,
                Err(error) => return Err(ReadFailure::Io(error)),
            }
        }
        Ok(total >= MANY || device.is_partial())
    }

    /// Sends from the front of `bytes`. Returns whether anything went or will go.
    pub fn write(&mut self, bytes: &mut Vec<u8>) -> Result<bool, RunError> {
        if bytes.is_empty() {
            return Ok(false);
        }
        match self.0.write(&bytes[..bytes.len().min(SEND_MAX)]) {
            Ok(count) => {
                bytes.drain(..count);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
            Err(error) if is_gone(&error) => {
                bytes.clear();
                Ok(false)
            }
            Err(error) => Err(RunError::Io("send to QEMU", error)),
        }
    }
}

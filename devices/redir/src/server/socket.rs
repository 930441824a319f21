//! Both kinds of connections wait for the other side, and notice that it is gone.

use super::RunError;
use diapason_abi::Nanos;
use std::io::{self, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// Between two looks whether QEMU has come.
const LOOK: Duration = Duration::from_millis(5);

/// How long QEMU may take to start. One that has ended at once never connects.
const START: Duration = Duration::from_secs(60);

/// Waits for somebody to connect.
pub fn accept(listener: &UnixListener, patience: Duration) -> Result<UnixStream, RunError> {
    let looks = patience.min(START).as_millis() / LOOK.as_millis();
    for _ in 0..=looks {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            Err(error) => return Err(RunError::Io("wait for QEMU", error)),
        }
    }
    Err(RunError::Silent(Nanos::ZERO))
}

/// Returns whether the other side has closed its end.
pub fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

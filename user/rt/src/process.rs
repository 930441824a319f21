//! Other processes: starting and ending them, where the description allows it.

use crate::sys::call1;
use diapason_abi::{CallNumber, Errno, Key};

/// Start a declared process that is not running: one this process may start, or supervises.
///
/// # Errors
/// `Busy` if it runs, `Gone` if its program was refused at boot.
pub fn create(key: Key) -> Result<(), Errno> {
    call1(CallNumber::ProcCreate, key.0).map(|_| ())
}

/// End a process this one supervises.
///
/// # Errors
/// `Gone` if it does not run.
pub fn kill(key: Key) -> Result<(), Errno> {
    call1(CallNumber::ProcKill, key.0).map(|_| ())
}

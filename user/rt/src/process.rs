//! Other processes: starting and ending them, where the description allows it.

use crate::mailbox::{Mailbox, with_buffer};
use crate::sys::{call1, call2};
use diapason_abi::call::PARTIAL;
use diapason_abi::{CallNumber, Errno, FaultReport, Key, MESSAGE_BYTES, Nanos};

/// Starts a declared process that is not running: one this process may start, or supervises.
///
/// # Errors
/// `Busy` if it runs, `Gone` if its program was refused at boot.
pub fn create(key: Key) -> Result<(), Errno> {
    // Each call ends a part of an earlier life of the process, if something of it is left.
    while call2::<{ CallNumber::ProcCreate as u8 }>(key.0, 0)? == PARTIAL {}
    Ok(())
}

/// Starts a process as [`create`] does, then waits for a fault report as
/// [`crate::mailbox::receive_fault`] does: one entry into the kernel instead of two.
///
/// # Errors
/// Those of the former, without waiting; else those of the latter.
pub fn create_and_receive(
    key: Key,
    faults: &Mailbox,
    deadline: Nanos,
) -> Result<FaultReport, Errno> {
    let mut bytes = [0; MESSAGE_BYTES];
    let start = |bytes: &mut _| {
        with_buffer::<{ CallNumber::ProcCreate as u8 }>(bytes, |address| {
            [key.0, faults.raw(), address, deadline.0, 0]
        })
    };
    while start(&mut bytes)? == PARTIAL {}
    FaultReport::from_bytes(&bytes).ok_or(Errno::Gone)
}

/// Ends a process this one supervises.
///
/// # Errors
/// `Gone` if it does not run.
pub fn kill(key: Key) -> Result<(), Errno> {
    call1::<{ CallNumber::ProcKill as u8 }>(key.0).map(|_| ())
}

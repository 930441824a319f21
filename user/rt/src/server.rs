//! Calls to a server that runs in the place of its caller, at the caller's priority and on its
//! budget. The description has a `[[mailbox]]` with a `server`.

use crate::mailbox::Mailbox;
use crate::sys::{call2, call3};
use diapason_abi::call::{MUTEX, NO_HINT};
use diapason_abi::{CallNumber, Errno, Key, MESSAGE_BYTES, Nanos};

/// A mailbox with a server, for those who ask.
#[derive(Clone, Copy, Debug)]
pub struct AskedMailbox(Mailbox);

/// A mailbox that the calling thread serves.
#[derive(Debug)]
pub struct ServedMailbox(Mailbox);

impl AskedMailbox {
    /// Returns the declared mailbox of this name.
    ///
    /// # Errors
    /// None for a mailbox that the description grants; without the grant the process ends.
    pub fn open(name: &str) -> Result<AskedMailbox, Errno> {
        Mailbox::open(name).map(AskedMailbox)
    }

    /// Asks with the first `length` bytes of `buffer`, and waits for the answer in the same buffer:
    /// its length and priority. While the caller waits, the server runs in its place.
    ///
    /// # Errors
    /// `Gone` if nobody serves, or if the server ends or goes on without an answer; `Deadlock` if
    /// the server waits for the caller; `WouldBlock` (deadline zero) or `TimedOut`.
    #[inline(always)]
    pub fn ask_into(
        &self,
        buffer: &mut [u8; MESSAGE_BYTES],
        length: usize,
        priority: u32,
        deadline: Nanos,
    ) -> Result<(usize, u32), Errno> {
        self.0.call_into(buffer, length, priority, &self.0, deadline)
    }
}

impl ServedMailbox {
    /// The calling thread serves the declared mailbox of this name from now on. It holds the mutex
    /// of the mailbox as long as it lives. A process that the description does not name as the
    /// mailbox's `server` ends.
    ///
    /// # Errors
    /// `WouldBlock` if another thread of the process serves it.
    pub fn open(name: &str) -> Result<ServedMailbox, Errno> {
        let mutex = call2::<{ CallNumber::SemCreate as u8 }>(Key::server(name).0, MUTEX)?;
        call3::<{ CallNumber::SemLock as u8 }>(mutex, Nanos::ZERO.0, NO_HINT)?;
        Mailbox::open(name).map(ServedMailbox)
    }

    /// Waits for a request: its length and priority. A request that was taken before and has no
    /// answer ends with `Gone`.
    ///
    /// # Errors
    /// `WouldBlock` (deadline zero) or `TimedOut`.
    #[inline(always)]
    pub fn request_into(
        &self,
        buffer: &mut [u8; MESSAGE_BYTES],
        deadline: Nanos,
    ) -> Result<(usize, u32), Errno> {
        self.0.receive_into(buffer, deadline)
    }

    /// Answers the request that was taken last with the first `length` bytes of `buffer`, and waits
    /// for the next one: its length and priority.
    ///
    /// # Errors
    /// `WouldBlock` (deadline zero) or `TimedOut` (it has passed), having answered nothing;
    /// `TimedOut` if no request comes in time.
    #[inline(always)]
    pub fn answer_into(
        &self,
        buffer: &mut [u8; MESSAGE_BYTES],
        length: usize,
        priority: u32,
        deadline: Nanos,
    ) -> Result<(usize, u32), Errno> {
        self.0.call_into(buffer, length, priority, &self.0, deadline)
    }
}

//! Mailboxes: short messages by priority.

use crate::event::Event;
use crate::hint::Hint;
use crate::sys::{self, call1, call2};
use diapason_abi::call::PARTIAL;
use diapason_abi::{CallNumber, Errno, FaultReport, Key, MESSAGE_BYTES, Nanos, decode_result};

/// A mailbox that the description declares.
#[derive(Clone, Copy, Debug)]
pub struct Mailbox(u64);

/// One message that was received.
pub struct ReceivedMessage {
    bytes: [u8; MESSAGE_BYTES],
    length: usize,
    /// The priority that it was sent with.
    pub priority: u32,
}

impl ReceivedMessage {
    /// Returns the bytes of the message.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }
}

impl Mailbox {
    /// Returns the declared mailbox of this name; the first to ask creates it.
    ///
    /// # Errors
    /// None for a mailbox the description grants; without the grant the process ends.
    pub fn open(name: &str) -> Result<Mailbox, Errno> {
        Mailbox::of(Key::new(name))
    }

    /// Returns the declared mailbox whose name has this key.
    ///
    /// # Errors
    /// As for [`Mailbox::open`].
    pub fn of(key: Key) -> Result<Mailbox, Errno> {
        call2::<{ CallNumber::MboxCreate as u8 }>(key.0, 0).map(Mailbox)
    }

    /// Returns the declared mailbox of this name, which raises `event` at each arrival: a thread
    /// that waits for it is the mailbox's notification routine.
    ///
    /// # Errors
    /// As for [`Mailbox::open`].
    pub fn open_with(name: &str, event: &Event) -> Result<Mailbox, Errno> {
        Mailbox::of_with(Key::new(name), event)
    }

    /// Does what [`Mailbox::open_with`] does, for the mailbox whose name has this key.
    ///
    /// # Errors
    /// As for [`Mailbox::open`].
    pub fn of_with(key: Key, event: &Event) -> Result<Mailbox, Errno> {
        call2::<{ CallNumber::MboxCreate as u8 }>(key.0, event.raw()).map(Mailbox)
    }

    /// Sends up to `MESSAGE_BYTES`, waiting until `deadline` while it is full.
    ///
    /// # Errors
    /// `Full` (deadline zero), `TimedOut` or `Gone`.
    #[inline(always)]
    pub fn send(&self, message: &[u8], priority: u32, deadline: Nanos) -> Result<(), Errno> {
        let (address, length) = (message.as_ptr() as u64, message.len() as u64);
        let priority = u64::from(priority);
        // SAFETY: the kernel reads the slice.
        let sent = unsafe {
            sys::raw5::<{ CallNumber::MboxSend as u8 }>(
                self.0, address, length, priority, deadline.0,
            )
        };
        decode_result(sent).map(|_| ())
    }

    /// Receives the message with the highest priority into `buffer`: its length and priority.
    ///
    /// # Errors
    /// `WouldBlock` (deadline zero), `TimedOut` or `Gone`.
    #[inline(always)]
    pub fn receive_into(
        &self,
        buffer: &mut [u8; MESSAGE_BYTES],
        deadline: Nanos,
    ) -> Result<(usize, u32), Errno> {
        self.receive_into_then(buffer, deadline, Hint::NONE)
    }

    /// Does what [`Mailbox::receive_into`] does. The thread locks `hint` next.
    ///
    /// # Errors
    /// As for [`Mailbox::receive_into`].
    #[inline(always)]
    pub fn receive_into_then(
        &self,
        buffer: &mut [u8; MESSAGE_BYTES],
        deadline: Nanos,
        hint: Hint,
    ) -> Result<(usize, u32), Errno> {
        let (address, hint) = (buffer.as_mut_ptr() as u64, hint.raw());
        // SAFETY: the kernel writes at most the buffer.
        let receipt = decode_result(unsafe {
            sys::raw4::<{ CallNumber::MboxReceive as u8 }>(self.0, address, deadline.0, hint)
        })?;
        Ok(((receipt >> 32) as usize, receipt as u32))
    }

    /// Sends the first `length` bytes of `buffer` without waiting, then waits at `answers` for a
    /// message into the same buffer: its length and priority. One entry into the kernel instead of
    /// two. A client calls so; a server answers so and waits for the next request.
    ///
    /// # Errors Having sent nothing: `Full`, `WouldBlock` (deadline zero, and no message is there)
    /// or `Gone`; `TimedOut` if the deadline has passed. After sending: `TimedOut`, or `Gone` if
    /// `answers` is deleted meanwhile.
    #[inline(always)]
    pub fn call_into(
        &self,
        buffer: &mut [u8; MESSAGE_BYTES],
        length: usize,
        priority: u32,
        answers: &Mailbox,
        deadline: Nanos,
    ) -> Result<(usize, u32), Errno> {
        // A message that is too long stays too long: the kernel refuses it.
        let length = length.min(MESSAGE_BYTES + 1) as u64;
        let what = length << 32 | u64::from(priority);
        let receipt = with_buffer::<{ CallNumber::MboxCall as u8 }>(buffer, |address| {
            [self.0, address, what, answers.0, deadline.0]
        });
        receipt.map(|receipt| ((receipt >> 32) as usize, receipt as u32))
    }

    /// Receives the message with the highest priority.
    ///
    /// # Errors
    /// As for [`Mailbox::receive_into`].
    pub fn receive(&self, deadline: Nanos) -> Result<ReceivedMessage, Errno> {
        self.receive_then(deadline, Hint::NONE)
    }

    /// Does what [`Mailbox::receive`] does. The thread locks `hint` next.
    ///
    /// # Errors
    /// As for [`Mailbox::receive_into`].
    pub fn receive_then(&self, deadline: Nanos, hint: Hint) -> Result<ReceivedMessage, Errno> {
        let mut bytes = [0; MESSAGE_BYTES];
        let (length, priority) = self.receive_into_then(&mut bytes, deadline, hint)?;
        Ok(ReceivedMessage { bytes, length, priority })
    }

    pub(crate) const fn raw(&self) -> u64 {
        self.0
    }

    /// Ends it: everybody who waits gets `Gone`.
    ///
    /// # Errors
    /// `Gone` if it was deleted before, `Busy` if fault reports arrive here.
    pub fn delete(self) -> Result<(), Errno> {
        while call1::<{ CallNumber::MboxDelete as u8 }>(self.0)? == PARTIAL {}
        Ok(())
    }
}

/// Returns a call that receives into a buffer whose address is among its words.
#[inline(always)]
pub(crate) fn with_buffer<const CALL: u8>(
    buffer: &mut [u8; MESSAGE_BYTES],
    words: impl FnOnce(u64) -> [u64; 5],
) -> Result<u64, Errno> {
    let [a, b, c, d, e] = words(buffer.as_mut_ptr() as u64);
    // SAFETY: the kernel reads and writes at most the buffer: no other word of these calls is an
    // address.
    decode_result(unsafe { sys::raw5::<CALL>(a, b, c, d, e) })
}

/// Waits for the next fault report of a supervised process. The mailbox is `NAME.faults`, where
/// NAME is the supervisor's.
///
/// # Errors
/// As for [`Mailbox::receive`]; `Gone` for a message that is no report.
pub fn receive_fault(mailbox: &Mailbox, deadline: Nanos) -> Result<FaultReport, Errno> {
    receive_fault_then(mailbox, deadline, Hint::NONE)
}

/// Does what [`receive_fault`] does. The thread locks `hint` next.
///
/// # Errors
/// As for [`receive_fault`].
pub fn receive_fault_then(
    mailbox: &Mailbox,
    deadline: Nanos,
    hint: Hint,
) -> Result<FaultReport, Errno> {
    let message = mailbox.receive_then(deadline, hint)?;
    FaultReport::from_bytes(&message.bytes).ok_or(Errno::Gone)
}

//! The server's ground: memory, pipes and mailboxes by name, and a log. On the metal these are the
//! kernel's; in tests a program of the host has them.

use core::fmt;
use diapason_abi::{Errno, MESSAGE_BYTES, Nanos};
use diapason_pipe::measured::{Measurement, Reported, Words};
use diapason_pipe::{Reader, Writer};
use diapason_state::Plain;
use diapason_usb::xhci::{Dma, Mmio};

/// The thread that a message in a mailbox wakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wakes {
    /// No thread of the server.
    Nobody,
    /// The one that hears clients of the channels of this interface.
    Sending(usize),
    /// The one that answers questions about tuned pipes.
    Tuning,
}

/// Opens what the description grants, and takes what the server has to say.
pub trait Platform: Sized + 'static {
    /// Registers of the host controller.
    type Registers: Mmio + Clone + Send;
    /// Memory that the host controller reads and writes.
    type Memory: Dma + Clone + Send;
    type Mailbox: MessagePort;
    /// A lock around a value that the server's threads share.
    type Guarded<T: Send + 'static>: Guarded<T>;

    /// Maps the registers of a device.
    ///
    /// # Errors
    /// `Absent` if the machine lacks the device.
    fn registers(&self, device: &str) -> Result<Self::Registers, Errno>;

    /// Attaches memory for devices.
    ///
    /// # Errors
    /// The memory is not there.
    fn memory(&self, name: &str) -> Result<Self::Memory, Errno>;

    /// Opens the writing end of a pipe.
    ///
    /// # Errors
    /// The segment is not there.
    fn writer<T: Plain, const N: usize>(&self, name: &str) -> Result<Writer<'static, T, N>, Errno>;

    /// Opens the reading end of a pipe.
    ///
    /// # Errors
    /// The segment is not there.
    fn reader<T: Plain, const N: usize>(&self, name: &str) -> Result<Reader<'static, T, N>, Errno>;

    /// Opens a mailbox whose messages wake a thread.
    ///
    /// # Errors
    /// The mailbox is not there.
    fn mailbox(&self, name: &str, wakes: Wakes) -> Result<Self::Mailbox, Errno>;

    /// Writes a line to the log.
    fn log(line: fmt::Arguments<'_>);

    /// Writes a record, which the platform knows to be of this process.
    fn measured(words: &Words);

    /// Returns the bytes of the heap that are in use.
    fn heap_used() -> usize;
}

/// Writes a measurement to the records of a platform.
pub(crate) fn report<P: Platform>(at: Nanos, said: Measurement) {
    P::measured(&Reported { at, said }.words());
}

/// A value that one thread at a time may use. A thread that is in one room enters another only in
/// the order of the server: first the server, then a branch.
pub trait Guarded<T> {
    /// Takes a value that nobody uses yet.
    fn new(value: T) -> Self;

    /// Makes the lock, so that entering cannot fail later.
    ///
    /// # Errors
    /// The process has no semaphore left for it.
    fn open(&self) -> Result<(), Errno>;

    /// Uses the value as soon as nobody else does.
    fn enter<R>(&self, act: impl FnOnce(&mut T) -> R) -> R;
}

/// A mailbox of the platform.
pub trait MessagePort: Send {
    /// Takes the next message and returns its bytes; does not wait.
    fn receive(&mut self, into: &mut [u8; MESSAGE_BYTES]) -> Option<usize>;

    /// Sends a message if there is room; does not wait.
    fn send(&mut self, message: &[u8]);
}

/// Processor time of the threads of tuned pipes, each known by its place.
pub trait Reserve {
    /// Sets budget and period of the VCPU of a place.
    ///
    /// # Errors
    /// `Busy` if what others gave back is not free yet, and others if the core has no room.
    fn set(&mut self, place: usize, budget: Nanos, period: Nanos) -> Result<(), Errno>;

    fn now(&mut self) -> Nanos;

    fn rest(&mut self, time: Nanos);
}

/// Writes a line to the log of a platform.
macro_rules! log {
    ($platform:ty, $($line:tt)*) => {
        <$platform as $crate::platform::Platform>::log(format_args!($($line)*))
    };
}
pub(crate) use log;

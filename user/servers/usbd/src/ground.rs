//! The server's ground, as the kernel grants it.

use crate::HEAP;
use alloc::vec::Vec;
use core::fmt;
use diapason_abi::MESSAGE_BYTES;
use diapason_hardware::{Bar, Shared};
use diapason_pipe::measured::Words;
use diapason_pipe::{Reader, Writer};
use diapason_rt::event::Event;
use diapason_rt::locked::Locked;
use diapason_rt::memory::{DmaSegment, Registers};
use diapason_rt::{Errno, Nanos, log, mailbox, pipe, thread};
use diapason_state::Plain;
use diapason_usbd::platform::{Guarded, MessagePort, Platform, Wakes};

/// Opens what the description grants.
pub(crate) struct Ground {
    /// Raised by clients of the channels of each CAN interface, if a thread hears them.
    pub sending: Vec<Option<Event>>,
    /// Raised by questions about tuned pipes, on the thread that answers them.
    pub tuning: Option<Event>,
}

impl Ground {
    /// Returns the ground that the server's threads share; of each CAN interface, whether a thread
    /// hears its clients.
    ///
    /// # Errors
    /// There is no event left.
    pub fn new(hears: impl Iterator<Item = bool>) -> Result<Ground, Errno> {
        let sending = hears.map(|hears| hears.then(Event::new).transpose());
        Ok(Ground { sending: sending.collect::<Result<_, _>>()?, tuning: None })
    }

    /// Returns the ground of the thread that answers questions.
    ///
    /// # Errors
    /// There is no event left.
    pub fn of_tuning() -> Result<Ground, Errno> {
        Ok(Ground { sending: Vec::new(), tuning: Some(Event::new()?) })
    }
}

/// A mailbox of the kernel.
pub(crate) struct Letters(mailbox::Mailbox);

impl MessagePort for Letters {
    fn receive(&mut self, into: &mut [u8; MESSAGE_BYTES]) -> Option<usize> {
        self.0.receive_into(into, Nanos::ZERO).ok().map(|(length, _)| length)
    }

    fn send(&mut self, message: &[u8]) {
        // A client that asks without reading answers gets no more of them.
        let _ = self.0.send(message, 0, Nanos::ZERO);
    }
}

/// A lock of the kernel around a value.
pub(crate) struct Chamber<T>(Locked<T>);

impl<T> Guarded<T> for Chamber<T> {
    fn new(value: T) -> Chamber<T> {
        Chamber(Locked::new(value))
    }

    fn open(&self) -> Result<(), Errno> {
        self.0.lock().map(drop)
    }

    fn enter<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        match self.0.lock() {
            Ok(mut held) => act(&mut held),
            // The lock is there since the start, and threads lock in one order only.
            Err(errno) => {
                log!("a thread of the server ends at a lock: {errno:?}");
                thread::exit(1)
            }
        }
    }
}

impl Platform for Ground {
    type Registers = Bar;
    type Memory = Shared;
    type Mailbox = Letters;
    type Guarded<T: Send + 'static> = Chamber<T>;

    fn registers(&self, device: &str) -> Result<Bar, Errno> {
        Registers::map(device).map(Bar)
    }

    fn memory(&self, name: &str) -> Result<Shared, Errno> {
        DmaSegment::attach(name).map(Shared::new)
    }

    fn writer<T: Plain, const N: usize>(&self, name: &str) -> Result<Writer<'static, T, N>, Errno> {
        pipe::writer(name)
    }

    fn reader<T: Plain, const N: usize>(&self, name: &str) -> Result<Reader<'static, T, N>, Errno> {
        pipe::reader(name)
    }

    fn mailbox(&self, name: &str, wakes: Wakes) -> Result<Letters, Errno> {
        let event = match wakes {
            Wakes::Nobody => return mailbox::Mailbox::open(name).map(Letters),
            Wakes::Sending(interface) => self.sending.get(interface).and_then(Option::as_ref),
            Wakes::Tuning => self.tuning.as_ref(),
        };
        let event = event.ok_or(Errno::Absent)?;
        mailbox::Mailbox::open_with(name, event).map(Letters)
    }

    fn log(line: fmt::Arguments<'_>) {
        log!("{line}");
    }

    fn measured(words: &Words) {
        log::measured(words);
    }

    fn heap_used() -> usize {
        HEAP.used().unwrap_or(0)
    }
}

//! The reading end of a `[[pipe]]` from a device that is no CAN interface.

use diapason_abi::{Errno, Nanos};
use diapason_contract::sensor::{self, LOST_BEFORE, OUTSIDE, Packet};
use diapason_contract::source::{LOOK, LOOKS, PipeSource, READS};
use diapason_contract::threads::ServiceKind;
use diapason_pipe::Reader;
use diapason_pipe::clock::Delay;
use diapason_pipe::measured::{Gauge, ReadMessage};
use diapason_rt::sync::Semaphore;
use diapason_rt::{log, pipe, settings, time};
use diapason_state::Plain;

/// A message that tells how it came.
pub trait Arrived: Plain {
    /// Returns the measurement of the message that is whole with this record, which was read at
    /// `read`.
    fn passed(&self, read: Nanos) -> Option<ReadMessage>;
}

/// Returns the delay that a record has in two words.
pub(crate) fn delay(moved: u32, inexact: u32) -> Delay {
    Delay { beyond: Nanos(moved.into()), inexact: Nanos(inexact.into()) }
}

impl Arrived for Packet {
    fn passed(&self, read: Nanos) -> Option<ReadMessage> {
        Some(ReadMessage {
            time: Nanos(self.time),
            taken: Nanos(self.taken),
            read,
            moved: delay(self.moved, self.inexact),
            outside: self.flags & OUTSIDE != 0,
            lost_before: self.flags & LOST_BEFORE != 0,
        })
    }
}

/// The messages of a source.
///
/// It measures what passes it and reports once a second, in whatever call its program is then, as
/// a CAN channel does: nothing is to be done for that.
pub struct Inbox<T: Arrived, const N: usize> {
    messages: Reader<'static, T, N>,
    /// The semaphore by which the server tells of messages, unless it is on another core.
    ready: Option<Semaphore>,
    gauge: Gauge,
    source: &'static PipeSource,
}

/// The packets of a sensor, or of the endpoint of any other device.
pub type Packets = Inbox<Packet, { sensor::RECORDS }>;

impl Packets {
    /// Opens the pipe from the sensor that the description has this program read.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn of_sensor() -> Result<Packets, Errno> {
        Inbox::of(ServiceKind::Sensors)
    }
}

/// Opens the pipe from the endpoint of a device that no other service is for. The description says
/// which device and which endpoint ([`usb_open`] of a program without such a pipe fails).
///
/// # Errors
/// None for what the description grants.
pub fn usb_open() -> Result<Packets, Errno> {
    Inbox::of(ServiceKind::Endpoints)
}

/// Returns the source of a kind that the description has this program read or write, and its
/// number.
pub(crate) fn own(kind: ServiceKind) -> Result<(usize, &'static PipeSource), Errno> {
    let told = settings::read();
    let numbers = told.get(READS).iter().filter_map(|number| usize::try_from(*number).ok());
    let numbered = |number| Some((number, PipeSource::numbered(number)?));
    let of_kind = numbers.filter_map(numbered).find(|(_, source)| source.kind == kind);
    of_kind.or(PipeSource::of(kind)).ok_or(Errno::Absent)
}

impl<T: Arrived, const N: usize> Inbox<T, N> {
    /// Opens the pipe from the device of a kind that the description has this program read.
    pub(crate) fn of(kind: ServiceKind) -> Result<Inbox<T, N>, Errno> {
        Inbox::open(own(kind)?)
    }

    pub(crate) fn open(
        (number, source): (usize, &'static PipeSource),
    ) -> Result<Inbox<T, N>, Errno> {
        let messages = pipe::reader(source.pipe.0)?;
        let is_far = settings::read().get(LOOKS).contains(&(number as u64));
        let ready = if is_far { None } else { Some(Semaphore::open(source.ready)?) };
        let gauge = Gauge::new(false, u8::try_from(number).unwrap_or(u8::MAX));
        Ok(Inbox { messages, ready, gauge, source })
    }

    /// Returns what the driver of its device says of the endpoint, and the name of the work that is
    /// done for one message.
    #[must_use]
    pub const fn source(&self) -> &'static PipeSource {
        self.source
    }

    /// Returns the oldest message that came. Does not wait.
    pub fn read(&mut self) -> Option<T> {
        let message = self.messages.pop();
        let now = time::now();
        if let Some(passed) = message.as_ref().and_then(|message| message.passed(now)) {
            self.gauge.read(&passed);
        }
        self.look(now);
        message
    }

    /// Returns the oldest message that came, or waits for one until `deadline`.
    ///
    /// # Errors
    /// `TimedOut` if none came, or `Gone` if the semaphore was deleted.
    pub fn read_wait(&mut self, deadline: Nanos) -> Result<T, Errno> {
        loop {
            // A message that comes after the look is found by the next one, however long the
            // reader waits for the processor in between.
            let next = self.ready.is_none().then(|| time::now() + LOOK);
            if let Some(message) = self.read() {
                return Ok(message);
            }
            let due = self.gauge.due(time::now());
            match self.wait(next, (deadline, due)) {
                Err(Errno::TimedOut) if due < deadline => {}
                waited => waited?,
            }
        }
    }

    /// Waits until there may be a message, until a report is `due`, or until `deadline`. A reader
    /// that looks for messages itself sleeps until its `next` look, and reports then.
    fn wait(&self, next: Option<Nanos>, (deadline, due): (Nanos, Nanos)) -> Result<(), Errno> {
        if let Some(ready) = &self.ready {
            return ready.take(deadline.min(due));
        }
        let next = next.unwrap_or(deadline);
        time::sleep_until(next.min(deadline));
        if deadline < next { Err(Errno::TimedOut) } else { Ok(()) }
    }

    /// Counts messages that the caller found missing by their contents: they are reported as lost.
    pub fn missed(&mut self, messages: u64) {
        self.gauge.missed(messages);
    }

    /// Messages that the pipe had no room for: its reader was too slow.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.messages.lost()
    }

    fn look(&mut self, now: Nanos) {
        self.gauge.fill(self.messages.peak());
        self.gauge.look(now, self.messages.lost(), &mut log::measured);
    }
}

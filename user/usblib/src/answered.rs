//! The answers to what a program writes to a device: taken in, measured, and waited for.

use diapason_abi::{Errno, Nanos};
use diapason_contract::source::PipeSource;
use diapason_contract::{disk, sink};
use diapason_pipe::Reader;
use diapason_pipe::measured::Gauge;
use diapason_rt::sync::Semaphore;
use diapason_rt::{log, pipe, time};
use diapason_state::Plain;

// A status means the same of every device.
const _: () = assert!(disk::DONE == sink::DONE && disk::GONE == sink::GONE);

/// The end of a message that was written.
pub(crate) struct WrittenEnd {
    /// The times at which it was written, taken by the server, and known to have ended.
    pub written: u64,
    pub taken: u64,
    pub ended: u64,
    pub status: u32,
    /// 1 if it was outside of the contract of its pipe, else 0.
    pub outside: u32,
}

/// An answer of a server.
pub(crate) trait Answer: Plain {
    /// Returns the end of the message that it answers. `None` if it answers something else.
    fn end(&self) -> Option<WrittenEnd>;
}

/// The answers to the messages of a pipe to a device.
///
/// They are measured as they are taken in, and reported once a second.
pub(crate) struct Answers<T: Answer, const N: usize> {
    answers: Reader<'static, T, N>,
    ready: Semaphore,
    gauge: Gauge,
    pub source: &'static PipeSource,
    /// Messages that were written and not answered.
    pub open: u64,
    /// The device has taken a message.
    works: bool,
}

impl<T: Answer, const N: usize> Answers<T, N> {
    /// Opens those of this pipe to a device.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn of(source: &'static PipeSource) -> Result<Answers<T, N>, Errno> {
        Ok(Answers {
            answers: pipe::reader(source.pipe.0)?,
            ready: Semaphore::open(source.ready)?,
            gauge: Gauge::new(true, u8::try_from(source.number()).unwrap_or(u8::MAX)),
            source,
            open: 0,
            works: false,
        })
    }

    /// Takes in an answer. A message that the device did not take counts as lost, but not while the
    /// device has not come yet.
    pub fn take(&mut self) -> Option<T> {
        let answer = self.answers.pop()?;
        if let Some(WrittenEnd { written, taken, ended, status, outside }) = answer.end() {
            let [taking, whole] = [taken, ended].map(|time| Nanos(time) - Nanos(written));
            match status {
                sink::DONE => {
                    self.works = true;
                    let moving = Nanos(ended) - Nanos(taken);
                    self.gauge.through(1, [taking, moving, Nanos::ZERO], whole, Nanos::ZERO);
                }
                sink::GONE if !self.works => {}
                _ => self.gauge.missed(1),
            }
            self.gauge.exceeded(outside);
            self.open = self.open.saturating_sub(1);
        }
        Some(answer)
    }

    /// Notes how many messages are under way. Until the device is there, the server answers when it
    /// looks at the pipe.
    pub fn fill(&mut self) {
        if self.works {
            self.gauge.fill(self.open);
        }
    }

    /// Reports, if a report is due.
    pub fn look(&mut self, now: Nanos) {
        self.gauge.look(now, self.answers.lost(), &mut log::measured);
    }

    /// Waits until there may be an answer, until a report is due, or until `deadline`.
    ///
    /// # Errors
    /// `TimedOut` at the deadline, or `Gone` if the semaphore was deleted.
    pub fn wait(&mut self, deadline: Nanos) -> Result<(), Errno> {
        let due = self.gauge.due(time::now());
        match self.ready.take(deadline.min(due)) {
            Err(Errno::TimedOut) if due < deadline => Ok(()),
            taken => taken,
        }
    }
}

//! A disk: blocks between the medium and memory that the client shares with the controller.
//!
//! A client writes what it wants into the pipe of asks and gives `disk.ask`; it is answered in the
//! same order. From the ask to its answer the memory it names is the device's.

use diapason_abi::{Errno, Nanos};
pub use diapason_contract::disk::*;
use diapason_pipe::{Reader, Writer};
use diapason_rt::memory::Dma;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;

/// The client's side of a disk.
pub struct Disk {
    asks: Writer<'static, Ask, RECORDS>,
    answers: Reader<'static, Answer, RECORDS>,
    ask: Semaphore,
    ready: Semaphore,
    /// The memory that is shared.
    pub data: Dma,
}

impl Disk {
    /// The disk of the description.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open() -> Result<Disk, Errno> {
        Ok(Disk {
            asks: pipe::writer(ASKS)?,
            answers: pipe::reader(ANSWERS)?,
            ask: Semaphore::open(ASKED)?,
            ready: Semaphore::open(READY)?,
            data: Dma::attach(DATA)?,
        })
    }

    /// Asks without waiting for the answer.
    ///
    /// # Errors
    /// `Full` if too many wait.
    pub fn ask(&mut self, ask: &Ask) -> Result<(), Errno> {
        self.asks.push(ask).map_err(|_| Errno::Full)?;
        // At its limit it has been given often enough.
        let _ = self.ask.give();
        Ok(())
    }

    /// The next answer.
    ///
    /// # Errors
    /// `TimedOut`, or `Gone` if the semaphore was deleted.
    pub fn answer(&mut self, deadline: Nanos) -> Result<Answer, Errno> {
        loop {
            if let Some(answer) = self.answers.pop() {
                return Ok(answer);
            }
            self.ready.take(deadline)?;
        }
    }
}

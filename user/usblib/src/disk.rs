//! A disk: blocks between the medium and memory that the client shares with the controller.
//!
//! A client writes what it wants into the pipe of asks and gives `disk.ask`; it is answered in the
//! same order. From the ask to its answer the memory it names is the device's.

use crate::UsbClient;
use diapason_abi::{Errno, Nanos};
pub use diapason_contract::disk::*;

/// The client's side of a disk.
pub type Disk = UsbClient<Ask, Answer, RECORDS>;

impl Disk {
    /// The disk of the description.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open() -> Result<Disk, Errno> {
        UsbClient::named([ASKS, ANSWERS, DATA, ASKED, READY])
    }

    /// Asks without waiting for the answer.
    ///
    /// # Errors
    /// `Full` if too many wait.
    pub fn ask(&mut self, ask: &Ask) -> Result<(), Errno> {
        self.put(ask)?;
        self.ring();
        Ok(())
    }

    /// The next answer.
    ///
    /// # Errors
    /// `TimedOut`, or `Gone` if the semaphore was deleted.
    pub fn answer(&mut self, deadline: Nanos) -> Result<Answer, Errno> {
        loop {
            if let Some(answer) = self.pop() {
                return Ok(answer);
            }
            self.wait(deadline)?;
        }
    }
}

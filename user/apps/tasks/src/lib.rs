//! Asks of tasks and servers made to measure: which servers they ask, and how often.

#![no_std]

use diapason_abi::{Errno, MESSAGE_BYTES, Nanos};
use diapason_rt::server::AskedMailbox;
use diapason_rt::time;

/// Mailboxes that have servers.
pub const SERVICES: [&str; 3] = ["service-0", "service-1", "service-2"];

/// How often each server is asked, and how long a caller waits for each answer.
pub struct Asks {
    mailboxes: [Option<(AskedMailbox, u64)>; SERVICES.len()],
    /// Zero: as long as it takes.
    patience: Nanos,
}

impl Asks {
    /// Opens the mailboxes of `word`: its lowest bytes say how often each server is asked, and the
    /// upper half is the patience in microseconds.
    ///
    /// # Errors
    /// None for mailboxes that the description grants.
    pub fn open(word: u64) -> Result<Asks, Errno> {
        let mut mailboxes = [None; SERVICES.len()];
        for ((place, name), times) in mailboxes.iter_mut().zip(SERVICES).zip(word.to_le_bytes()) {
            if times > 0 {
                *place = Some((AskedMailbox::open(name)?, u64::from(times)));
            }
        }
        Ok(Asks { mailboxes, patience: Nanos::from_micros(word >> 32) })
    }

    /// Returns how many asks there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.mailboxes.iter().flatten().map(|(_, times)| times).sum()
    }

    /// Asks each server as often as it is due, and calls `before` ahead of each ask. Goes on
    /// without an answer that does not come in time, or not at all.
    pub fn each(&self, buffer: &mut [u8; MESSAGE_BYTES], before: impl Fn()) {
        for (mailbox, times) in self.mailboxes.iter().flatten() {
            for _ in 0..*times {
                before();
                let deadline = match self.patience {
                    Nanos::ZERO => Nanos::FOREVER,
                    patience => time::now() + patience,
                };
                let _ = mailbox.ask_into(buffer, 8, 0, deadline);
            }
        }
    }
}

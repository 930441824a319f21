//! The books of a message on a bus: how many came, how many are through, and how long they took.

use diapason_abi::Nanos;

/// The books of a message. All that came are through, early, lost, or wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageBooks {
    pub came: u64,
    pub sent: u64,
    /// Messages that came before their unit knew the common time for the first time. They are
    /// never sent.
    pub early: u64,
    /// Messages that were never sent because their unit did not know the time any more or was
    /// switched off, or because its queue was full.
    pub lost: u64,
    pub waiting: u64,
    /// Messages that were through after their deadlines, or wait although that is over.
    pub late: u64,
    /// The longest from when one came until it was through.
    pub longest: Option<Nanos>,
}

impl MessageBooks {
    /// A message that came at `came` is through.
    pub(super) fn through(&mut self, came: Nanos, deadline: Option<Nanos>, now: Nanos) {
        let took = now - came;
        self.sent += 1;
        self.late += u64::from(deadline.is_some_and(|deadline| took > deadline));
        self.longest = self.longest.max(Some(took));
    }
}

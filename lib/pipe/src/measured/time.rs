//! Reports on a common time.

use super::Values;
use diapason_abi::Nanos;

/// The common time of a host when the report was written, and what disturbs it since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeReport {
    /// The number of the adapter on its host.
    pub adapter: u8,
    /// The common time; `None` while the host does not know it.
    pub common: Option<Nanos>,
    /// The name of the clock that leads. Zero says that none does.
    pub grandmaster: u64,
    /// Events without a stamp that could be used.
    pub unstamped: u64,
    /// Messages that came faster than the server hears them.
    pub lost: u64,
}

impl TimeReport {
    pub(super) fn values(&self) -> Values {
        let common = self.common.unwrap_or(Nanos::FOREVER).0;
        [common, self.grandmaster, self.unstamped, self.lost, 0, 0, 0, 0]
    }

    pub(super) fn of(adapter: u8, values: Values) -> TimeReport {
        let [common, grandmaster, unstamped, lost, ..] = values;
        let common = Some(Nanos(common)).filter(|common| *common != Nanos::FOREVER);
        TimeReport { adapter, common, grandmaster, unstamped, lost }
    }
}

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
    /// The host's clock when the server began to keep the time.
    pub begun: Nanos,
    /// The host's clock when the server first saw that it knows the time; `None` before.
    pub known: Option<Nanos>,
    /// Frames of programs that the server discarded before it first knew the time, because its
    /// gates go by it.
    pub without: u64,
    /// Frames that it discarded for this reason since then: it had lost the time.
    pub unsent: u64,
}

impl TimeReport {
    /// Returns the first report of an adapter, of a host that does not know the time.
    #[must_use]
    pub const fn new(adapter: u8, begun: Nanos) -> TimeReport {
        TimeReport {
            adapter,
            common: None,
            grandmaster: 0,
            unstamped: 0,
            lost: 0,
            begun,
            known: None,
            without: 0,
            unsent: 0,
        }
    }

    pub(super) fn values(&self) -> Values {
        let TimeReport { grandmaster, unstamped, lost, begun, without, unsent, .. } = *self;
        let [common, known] = [self.common, self.known].map(|it| it.unwrap_or(Nanos::FOREVER).0);
        [common, grandmaster, unstamped, lost, begun.0, known, without, unsent]
    }

    pub(super) fn of(adapter: u8, values: Values) -> TimeReport {
        let [common, grandmaster, unstamped, lost, begun, known, without, unsent] = values;
        let some = |time| Some(Nanos(time)).filter(|time| *time != Nanos::FOREVER);
        let (common, known, begun) = (some(common), some(known), Nanos(begun));
        TimeReport { adapter, common, grandmaster, unstamped, lost, begun, known, without, unsent }
    }
}

//! By how much a bound was exceeded that changes while the system runs.

use diapason_abi::Nanos;

/// The longest time and the bound of its time, where that was exceeded most; nothing if it never
/// was.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Late(Option<(Nanos, Nanos)>);

impl Late {
    /// So long it took, by this bound; without one nothing was promised.
    pub(super) fn note(&mut self, longest: Nanos, bound: Nanos) {
        let most = self.0.map_or(Nanos::ZERO, |(longest, bound)| longest - bound);
        if bound > Nanos::ZERO && longest - bound > most {
            self.0 = Some((longest, bound));
        }
    }

    /// Both in ns, if the bound was exceeded by more than this, which is added to it.
    pub(super) fn beyond(self, slack_ns: u64) -> Option<(u64, u64)> {
        let (Nanos(longest), Nanos(bound)) = self.0?;
        let bound = bound.saturating_add(slack_ns);
        (longest > bound).then_some((longest, bound))
    }
}

//! Work that arrives again and again.

use diapason_abi::Nanos;

/// Periodic arrivals with jitter, each with the same amount of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Work of one arrival (e).
    pub work: Nanos,
    /// Distance of nominal arrivals (p).
    pub period: Nanos,
    /// How long after the nominal time one may arrive (J).
    pub jitter: Nanos,
}

impl Stream {
    /// Returns the most arrivals in a closed window of length `window`: ⌊(window + J) / p⌋ + 1.
    #[must_use]
    pub fn events(&self, window: Nanos) -> u64 {
        let wide = u128::from(window.0) + u128::from(self.jitter.0);
        match wide.checked_div(u128::from(self.period.0)) {
            Some(times) => u64::try_from(times + 1).unwrap_or(u64::MAX),
            None => u64::MAX,
        }
    }

    /// u(d): most work that arrives in a closed window of length `window`.
    #[must_use]
    pub fn demand(&self, window: Nanos) -> Nanos {
        Nanos(self.events(window).saturating_mul(self.work.0))
    }
}

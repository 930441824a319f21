//! The clock of the host, to which a run with clients or adapters is held back.

use diapason_abi::Nanos;
use std::time::{Duration, Instant};

/// A run that is later than this begins to count anew, and so does not hurry after the lost time.
const LATE_MAX: Duration = Duration::from_millis(50);

/// Returns the instant at the host's clock.
pub(crate) fn here() -> Instant {
    Instant::now()
}

/// An instant of the host and of the run, from which both are counted.
#[derive(Default)]
pub(crate) struct Pace(Option<(Instant, Nanos)>);

impl Pace {
    /// Waits until the host is as far as the run.
    pub fn wait(&mut self, now: Nanos) {
        let here = here();
        let (begin, from) = *self.0.get_or_insert((here, now));
        let Some(passed) = now.0.checked_sub(from.0) else { return };
        let due = begin + Duration::from_nanos(passed);
        if here > due + LATE_MAX {
            self.0 = Some((here, now));
        } else {
            std::thread::sleep(due.saturating_duration_since(here));
        }
    }
}

//! Datagrams in step with gates: when a program releases the next one, and whether the server takes
//! it.
//!
//! The server tells the time of its gates by one word of the inbox that it shares with the program.
//! It does not trust the program: a datagram that comes at another time than the plan counts with
//! is discarded, so it delays no other.

use core::sync::atomic::{AtomicU64, Ordering};
use diapason_abi::Nanos;
use diapason_contract::release::ReleaseTerms;

/// By how much the time of gates is ahead of the host's clock, as the server last told a program.
/// Zeroed memory says that nobody knows.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct GateAhead(AtomicU64);

impl GateAhead {
    /// Returns the word before anybody told a time.
    #[must_use]
    pub const fn new() -> GateAhead {
        GateAhead(AtomicU64::new(0))
    }

    /// Tells what the gates' time was when the host's clock said `now`; `None` if it is not known.
    pub fn tell(&self, now: Nanos, time: Option<Nanos>) {
        let word = time.map_or(0, |time| time.0.wrapping_sub(now.0) << 1 | 1);
        self.0.store(word, Ordering::Release);
    }

    /// Returns by how much the gates' time is ahead; `None` if it is not known.
    #[must_use]
    pub fn get(&self) -> Option<i64> {
        let word = self.0.load(Ordering::Acquire).cast_signed();
        (word & 1 == 1).then_some(word >> 1)
    }
}

/// The releases of a program.
#[derive(Clone, Copy, Debug)]
pub struct GateReleases {
    terms: ReleaseTerms,
    /// The last release was in step.
    in_step: bool,
}

impl GateReleases {
    /// Returns the releases of a program that has released nothing.
    #[must_use]
    pub const fn new(terms: ReleaseTerms) -> GateReleases {
        GateReleases { terms, in_step: false }
    }

    /// Returns the release that follows the one at `last`, by the host's clock. `ahead` is what the
    /// server told of the time of its gates. Without it, releases go on by the host's clock and are
    /// not in step. Two that are not both in step are at least a period apart.
    pub fn after(&mut self, last: Nanos, ahead: Option<i64>) -> Nanos {
        let ReleaseTerms { is_common, first_ns, period_ns, .. } = self.terms;
        let ahead = if is_common { ahead } else { Some(0) };
        // The time of the gates may have moved since the last one, by far less than half a period.
        let least = last + Nanos(if self.in_step { period_ns / 2 } else { period_ns });
        self.in_step = ahead.is_some();
        let Some(ahead) = ahead.filter(|_| period_ns > 0) else { return least };
        let into = i128::from(least.0) + i128::from(ahead) - i128::from(first_ns);
        let wait = (-into).rem_euclid(i128::from(period_ns));
        least + Nanos(u64::try_from(wait).unwrap_or(0))
    }
}

/// The datagrams that may be out of step after their host learns the time: the program may have
/// chosen two releases before it sees what the server told with the first.
const LEARNING: u8 = 2;

/// The judgement of a server about a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepVerdict {
    InStep,
    /// The program does not know the time of the gates yet.
    Learns,
    OutOfStep,
}

/// The watch of a server over the releases of one program.
#[derive(Clone, Copy, Debug)]
pub struct StepWatch {
    terms: ReleaseTerms,
    /// Datagrams that may still be out of step.
    left: u8,
}

impl StepWatch {
    /// Returns the watch over a program that has sent nothing. It may not know the time of gates
    /// yet if that is a common time.
    #[must_use]
    pub const fn new(terms: ReleaseTerms) -> StepWatch {
        StepWatch { terms, left: if terms.is_common { LEARNING } else { 0 } }
    }

    /// Judges a datagram that is queued at this time of the gates; `None` while it is not known.
    pub fn judge(&mut self, time: Option<Nanos>) -> StepVerdict {
        let ReleaseTerms { first_ns, period_ns, early_ns, late_ns, .. } = self.terms;
        let Some(time) = time else {
            self.left = LEARNING;
            return StepVerdict::Learns;
        };
        let into = i128::from(time.0) + i128::from(early_ns) - i128::from(first_ns);
        let into = into.rem_euclid(i128::from(period_ns.max(1)));
        if into <= i128::from(early_ns) + i128::from(late_ns) {
            self.left = 0;
            return StepVerdict::InStep;
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                StepVerdict::Learns
            }
            None => StepVerdict::OutOfStep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: ReleaseTerms = ReleaseTerms {
        socket: 0,
        is_common: true,
        first_ns: 1_000,
        period_ns: 6_000,
        early_ns: 5,
        late_ns: 700,
    };

    #[test]
    fn the_gates_time_is_told_whichever_clock_is_ahead() {
        let ahead = GateAhead::default();
        assert_eq!(ahead.get(), None);
        let times = [(5, 5), (5, 9), (9, 5), (0, 1 << 61), (1 << 61, 0), (7, 6)];
        for (now, time) in times {
            ahead.tell(Nanos(now), Some(Nanos(time)));
            assert_eq!(ahead.get(), Some(time as i64 - now as i64));
        }
        ahead.tell(Nanos(5), None);
        assert_eq!(ahead.get(), None);
    }

    #[test]
    fn releases_keep_step_and_are_never_closer_than_a_period() {
        let mut releases = GateReleases::new(TERMS);
        // Nobody knows the time: a period after the last one.
        assert_eq!(releases.after(Nanos(100), None), Nanos(6_100));
        // The gates are 50 ahead: they say 13,000 when the host's clock says 12,950.
        assert_eq!(releases.after(Nanos(6_100), Some(50)), Nanos(12_950));
        assert_eq!(releases.after(Nanos(12_950), Some(50)), Nanos(18_950));
        // They gained or lost a little: no release is left out or doubled.
        assert_eq!(releases.after(Nanos(18_950), Some(49)), Nanos(24_951));
        assert_eq!(releases.after(Nanos(24_951), Some(52)), Nanos(30_948));
        // The time is lost, and comes back far away.
        assert_eq!(releases.after(Nanos(30_948), None), Nanos(33_948));
        assert_eq!(releases.after(Nanos(33_948), Some(-2_948)), Nanos(39_948));
    }

    #[test]
    fn gates_by_the_clock_of_the_host_need_no_word() {
        let mut releases = GateReleases::new(ReleaseTerms { is_common: false, ..TERMS });
        assert_eq!(releases.after(Nanos(0), Some(77)), Nanos(7_000));
        assert_eq!(releases.after(Nanos(7_000), None), Nanos(13_000));
    }

    #[test]
    fn datagrams_out_of_step_are_found_to_the_nanosecond() {
        let mut watch = StepWatch::new(ReleaseTerms { is_common: false, ..TERMS });
        let judged = [6_994, 6_995, 7_000, 7_700, 7_701, 12_994, 13_000, 60_999_701];
        let judged = judged.map(|time| watch.judge(Some(Nanos(time))) == StepVerdict::InStep);
        assert_eq!(judged, [false, true, true, true, false, false, true, false]);
        // Before the first release.
        assert_eq!(watch.judge(Some(Nanos(0))), StepVerdict::OutOfStep);
    }

    #[test]
    fn a_program_learns_the_time_with_two_datagrams() {
        let mut watch = StepWatch::new(TERMS);
        let (out, step) = (Some(Nanos(9_000)), Some(Nanos(7_000)));
        use StepVerdict::{InStep, Learns, OutOfStep};
        let mut judged = |times: [Option<Nanos>; 3]| times.map(|time| watch.judge(time));
        assert_eq!(judged([None, None, None]), [Learns; 3]);
        assert_eq!(judged([out, out, out]), [Learns, Learns, OutOfStep]);
        assert_eq!(judged([step, out, None]), [InStep, OutOfStep, Learns]);
        // The host learns another time.
        assert_eq!(judged([out, step, out]), [Learns, InStep, OutOfStep]);
    }
}

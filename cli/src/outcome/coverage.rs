//! Stretches of a run that reports cover. A promise that nobody measured is not known to be kept.

use super::{Alarm, Outcome};
use crate::duration::human;
use crate::names::Names;
use diapason_abi::Nanos;
use diapason_pipe::measured::REPORT;

/// Reports come once in [`REPORT`]; so much later is silence.
const SILENCE: u64 = 2 * REPORT.0;

/// The times at which reports came.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Coverage {
    last: u64,
    /// The longest time without a report: from and to.
    longest: (u64, u64),
}

impl Coverage {
    /// Of something that began then.
    pub(super) const fn since(at: Nanos) -> Coverage {
        Coverage { last: at.0, longest: (at.0, at.0) }
    }

    pub(super) fn note(&mut self, at: Nanos) {
        self.longest = self.longest_until(at.0);
        self.last = self.last.max(at.0);
    }

    fn longest_until(&self, end: u64) -> (u64, u64) {
        let gap = |(from, to): (u64, u64)| to.saturating_sub(from);
        let now = (self.last, end);
        if gap(now) > gap(self.longest) { now } else { self.longest }
    }

    /// The longest silence up to the end, if there was one.
    fn silence(&self, end: u64) -> Option<(u64, u64)> {
        let (from, to) = self.longest_until(end);
        (to.saturating_sub(from) > SILENCE).then_some((from, to))
    }
}

/// Something that a process is to measure.
pub(super) struct Watched<'a> {
    /// The alarm, and what is measured.
    pub alarm: &'static str,
    pub of: &'a str,
    pub process: u64,
    /// When reports on it came, if any did.
    pub coverage: Option<Coverage>,
}

impl Watched<'_> {
    /// Returns the alarm of a run in which it was not measured all the time.
    pub fn alarm(&self, outcome: &Outcome, names: &Names) -> Option<Alarm> {
        let end = outcome.last_of(self.process)?;
        let (name, process) = (self.of, names.process(self.process));
        let text = match self.coverage {
            None => format!("{name} was not measured: {process} never reported on it"),
            Some(coverage) => {
                let (from, to) = coverage.silence(end)?;
                format!(
                    "{name} was not measured from {} to {}: {process}, which reports once a \
                     second, did not",
                    human(from),
                    human(to)
                )
            }
        };
        let (from, to) = self.coverage.unwrap_or_default().longest_until(end);
        let observed = to.saturating_sub(from);
        Some(Alarm { name: self.alarm, of: name.into(), observed, assumed: SILENCE, text })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn watched(coverage: Option<Coverage>, end: u64) -> Option<(u64, String)> {
        let mut outcome = sample::outcome();
        outcome.end.as_mut().unwrap().time_ns = end;
        let watched = Watched { alarm: "pipe-unmeasured", of: "engine", process: 0, coverage };
        watched.alarm(&outcome, &sample::names()).map(|alarm| (alarm.observed, alarm.text))
    }

    fn reported(times: &[u64]) -> Option<Coverage> {
        let mut coverage = Coverage::default();
        times.iter().for_each(|ms| coverage.note(Nanos::from_millis(*ms)));
        Some(coverage)
    }

    #[test]
    fn silence_is_found_wherever_it_is() {
        let second = 1_000_000_000;
        assert_eq!(watched(reported(&[1_000, 2_010, 3_500]), 4 * second), None);
        assert_eq!(watched(reported(&[2_000, 4_000]), 6 * second), None);
        for (times, most) in [(&[1_000, 4_100][..], 3_100), (&[2_001], 3_999), (&[3_000], 3_000)] {
            let (observed, text) = watched(reported(times), 6 * second).unwrap();
            assert_eq!(observed, most * 1_000_000, "{text}");
            assert!(text.starts_with("engine was not measured from "), "{text}");
        }
        let (observed, text) = watched(None, second).unwrap();
        assert_eq!(observed, second);
        assert!(text.ends_with("never reported on it"), "{text}");
    }
}

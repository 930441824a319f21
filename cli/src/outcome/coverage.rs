//! Stretches of a run that reports cover. A promise that nobody measured is not known to be kept.

use super::{Outcome, RaisedAlarm};
use crate::duration::human;
use crate::names::Names;
use crate::plan::start::found_within;
use diapason_abi::Nanos;
use diapason_pipe::measured::REPORT;
use diapason_system::System;

/// Reports come once in [`REPORT`]; so much later is silence.
const SILENCE: u64 = 2 * REPORT.0;

/// A run of so long in which nothing came is worth a word.
pub(super) const EMPTY: Nanos = Nanos::from_secs(2);

/// Returns after how many nanoseconds something that its servers have to find first is missing.
pub(super) fn patience(system: &System) -> u64 {
    EMPTY.max(found_within(system)).0
}

/// Returns how long devices take beyond the time in which something would come anyway.
pub(super) const fn found(patience_ns: u64) -> u64 {
    patience_ns.saturating_sub(EMPTY.0)
}

/// The times at which reports came.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Coverage {
    /// When that began which is to be reported on.
    since: u64,
    first: Option<u64>,
    last: u64,
    /// Nobody is to report since then.
    rests: Option<u64>,
    /// The time since the last report in which nobody was to.
    rested: u64,
    /// The longest time without a report since the first one.
    longest: Gap,
}

/// A time without a report: from when, to when, and how much of it nobody was to report.
type Gap = (u64, u64, u64);

/// Returns how long such a time is.
fn gap((from, to, rested): Gap) -> u64 {
    to.saturating_sub(from).saturating_sub(rested)
}

impl Coverage {
    /// Returns the coverage of something that began at `at`.
    pub(super) const fn since(at: Nanos) -> Coverage {
        let (since, last, longest) = (at.0, at.0, (at.0, at.0, 0));
        Coverage { since, first: Some(at.0), last, rests: None, rested: 0, longest }
    }

    /// Notes that nobody is to report from now on, or that there are reports again at `at`.
    pub(super) fn rest(&mut self, at: u64, rests: bool) {
        if rests {
            self.rests.get_or_insert(at);
        } else {
            self.rested = self.rested_until(at);
            self.rests = None;
        }
    }

    /// Returns the time since the last report in which nobody was to report.
    fn rested_until(&self, end: u64) -> u64 {
        let now = self.rests.map_or(0, |since| end.saturating_sub(since.max(self.last)));
        self.rested + now
    }

    pub(super) fn note(&mut self, at: Nanos) {
        match self.first {
            None => self.first = Some(at.0),
            Some(_) => self.longest = self.longest_since(at.0),
        }
        (self.last, self.rested) = (self.last.max(at.0), 0);
    }

    fn longest_since(&self, end: u64) -> Gap {
        let now = (self.last, end, self.rested_until(end));
        if gap(now) > gap(self.longest) { now } else { self.longest }
    }

    /// Returns the longest time without a report up to the end, from when devices are found.
    fn longest_until(&self, end: u64, found: u64) -> Gap {
        let from = self.since.max(found);
        let Some(first) = self.first else { return (from.min(end), end, 0) };
        let (begin, later) = ((from.min(first), first, 0), self.longest_since(end));
        if gap(begin) > gap(later) { begin } else { later }
    }
}

/// Something that a process is to measure.
pub(super) struct Watched<'a> {
    /// The alarm, and what is measured.
    pub alarm: &'static str,
    pub of: &'a str,
    pub process: u64,
    /// The times at which reports came, if any did.
    pub coverage: Option<Coverage>,
    /// The devices that it needs may be found so late. Zero: before anybody would ask.
    pub found_ns: u64,
}

impl Watched<'_> {
    /// Returns the alarm of a run in which it was not measured all the time.
    pub fn alarm(&self, outcome: &Outcome, names: &Names) -> Option<RaisedAlarm> {
        let end = outcome.last_of(self.process)?;
        let (name, process) = (self.of, names.process(self.process));
        let longest = self.coverage.unwrap_or_default().longest_until(end, self.found_ns);
        let ((from, to, _), observed) = (longest, gap(longest));
        // A run without a report needs no silence to say so, unless devices come late.
        let is_silent = observed > SILENCE || self.coverage.is_none() && self.found_ns == 0;
        if !is_silent {
            return None;
        }
        let text = match self.coverage {
            None => format!("{name} was not measured: {process} never reported on it"),
            Some(_) => format!(
                "{name} was not measured from {} to {}: {process}, which reports once a second, \
                 did not",
                human(from),
                human(to)
            ),
        };
        Some(RaisedAlarm { name: self.alarm, of: name.into(), observed, assumed: SILENCE, text })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn watched(coverage: Option<Coverage>, end: u64) -> Option<(u64, String)> {
        watched_late(coverage, end, 0)
    }

    fn watched_late(coverage: Option<Coverage>, end: u64, found_ns: u64) -> Option<(u64, String)> {
        let mut outcome = sample::outcome();
        outcome.end.as_mut().unwrap().time_ns = end;
        let (alarm, of) = ("pipe-unmeasured", "engine");
        let watched = Watched { alarm, of, process: 0, coverage, found_ns };
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

    #[test]
    fn a_time_in_which_nobody_is_to_report_is_no_silence() {
        let second = 1_000_000_000;
        let mut coverage = Coverage::since(Nanos(second));
        coverage.rest(2 * second, true);
        coverage.rest(3 * second, true);
        assert_eq!(watched(Some(coverage), 90 * second), None);
        coverage.rest(50 * second, false);
        assert_eq!(watched(Some(coverage), 51 * second), None);
        // One second before it rested, and more than one after.
        let late = watched(Some(coverage), 51 * second + 1).map(|(long, _)| long);
        assert_eq!(late, Some(2 * second + 1));
        // Many short stretches without a report are one silence.
        let mut coverage = Coverage::since(Nanos(second));
        for at in 1..=3 {
            coverage.rest(10 * at * second, true);
            coverage.rest((10 * at + 9) * second, false);
        }
        let (long, _) = watched(Some(coverage), 40 * second).unwrap();
        assert_eq!(long, (9 + 1 + 1 + 1) * second);
        // A report that comes late is one.
        let mut coverage = Coverage::since(Nanos(second));
        coverage.rest(2 * second, true);
        coverage.note(Nanos(4 * second));
        coverage.rest(9 * second, false);
        assert_eq!(watched(Some(coverage), 11 * second), None);
    }

    #[test]
    fn silence_begins_when_devices_are_found() {
        let second = 1_000_000_000;
        let late = |coverage, end| watched_late(coverage, end, 3 * second).map(|(long, _)| long);
        assert_eq!(late(None, second), None);
        assert_eq!(late(None, 5 * second), None);
        assert_eq!(late(None, 5 * second + 1), Some(2 * second + 1));
        assert_eq!(late(reported(&[5_000]), 6 * second), None);
        assert_eq!(late(reported(&[5_100]), 6 * second), Some(2_100_000_000));
        // Nobody could report on what was opened late.
        let mut opened = Coverage::since(Nanos::from_secs(5));
        assert_eq!(watched(Some(opened), 7 * second), None);
        opened.note(Nanos::from_secs(6));
        assert_eq!(watched(Some(opened), 8 * second), None);
        assert_eq!(watched(Some(opened), 9 * second).map(|(long, _)| long), Some(3 * second));
        // Devices that were found early do not excuse later silence.
        assert_eq!(late(reported(&[1_000]), 6 * second), Some(5 * second));
    }
}

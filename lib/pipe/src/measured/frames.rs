//! Reports on frames: of an adapter, of the server's side of a socket, and of its program's side.
//!
//! Each of the three counts what it was offered, passed on and discarded, by reason. So offered =
//! passed + discarded in every report, and the reports of one run add up.

use super::{Measurement, REPORT, Reported, Values, Words, halves, pair};
use diapason_abi::Nanos;

/// Reasons in a report.
const IN_A_PART: usize = 16;
/// Most reasons for which frames are discarded.
pub const REASONS: usize = 32;
/// Reports that say all reasons.
const PARTS: u8 = (REASONS / IN_A_PART) as u8;

/// The part of a frame's way that a report is on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum FrameEnd {
    /// Everything that an adapter received.
    Adapter = 0,
    /// The frames that the server found to be for a socket.
    Server = 1,
    /// The frames that the program of a socket took.
    Program = 2,
}

impl FrameEnd {
    const ALL: [FrameEnd; 3] = [FrameEnd::Adapter, FrameEnd::Server, FrameEnd::Program];
}

/// How frames do at one end. Counts are since the start, times the longest since the last report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameReport {
    pub end: FrameEnd,
    /// The number of the adapter or of the socket on its host.
    pub number: u8,
    pub offered: u64,
    pub passed: u64,
    /// Frames outside of the contract that the plan assumes.
    pub outside: u64,
    /// Most that ever waited for the program.
    pub peak: u32,
    /// The longest from the server to the program. Of an adapter with gates: from the choice of a
    /// frame until the adapter had it.
    pub longest: Nanos,
    /// The number of the datagram or frame that took longest, from 1.
    pub slowest: u64,
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that a program wanted to send, and that are not of its socket. Of the server's end of
    /// a socket: those that did not keep step with gates.
    pub foreign: u64,
    /// The speed of an adapter's link, in Mbit/s. Zero says that there is no link.
    pub link: u32,
}

/// How many frames were discarded at one end since the start, for a few of the reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiscardReport {
    pub end: FrameEnd,
    pub number: u8,
    /// The index among the parts of all reasons.
    pub part: u8,
    pub counts: [u32; IN_A_PART],
}

impl FrameReport {
    /// Returns the report of an end at which no frame came.
    #[must_use]
    pub const fn new(end: FrameEnd, number: u8) -> FrameReport {
        FrameReport {
            end,
            number,
            offered: 0,
            passed: 0,
            outside: 0,
            peak: 0,
            longest: Nanos::ZERO,
            slowest: 0,
            sent: 0,
            foreign: 0,
            link: 0,
        }
    }

    pub(super) const fn values(&self) -> Values {
        let FrameReport { offered, passed, outside, peak, longest, slowest, .. } = *self;
        let fill = pair(peak, self.link);
        [offered, passed, outside, fill, longest.0, slowest, self.sent, self.foreign]
    }

    pub(super) fn of(end: u8, number: u8, values: Values) -> Option<FrameReport> {
        let end = *FrameEnd::ALL.get(usize::from(end))?;
        let [offered, passed, outside, fill, longest, slowest, sent, foreign] = values;
        let ((peak, link), longest) = (halves(fill), Nanos(longest));
        let report = FrameReport {
            offered,
            passed,
            outside,
            peak,
            longest,
            slowest,
            sent,
            foreign,
            link,
            ..FrameReport::new(end, number)
        };
        Some(report)
    }
}

impl DiscardReport {
    /// Returns the first of its reasons.
    #[must_use]
    pub const fn first(&self) -> usize {
        self.part as usize * IN_A_PART
    }

    pub(super) fn values(&self) -> Values {
        let mut values = [0; _];
        for (value, [low, high]) in values.iter_mut().zip(self.counts.as_chunks().0) {
            *value = pair(*high, *low);
        }
        values
    }

    pub(super) fn of(end: u8, number: u8, part: u8, values: Values) -> Option<DiscardReport> {
        let end = *FrameEnd::ALL.get(usize::from(end))?;
        let mut counts = [0; IN_A_PART];
        for ([low, high], value) in counts.as_chunks_mut().0.iter_mut().zip(values) {
            (*high, *low) = halves(value);
        }
        (part < PARTS).then_some(DiscardReport { end, number, part, counts })
    }
}

/// The measurements of one end, until it is time for a report.
#[derive(Clone, Copy, Debug)]
pub struct FrameGauge {
    report: FrameReport,
    /// Frames that were discarded up to the last report.
    told: u64,
    /// The time of the next report; zero before the first look.
    due: Nanos,
}

impl FrameGauge {
    /// Returns the gauge of this end before its first frame.
    #[must_use]
    pub const fn new(end: FrameEnd, number: u8) -> FrameGauge {
        FrameGauge { report: FrameReport::new(end, number), told: 0, due: Nanos::ZERO }
    }

    /// Notes that a program took a datagram so long after the server had it. `number` counts the
    /// datagrams.
    pub fn took(&mut self, number: u64, waited: Nanos) {
        if waited > self.report.longest || self.report.slowest == 0 {
            (self.report.longest, self.report.slowest) = (waited, number);
        }
    }

    /// Returns the time of the next report.
    pub fn due(&mut self, now: Nanos) -> Nanos {
        if self.due == Nanos::ZERO {
            self.due = now + REPORT;
        }
        self.due
    }

    /// Returns whether a report is due. The next one is due a second later.
    pub fn is_due(&mut self, now: Nanos) -> bool {
        let due = self.due(now);
        let is_due = now >= due;
        if is_due {
            self.due = if now - due < REPORT { due + REPORT } else { now + REPORT };
        }
        is_due
    }

    /// Reports what was offered and passed on so far, and discarded for each reason.
    pub fn say(
        &mut self,
        now: Nanos,
        [offered, passed]: [u64; 2],
        discarded: &[u64],
        say: &mut dyn FnMut(&Words),
    ) {
        let FrameReport { end, number, .. } = self.report;
        let report = FrameReport { offered, passed, ..self.report };
        say(&Reported { at: now, said: Measurement::Frames(report) }.words());
        (self.report.longest, self.report.slowest) = (Nanos::ZERO, 0);
        let sum = discarded.iter().sum();
        if sum == core::mem::replace(&mut self.told, sum) {
            return;
        }
        for (part, some) in (0..PARTS).zip(discarded.chunks(IN_A_PART)) {
            let mut counts = [0; IN_A_PART];
            let narrow = |count: &u64| u32::try_from(*count).unwrap_or(u32::MAX);
            counts.iter_mut().zip(some).for_each(|(to, count)| *to = narrow(count));
            let discards = DiscardReport { end, number, part, counts };
            say(&Reported { at: now, said: Measurement::Discards(discards) }.words());
        }
    }

    /// Returns the report under construction, for what an end counts besides.
    pub const fn report_mut(&mut self) -> &mut FrameReport {
        &mut self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(gauge: &mut FrameGauge, counts: [u64; 2], discarded: &[u64]) -> Vec<Measurement> {
        let mut all = Vec::new();
        gauge.say(Nanos(9), counts, discarded, &mut |words| {
            all.push(Reported::of(words).unwrap().said);
        });
        all
    }

    #[test]
    fn reports_add_up_and_discards_are_told_when_they_change() {
        let mut gauge = FrameGauge::new(FrameEnd::Program, 7);
        gauge.took(1, Nanos(5));
        gauge.took(2, Nanos(40));
        gauge.took(3, Nanos(6));
        let mut discarded = [0; 21];
        let quiet = said(&mut gauge, [3, 3], &discarded);
        let [Measurement::Frames(report)] = quiet[..] else { panic!("{quiet:?}") };
        assert_eq!((report.end, report.number), (FrameEnd::Program, 7));
        assert_eq!((report.offered, report.passed), (3, 3));
        assert_eq!((report.longest, report.slowest), (Nanos(40), 2));
        (discarded[0], discarded[15], discarded[20]) = (1, 2, u64::MAX / 2);
        let loud = said(&mut gauge, [9, 3], &discarded);
        let [Measurement::Frames(report), Measurement::Discards(low), Measurement::Discards(high)] =
            loud[..]
        else {
            panic!("{loud:?}")
        };
        assert_eq!((report.longest, report.slowest), (Nanos::ZERO, 0), "of the last second only");
        assert_eq!((low.first(), low.counts[0], low.counts[15]), (0, 1, 2));
        assert_eq!((high.first(), high.counts[4]), (16, u32::MAX));
        assert_eq!(said(&mut gauge, [9, 3], &discarded).len(), 1);
    }

    #[test]
    fn a_report_is_due_once_a_second() {
        let mut gauge = FrameGauge::new(FrameEnd::Adapter, 0);
        let at = |millis| Nanos::from_millis(millis);
        let due = [5, 1_004, 1_005, 1_006, 2_004, 2_100, 9_000, 9_999, 10_000].map(|millis| {
            let was = gauge.is_due(at(millis));
            (millis, was)
        });
        let rang: Vec<u64> = due.into_iter().filter(|(_, is)| *is).map(|(at, _)| at).collect();
        assert_eq!(rang, [1_005, 2_100, 9_000, 10_000]);
    }
}
